// The cost of a stage's passes for one micro-batch, for schedules that are built for a plan
// (schedule/automatic.hpp).
#pragma once

#include <vector>

#include "workloads/step/stage_program.hpp"

namespace topsim::workloads {

// One list per stage. Times are the replayed ones, else of kernels (or of the host that launches them, if
// longer) without communication: the network's times are not known yet. Zero Bubble holds two pipelines of
// micro-batches. REQUIRES: one chunk a stage.
[[nodiscard]] std::vector<std::vector<StageTask>> orders_for(const ModelSpec& model, const Plan& plan,
                                                             const StepPieces& pieces);
}  // namespace topsim::workloads
