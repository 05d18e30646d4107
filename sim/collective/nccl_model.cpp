#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/collective/nccl_impl.hpp"
#include "sim/collective/ring_rates.hpp"
#include "sim/collective/serving.hpp"

namespace topsim::collective {
namespace {

double bus_factor(CollectiveKind kind, double n) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      return (n - 1) / n;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::send_recv:
    case CollectiveKind::barrier:
      break;
  }
  return 1;
}

Choice torus_choice() {
  Choice choice;
  choice.algorithm = Algorithm::torus;
  return choice;
}

// Only the links limit it.
Timing time_torus(CollectiveKind kind, const TorusBlock& block, const topology::Topology& topology,
                  Duration between) {
  Timing timing;
  timing.latency = in_microseconds(torus_latency(kind, block, topology, between));
  return timing;
}

// Bytes of memory per byte of S that a ring's kernels (all-to-all: its copies) move on each member, what
// neighbours write into its FIFO included. Of n ranks, with b = (n - 1) / n: an all-gather sends its own 1/n,
// reads b from the FIFO and writes it out, b arrives, and 1/n is copied; a reduce-scatter reads all of S, b
// from the FIFO, b arrives, and 1/n is written; an all-reduce does both, its own part once; an all-to-all
// reads and writes all of S.
double bytes_of_memory(CollectiveKind kind, double bus_factor) {
  const bool twice = kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_to_all;
  return twice ? 2 + 2 * bus_factor : 2 + bus_factor;
}

}  // namespace

void as_message(const UsageBuilder& usage, Activity& out) {
  out.latency = usage.fabric_latency() + from_microseconds(10);
  out.weight = 2;
  out.ctas = 2;
  out.memory_traffic = 1;
}

Choice NcclModel::Impl::choose(CollectiveKind kind, Bytes bytes, const Placement& placement) const {
  if (kind == CollectiveKind::barrier)
    return placement.tuner->choose(CollectiveKind::all_reduce, 4, overrides);
  if (overrides.custom_all_reduce.value_or(false) && !overrides.algorithm && !overrides.protocol)
    if (const auto served = serving_choice(kind, bytes.value(), placement.tuner->facts())) return *served;
  if (tuned(kind)) return placement.tuner->choose(kind, bytes.value(), overrides);
  Choice direct;
  direct.algorithm = Algorithm::direct;
  direct.channels = static_cast<std::uint16_t>(placement.tuner->facts().channels);
  if (direct_in_ll(kind, bytes.value(), placement.tuner->facts())) direct.protocol = Protocol::ll;
  return direct;
}

void NcclModel::stop_at(const std::atomic<bool>& stop) {
  impl_->stop = &stop;
}

const topology::Router& NcclModel::router() const {
  return impl_->router;
}

bool NcclModel::allows_pxn() const {
  return impl_->overrides.pxn.value_or(true);
}

NcclModel::NcclModel(const topology::Router& router, Overrides overrides, TimeOptions time,
                     std::shared_ptr<Searches> searches)
    : impl_(std::make_unique<Impl>(router, std::move(overrides), time, std::move(searches))) {}
NcclModel::~NcclModel() = default;

// The library's own choice if it has a message form, else the better of ring and tree.
Choice NcclModel::Impl::choose_messages(CollectiveKind kind, Bytes bytes, std::int64_t payload,
                                        const Placement& placement) const {
  const Choice own = choose(kind, bytes, placement);
  if (!tuned(kind) || own.algorithm == Algorithm::ring || own.algorithm == Algorithm::tree) return own;
  Overrides without = overrides;
  without.nvls = false;
  if (without.algorithm == Algorithm::ring || without.algorithm == Algorithm::tree)
    return placement.tuner->choose(kind, payload, without);
  Overrides as_ring = without, as_tree = without;
  as_ring.algorithm = Algorithm::ring;
  as_tree.algorithm = Algorithm::tree;
  const Choice ring = placement.tuner->choose(kind, payload, as_ring);
  const Choice tree = placement.tuner->choose(kind, payload, as_tree);
  const bool rings = placement.tuner->time(kind, Algorithm::ring, Protocol::simple, payload).has_value();
  return rings && tree.algorithm == Algorithm::tree && tree.model_time < ring.model_time ? tree : ring;
}

bool NcclModel::found_no_channel(std::span<const DeviceId> gpus) const {
  if (impl_->block_of(gpus)) return false;
  const nccl::CommunicatorFacts& facts = impl_->placer.place(gpus).tuner->facts();
  return !facts.rccl && !facts.mesh && facts.ring.bandwidth_intra == double{nccl::kNoChannel};
}

std::string_view NcclModel::rules(std::span<const DeviceId> gpus) const {
  if (impl_->block_of(gpus)) return "";
  return impl_->placer.place(gpus).tuner->facts().rccl ? "RCCL" : "NCCL 2.30";
}

