// Activations of a stage and of its layers (the closed forms open memory.hpp).
#pragma once

#include "workloads/model.hpp"
#include "workloads/plan.hpp"

namespace topsim::workloads {

// The rows of a micro-batch that a tensor rank holds between the matrices.
[[nodiscard]] inline double rows_of(const Plan& plan) {
  return plan.sequence_parallel ? plan.tokens() / plan.tp : plan.tokens();
}
// The rows of a column-parallel layer's input that are kept for its weight gradient.
[[nodiscard]] inline double rows_kept(const Plan& plan) {
  return plan.gathers_inputs_again ? rows_of(plan) : plan.tokens();
}
// Of the head's input.
[[nodiscard]] inline double rows_predicted(const Plan& plan) {
  return plan.predictions > 0 ? plan.predicted() : rows_kept(plan);
}
[[nodiscard]] double logits_bytes(const ModelSpec& model, const Plan& plan);
// What PyTorch's tensor ranks gather of the head's input and then copy into order (batch_first_shards) is
// free when the loss comes, and stays so: the allocator has no other use for it than the 16-bit logits, and
// only if they fit.
[[nodiscard]] double beside_logits(const ModelSpec& model, const Plan& plan);
// For the layer whose backward pass is running: what recompute produced, in addition to what was kept.
[[nodiscard]] double bytes_computed_again(const ModelSpec& model, const Plan& plan);
// The most that the schedule holds at one time.
[[nodiscard]] double peak_activations(const ModelSpec& model, const Plan& plan, int stage);
// With offload: this layer's activations and those of the one in transfer.
[[nodiscard]] double layers_in_flight(const ModelSpec& model, const Plan& plan, int layers);
}  // namespace topsim::workloads
