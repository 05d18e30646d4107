// Communicators that have their links to themselves (a tensor group on the NVLinks of its node), always or as
// long as nobody else sends there: the time of a call is then known when it begins, and the network need not
// be asked. A call that is met by another group's continues in the network with the rest of its bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/executor/carrier.hpp"
#include "sim/executor/options.hpp"
#include "sim/fold/fold.hpp"
#include "sim/network/network.hpp"
#include "sim/program/program.hpp"

namespace topsim::executor {

class IsolatedGroups {
 public:
  // A group can be isolated when nothing changes its links' capacity (faults, the carrier) and its members
  // call it from one stream, so that its calls never overlap. It is always isolated when no other group uses
  // its links. Where groups share a link, the first of them, others with the same members and others of its
  // circle (circles.hpp) are isolated while no call of another group is on their links. `allowed` false: no
  // group is isolated.
  // REQUIRES: the arguments outlive it.
  IsolatedGroups(const program::Program& program, const fold::System& system,
                 const std::vector<CapacityChange>& changes, Carrier& carrier, bool allowed);

  [[nodiscard]] bool isolated(std::uint32_t group) const { return isolated_[group]; }
  // Of rank classes.
  [[nodiscard]] const std::vector<std::vector<std::uint32_t>>& circles() const { return circles_; }
  // No call of another group is on its links.
  [[nodiscard]] bool undisturbed(std::uint32_t group) const { return others_[group] == 0; }
  // Groups that are isolated at times and share links with this one.
  [[nodiscard]] const std::vector<std::uint32_t>& disturbed_by(std::uint32_t group) const {
    return disturbs_[group];
  }
  // A call of a group begins and ends, in the network or not.
  void called(std::uint32_t group) {
    for (const std::uint32_t other : disturbs_[group]) ++others_[other];
  }
  void ended(std::uint32_t group) {
    for (const std::uint32_t other : disturbs_[group]) --others_[other];
    running_[group].event = engine::kNoHandle;
  }

  [[nodiscard]] Duration duration(std::uint32_t activity) const {
    const fold::Activity& a = system_.activities[activity];
    return a.bytes == Bytes(0) ? a.latency : alone_[activity].duration;
  }
  // A call of an isolated group begins; `event` will end it. REQUIRES: the group's last call is over.
  void begin(std::uint32_t group, std::uint32_t activity, SimTime now, std::uint32_t call,
             engine::Handle event);
  // Counts calls that have begun and ended without begin().
  void add(std::uint32_t activity, std::uint64_t calls) { ended_[activity] += calls; }
  // The group's running call is no longer alone. Nullopt: no call is running, or it has no bytes left.
  struct Met {
    std::uint32_t call, activity;
    double bytes;  // left
    engine::Handle event;
  };
  [[nodiscard]] std::optional<Met> meet(std::uint32_t group, SimTime now);

  // Of all calls that have begun, except those that were met.
  [[nodiscard]] std::uint64_t transfers() const;
  // What these calls carried over a link, up to `now`.
  [[nodiscard]] network::LinkRecord record(std::uint32_t link, SimTime now) const;

 private:
  struct Running {
    std::uint32_t activity = fold::System::kNone;
    std::uint32_t call = 0;
    SimTime begin{};
    engine::Handle event = engine::kNoHandle;
  };
  void find_users(const std::vector<CapacityChange>& changes, const Carrier& carrier);
  void isolate_at_times();
  // Bytes that the running call has still to send: what the network would say if it carried the call.
  [[nodiscard]] double left(const Running& last, SimTime now) const;
  // Calls of an isolated group that use a link.
  struct Carried {
    std::uint32_t group, activity;
    std::uint32_t share;  // into AloneCall::links
  };
  void add(const Carried& carried, SimTime now, network::LinkRecord& record) const;

  const fold::System& system_;
  std::vector<std::vector<std::uint32_t>> circles_;
  std::vector<bool> isolated_;                                  // by group
  std::vector<Running> running_;                                // by group: the last call
  std::vector<std::vector<std::uint32_t>> users_;               // by link: groups that use it
  std::vector<bool> varies_;                                    // by link: its capacity
  std::vector<std::vector<std::uint32_t>> disturbs_;            // by group
  std::vector<std::uint32_t> others_;                           // by group: calls under way that disturb it
  std::vector<AloneCall> alone_;                                // by activity; of isolated groups only
  std::vector<std::uint64_t> ended_;                            // by activity
  std::vector<std::vector<Carried>> carried_;                   // by link
  std::unordered_map<std::uint32_t, network::LinkRecord> met_;  // by link: of calls that were met, until then
};
}  // namespace topsim::executor
