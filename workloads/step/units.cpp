// Parameters in shards, gathered unit by unit: FSDP2 (torch: _fsdp_param_group.py) and DeepSpeed ZeRO-3
// (runtime/zero/stage3.py, partitioned_param_coordinator.py). Gathers and reductions share one communicator,
// so NCCL runs them in the order of their launch.
//
//   forward   gather of unit i: may start once unit i - 2 has been copied out of its gather's buffer; with
//             explicit prefetch it is launched before unit i - 1 computes; DeepSpeed cuts it between matrices
//             and keeps the last units, while they fit among its live parameters, for the backward pass;
//             Megatron-FSDP gathers embedding and head once, with the first micro-batch
//   backward  gather of unit i - 1: launched before unit i computes, may start once unit i is copied out
//             after unit i: the compute stream waits until at most `outstanding_reductions` - 1 are on the
//             wire, then the reduce-scatter of unit i; FSDP2 under a pipeline reduces all units of a stage
//             one after the other, first to last, when its last backward pass is over
//   by size   (Plan::wrap_least) units are parts of layers; what is in none is a unit too, gathered before
//             all others and reduced after them
//   experts   on ranks of their own are units within their layers: gathered after the layer, waited for where
//             they are read, reduced as soon as their gradients are complete, over the ranks that hold the
//             same ones
//             (torchtitan/models/llama4/infra/parallelize.py)
#include <algorithm>
#include <deque>
#include <numeric>

#include "workloads/step/data_parallel.hpp"
#include "workloads/step/offload.hpp"

namespace topsim::workloads {
namespace {

using program::CollectiveKind;
using program::Phase;

class Units final : public DataParallel {
 public:
  Units(std::vector<ChunkParameters> chunks, const Plan& plan, const ComputeModel& compute,
        const Slots& slots, StageEmitter& emitter)
      : chunks_(std::move(chunks)),
        plan_(plan),
        compute_(compute),
        emitter_(emitter),
        dense_{Weights::dense, slots.data, slots.replicas, plan.shards.parameters, "data", "replicas"},
        routed_{Weights::routed,       slots.expert_data,
                slots.expert_replicas, static_cast<double>(plan.experts.shards),
                "expert data",         "expert replicas"} {
    for (ChunkParameters& chunk : chunks_) {
      for (Group* group : {&dense_, &routed_}) group->states.emplace_back(chunk.units.size());
      if (plan.wrap_least > 0) {
        wrap_by_size(chunk);
        continue;
      }
      if (!plan.root_unit) continue;
      // The first unit's gather also brings the last unit's parameters; its gradients wait for those of the
      // first.
      for (std::vector<double>* counts : {&chunk.units, &chunk.unit_gradients}) {
        counts->front() += counts->back();
        counts->back() = 0;
      }
      chunk.unit_gathers.front() = {chunk.units.front()};
    }
  }

  void before_forward(int chunk, int unit, int) override {
    unit_ = unit;
    use(dense_, chunk, unit, Phase::forward);
    if (!plan_.prefetch_forward || !plan_.overlap_param_gather) return;
    if (plan_.ends_stay && unit == 0) {
      // Buckets are numbered in the order of the first parameter of their kind, so the head comes next.
      const int head = last_of(chunk);
      launch(chunk, head, copied_);
      if (parameters_of(dense_, chunk, head) >= prefetched(chunk)) return;
    }
    launch(chunk, unit + 1, copied_);
  }
  void before_backward(int chunk, int unit) override {
    unit_ = unit;
    if (plan_.gathers_what_is_read && unit == 0) return;  // an embedding's gradient needs no weights
    // The last layer's backward pass reads the unit around the layers too; its gather comes with the head's.
    const int last = last_of(chunk);
    if (plan_.wrap_least > 0 && unit < last) use(dense_, chunk, 0, Phase::backward);
    use(dense_, chunk, unit, Phase::backward);
    use(routed_, chunk, unit, Phase::backward);  // the first that a layer's backward pass reads
    // Only layers have a hook before their backward pass.
    if (!plan_.overlap_param_gather || (plan_.ends_stay && unit == last)) return;
    if (plan_.wrap_least > 0 && unit == last) launch(chunk, 0, copied_);
    if (!plan_.gathers_what_is_read || unit > 1) launch(chunk, unit - 1, copied_);
  }
  void reads(int chunk, Weights weights, double, int) override {
    if (weights == Weights::routed) use(routed_, chunk, unit_, Phase::forward);
  }
  void completes(int chunk, Weights weights, double parameters, bool last) override {
    if (weights != Weights::routed || !reduces(last) || plan_.shards.reduce_at_end) return;
    routed_.ready += parameters;
    if (routed_.ready < gradients_of(routed_, chunk, unit_) - 0.5) return;
    at(routed_, chunk, unit_) = {};
    reduce(routed_);
  }

