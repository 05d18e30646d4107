// Which of a layer's parameters are gathered together where ranks hold shards of them (units.cpp).
#pragma once

#include <vector>

#include "workloads/model.hpp"
#include "workloads/plan.hpp"
#include "workloads/step/data_parallel.hpp"

namespace topsim::workloads {

// Matrices of a layer on one rank in the order of its forward pass. Layers with gates are transformers'
// modules, others Megatron-DeepSpeed's, which joins queries, keys and values.
[[nodiscard]] std::vector<double> matrices_of(const ModelSpec& model, LayerKind kind, const Plan& plan);

// How many numbers each gather of a unit has: all, or matrices until there are `least`; other parameters come
// with the first.
[[nodiscard]] std::vector<double> gathers_of(double unit, const std::vector<double>& matrices, double least);

// Units within a dense layer where FSDP wraps parts of Plan::wrap_least parameters (torch/distributed/fsdp/
// wrap.py, size_based_auto_wrap_policy): a matrix, else its attention or feed-forward network, else what is
// left of the layer, which then comes last and is read from its beginning to its end. In the order in which
// their forward passes end. What is in none belongs to the model around the layers.
[[nodiscard]] std::vector<NestedUnit> wrapped_by_size(const ModelSpec& model, LayerKind kind,
                                                      const Plan& plan);
}  // namespace topsim::workloads
