// What communicates, before folding: every communicator, point-to-point edge and path to host memory, once.
#pragma once

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

// REQUIRES of both: the arguments outlive the result.
[[nodiscard]] std::vector<Group> enumerate_groups(const program::Program& program, const Shapes& shapes);

// Puts a group's calls on the links of a topology. Thread-safe.
class GroupLowering {
 public:
  GroupLowering(const program::Program& program, const topology::Router& router,
                const collective::NcclModel& nccl);
  // Throws ConfigError when two ranks that must talk cannot reach each other.
  [[nodiscard]] collective::LoweredCalls lower(const Group& group) const;
  [[nodiscard]] DeviceId device(RankId rank) const { return router_.topology().accelerators()[rank.index()]; }

 private:
  [[nodiscard]] DeviceId host_memory(DeviceId gpu) const;

  const program::Program& program_;
  const topology::Router& router_;
  const collective::NcclModel& nccl_;
  std::vector<DeviceId> host_memory_;  // by node
};
}  // namespace topsim::fold