  void after_forward(int chunk, int unit) override {
    const int end = last_of(chunk);
    // The unit whose backward pass comes next stays gathered.
    const bool stays = plan_.wrap_least > 0 ? unit == 0 && root_around_
                       : plan_.root_unit    ? unit == 0 || (plan_.keeps_last_layer && unit == end - 1)
                                            : unit == end || (plan_.ends_stay && unit == 0);
    if (!plan_.shards.reshard_after_forward || stays || lives(chunk, unit)) return;
    at(dense_, chunk, unit) = at(routed_, chunk, unit) = {};
  }

  void after_backward(int chunk, int unit, bool last) override {
    if (!reduces(last)) return;  // gradients and parameters stay gathered
    if (plan_.shards.reduce_at_end) return;
    if (!plan_.ends_stay || !is_end(chunk, unit)) at(dense_, chunk, unit) = {};
    const double more = gradients_of(dense_, chunk, unit);
    if (plan_.buckets_never_exceed && dense_.ready + more > plan_.bucket_elements) reduce(dense_);
    dense_.ready += more;
    if (dense_.ready >= plan_.bucket_elements) reduce(dense_);
  }
  void end_of_backward(int chunk, bool last) override {
    if (plan_.shards.reduce_at_end) {
      if (!last) return;
      const std::size_t units = chunks_[static_cast<std::size_t>(chunk)].units.size();
      for (int unit = 0; unit < static_cast<int>(units); ++unit)
        for (Group* group : {&routed_, &dense_}) {
          at(*group, chunk, unit) = {};
          group->ready += gradients_of(*group, chunk, unit);
          reduce(*group);
        }
      return;
    }
    if (!reduces(last)) return;
    reduce(dense_);
    ++passes_;
    if (plan_.drains_reductions) finish_gradients();
  }
  void finish_gradients() override {
    for (const std::uint32_t op : outstanding_) emitter_.wait_for(op);
    outstanding_.clear();
    for (const Group* group : {&dense_, &routed_})
      if (group->replicated != StageEmitter::kNoOp) emitter_.wait_for(group->replicated);
  }
  void after_optimizer() override {}
  std::span<const std::uint32_t> host_copies() const override { return copies_; }

 private:
  // What no layer wraps is one unit, gathered before the embedding's and whole until the end of a pass: the
  // model's, or the root's, which stays (torch/distributed/fsdp/_runtime_utils.py, _post_forward_reshard).
  void wrap_by_size(ChunkParameters& chunk) {
    double around = 0;
    for (std::size_t i = 1; i + 1 < chunk.units.size(); ++i) {
      const double wrapped = std::accumulate(chunk.wrapped[i].begin(), chunk.wrapped[i].end(), 0.0);
      const double rest = chunk.units[i] - wrapped;
      chunk.unit_gradients.front() += chunk.unit_gradients[i] * rest / chunk.units[i];
      chunk.unit_gradients[i] -= chunk.unit_gradients[i] * rest / chunk.units[i];
      chunk.units[i] = wrapped;
      chunk.unit_gathers[i] = chunk.wrapped[i];
      around += rest;
    }
    const double embedding = chunk.units.front();
    chunk.units.front() += around;
    chunk.unit_gathers.front() = {chunk.units.front()};
    if (embedding >= plan_.wrap_least && around > 0) chunk.unit_gathers.front() = {around, embedding};
    root_around_ = (embedding >= plan_.wrap_least ? around : chunk.units.front()) < plan_.wrap_least;
  }

