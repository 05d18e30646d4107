// Parameters in shards where XLA compiles the layers to one loop (jax.lax.scan): its scheduler moves what a
// pass of the loop exchanges within that pass only.
//
//   forward   a pass starts with the gathers of its matrices, in the order in which it reads them; each is
//             waited for where it is first read. Nothing of the next layer is gathered before the next pass
//             (openxla/xla docs/flags_guidance.md at 28192b98: xla_tpu_enable_ici_ag_pipelining, by default
//             off, would; AI-Hypercomputer/maxtext pull request 4493: gathers "lie exposed on the critical
//             execution path before every layer's forward computation")
//   backward  the same: in forward order where the whole layer is computed again (what comes after the first
//             matrix is then waited for before the first weight gradient), else in the order of the products
//             of the backward pass. A matrix' gradient is reduced as soon as it is complete, with the norms
//             and biases completed since the last one; the pass ends when its reductions have
//   around    the embedding and the head are outside the loop: gathered where they are read, and the head
//             stays for its backward pass, which follows; an embedding's gradient needs no weights
//
// Sums over replicas of the shards (Plan::zero_group, hsdp_shard) go on beside later passes
// (xla_tpu_enable_data_parallel_all_reduce_opt and xla_tpu_data_parallel_opt_different_sized_ops, which
// apple/axlearn's compiler_options.py and MaxText's scripts set for several slices).
#include <algorithm>
#include <numeric>

#include "workloads/step/data_parallel.hpp"

namespace topsim::workloads {
namespace {

using program::CollectiveKind;
using program::Phase;

class Loop final : public DataParallel {
 public:
  Loop(std::vector<ChunkParameters> chunks, const Plan& plan, const Slots& slots, StageEmitter& emitter)
      : chunks_(std::move(chunks)), plan_(plan), slots_(slots), emitter_(emitter) {}

  void before_forward(int chunk, int unit, int) override { gather(chunk, unit, true); }
  void reads(int, Weights, double parameters, int) override {
    read_ += parameters;
    wait_until(read_);
  }
  void after_forward(int, int) override {}

  void before_backward(int chunk, int unit) override {
    const ChunkParameters& held = at(chunk);
    if (unit + 1 == static_cast<int>(held.units.size())) piece_ = 0;  // a backward pass begins with the head
    if (unit == 0 || unit + 1 == static_cast<int>(held.units.size())) return begin_pass(held, unit, {});
    again_ = plan_.recompute_of(unit <= plan_.layers_recomputed(static_cast<int>(held.units.size()) - 2)) ==
             RecomputeKind::full;
    gather(chunk, unit, again_);
    if (again_) return wait_for_first();
    // Both matrices of a network that runs again, else its second; the projection before them.
    const bool selective = plan_.recompute.kind == RecomputeKind::selective;
    std::size_t read = selective && plan_.again.mlp ? 2 : 1;
    if (selective && plan_.again.projection) read = 3;
    double parameters = 0;
    for (std::size_t i = piece_; i < piece_ + read; ++i) parameters += held.gradients[i].parameters;
    wait_until(parameters);
  }
  void completes(int chunk, Weights, double parameters, bool last) override {
    const ChunkParameters& held = at(chunk);
    read_ += parameters;
    ++piece_;
    // What the next product of the backward pass reads.
    const bool more = piece_ < held.gradients.size();
    wait_until(again_ ? whole_ : more ? read_ + held.gradients[piece_].parameters : read_);
    if (!reduces(last)) return;
    ready_ += parameters;
    if (parameters >= smallest_) reduce();
  }
  void after_backward(int, int, bool last) override {
    if (!reduces(last)) return;
    reduce();
    for (const std::uint32_t op : outstanding_) emitter_.wait_for(op);
    outstanding_.clear();
  }
  void end_of_backward(int, bool) override {}
  void finish_gradients() override {
    if (replicated_ != StageEmitter::kNoOp) emitter_.wait_for(replicated_);
  }
  void after_optimizer() override {}
  std::span<const std::uint32_t> host_copies() const override { return {}; }

