// The members of NcclModel: nccl_model.cpp lowers calls to links, nccl_steps.cpp to messages.
#pragma once

#include <map>
#include <tuple>
#include <utility>

#include "sim/collective/collective.hpp"
#include "sim/collective/lowering.hpp"
#include "sim/collective/placement.hpp"
#include "sim/collective/time_model.hpp"
#include "sim/collective/torus.hpp"
#include "sim/collective/twins.hpp"
#include "sim/collective/usage.hpp"

namespace topsim::collective {
// 10 us to start a send/recv kernel pair: an estimate, no sweep behind it. No channel or protocol limit yet.
void as_message(const UsageBuilder& usage, Activity& out);

struct NcclModel::Impl {
  Impl(const topology::Router& r, Overrides o, TimeOptions t, std::shared_ptr<Searches> searches)
      : router(r),
        overrides(std::move(o)),
        time(t),
        placer(r, overrides, std::move(searches)),
        twins(r, placer),
        torus(r.topology()),
        sockets(over_tcp(r.topology())) {}
  const topology::Router& router;
  Overrides overrides;
  TimeOptions time;
  Placer placer;
  Twins twins;
  Torus torus;
  bool sockets;  // nodes speak TCP
  const std::atomic<bool>* stop = nullptr;

  [[nodiscard]] UsageBuilder usage(UsageBuilder::Grain grain = UsageBuilder::Grain::links) const {
    UsageBuilder usage(router, grain, stop);
    if (sockets) usage.watch_hosts();
    return usage;
  }
  // The payload rate that the threads behind the sockets copy; 0: no limit.
  [[nodiscard]] double copied(const UsageBuilder& usage, double wire) const {
    return socket_cap(usage.socket_hops(), overrides.socket_threads.value_or(0)) / wire;
  }
  // True: the threads are the limit.
  bool limit(const UsageBuilder& usage, Timing& timing) const {
    const double most = copied(usage, timing.wire);
    if (most <= 0 || (timing.cap > 0 && timing.cap <= most)) return false;
    timing.cap = most;
    return true;
  }
  Choice choose(CollectiveKind kind, Bytes bytes, const Placement& placement) const;
  Choice choose_messages(CollectiveKind kind, Bytes bytes, std::int64_t payload,
                         const Placement& placement) const;
  // The block of a torus, where NCCL's algorithms are not asked for.
  [[nodiscard]] std::optional<TorusBlock> block_of(std::span<const DeviceId> gpus) const {
    return overrides.algorithm ? std::nullopt : torus.block_of(gpus);
  }
  void route(CollectiveKind kind, const Choice& choice, const Placement& placement,
             std::span<const DeviceId> gpus, UsageBuilder& usage) const;
  using Routed = std::tuple<Algorithm, std::uint16_t, CollectiveKind>;  // what the links follow from
  // `take_way(wire, usage)`: a way that no earlier call has taken, in order, with an entry of `routed`.
  template <class TakeWay>
  std::vector<LoweredCalls::Call> lower(std::span<const CollectiveCall> calls, std::span<const DeviceId> gpus,
                                        UsageBuilder::Grain grain, std::map<Routed, UsageBuilder>& routed,
                                        const TakeWay& take_way) const;
  LoweredCalls lower(std::span<const CollectiveCall> calls, std::span<const DeviceId> gpus) const;
  void share_channels(DeviceId from, DeviceId to, UsageBuilder& usage) const;
  // Payload a second of a message by the threads behind sockets, or by host memory where the two may not
  // write to each other; 0: no limit.
  [[nodiscard]] double message_cap(DeviceId from, DeviceId to, const UsageBuilder& usage) const;
  [[nodiscard]] bool in_one_node(DeviceId a, DeviceId b) const {
    return router.topology().device(a).node == router.topology().device(b).node;
  }
  [[nodiscard]] bool are_accelerators(DeviceId a, DeviceId b) const {
    const auto is = [&](DeviceId id) {
      return router.topology().device(id).kind == topology::DeviceKind::accelerator;
    };
    return is(a) && is(b);
  }
  UsageBuilder message(DeviceId from, DeviceId to, std::uint64_t connection, UsageBuilder::Grain grain,
                       Activity& out) const;
};
}  // namespace topsim::collective
