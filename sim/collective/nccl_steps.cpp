// A collective as the messages of its steps, for networks that simulate every message.
#include <algorithm>

#include "sim/collective/nccl_impl.hpp"
#include "sim/collective/steps.hpp"

namespace topsim::collective {
namespace {
// Messages between boxes whose NICs are joined name no NICs.
void join_nics(const Placement& placement, StepPlan& plan) {
  const auto joined = [](const PlacedBox& box) {
    return std::any_of(box.nics.begin(), box.nics.end(), [](DeviceId nic) { return !nic.valid(); });
  };
  if (!std::any_of(placement.boxes.begin(), placement.boxes.end(), joined)) return;
  std::vector<std::size_t> box_of(placement.ranks);
  for (std::size_t b = 0; b < placement.boxes.size(); ++b)
    for (const std::uint32_t rank : placement.boxes[b].ranks) box_of[rank] = b;
  for (StepMessage& message : plan.messages)
    if (message.way == StepMessage::kRouted && message.from < placement.ranks &&
        message.to < placement.ranks && box_of[message.from] != box_of[message.to])
      message.way = StepMessage::kJoined;
}
}  // namespace

std::vector<StepMessage> NcclModel::message_parts(Bytes bytes, DeviceId from, DeviceId to) const {
  UsageBuilder usage(impl_->router);
  impl_->share_channels(from, to, usage);
  // No part is empty; an empty message has one part.
  const std::int64_t parts = std::clamp<std::int64_t>(bytes.value(), 1, usage.connections(from, to));
  std::vector<StepMessage> out;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t begin = bytes.value() * part / parts, end = bytes.value() * (part + 1) / parts;
    out.push_back({0, 1, Bytes(end - begin), static_cast<std::uint16_t>(part), 0, 0});
    out.back().plain = true;
  }
  return out;
}

StepPlan NcclModel::steps(CollectiveKind kind, Bytes bytes, std::span<const DeviceId> gpus) const {
  if (gpus.size() < 2) return {};
  const Placement placement = impl_->placer.place(gpus);
  if (placement.boxes.size() > 1 && tuned(kind)) {
    const Choice best = impl_->choose(kind, bytes, placement);
    const bool sums_over_trees = best.algorithm == Algorithm::collnet_direct ||
                                 best.algorithm == Algorithm::collnet_chain ||
                                 best.algorithm == Algorithm::nvls || best.algorithm == Algorithm::nvls_tree;
    if (kind == CollectiveKind::all_reduce && sums_over_trees) {
      UsageBuilder reach = impl_->usage();
      impl_->route(kind, best, placement, gpus, reach);
      const Microseconds network = in_microseconds(reach.fabric_latency()) - kReferenceHop;
      const std::int64_t payload = std::max<std::int64_t>(bytes.value(), 1);
      Timing timing = time_collective(kind, best, payload, *placement.tuner, network, impl_->time);
      impl_->limit(reach, timing);
      StepPlan plan = sum_steps(impl_->router, payload, best, placement, timing);
      join_nics(placement, plan);
      plan.choice = best;
      return plan;
    }
  }
  const CollectiveKind wire = kind == CollectiveKind::barrier ? CollectiveKind::all_reduce : kind;
  const std::int64_t payload = std::max<std::int64_t>(kind == CollectiveKind::barrier ? 4 : bytes.value(), 1);
  const Choice choice = impl_->choose_messages(wire, bytes, payload, placement);
  // The longest hop through the fabric that the channels use.
  UsageBuilder reach = impl_->usage();
  if (choice.algorithm == Algorithm::ring) lower_ring(wire, placement, choice.channels, reach);
  if (choice.algorithm == Algorithm::tree) lower_tree(placement, choice.channels, reach);
  if (choice.algorithm == Algorithm::direct) reach.add({.from = gpus.front(), .to = gpus.back()}, 1);
  const Microseconds network = in_microseconds(reach.fabric_latency()) - kReferenceHop;
  if (choice.algorithm == Algorithm::direct) {
    Timing timing = time_direct(wire, payload, *placement.tuner, network, impl_->time);
    if (impl_->sockets) {
      UsageBuilder whole = impl_->usage();
      impl_->route(wire, choice, placement, gpus, whole);
      impl_->limit(whole, timing);
    }
    UsageBuilder usage = impl_->usage();
    usage.share_channels(placement.ranks, placement.tuner->facts().channels);
    StepPlan plan = direct_steps(usage, wire, payload, placement, timing);
    plan.choice = choice;
    return plan;
  }
  Timing timing = time_collective(wire, choice, payload, *placement.tuner, network, impl_->time);
  const StepTiming steps = time_steps(wire, choice, *placement.tuner, network, timing.latency, impl_->time);
  TreePipeline pipe = tree_pipeline(choice, payload, *placement.tuner);
  if (impl_->limit(reach, timing)) pipe.rate = timing.cap / choice.channels;
  StepPlan plan = choice.algorithm == Algorithm::tree
                      ? tree_steps(payload, choice, placement, pipe, timing.wire, steps)
                      : ring_steps(wire, payload, choice, placement, timing, steps);
  join_nics(placement, plan);
  plan.choice = choice;
  return plan;
}

void NcclModel::lower_step(const StepMessage& message, std::span<const DeviceId> gpus, Activity& out) const {
  out = {};
  UsageBuilder usage = impl_->usage();
  const topology::RouteQuery query{.from = gpus[message.from],
                                   .to = gpus[message.to],
                                   .connection = message.channel,
                                   .from_nic = message.from_nic,
                                   .to_nic = message.to_nic,
                                   .allow_pxn = allows_pxn(),
                                   .even = message.even};
  message.way == StepMessage::kJoined ? usage.add_hop(query, 1) : usage.add(query, 1);
  usage.finish(1, out.usage);
  if (message.plain) {
    as_message(usage, out);
    const DeviceId from = gpus[message.from], to = gpus[message.to];
    impl_->share_channels(from, to, usage);
    const double parts = usage.connections(from, to);
    out.weight /= parts;
    out.cap = BytesPerSecond(impl_->message_cap(from, to, usage) / parts);
    return;
  }
  out.cap = message.rate_cap;
  out.latency = message.latency;
}
}  // namespace topsim::collective
