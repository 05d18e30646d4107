// Means of integer times that still sum exactly.
//
// Every rank's step is divided into busy time and idle reasons, in whole picoseconds. A mean over steps or
// ranks is a fraction; rounding each part by itself would lose the sum. The largest-remainder rule keeps it:
// every part is rounded down, and the picoseconds missing from the rounded total go to the parts with the
// largest remainders (the earlier part where two are equal), so no part is off by a picosecond or more.
#pragma once

#include <cstdint>
#include <span>

#include "sim/executor/outcome.hpp"

namespace topsim::metrics {

struct Account {
  Duration busy{};
  std::array<Duration, executor::kReasons> idle{};
  // Not added to the sum:
  Duration slowed{};                // of busy, by communication beside it
  Duration communication{};         // in which a collective or message is under way
  Duration hidden_communication{};  // of it, beside computation
  [[nodiscard]] Duration idle_total() const;
  [[nodiscard]] Duration total() const { return busy + idle_total(); }
  friend bool operator==(const Account&, const Account&) = default;
};

// Nearest picosecond (half rounds up) of the mean step; zero for no steps.
[[nodiscard]] Duration mean_step(std::span<const Duration> steps);

// Mean step of one member of the class.
[[nodiscard]] Account mean_account(const executor::RankClass& ranks);

// Mean over all members of all classes and all steps.
[[nodiscard]] Account mean_account(std::span<const executor::RankClass> ranks);
}  // namespace topsim::metrics
