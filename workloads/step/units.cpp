// Parameters in shards, gathered unit by unit: FSDP2 and DeepSpeed ZeRO-3 (training-and-collectives.md 6.3,
// 6.5). Gathers and reductions share one communicator, so NCCL runs them in the order of their launch.
//
//   forward   gather of unit i: may start once unit i - 2 has been copied out of its gather's buffer; with
//             explicit prefetch it is launched before unit i - 1 computes; DeepSpeed cuts it between matrices
//   backward  gather of unit i - 1: launched before unit i computes, may start once unit i is copied out
//             after unit i: the compute stream waits until at most `outstanding_reductions` - 1 are on the
//             wire, then the reduce-scatter of unit i; FSDP2 under a pipeline reduces all units of a stage
//             one after the other, first to last, when its last backward pass is over
#include <algorithm>
#include <deque>

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
      : chunks_(std::move(chunks)), plan_(plan), compute_(compute), slots_(slots), emitter_(emitter) {
    for (ChunkParameters& chunk : chunks_) {
      gathers_.emplace_back(chunk.units.size());
      if (!plan.root_unit) continue;
      // With the first unit's gather the last one's parameters are there; its gradients wait for the first's.
      for (std::vector<double>* counts : {&chunk.units, &chunk.unit_gradients}) {
        counts->front() += counts->back();
        counts->back() = 0;
      }
      chunk.unit_gathers.front() = {chunk.units.front()};
    }
  }

  void before_forward(int chunk, int unit, int) override {
    use(chunk, unit, Phase::forward);
    if (plan_.prefetch_forward && plan_.overlap_param_gather) launch(chunk, unit + 1, copied_);
  }
  void before_backward(int chunk, int unit) override {
    use(chunk, unit, Phase::backward);
    if (plan_.overlap_param_gather) launch(chunk, unit - 1, copied_);
  }
  void reads(int, Weights, double, int) override {}
  void completes(int, Weights, double, bool) override {}

  void after_forward(int chunk, int unit) override {
    const int units = static_cast<int>(chunks_[static_cast<std::size_t>(chunk)].units.size());
    // The unit whose backward comes next stays whole.
    const bool stays =
        plan_.root_unit ? unit == 0 || (plan_.keeps_last_layer && unit == units - 2) : unit == units - 1;
    if (plan_.reshard_after_forward && !stays) at(chunk, unit) = {};
  }

  void after_backward(int chunk, int unit, bool last) override {
    if (!last && !plan_.reduce_every_micro_batch) return;  // gradients and parameters stay whole
    if (plan_.reduce_units_at_end) return;
    at(chunk, unit) = {};
    ready_ += chunks_[static_cast<std::size_t>(chunk)].unit_gradients[static_cast<std::size_t>(unit)];
    if (ready_ >= plan_.bucket_elements) reduce();
  }
  void end_of_backward(int chunk, bool last) override {
    if (plan_.reduce_units_at_end) {
      if (!last) return;
      const ChunkParameters& held = chunks_[static_cast<std::size_t>(chunk)];
      for (std::size_t unit = 0; unit < held.units.size(); ++unit) {
        at(chunk, static_cast<int>(unit)) = {};
        ready_ += held.unit_gradients[unit];
        reduce();
      }
      return;
    }
    if (last || plan_.reduce_every_micro_batch) reduce();
  }
  void finish_gradients() override {
    for (const std::uint32_t op : outstanding_) emitter_.wait_for(op);
    outstanding_.clear();
    if (replicated_ != StageEmitter::kNoOp) emitter_.wait_for(replicated_);
  }
  void after_optimizer() override {}
  std::span<const std::uint32_t> host_copies() const override { return copies_; }

 private:
  struct State {
    std::uint32_t gather = StageEmitter::kNoOp;
    bool whole = false;  // copied out, ready to compute with
  };
  State& at(int chunk, int unit) {
    return gathers_[static_cast<std::size_t>(chunk)][static_cast<std::size_t>(unit)];
  }
  double parameters_of(int chunk, int unit) const {
    return chunks_[static_cast<std::size_t>(chunk)].units[static_cast<std::size_t>(unit)];
  }

  const std::vector<double>& gathers(int chunk, int unit) const {
    return chunks_[static_cast<std::size_t>(chunk)].unit_gathers[static_cast<std::size_t>(unit)];
  }

  // `after`: the copy that frees the gather's buffer; kNoOp: the compute emitted so far.
  void launch(int chunk, int unit, std::uint32_t after) {
    if (unit < 0 || unit >= static_cast<int>(chunks_[static_cast<std::size_t>(chunk)].units.size())) return;
    State& state = at(chunk, unit);
    if (state.whole || state.gather != StageEmitter::kNoOp || parameters_of(chunk, unit) <= 0) return;
    if (!plan_.overlap_param_gather) after = StageEmitter::kNoOp;
    if (plan_.offload_parameters) {  // the fp32 shard, from host memory
      const std::span<const std::uint32_t> before(&after, after == StageEmitter::kNoOp ? 0 : 1);
      after = emitter_.host_copy(kFromHost, "parameters from host",
                                 parameters_of(chunk, unit) / plan_.parameter_shards * plan_.parameter_bytes,
                                 before, before.empty());
    }
    const std::span<const std::uint32_t> freed(&after, after == StageEmitter::kNoOp ? 0 : 1);
    for (const double numbers : gathers(chunk, unit))  // one after the other: the last ends last
      state.gather = emitter_.collective("data", slots_.data, Phase::parameter_sync, "parameters",
                                         CollectiveKind::all_gather, numbers * plan_.gathered_parameter_bytes,
                                         freed, false, freed.empty());
  }

  void use(int chunk, int unit, Phase phase) {
    State& state = at(chunk, unit);
    if (state.whole || parameters_of(chunk, unit) <= 0) return;
    launch(chunk, unit, phase == Phase::forward ? copied_before_ : copied_);
    emitter_.wait_for(state.gather);
    // Out of the gather's buffer into the parameters: read and written.
    const double moved = plan_.copies_gathered ? 2 * plan_.gathered_parameter_bytes : 0;
    emitter_.compute(Part::norm, phase,
                     compute_.memory_bound(parameters_of(chunk, unit) * moved, MemoryKernel::elementwise,
                                           static_cast<double>(gathers(chunk, unit).size())));
    emitter_.flush();
    copied_before_ = copied_;
    copied_ = emitter_.last_compute();
    state = {StageEmitter::kNoOp, true};
  }

  void reduce() {
    if (ready_ <= 0) return;
    while (outstanding_.size() >= static_cast<std::size_t>(plan_.outstanding_reductions)) {
      emitter_.wait_for(outstanding_.front());
      outstanding_.pop_front();
    }
    // Gradients, as wide as activations, into the buffer that is sent.
    emitter_.compute(Part::optimizer, Phase::gradient_sync,
                     compute_.memory_bound(ready_ * (bytes_of(plan_.activations) + plan_.gradient_bytes),
                                           MemoryKernel::elementwise));
    const std::uint32_t op =
        emitter_.collective("data", slots_.data, Phase::gradient_sync, "gradients",
                            CollectiveKind::reduce_scatter, ready_ * plan_.gradient_bytes);
    if (plan_.overlap_grad_reduce) {
      outstanding_.push_back(op);
    } else {
      emitter_.wait_for(op);
    }
    std::uint32_t summed = op;
    if (slots_.replicas != Slots::kNoSlot) {
      // Hybrid sharding: every shard is then summed over the replicas, on a communicator of its own.
      replicated_ = emitter_.collective("replicas", slots_.replicas, Phase::gradient_sync,
                                        "shards of gradients", CollectiveKind::all_reduce,
                                        ready_ * plan_.gradient_bytes / plan_.parameter_shards,
                                        std::span<const std::uint32_t>(&op, 1), false, false);
      summed = replicated_;
      if (!plan_.overlap_grad_reduce) emitter_.wait_for(replicated_);
    }
    if (plan_.offload != Offload::none)
      copies_.push_back(
          offload_gradients(emitter_, ready_ / plan_.gradient_shards, std::span(&summed, 1), false));
    ready_ = 0;
  }

  std::vector<ChunkParameters> chunks_;
  const Plan& plan_;
  const ComputeModel& compute_;
  const Slots& slots_;
  StageEmitter& emitter_;
  std::vector<std::vector<State>> gathers_;
  std::deque<std::uint32_t> outstanding_;
  std::vector<std::uint32_t> copies_;  // of gradients to the host
  std::uint32_t copied_ = StageEmitter::kNoOp, copied_before_ = StageEmitter::kNoOp;
  std::uint32_t replicated_ = StageEmitter::kNoOp;
  double ready_ = 0;
};
}  // namespace

std::unique_ptr<DataParallel> make_units(std::vector<ChunkParameters> chunks, const Plan& plan,
                                         const ComputeModel& compute, const Slots& slots,
                                         StageEmitter& emitter) {
  return std::make_unique<Units>(std::move(chunks), plan, compute, slots, emitter);
}
}  // namespace topsim::workloads
