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
                 const std::vector<CapacityChange>& changes, const Carrier& carrier, bool allowed);

  [[nodiscard]] bool isolated(std::uint32_t group) const { return isolated_[group]; }
  // What max-min sharing gives an activity that is alone: its bytes at its lowest limit, then its latency.
  [[nodiscard]] Duration duration(std::uint32_t activity) const {
    const fold::Activity& a = system_.activities[activity];
    return a.bytes == Bytes(0) ? Duration{} : wire_[activity] + a.latency;
  }
  // A call begins; REQUIRES: the group's last one is over.
  void begin(std::uint32_t group, std::uint32_t activity, SimTime now);
  // `calls` have begun and ended since.
  void add(std::uint32_t activity, std::uint64_t calls) { ended_[activity] += calls; }

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
  std::vector<Duration> wire_;        // by activity
  std::vector<double> rate_;          // by activity: bytes/s
  std::vector<std::uint64_t> ended_;  // by activity
};
}  // namespace topsim::executor
