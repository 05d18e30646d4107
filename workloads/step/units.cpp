// Parameters in shards, gathered unit by unit: FSDP2 (torch: _fsdp_param_group.py) and DeepSpeed ZeRO-3
// (runtime/zero/stage3.py, partitioned_param_coordinator.py).
//
//   forward   gather of unit i: may start once unit i - 2 has been copied out of its gather's buffer; with
//             explicit prefetch it is launched before unit i - 1 computes; DeepSpeed cuts it between matrices
//             and keeps the last units, while they fit among its live parameters, for the backward pass;
//             Megatron-FSDP gathers embedding and head once, with the first micro-batch
//   backward  gather of unit i - 1: launched before unit i computes, may start once unit i is copied out
//             after unit i: the compute stream waits until at most `outstanding_reductions` - 1 are on the
//             wire, then the reduce-scatter of unit i; FSDP2 under a pipeline reduces all units of a stage
//             one after the other, first to last, when its last backward pass is over
//   experts   on ranks of their own are units within their layers: gathered after the layer, waited for where
//             they are read, reduced as soon as their gradients are complete, over the ranks that hold the
//             same ones
//             (torchtitan/models/llama4/infra/parallelize.py)
#include <algorithm>
#include <numeric>

#include "workloads/step/unit_exchange.hpp"

namespace topsim::workloads {
namespace {

using program::Phase;

// A root's gather, the first unit's, also brings the last unit's parameters, whose gradients wait for those
// of the first.
std::vector<ChunkParameters> with_root(std::vector<ChunkParameters> chunks, const Plan& plan) {
  for (ChunkParameters& chunk : chunks) {
    if (!plan.root_unit) continue;
    for (std::vector<double>* counts : {&chunk.units, &chunk.unit_gradients}) {
      counts->front() += counts->back();
      counts->back() = 0;
    }
    chunk.unit_gathers.front() = {chunk.units.front()};
  }
  return chunks;
}

class Units final : public DataParallel {
 public:
  Units(std::vector<ChunkParameters> chunks, const Plan& plan, const ComputeModel& compute,
        const Slots& slots, StageEmitter& emitter)
      : plan_(plan),
        emitter_(emitter),
        exchange_(with_root(std::move(chunks), plan), plan, compute, slots, emitter),
        dense_(exchange_.dense),
        routed_(exchange_.routed) {}

  void before_forward(int chunk, int unit, int) override {
    unit_ = unit;
    use(dense_, chunk, unit, Phase::forward);
    if (!plan_.prefetch_forward || !plan_.overlap_param_gather) return;
    if (plan_.ends_stay && unit == 0) {
      // Buckets are numbered in the order of the first parameter of their kind, so the head comes next.
      const int head = exchange_.last_of(chunk);
      launch(chunk, head, copied_);
      if (exchange_.parameters_of(dense_, chunk, head) >= prefetched(chunk)) return;
    }
    launch(chunk, unit + 1, copied_);
  }
  void before_backward(int chunk, int unit) override {
    unit_ = unit;
    if (plan_.gathers_what_is_read && unit == 0) return;  // an embedding's gradient needs no weights
    use(dense_, chunk, unit, Phase::backward);
    use(routed_, chunk, unit, Phase::backward);  // the first that a layer's backward pass reads
    // Only layers have a hook before their backward pass.
    if (!plan_.overlap_param_gather || (plan_.ends_stay && unit == exchange_.last_of(chunk))) return;
    if (!plan_.gathers_what_is_read || unit > 1) launch(chunk, unit - 1, copied_);
  }
  void reads(int chunk, Weights weights, double, int) override {
    if (weights == Weights::routed) use(routed_, chunk, unit_, Phase::forward);
  }
  void completes(int chunk, Weights weights, double parameters, bool last) override {
    if (weights != Weights::routed || !reduces(last) || plan_.shards.reduce_at_end) return;
    routed_.ready += parameters;
    if (routed_.ready < exchange_.gradients_of(routed_, chunk, unit_) - 0.5) return;
    at(routed_, chunk, unit_) = {};
    exchange_.reduce(routed_, last);
  }

  void after_forward(int chunk, int unit) override {
    const int end = exchange_.last_of(chunk);
    // The unit whose backward pass comes next stays gathered.
    const bool stays = plan_.root_unit ? unit == 0 || (plan_.keeps_last_layer && unit == end - 1)
                                       : unit == end || (plan_.ends_stay && unit == 0);
    if (!plan_.shards.reshard_after_forward || stays || lives(chunk, unit)) return;
    at(dense_, chunk, unit) = at(routed_, chunk, unit) = {};
  }