Choice NcclModel::choose(CollectiveKind kind, Bytes bytes, std::span<const DeviceId> gpus) const {
  if (by_axes(kind) && impl_->block_of(gpus)) return torus_choice();
  return impl_->choose(kind, bytes, impl_->placer.place(gpus));
}

// Adds the links that a choice uses, without the protocol's flags.
void NcclModel::Impl::route(CollectiveKind kind, const Choice& choice, const Placement& placement,
                            std::span<const DeviceId> gpus, UsageBuilder& usage) const {
  switch (choice.algorithm) {
    case Algorithm::ring:
      return lower_ring(kind, placement, choice.channels, usage);
    case Algorithm::tree:
      return lower_tree(placement, choice.channels, usage);
    case Algorithm::nvls:
      if (placement.boxes.size() == 1) return lower_nvls(kind, placement, usage);
      return lower_nvls_sharp(placement, usage);
    case Algorithm::multimem:
      return lower_nvls(kind, placement, usage);
    case Algorithm::nvls_tree:
      return lower_nvls_tree(placement, usage);
    case Algorithm::collnet_direct:
    case Algorithm::collnet_chain:
      return lower_collnet_direct(placement, usage);
    case Algorithm::pat:
      return lower_pat(placement, choice.channels, usage);
    case Algorithm::direct:
      usage.share_channels(placement.ranks, placement.tuner->facts().channels);
      if (kind == CollectiveKind::all_to_all)
        return lower_all_to_all(placement, overrides.pxn.value_or(true), usage);
      if (tuned(kind)) return lower_mesh(kind, placement, usage);
      return lower_neighbours(gpus, overrides.pxn.value_or(true), usage);
    case Algorithm::one_shot:
    case Algorithm::two_shot:
      return lower_mesh(kind, placement, usage);
    case Algorithm::torus:
      throw InternalError("a torus is lowered by its block, not by its placement");
  }
}

LoweredCalls NcclModel::lower(std::span<const CollectiveCall> calls, std::span<const DeviceId> gpus) const {
  if (gpus.size() < 2) {
    LoweredCalls out;
    out.calls.resize(calls.size());
    if (!calls.empty()) out.ways.resize(1);
    return out;
  }
  const auto key = impl_->twins.key_of(calls, gpus);
  if (!key) return impl_->lower(calls, gpus);
  const std::uint32_t node = impl_->router.topology().device(gpus.front()).node;
  if (auto known = impl_->twins.find(*key, node)) return std::move(*known);
  LoweredCalls out = impl_->lower(calls, gpus);
  impl_->twins.keep(*key, node, out);
  return out;
}

template <class TakeWay>
std::vector<LoweredCalls::Call> NcclModel::Impl::lower(std::span<const CollectiveCall> calls,
                                                       std::span<const DeviceId> gpus,
                                                       UsageBuilder::Grain grain,
                                                       std::map<Routed, UsageBuilder>& routed,
                                                       const TakeWay& take_way) const {
  std::vector<LoweredCalls::Call> out;
  const Placement placement = placer.place(gpus);
  const std::optional<TorusBlock> block = block_of(gpus);
  std::map<std::pair<Routed, double>, std::uint32_t> known;  // usage is scaled by the flags on the wire
  for (const CollectiveCall& call : calls) {
    LoweredCalls::Call& lowered = out.emplace_back();
    const bool on_torus = block && by_axes(call.kind);
    lowered.choice = on_torus ? torus_choice() : choose(call.kind, call.bytes, placement);
    const Choice& choice = lowered.choice;
    const CollectiveKind wire = call.kind == CollectiveKind::barrier ? CollectiveKind::all_reduce : call.kind;
    const Routed way{choice.algorithm, choice.channels, wire};
    const auto [usage, fresh] = routed.try_emplace(way, this->usage(grain));
    if (fresh && on_torus)
      lower_torus(wire, *block, usage->second);
    else if (fresh)
      route(wire, choice, placement, gpus, usage->second);
    const Microseconds network = in_microseconds(usage->second.fabric_latency()) - kReferenceHop;
    const std::int64_t bytes = call.bytes.value();
    // On a torus, kinds other than gathers and reductions are sent as messages; no NCCL channel limits them.
    const bool served = is_serving(choice.algorithm);
    Timing timing = block    ? time_torus(wire, *block, router.topology(), usage->second.fabric_latency())
                    : served ? time_serving(choice, *placement.tuner)
                    : call.own_kernels > Duration{}
                        ? time_own_kernels(bytes, call.own_kernels, *placement.tuner, network, time)
                    : tuned(wire) ? time_collective(wire, choice, std::max<std::int64_t>(bytes, 1),
                                                    *placement.tuner, network, time)
                                  : time_direct(wire, bytes, *placement.tuner, network, time);
    const auto [entry, first] =
        known.try_emplace({way, timing.wire}, static_cast<std::uint32_t>(known.size()));
    if (first) take_way(timing.wire, usage->second);
    lowered.way = entry->second;
    Activity& activity = lowered.activity;
    activity.host_copies = limit(usage->second, timing);
    activity.cap = BytesPerSecond(timing.cap);
    activity.cap_parts = timing.cap_parts;
    activity.latency = nearest_picosecond(timing.latency);
    activity.queued = nearest_picosecond(timing.queued);
    activity.weight = choice.channels;
    activity.ctas = block ? 0 : choice.channels;  // a torus uses DMA engines, no CTAs
    activity.bus_factor = bus_factor(wire, static_cast<double>(gpus.size()));
    activity.memory_traffic = bytes_of_memory(wire, activity.bus_factor);
    if (call.own_kernels > Duration{}) lowered.choice.channels = 0;  // it has none
  }
  return out;
}