 private:
  struct Gather {
    std::uint32_t op;
    double parameters;
  };
  const ChunkParameters& at(int chunk) const { return chunks_[static_cast<std::size_t>(chunk)]; }
  bool reduces(bool last) const { return last || plan_.reduce_every_micro_batch; }

  void begin_pass(const ChunkParameters& held, int unit, std::vector<Gather> gathers) {
    const std::vector<double>& matrices = held.unit_gathers[static_cast<std::size_t>(unit)];
    gathers_ = std::move(gathers);
    next_ = 0, read_ = 0, whole_ = held.units[static_cast<std::size_t>(unit)];
    there_ = whole_ - std::accumulate(matrices.begin(), matrices.end(), 0.0);  // norms and biases
    smallest_ = matrices.empty() ? 0 : *std::min_element(matrices.begin(), matrices.end());
  }
  void gather(int chunk, int unit, bool forward_order) {
    const ChunkParameters& held = at(chunk);
    std::vector<double> matrices = held.unit_gathers[static_cast<std::size_t>(unit)];
    if (!forward_order) std::reverse(matrices.begin(), matrices.end());
    std::vector<Gather> gathers;
    for (const double parameters : matrices)
      gathers.push_back({emitter_.collective({.stream = "data",
                                              .slot = slots_.data,
                                              .phase = Phase::parameter_sync,
                                              .label = "parameters",
                                              .kind = CollectiveKind::all_gather,
                                              .bytes = parameters * plan_.gathered_parameter_bytes}),
                         parameters});
    begin_pass(held, unit, std::move(gathers));
    if (!plan_.overlap_param_gather) wait_until(whole_);
  }
  void wait_for_first() {
    if (next_ >= gathers_.size()) return;
    emitter_.wait_for(gathers_[next_].op);
    there_ += gathers_[next_++].parameters;
  }
  void wait_until(double parameters) {
    while (next_ < gathers_.size() && there_ < parameters - 0.5) wait_for_first();
  }

  void reduce() {
    if (ready_ <= 0) return;
    std::uint32_t sum = emitter_.collective({.stream = "data",
                                             .slot = slots_.data,
                                             .phase = Phase::gradient_sync,
                                             .label = "gradients",
                                             .kind = CollectiveKind::reduce_scatter,
                                             .bytes = ready_ * plan_.gradient_bytes});
    if (plan_.overlap_grad_reduce) {
      outstanding_.push_back(sum);
    } else {
      emitter_.wait_for(sum);
    }
    if (slots_.replicas != Slots::kNoSlot)
      replicated_ = emitter_.collective({.stream = "replicas",
                                         .slot = slots_.replicas,
                                         .phase = Phase::gradient_sync,
                                         .label = "shards of gradients",
                                         .kind = CollectiveKind::all_reduce,
                                         .bytes = ready_ * plan_.gradient_bytes / plan_.shards.parameters,
                                         .after = std::span(&sum, 1),
                                         .follows_compute = false});
    ready_ = 0;
  }

  std::vector<ChunkParameters> chunks_;
  const Plan& plan_;
  const Slots& slots_;
  StageEmitter& emitter_;
  // Of the pass that is running: its gathers, how many were waited for, parameters that are there and those
  // that were read, or whose gradients are complete.
  std::vector<Gather> gathers_;
  std::size_t next_ = 0;
  double whole_ = 0, there_ = 0, read_ = 0, smallest_ = 0;
  bool again_ = false;     // a layer is computed again first
  std::size_t piece_ = 0;  // of ChunkParameters::gradients, the next
  double ready_ = 0;       // gradients complete since the last reduction
  std::vector<std::uint32_t> outstanding_;
  std::uint32_t replicated_ = StageEmitter::kNoOp;
};
}  // namespace

std::unique_ptr<DataParallel> make_loop(std::vector<ChunkParameters> chunks, const Plan& plan,
                                        const Slots& slots, StageEmitter& emitter) {
  return std::make_unique<Loop>(std::move(chunks), plan, slots, emitter);
}
}  // namespace topsim::workloads
