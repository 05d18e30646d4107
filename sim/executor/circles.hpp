// Circles of rank classes: those connected by communicators of different kinds that share links, such as the
// tensor groups of four trays of an NVLink domain and the context groups between them. Their calls are made
// in turn, so that one team can walk them all (lock_step.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/fold/fold.hpp"

namespace topsim::executor {

class Circles {
 public:
  // REQUIRES: `system` outlives it.
  explicit Circles(const fold::System& system);

  // Brings the members of the group and of those whose links it shares into one circle; false, and nothing
  // has changed, where they cannot be one.
  bool join(std::uint32_t group, const std::vector<std::uint32_t>& sharing);
  // Each in ascending order.
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> take();

 private:
  [[nodiscard]] bool in_turn(std::uint32_t group, std::uint32_t other) const;

  const fold::System& system_;
  std::vector<std::uint32_t> circle_of_;  // by rank class
  std::vector<std::vector<std::uint32_t>> circles_;
};
}  // namespace topsim::executor