LoweredCalls NcclModel::Impl::lower(std::span<const CollectiveCall> calls,
                                    std::span<const DeviceId> gpus) const {
  LoweredCalls out;
  std::map<Routed, UsageBuilder> routed;
  out.calls = lower(calls, gpus, UsageBuilder::Grain::links, routed,
                    [&](double wire, UsageBuilder& usage) { usage.finish(wire, out.ways.emplace_back()); });
  return out;
}

SketchedCalls NcclModel::sketch(std::span<const CollectiveCall> calls, std::span<const DeviceId> gpus) const {
  SketchedCalls out;
  if (gpus.size() < 2) {
    out.calls.resize(calls.size());
    out.ways.resize(calls.empty() ? 0 : 1);
    out.routes.resize(out.ways.size());
    return out;
  }
  std::map<Impl::Routed, UsageBuilder> routed;
  std::vector<UsageBuilder*> taken;
  out.calls = impl_->lower(calls, gpus, UsageBuilder::Grain::stretches, routed,
                           [&](double wire, UsageBuilder& usage) {
                             const auto at = std::find(taken.begin(), taken.end(), &usage);
                             out.ways.push_back({wire, static_cast<std::uint32_t>(at - taken.begin())});
                             if (at == taken.end()) taken.push_back(&usage);
                           });
  for (UsageBuilder* usage : taken) out.routes.push_back(usage->take_sketch());
  return out;
}

void NcclModel::lower(CollectiveKind kind, Bytes bytes, std::span<const DeviceId> gpus, Activity& out) const {
  const CollectiveCall call{kind, bytes};
  LoweredCalls lowered = lower(std::span(&call, 1), gpus);
  out = std::move(lowered.calls.front().activity);
  out.usage = std::move(lowered.ways.front());
}

// Sends of a pipeline: its communicator has few ranks, and one in a box.
void NcclModel::Impl::share_channels(DeviceId from, DeviceId to, UsageBuilder& usage) const {
  if (!usage.by_connection() || in_one_node(from, to) || !are_accelerators(from, to)) return;
  usage.share_channels(2, placer.place(std::array{from, to}).tuner->facts().channels);
}

double NcclModel::Impl::message_cap(DeviceId from, DeviceId to, const UsageBuilder& usage) const {
  if (!in_one_node(from, to)) return copied(usage, 1);
  const std::uint32_t domain = router.scale_up_domain(from);
  const bool nvlink = domain != DeviceId::kNone && domain == router.scale_up_domain(to);
  if (nvlink || from == to || !are_accelerators(from, to)) return 0;
  return host_memory_rate(placer.place(std::array{from, to}).tuner->facts()) * 1e9;
}

UsageBuilder NcclModel::Impl::message(DeviceId from, DeviceId to, std::uint64_t connection,
                                      UsageBuilder::Grain grain, Activity& out) const {
  UsageBuilder usage = this->usage(grain);
  share_channels(from, to, usage);
  usage.add_message(
      {.from = from, .to = to, .connection = connection, .allow_pxn = overrides.pxn.value_or(true)}, 1);
  as_message(usage, out);
  out.cap = BytesPerSecond(message_cap(from, to, usage));
  out.host_copies = out.cap.value() > 0 && !in_one_node(from, to);
  return usage;
}

void NcclModel::lower_message(DeviceId from, DeviceId to, std::uint64_t connection, Activity& out) const {
  out = {};
  impl_->message(from, to, connection, UsageBuilder::Grain::links, out).finish(1, out.usage);
}

SketchedCalls NcclModel::sketch_messages(std::size_t count, DeviceId from, DeviceId to,
                                         std::uint64_t connection) const {
  LoweredCalls::Call call;
  UsageBuilder usage = impl_->message(from, to, connection, UsageBuilder::Grain::stretches, call.activity);
  SketchedCalls out;
  out.calls.assign(count, call);
  out.ways.emplace_back();
  out.routes.push_back(usage.take_sketch());
  return out;
}

}  // namespace topsim::collective
