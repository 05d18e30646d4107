#include "sim/fold/groups.hpp"

#include <utility>

#include "sim/base/error.hpp"
#include "sim/fold/incidence.hpp"
#include "topology/host_memory.hpp"

namespace topsim::fold {

std::vector<Group> enumerate_groups(const program::Program& program, const Shapes& shapes) {
  std::vector<Group> groups;
  groups.reserve(program.communicators.size() + program.ranks * program.peer_slots.size());
  std::vector<std::uint8_t> seen(program.communicators.size(), 0);
  for (std::size_t slot = 0; slot < program.communicator_slots.size(); ++slot) {
    for (std::uint32_t r = 0; r < program.ranks; ++r) {
      const CommunicatorId c = program.communicator_slots[slot][r];
      const auto& calls = shapes.collectives[program.class_of_rank[r]][slot];
      if (!c.valid() || calls.empty() || seen[c.index()]) continue;
      seen[c.index()] = 1;
      groups.push_back({program.communicators[c.index()].dimension,
                        &calls,
                        c.value,
                        {},
                        {},
                        static_cast<std::uint16_t>(slot)});
    }
  }
  for (std::size_t slot = 0; slot < program.peer_slots.size(); ++slot) {
    for (std::uint32_t r = 0; r < program.ranks; ++r) {
      const RankId peer = program.peer_slots[slot][r];
      const auto& calls = shapes.sends[program.class_of_rank[r]][slot];
      if (!peer.valid() || calls.empty()) continue;
      groups.push_back({program.peer_dimension[slot], &calls, Group::kNone, RankId(r), peer,
                        static_cast<std::uint16_t>(slot)});
    }
  }
  for (std::size_t direction = 0; direction < 2; ++direction) {
    for (std::uint32_t r = 0; r < program.ranks; ++r) {
      const auto& calls = shapes.host[program.class_of_rank[r]][direction];
      if (calls.empty()) continue;
      groups.push_back({program::Dimension::offload, &calls, Group::kNone, RankId(r), RankId(),
                        static_cast<std::uint16_t>(direction)});
    }
  }
  return groups;
}

GroupLowering::GroupLowering(const program::Program& program, const topology::Router& router,
                             const collective::NcclModel& nccl)
    : program_(program), router_(router), nccl_(nccl) {}

DeviceId GroupLowering::host_memory(DeviceId gpu) const {
  if (const auto memory = topology::nearest_host_memory(router_.topology(), gpu)) return *memory;
  throw ConfigError(
      "the node has no host memory to offload to",
      "a recipe has it as host.memory_bandwidth, a file as a device of kind \"host-memory\" linked "
      "to a cpu; or offload none");
}

GroupLowering::Communicator GroupLowering::communicator(const Group& group) const {
  Communicator result;
  for (RankId r : program_.members_of(CommunicatorId(group.communicator))) result.gpus.push_back(device(r));
  for (const CallShape& call : *group.calls)
    result.calls.push_back({call.kind, Bytes(call.bytes), call.own_kernels});
  return result;
}

std::pair<DeviceId, DeviceId> GroupLowering::ends(const Group& group) const {
  const DeviceId from = device(group.from);
  if (group.to.valid()) return {from, device(group.to)};
  return group.slot == 1 ? std::pair(host_memory(from), from) : std::pair(from, host_memory(from));
}

collective::LoweredCalls GroupLowering::lower(const Group& group) const {
  collective::LoweredCalls result;
  if (group.is_communicator()) {
    const auto [gpus, calls] = communicator(group);
    std::vector<collective::CollectiveCall> loading;
    for (std::size_t s = 0; s < calls.size(); ++s)
      if (Incidence::moves_data((*group.calls)[s])) loading.push_back(calls[s]);
    if (loading.size() == calls.size()) return nccl_.lower(calls, gpus);
    // Calls that load no link need no ways.
    const collective::SketchedCalls sketched = nccl_.sketch(calls, gpus);
    result.calls = sketched.calls;
    result.ways.resize(sketched.ways.size());
    if (loading.empty()) return result;
    const collective::LoweredCalls loads = nccl_.lower(loading, gpus);
    for (std::size_t s = 0, l = 0; s < calls.size(); ++s)
      if (Incidence::moves_data((*group.calls)[s]))
        result.ways[sketched.calls[s].way] = loads.ways[loads.calls[l++].way];
    return result;
  }
  const auto [from, to] = ends(group);
  collective::LoweredCalls::Call call;
  nccl_.lower_message(from, to, group.slot, call.activity);
  call.choice.algorithm = collective::Algorithm::direct;
  result.ways.push_back(std::move(call.activity.usage));
  call.activity.usage = {};
  result.calls.assign(group.calls->size(), call);
  return result;
}

collective::SketchedCalls GroupLowering::sketch(const Group& group) const {
  if (group.is_communicator()) {
    const auto [gpus, calls] = communicator(group);
    return nccl_.sketch(calls, gpus);
  }
  const auto [from, to] = ends(group);
  collective::SketchedCalls result = nccl_.sketch_messages(group.calls->size(), from, to, group.slot);
  for (auto& call : result.calls) call.choice.algorithm = collective::Algorithm::direct;
  return result;
}
}  // namespace topsim::fold