  struct State {
    std::uint32_t gather = StageEmitter::kNoOp;
    bool whole = false;  // copied out of the buffer, ready to compute with
  };
  // Ranks that share one set of shards, and the state of the units for them.
  struct Group {
    Weights weights;
    std::uint8_t slot, replicas;
    double shards;
    std::string_view stream, replica_stream;
    std::vector<std::vector<State>> states{};
    double ready = 0;
    std::uint32_t replicated = StageEmitter::kNoOp;
  };
  // Numbers at which nothing more is prefetched beside the head: an average layer, if that is more.
  double prefetched(int chunk) const {
    const std::vector<double>& units = chunks_[static_cast<std::size_t>(chunk)].units;
    if (units.size() < 3) return plan_.prefetched_least;
    const double layers = std::accumulate(units.begin() + 1, units.end() - 1, 0.0);
    return std::max(plan_.prefetched_least, layers / static_cast<double>(units.size() - 2));
  }
  int last_of(int chunk) const {
    return static_cast<int>(chunks_[static_cast<std::size_t>(chunk)].units.size()) - 1;
  }
  bool is_end(int chunk, int unit) const { return unit == 0 || unit == last_of(chunk); }
  bool reduces(bool last) {
    last_pass_ = last;
    return last || plan_.reduce_every_micro_batch;
  }
  State& at(Group& group, int chunk, int unit) {
    return group.states[static_cast<std::size_t>(chunk)][static_cast<std::size_t>(unit)];
  }
  double parameters_of(const Group& group, int chunk, int unit) const {
    const ChunkParameters& held = chunks_[static_cast<std::size_t>(chunk)];
    return (group.weights == Weights::dense ? held.units : held.routed_units)[static_cast<std::size_t>(unit)];
  }
  // partitioned_param_coordinator.py: fetch_sub_module prefetches until so many parameters are live, skipping
  // those that already are, and __params_to_release does not release the ones it skipped: so what the
  // backward pass reads first is still live from the forward pass.
  bool lives(int chunk, int unit) const {
    const std::vector<double>& units = chunks_[static_cast<std::size_t>(chunk)].units;
    return std::accumulate(units.begin() + unit, units.end(), 0.0) <= plan_.live_parameters;
  }
  double gradients_of(const Group& group, int chunk, int unit) const {
    const ChunkParameters& held = chunks_[static_cast<std::size_t>(chunk)];
    const bool dense = group.weights == Weights::dense;
    return (dense ? held.unit_gradients : held.routed_unit_gradients)[static_cast<std::size_t>(unit)];
  }
  std::vector<double> gathers(const Group& group, int chunk, int unit) const {
    if (group.weights == Weights::routed) return {parameters_of(group, chunk, unit)};
    return chunks_[static_cast<std::size_t>(chunk)].unit_gathers[static_cast<std::size_t>(unit)];
  }

