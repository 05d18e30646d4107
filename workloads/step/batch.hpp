// The micro-batch that a stage reads before its forward pass.
#pragma once

#include "workloads/compute/compute_model.hpp"
#include "workloads/schedule/tasks.hpp"
#include "workloads/step/chunk_pass.hpp"
#include "workloads/step/stage_emitter.hpp"

namespace topsim::workloads {

// Copies it to the accelerator, on every stage that needs it. Its size comes first. `tensor_slot`: the
// communicator over which the first tensor rank sends it to the others.
void add_batch(StageEmitter& emitter, const Chunk& chunk, const StageTask& task, const Plan& plan,
               const ComputeModel& compute, std::uint8_t tensor_slot);
}  // namespace topsim::workloads
