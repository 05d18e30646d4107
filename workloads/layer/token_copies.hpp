// How many copies of a token DeepEP and HybridEP send: one to every node that holds some of its experts, and
// inside one NVLink domain one to every such rank. A token visits K of E experts, evenly spread over n
// places, at most g of which may be used:
//   g (1 - prod_{i < K} ((g - 1) E/n - i) / (g E/n - i))
#pragma once

#include "workloads/model.hpp"
#include "workloads/plan.hpp"

namespace topsim::workloads {

// NVLink domains over which the ranks that exchange tokens are spread.
[[nodiscard]] int exchange_domains(const Plan& plan);
// Copies that leave: by domain, or by rank within a single one.
[[nodiscard]] double copies_sent(const ModelSpec& model, const Plan& plan);
// Ranks that get a copy in the end.
[[nodiscard]] double ranks_visited(const ModelSpec& model, const Plan& plan);
}  // namespace topsim::workloads
