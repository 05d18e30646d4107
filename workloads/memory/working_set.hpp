// What the layer whose backward pass is running holds in addition to what its forward pass kept: gradients
// between its products, and copies in transfer to and from the tensor group. T rows of the rank's
// micro-batch, R those between the matrices (T / t with sequence parallelism), f columns of FC1 on this rank,
// g of them side by side (2 gated), e bytes; the most of three moments of the feed-forward network, where all
// of the layer is still kept, and of the attention core with stored scores:
//   FC2's product       R h + (dropout R h) + (split rows: T h gathered) + T f
//   the activation's    R h + (g + 1) T f                    less FC2's input
//   FC1's product       R h + g T f + n T h + (split rows: R h)        less that, the activation's inputs
//   the core's          2 R h + two of scores                less what the network kept
// n: one product of all columns leaves its answer, and Megatron's gathers its input again beside it; two that
// are apart leave theirs and their sum, which a compiler writes in place of one of them but where it copies
// it in chunks for the scatter (Framework::batch_first_shards). Autograd adds gradients out of place
// (torch/csrc/autograd/input_buffer.cpp, accumulate: a tensor subclass, or one that others hold).
// Frozen weights of few bits are copied in the width of their product for its time.
#pragma once

#include "workloads/model.hpp"
#include "workloads/plan.hpp"

namespace topsim::workloads {

// Bytes. For experts, of the rows that arrive at them. REQUIRES: a training plan.
[[nodiscard]] double working_set(const ModelSpec& model, const Plan& plan);
}  // namespace topsim::workloads
