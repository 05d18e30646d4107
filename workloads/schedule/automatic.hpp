// Zero bubble's automatic schedule (Qi et al., Zero Bubble Pipeline Parallelism, arXiv:2401.10241, section
// 3.1): an order built for the times and the memory of one plan, since no fixed order suits all plans.
//
// The pipeline is simulated once, and every stage decides whenever it becomes idle. Before its first gradient
// returns, a stage runs as many forwards as fit and memory allows. Then backward and forward passes
// alternate. A weight gradient fills a gap that is longer than itself, or a shorter one that would make this
// stage the one that has idled most; it also makes room where memory is full.
#pragma once

#include <vector>

#include "sim/base/units.hpp"
#include "workloads/schedule/schedule.hpp"

namespace topsim::workloads::schedule {

// The cost of one micro-batch on a stage.
struct PassCosts {
  Duration forward{}, input{}, weight{};  // input and weight: the two parts of the backward pass
  // Of what a micro-batch keeps, the part that is held until its weight gradient: above 1 where the gradients
  // that wait are more than what the forward pass kept.
  double until_weight = 1;
};

struct PipelineCosts {
  std::vector<PassCosts> stages;
  Duration transfer{};  // from a stage to the next, either way
  int held = 0;         // micro-batches' activations that a stage may hold
};

// One list per stage. Deterministic. REQUIRES: costs.held >= stages, micro_batches >= 1.
[[nodiscard]] std::vector<std::vector<StageTask>> automatic(const PipelineCosts& costs, int micro_batches);
}  // namespace topsim::workloads::schedule
