// A mixture of experts in inference where the experts are divided over the tensor ranks, as vLLM's and
// SGLang's FusedMoE: every rank has all tokens, so nothing is dispatched (vLLM, fused_moe/config.py:
// use_all2all_kernels only with dp_size > 1). A rank holds a slice of all experts or, with expert
// parallelism, E / e of them in x parts; the partial sums meet in one all-reduce (or, with sequence
// parallelism, a reduce-scatter). T tokens, each at K of E experts:
//
//   router   T x E x h; softmax and top-k in one kernel; rows ordered by expert, two (moe_align_block_size)
//   experts  gate and up, activation, down: T K / e rows in the experts that have tokens, one kernel each
//   combine  sum of each token's K answers (moe_sum), shared experts' beside it
#include <algorithm>
#include <cmath>

#include "workloads/compute/spread.hpp"
#include "workloads/layer/blocks.hpp"

namespace topsim::workloads {
namespace {

class SlicedExperts final : public FeedForward {
 public:
  SlicedExperts(const LayerKernels& kernels, const LayerParameters& parameters)
      : kernels_(kernels), parameters_(parameters) {
    const ExpertSpec& experts = kernels.model.experts;
    const Plan& plan = kernels.plan;
    const double tokens = kernels.tokens, count = experts.count;
    const double rows = tokens * experts.top_k / plan.ep * plan.experts.load;
    const double ffn = experts.ffn / static_cast<double>(plan.etp);
    const double read = visited_experts(experts.top_k, plan, tokens);
    const bool apart = !plan.experts.fused;
    router_ = kernels.compute.gemm({tokens, count, kernels.hidden}, plan.activations) +
              kernels.compute.memory_bound(tokens * (count * kernels.element + 8.0 * experts.top_k),
                                           MemoryKernel::elementwise, 3);
    using Operand = LayerKernels::Operand;
    const Operand between = apart ? Operand::wide : Operand::narrow;
    const double each = std::max(1.0, rows / read);  // of an expert that has any
    const Linear up =
        kernels.grouped(each, kernels.gates() * ffn, kernels.hidden, read, {Operand::wide, between});
    const Linear down = kernels.grouped(each, kernels.hidden, ffn, read, {between, Operand::wide});
    experts_ = up.forward + (apart ? kernels.activation_forward(rows, ffn) : KernelCost{}) + down.forward;
    experts_.flops /= std::max(1.0, plan.experts.load);  // beyond its own share: no work of the model
    sum_ = kernels.compute.memory_bound((rows + tokens) * kernels.hidden * kernels.element,
                                        MemoryKernel::elementwise);
    if (experts.shared == 0) return;
    const double width = experts.shared * experts.ffn / static_cast<double>(plan.tp);
    shared_ = kernels.linear(tokens, kernels.gates() * width, kernels.hidden).forward +
              kernels.activation_forward(tokens, width) +
              kernels.linear(tokens, kernels.hidden, width).forward;
    sum_ += kernels.compute.memory_bound(3 * tokens * kernels.hidden * kernels.element, MemoryKernel::add);
  }

  int forward(PieceList& list) const override {
    const int whole = kernels_.gather(list, Part::router, kernels_.bytes);
    list.compute(Part::router, router_, whole, parameters_.router);
    list.compute(Part::experts, experts_, Piece::kNone,
                 parameters_.routed() / (kernels_.plan.ep * kernels_.plan.etp));
    if (shared_.kernels > 0)
      list.compute(Part::mlp, shared_, Piece::kNone,
                   (parameters_.fc1 + parameters_.fc2) / kernels_.plan.tp + parameters_.fc2_bias);
    list.compute(Part::combine, sum_);
    return kernels_.reduce(list, Part::combine, kernels_.bytes);
  }
  int backward(PieceList&, RecomputeKind) const override { return Piece::kNone; }  // nothing is trained

 private:
  const LayerKernels& kernels_;
  LayerParameters parameters_;
  KernelCost router_, experts_, shared_, sum_;
};
}  // namespace

double visited_experts(double top_k, const Plan& plan, double tokens) {
  const double here = plan.experts.slots / static_cast<double>(plan.ep);
  const double share =
      1 - std::pow(1 - std::min(1.0, top_k * plan.experts.load / plan.experts.slots), tokens);
  return std::min(here, here * share + expected_largest(plan.ep) * std::sqrt(here * share * (1 - share)));
}

std::unique_ptr<FeedForward> sliced_experts(const LayerKernels& kernels, const LayerParameters& parameters) {
  return std::make_unique<SlicedExperts>(kernels, parameters);
}
}  // namespace topsim::workloads
