// Communicators that have their links to themselves (a tensor group on the NVLinks of its node): what a call
// takes is then known when it begins, and the network need not be asked.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/executor/carrier.hpp"
#include "sim/executor/options.hpp"
#include "sim/fold/fold.hpp"
#include "sim/network/network.hpp"
#include "sim/program/program.hpp"

namespace topsim::executor {

class IsolatedGroups {
 public:
  // `allowed` false: none. A group is isolated when no other group uses its links, nothing changes their
  // capacity (faults, the carrier), and its members call it from one stream, so that its calls never overlap.
  // REQUIRES: the arguments outlive it.
  IsolatedGroups(const program::Program& program, const fold::System& system,
                 const std::vector<CapacityChange>& changes, Carrier& carrier, bool allowed);

  [[nodiscard]] bool isolated(std::uint32_t group) const { return isolated_[group]; }
  [[nodiscard]] Duration duration(std::uint32_t activity) const {
    return system_.activities[activity].bytes == Bytes(0) ? Duration{} : alone_[activity].duration;
  }
  // A call begins; REQUIRES: the group's last one is over.
  void begin(std::uint32_t group, std::uint32_t activity, SimTime now);
  // `calls` have begun and ended since.
  void add(std::uint32_t activity, std::uint64_t calls) { ended_[activity] += calls; }

  [[nodiscard]] std::uint64_t transfers() const;  // of all calls that have begun
  // What these calls put on a link, up to `now`.
  [[nodiscard]] network::LinkRecord record(std::uint32_t link, SimTime now) const;

 private:
  struct Running {
    std::uint32_t activity = fold::System::kNone;
    SimTime begin{};
  };
  const fold::System& system_;
  std::vector<bool> isolated_;        // by group
  std::vector<Running> running_;      // by group: the last call
  std::vector<std::uint32_t> user_;   // by link: the group that alone uses it
  std::vector<AloneCall> alone_;      // by activity; of isolated groups only
  std::vector<std::uint64_t> ended_;  // by activity
};
}  // namespace topsim::executor
