// Low-rank adapters (Hu et al. 2021): Y = X W + (X A) B with W [k x n] frozen, A [k x r] and B [r x n]
// trained.
//
// Forward, after the frozen product: X A, (X A) B, its scale alpha / r, the sum; before it, where the set or
// the scenario has them, casts of X and dropout. Backward: the frozen weights have no gradient;
// B's, the gradient of X A, A's, and its part of the input's gradient. Column-parallel layers (QKV, FC1) have
// A on every tensor rank and B split, row-parallel ones (projection, FC2) A split and B on every rank: X A is
// summed over the tensor group, forward for rows and backward for columns (PEFT, tuners/lora/tp_layer.py).
//
// Megatron-Bridge and NeMo (peft/utils.py, ParallelLinearAdapter) make both of parallel linears: A's columns
// are split too, and X A gathered; for rows B's are, so that the answer is gathered, whole, and cut to the
// rank's own tokens, and its gradient gathered again. With a2a_experimental, which MLPerf's scripts set
// (LORA_A2A=1), both are all-to-alls. Adapters of experts are taken as PEFT's.
//
// Queries, keys and values may each have an adapter or none, as gate and up may: without one a matrix is
// frozen and no more. The input that they share is kept if any of them has one.
//
// Routed experts: an adapter for each matrix of each expert (PEFT), multiplied in groups, or one for all
// experts of a rank (Megatron-Bridge, peft/lora.py: share_expert_adapters), used by all arriving rows.
#pragma once

#include "workloads/layer/pieces.hpp"

namespace topsim::workloads {

// The layer with its weights frozen and the plan's adapters. REQUIRES: mha or gqa attention.
[[nodiscard]] PiecePair adapted_layer(const ModelSpec& model, LayerKind kind, const Plan& plan,
                                      const ComputeModel& compute, RecomputeKind recompute);
// Embedding or head: frozen, so no gradient of weights; `needed`: that of the input still is.
[[nodiscard]] PiecePair frozen(const PiecePair& pieces, bool needed);
// Adapters of attention, of a dense network, and of one expert.
struct AdapterCounts {
  double attention = 0, network = 0, expert = 0;
};
[[nodiscard]] AdapterCounts adapter_counts(const ModelSpec& model, const Plan& plan);
// For the routed experts of a rank: the adapters of each of their matrices, and the rows that pass them.
[[nodiscard]] double expert_adapters(const ModelSpec& model, const Plan& plan);
[[nodiscard]] double expert_rows(const ModelSpec& model, const Plan& plan);
// For one layer on one rank: the numbers that its adapters keep between their two matrices, and of inputs
// that are theirs alone; their weights, `routed` those of experts on their own ranks.
[[nodiscard]] double adapter_activations(const ModelSpec& model, LayerKind kind, const Plan& plan);
struct AdapterParameters {
  double dense = 0, routed = 0;
};
[[nodiscard]] AdapterParameters adapter_parameters(const ModelSpec& model, LayerKind kind, const Plan& plan);
// FLOPs of the adapters of all layers, forward and backward, for one sequence.
[[nodiscard]] double adapter_flops_per_sequence(const ModelSpec& model, const Plan& plan);
}  // namespace topsim::workloads
