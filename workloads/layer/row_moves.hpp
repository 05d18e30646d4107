// Kernels that put tokens' rows into the order of their experts and sum the experts' answers again.
// T tokens enter the layer on a rank, each chooses K experts; R rows arrive at this rank's experts as A
// copies of tokens (all-gather: of all G tokens of the ranks that share the experts).
//
//   alltoall    permuted before the exchange, T and T K rows; sorted by local expert behind it, A and R
//   allgather   those that chose an expert here are picked, G and R
//   deepep      permuted on arrival, A and R
// and the same where answers are summed, and backward. Megatron-Core 0.6 (KernelFacts::early_experts) did
// it by an index for each number (moe/token_dispatcher.py); its all-gather twice, of G to R rows in their
// order and then by expert, and back by scatter into zeros, a product with the probabilities, and scatter_add
// into zeros. Neither scatter is in place: zeros are copied first. torchtitan without torch.compile weighs a
// token's rows by single operators in fp32 (models/moe.py, top_scores): cast, product, cast back.
#pragma once

#include "workloads/layer/layer_kernels.hpp"

namespace topsim::workloads {

struct RowCounts {
  double entering = 0, routed = 0;  // T, T K
  double gathered = 0;              // G
  double arrived = 0, rows = 0;     // A, R
  double experts = 0;               // on this rank
};

struct RowMoves {
  KernelCost permuted;  // on either side of an exchange, in either pass
  // All-gather: which rows chose an expert here, and the first pick, after which the host reads their counts.
  KernelCost map, picked;
  // Before the experts' products and after them; of their gradients after and before.
  KernelCost sorted, summed, summed_backward, sorted_backward;
  KernelCost weighted, weighted_backward;  // by the probabilities, where that is operators of its own
  double choices = 0;  // bytes that say where each of the G tokens goes, gathered beside them
};

[[nodiscard]] RowMoves row_moves(const LayerKernels& kernels, const RowCounts& counts);
}  // namespace topsim::workloads
