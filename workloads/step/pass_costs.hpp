// What a stage's passes cost one micro-batch, for schedules that are made for a plan
// (schedule/automatic.hpp).
#pragma once

#include <vector>

#include "workloads/step/stage_program.hpp"

namespace topsim::workloads {

// One list a stage. Times are those replayed, else of kernels (or of the host that launches them, if longer)
// without communication: what depends on the network is not known yet. Zero Bubble holds two pipelines of
// micro-batches. REQUIRES: one chunk a stage.
[[nodiscard]] std::vector<std::vector<StageTask>> orders_for(const ModelSpec& model, const Plan& plan,
                                                             const StepPieces& pieces);
}  // namespace topsim::workloads