  // Launches the gather of a layer, then that of its experts.
  void launch(int chunk, int unit, std::uint32_t after) {
    launch(dense_, chunk, unit, after);
    launch(routed_, chunk, unit, after);
  }
  // `after`: the copy that frees the gather's buffer; kNoOp: the compute emitted so far.
  void launch(Group& group, int chunk, int unit, std::uint32_t after) {
    if (unit < 0 || unit > last_of(chunk)) return;
    State& state = at(group, chunk, unit);
    if (state.whole || state.gather != StageEmitter::kNoOp || parameters_of(group, chunk, unit) <= 0) return;
    if (!plan_.overlap_param_gather) after = StageEmitter::kNoOp;
    if (plan_.offload.parameters) {  // the shard, from host memory
      const std::span<const std::uint32_t> before(&after, after == StageEmitter::kNoOp ? 0 : 1);
      after = emitter_.host_copy(kFromHost, "parameters from host",
                                 parameters_of(group, chunk, unit) / group.shards * plan_.parameter_bytes,
                                 before, before.empty());
      if (group.slot == Slots::kNoSlot) state.gather = after;
    }
    if (group.slot == Slots::kNoSlot) return;  // this rank holds all of it
    // The gathers of all groups share one stream (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py,
    // FSDPCommContext.all_gather_stream).
    std::vector<std::uint32_t> before;
    if (after != StageEmitter::kNoOp) before.push_back(after);
    const bool follows = before.empty();
    // Embedding and head are not cast to the layers' 8 bits.
    const bool wide = (plan_.ends_stay || plan_.gathers_cast_weights) && is_end(chunk, unit);
    const double width = wide ? std::max(plan_.gathered_parameter_bytes, bytes_of(plan_.activations))
                              : plan_.gathered_parameter_bytes;
    if (plan_.shards_experts() && gathered_ != StageEmitter::kNoOp) before.push_back(gathered_);
    for (const double numbers : gathers(group, chunk, unit))  // one after the other: the last ends last
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

  void use(Group& group, int chunk, int unit, Phase phase) {
    State& state = at(group, chunk, unit);
    if (state.whole || parameters_of(group, chunk, unit) <= 0) return;
    // The first FSDP's parameters are its gather's buffer: free when unit i - 2 has been computed with.
    launch(group, chunk, unit, phase == Phase::forward && plan_.copies_gathered ? copied_before_ : copied_);
    if (state.gather != StageEmitter::kNoOp) emitter_.wait_for(state.gather);
    // Copies from the gather's buffer to the parameters: read and written.
    const double moved = plan_.copies_gathered ? 2 * plan_.gathered_parameter_bytes : 0;
    emitter_.compute(
        Part::norm, phase,
        compute_.memory_bound(parameters_of(group, chunk, unit) * moved, MemoryKernel::elementwise,
                              static_cast<double>(gathers(group, chunk, unit).size())));
    emitter_.flush();
    state = {StageEmitter::kNoOp, true};
    if (group.weights == Weights::routed) return;
    copied_before_ = copied_;
    copied_ = emitter_.last_compute();
  }

  void reduce(Group& group) {
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
    if (group.replicas != Slots::kNoSlot && (last_pass_ || !plan_.replicas_at_end)) {
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
                                           summed == StageEmitter::kNoOp, {passes_ == 0, last_pass_}));
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

  std::vector<ChunkParameters> chunks_;
  const Plan& plan_;
  const ComputeModel& compute_;
  StageEmitter& emitter_;
  Group dense_, routed_;
  std::deque<std::uint32_t> outstanding_;
  std::vector<std::uint32_t> copies_;  // of gradients to the host
  std::uint32_t copied_ = StageEmitter::kNoOp, copied_before_ = StageEmitter::kNoOp;
  std::uint32_t gathered_ = StageEmitter::kNoOp;  // the last gather launched
  int unit_ = 0;                                  // the unit being computed
  bool root_around_ = false;                      // units by size: what is in none is the root's
  int passes_ = 0;                                // backward passes that have reduced
  bool last_pass_ = false;                        // the backward pass is the step's last
};
}  // namespace

std::unique_ptr<DataParallel> make_units(std::vector<ChunkParameters> chunks, const Plan& plan,
                                         const ComputeModel& compute, const Slots& slots,
                                         StageEmitter& emitter) {
  return std::make_unique<Units>(std::move(chunks), plan, compute, slots, emitter);
}
}  // namespace topsim::workloads