  void after_backward(int chunk, int unit, bool last) override {
    if (!reduces(last)) return;  // gradients and parameters stay gathered
    if (plan_.shards.reduce_at_end) return;
    if (!plan_.ends_stay || !is_end(chunk, unit)) at(dense_, chunk, unit) = {};
    const double more = exchange_.gradients_of(dense_, chunk, unit);
    if (plan_.buckets_never_exceed && dense_.ready + more > plan_.bucket_elements)
      exchange_.reduce(dense_, last);
    dense_.ready += more;
    if (dense_.ready >= plan_.bucket_elements) exchange_.reduce(dense_, last);
  }
  void end_of_backward(int chunk, bool last) override {
    if (plan_.shards.reduce_at_end) {
      if (!last) return;
      for (int unit = 0; unit <= exchange_.last_of(chunk); ++unit)
        for (UnitExchange::Group* group : {&routed_, &dense_}) {
          at(*group, chunk, unit) = {};
          group->ready += exchange_.gradients_of(*group, chunk, unit);
          exchange_.reduce(*group, last);
        }
      return;
    }
    if (!reduces(last)) return;
    exchange_.reduce(dense_, last);
    exchange_.end_pass();
    if (plan_.drains_reductions) finish_gradients();
  }
  void finish_gradients() override { exchange_.finish(); }
  void after_optimizer() override {}
  std::span<const std::uint32_t> host_copies() const override { return exchange_.host_copies(); }

 private:
  using Group = UnitExchange::Group;
  static UnitExchange::State& at(Group& group, int chunk, int unit) {
    return UnitExchange::at(group, chunk, unit);
  }
  // Numbers at which nothing more is prefetched beside the head: an average layer, if that is more.
  double prefetched(int chunk) const {
    const std::vector<double>& units = exchange_.chunk(chunk).units;
    if (units.size() < 3) return plan_.prefetched_least;
    const double layers = std::accumulate(units.begin() + 1, units.end() - 1, 0.0);
    return std::max(plan_.prefetched_least, layers / static_cast<double>(units.size() - 2));
  }
  bool is_end(int chunk, int unit) const { return unit == 0 || unit == exchange_.last_of(chunk); }
  bool reduces(bool last) const { return last || plan_.reduce_every_micro_batch; }
  // partitioned_param_coordinator.py: fetch_sub_module prefetches until so many parameters are live, skipping
  // those that already are, and __params_to_release does not release the ones it skipped: so what the
  // backward pass reads first is still live from the forward pass.
  bool lives(int chunk, int unit) const {
    const std::vector<double>& units = exchange_.chunk(chunk).units;
    return std::accumulate(units.begin() + unit, units.end(), 0.0) <= plan_.live_parameters;
  }

  // Launches the gather of a layer, then that of its experts.
  void launch(int chunk, int unit, std::uint32_t after) {
    launch(dense_, chunk, unit, after);
    launch(routed_, chunk, unit, after);
  }
  void launch(Group& group, int chunk, int unit, std::uint32_t after) {
    // Embedding and head are not cast to the layers' 8 bits.
    exchange_.launch(group, chunk, unit, after,
                     (plan_.ends_stay || plan_.gathers_cast_weights) && is_end(chunk, unit));
  }
  void use(Group& group, int chunk, int unit, Phase phase) {
    // The first FSDP's parameters are its gather's buffer: free when unit i - 2 has been computed with.
    launch(group, chunk, unit, phase == Phase::forward && plan_.copies_gathered ? copied_before_ : copied_);
    if (!exchange_.wait(group, chunk, unit, phase) || group.weights == Weights::routed) return;
    copied_before_ = copied_;
    copied_ = emitter_.last_compute();
  }

  const Plan& plan_;
  StageEmitter& emitter_;
  UnitExchange exchange_;
  Group &dense_, &routed_;
  std::uint32_t copied_ = StageEmitter::kNoOp, copied_before_ = StageEmitter::kNoOp;
  int unit_ = 0;  // the unit being computed
};
}  // namespace

std::unique_ptr<DataParallel> make_units(std::vector<ChunkParameters> chunks, const Plan& plan,
                                         const ComputeModel& compute, const Slots& slots,
                                         StageEmitter& emitter) {
  return std::make_unique<Units>(std::move(chunks), plan, compute, slots, emitter);
}
}  // namespace topsim::workloads
