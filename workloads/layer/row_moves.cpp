#include "workloads/layer/row_moves.hpp"

namespace topsim::workloads {
namespace {

// Launches of element-wise kernels, counted in moe_utils.py of Megatron-Core 0.12; fewer if the framework
// fuses them (moe_permute_fusion).
struct Launches {
  double permute, sort;
};
constexpr Launches kFused{1, 1}, kEager{4, 3};

// Counted in Megatron-Core 0.6: three to compare, three for each of masked_select's two and nonzero's one;
// then radix sort and histogram.
constexpr double kMapKernels = 12, kSortKernels = 8;

class Moves {
 public:
  Moves(const LayerKernels& kernels, const RowCounts& counts)
      : kernels_(kernels),
        counts_(counts),
        launches_(kernels.plan.fused_kernels ? kFused : kEager),
        early_(kernels.plan.early_experts) {}

  [[nodiscard]] RowMoves one_by_one() const {
    const bool once = kernels_.plan.experts.fused_dispatch();
    const bool one_order = counts_.experts <= 1 || (kernels_.plan.ep == 1 && kernels_.plan.etp == 1);
    RowMoves moves;
    // Fused: each token is read, or its sum written, once (transformer_engine/common/triton/permutation.py).
    const double read = kernels_.plan.fused_kernels && !early_ ? counts_.entering : counts_.routed;
    if (!once) moves.permuted = passed(read + counts_.routed, launches_.permute, kind());
    if ((once && !kernels_.plan.low_latency_exchange()) || (!once && !one_order))
      moves.sorted = passed(counts_.arrived + counts_.rows, launches_.sort, once ? kPlain : kind());
    moves.summed = moves.summed_backward = moves.sorted_backward = moves.sorted;
    const Plan& plan = kernels_.plan;
    if (plan.weighs_rows) {
      const double numbers = counts_.routed * kernels_.hidden, narrow = kernels_.element, wide = 4;
      // Backward: cast, products with the probabilities and with the rows, the latter's sum, cast back.
      moves.weighted = kernels_.compute.memory_bound(numbers * (2 * (narrow + wide) + 2 * wide), kPlain, 3);
      moves.weighted_backward =
          kernels_.compute.memory_bound(numbers * (2 * (narrow + wide) + (2 + 3 + 1) * wide), kPlain, 5);
    }
    return moves;
  }

  [[nodiscard]] RowMoves gathered() const {
    const ExpertSpec& experts = kernels_.model.experts;
    const double g = counts_.gathered, r = counts_.rows;
    RowMoves moves;
    if (!early_) {
      // A byte and an fp32 probability per expert.
      moves.choices = 5.0 * experts.count * g;
      moves.map = kernels_.compute.memory_bound(moves.choices, kPlain, 2);
      moves.sorted = passed(g + r, launches_.sort, kPlain);
      moves.summed = moves.summed_backward = moves.sorted_backward = moves.sorted;
      return moves;
    }
    // Per choice its expert in 64 bits, and the probability.
    moves.choices = (8 + kernels_.element) * experts.top_k * g;
    moves.map = kernels_.compute.memory_bound(4 * moves.choices, kPlain, kMapKernels);
    moves.picked =
        passed(2 * r, 1, kIndexed) + kernels_.compute.memory_bound(4 * moves.choices, kPlain, kSortKernels);
    moves.sorted = passed(2 * r, 1, kIndexed);
    // Zeros for R written, copied; the product; zeros for G written, copied.
    moves.summed = passed(4 * r, 2, kIndexed) + passed((1 + 2 + 2) * r + (1 + 2) * g, 5, kPlain);
    // For the product: gradients by the probabilities and by the rows, and the sum of the former.
    moves.summed_backward = passed(4 * r, 2, kIndexed) + passed((2 + 3 + 1) * r, 3, kPlain);
    moves.sorted_backward = passed(4 * r, 2, kIndexed) + passed(r + g, 2, kPlain);
    return moves;
  }

 private:
  static constexpr MemoryKernel kPlain = MemoryKernel::elementwise, kIndexed = MemoryKernel::indexed;
  [[nodiscard]] MemoryKernel kind() const { return early_ ? kIndexed : kPlain; }
  [[nodiscard]] KernelCost passed(double rows, double kernels, MemoryKernel kind) const {
    return kernels_.compute.memory_bound(rows * kernels_.hidden * kernels_.element, kind, kernels);
  }

  const LayerKernels& kernels_;
  const RowCounts& counts_;
  Launches launches_;
  bool early_;
};
}  // namespace

RowMoves row_moves(const LayerKernels& kernels, const RowCounts& counts) {
  const Moves moves(kernels, counts);
  return kernels.plan.experts.dispatcher == TokenDispatcher::allgather ? moves.gathered()
                                                                       : moves.one_by_one();
}
}  // namespace topsim::workloads
