#include "workloads/step/unit_exchange.hpp"

#include <algorithm>
#include <utility>

#include "workloads/step/offload.hpp"

namespace topsim::workloads {

using program::CollectiveKind;
using program::Phase;

UnitExchange::UnitExchange(std::vector<ChunkParameters> chunks, const Plan& plan, const ComputeModel& compute,
                           const Slots& slots, StageEmitter& emitter)
    : dense{Weights::dense, slots.data, slots.replicas, plan.shards.parameters, "data", "replicas"},
      routed{Weights::routed,       slots.expert_data,
             slots.expert_replicas, static_cast<double>(plan.experts.shards),
             "expert data",         "expert replicas"},
      chunks_(std::move(chunks)),
      plan_(plan),
      compute_(compute),
      emitter_(emitter) {
  for (const ChunkParameters& held : chunks_)
    for (Group* group : {&dense, &routed}) group->states.emplace_back(held.units.size());
}

double UnitExchange::parameters_of(const Group& group, int index, int unit) const {
  const ChunkParameters& held = chunk(index);
  return (group.weights == Weights::dense ? held.units : held.routed_units)[static_cast<std::size_t>(unit)];
}

double UnitExchange::gradients_of(const Group& group, int index, int unit) const {
  const ChunkParameters& held = chunk(index);
  const bool dense_ones = group.weights == Weights::dense;
  return (dense_ones ? held.unit_gradients : held.routed_unit_gradients)[static_cast<std::size_t>(unit)];
}

std::vector<double> UnitExchange::gathers(const Group& group, int index, int unit) const {
  if (group.weights == Weights::routed) return {parameters_of(group, index, unit)};
  return chunk(index).unit_gathers[static_cast<std::size_t>(unit)];
}

void UnitExchange::launch(Group& group, int index, int unit, std::uint32_t after, bool wide) {
  if (unit < 0 || unit > last_of(index)) return;
  State& state = at(group, index, unit);
  if (state.whole || state.gather != StageEmitter::kNoOp || parameters_of(group, index, unit) <= 0) return;
  if (!plan_.overlap_param_gather) after = StageEmitter::kNoOp;
  if (plan_.offload.parameters) {  // the shard, from host memory
    const std::span<const std::uint32_t> before(&after, after == StageEmitter::kNoOp ? 0 : 1);
    after = emitter_.host_copy(kFromHost, "parameters from host",
                               parameters_of(group, index, unit) / group.shards * plan_.parameter_bytes,
                               before, before.empty());
    if (group.slot == Slots::kNoSlot) state.gather = after;
  }
  if (group.slot == Slots::kNoSlot) return;  // this rank holds all of it
  // The gathers of all groups share one stream (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py,
  // FSDPCommContext.all_gather_stream).
  std::vector<std::uint32_t> before;
  if (after != StageEmitter::kNoOp) before.push_back(after);
  const bool follows = before.empty();
  const double width = wide ? std::max(plan_.gathered_parameter_bytes, bytes_of(plan_.activations))
                            : plan_.gathered_parameter_bytes;
  if (plan_.shards_experts() && gathered_ != StageEmitter::kNoOp) before.push_back(gathered_);
  for (const double numbers : gathers(group, index, unit))  // one after the other: the last ends last
    state.gather = emitter_.collective({.stream = group.stream,
                                        .slot = group.slot,
                                        .phase = Phase::parameter_sync,
                                        .label = "parameters",
                                        .kind = CollectiveKind::all_gather,
                                        .bytes = numbers * width,
                                        .after = before,
                                        .follows_compute = follows});
  gathered_ = state.gather;
}

bool UnitExchange::wait(Group& group, int index, int unit, Phase phase) {
  State& state = at(group, index, unit);
  if (state.whole || parameters_of(group, index, unit) <= 0) return false;
  if (state.gather != StageEmitter::kNoOp) emitter_.wait_for(state.gather);
  // Copies from the gather's buffer to the parameters: read and written.
  const double moved = plan_.copies_gathered ? 2 * plan_.gathered_parameter_bytes : 0;
  emitter_.compute(Part::norm, phase,
                   compute_.memory_bound(parameters_of(group, index, unit) * moved, MemoryKernel::elementwise,
                                         static_cast<double>(gathers(group, index, unit).size())));
  emitter_.flush();
  state = {StageEmitter::kNoOp, true};
  return true;
}

void UnitExchange::reduce(Group& group, bool last) {
  if (group.ready <= 0) return;
  while (outstanding_.size() >= static_cast<std::size_t>(plan_.outstanding_reductions)) {
    emitter_.wait_for(outstanding_.front());
    outstanding_.pop_front();
  }
  // Copies gradients, as wide as activations, into the buffer that is sent.
  const double joined = plan_.joins_gradients ? bytes_of(plan_.activations) + plan_.gradient_bytes : 0;
  emitter_.compute(
      Part::optimizer, Phase::gradient_sync,
      compute_.memory_bound(group.ready * (joined + plan_.gradient_passes * plan_.gradient_bytes),
                            MemoryKernel::elementwise));
  std::uint32_t summed = StageEmitter::kNoOp;
  if (group.slot != Slots::kNoSlot) {
    summed = emitter_.collective({.stream = group.stream,
                                  .slot = group.slot,
                                  .phase = Phase::gradient_sync,
                                  .label = "gradients",
                                  .kind = CollectiveKind::reduce_scatter,
                                  .bytes = group.ready * plan_.gradient_bytes});
  }
  std::uint32_t done = summed;  // on the stream that reduces
  if (group.replicas != Slots::kNoSlot && (last || !plan_.replicas_at_end)) {
    // Hybrid sharding: every shard is then summed over the replicas, on a communicator of its own.
    const bool alone = summed == StageEmitter::kNoOp;
    summed = group.replicated =
        emitter_.collective({.stream = group.replica_stream,
                             .slot = group.replicas,
                             .phase = Phase::gradient_sync,
                             .label = "shards of gradients",
                             .kind = CollectiveKind::all_reduce,
                             .bytes = group.ready * plan_.gradient_bytes / group.shards,
                             .after = std::span<const std::uint32_t>(&summed, alone ? 0 : 1),
                             .follows_compute = alone});
    if (!plan_.overlap_grad_reduce) done = summed;
  }
  if (plan_.offload.to != Offload::none) {
    copies_.push_back(exchange_gradients(emitter_, plan_, group.ready / group.shards,
                                         std::span(&summed, summed == StageEmitter::kNoOp ? 0 : 1),
                                         summed == StageEmitter::kNoOp, {passes_ == 0, last}));
    if (plan_.accumulates_on_host) done = copies_.back();
  }
  if (done != StageEmitter::kNoOp) {
    if (plan_.overlap_grad_reduce)
      outstanding_.push_back(done);
    else
      emitter_.wait_for(done);
  }
  group.ready = 0;
}

void UnitExchange::finish() {
  for (const std::uint32_t op : outstanding_) emitter_.wait_for(op);
  outstanding_.clear();
  for (const Group* group : {&dense, &routed})
    if (group->replicated != StageEmitter::kNoOp) emitter_.wait_for(group->replicated);
}
}  // namespace topsim::workloads
