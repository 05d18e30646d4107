// Activations of a stage and of its layers (the closed forms open memory.hpp).
#pragma once

#include "workloads/model.hpp"
#include "workloads/plan.hpp"

namespace topsim::workloads {

// Of a micro-batch, the rows that a tensor rank holds between the matrices.
[[nodiscard]] inline double rows_of(const Plan& plan) {
  return plan.sequence_parallel ? plan.tokens() / plan.tp : plan.tokens();
}
// Of a column-parallel layer's input, the rows that wait for its weight gradient.
[[nodiscard]] inline double rows_kept(const Plan& plan) {
  return plan.gathers_inputs_again ? rows_of(plan) : plan.tokens();
}
[[nodiscard]] double logits_bytes(const ModelSpec& model, const Plan& plan);
// Of the layer whose backward pass runs: what recompute has made again, beside what was kept.
[[nodiscard]] double bytes_computed_again(const ModelSpec& model, const Plan& plan);
// The most that the schedule holds at one time.
[[nodiscard]] double peak_activations(const ModelSpec& model, const Plan& plan, int stage);
// Offloaded: this layer's and the one that is on its way.
[[nodiscard]] double layers_in_flight(const ModelSpec& model, const Plan& plan, int layers);
}  // namespace topsim::workloads
