// All groups, before folding: every communicator, point-to-point edge and path to host memory, once.
#pragma once

#include <utility>
#include <vector>

#include "sim/collective/collective.hpp"
#include "sim/fold/shapes.hpp"
#include "sim/program/program.hpp"
#include "topology/routes.hpp"

namespace topsim::fold {

struct Group {
  static constexpr std::uint32_t kNone = 0xffffffffU;
  program::Dimension dimension;
  const std::vector<CallShape>* calls;
  std::uint32_t communicator = kNone;  // else an edge:
  RankId from, to;                     // to invalid: host memory
  std::uint16_t slot = 0;              // communicator, peer or host direction
  [[nodiscard]] bool is_communicator() const { return communicator != kNone; }
};

// The role of a rank in a group, a separate number for every slot.
constexpr std::uint32_t kRoles = 3;
[[nodiscard]] constexpr std::uint32_t member_of(std::uint16_t slot) {
  return kRoles * slot;
}
[[nodiscard]] constexpr std::uint32_t sender_on(std::uint16_t slot) {
  return kRoles * slot + 1;
}
[[nodiscard]] constexpr std::uint32_t receiver_on(std::uint16_t slot) {
  return kRoles * slot + 2;
}
template <class Take>
void for_each_member(const program::Program& program, const Group& group, const Take& take) {
  if (group.is_communicator()) {
    for (const RankId r : program.members_of(CommunicatorId(group.communicator)))
      take(r, member_of(group.slot));
  } else {
    take(group.from, sender_on(group.slot));
    if (group.to.valid()) take(group.to, receiver_on(group.slot));
  }
}

// Both: REQUIRES that the arguments outlive the result.
[[nodiscard]] std::vector<Group> enumerate_groups(const program::Program& program, const Shapes& shapes);

// Lowers a group's calls to the links of a topology. Thread-safe.
class GroupLowering {
 public:
  GroupLowering(const program::Program& program, const topology::Router& router,
                const collective::NcclModel& nccl);
  // Throws ConfigError when two ranks that must talk cannot reach each other.
  [[nodiscard]] collective::LoweredCalls lower(const Group& group) const;
  // The same by stretches; throws the same.
  [[nodiscard]] collective::SketchedCalls sketch(const Group& group) const;
  [[nodiscard]] DeviceId device(RankId rank) const { return router_.topology().accelerators()[rank.index()]; }

 private:
  struct Communicator {
    std::vector<DeviceId> gpus;
    std::vector<collective::CollectiveCall> calls;
  };
  [[nodiscard]] Communicator communicator(const Group& group) const;
  [[nodiscard]] std::pair<DeviceId, DeviceId> ends(const Group& group) const;
  [[nodiscard]] DeviceId host_memory(DeviceId gpu) const;

  const program::Program& program_;
  const topology::Router& router_;
  const collective::NcclModel& nccl_;
};
}  // namespace topsim::fold
