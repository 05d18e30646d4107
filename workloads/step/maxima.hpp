// The maxima of delayed scaling of fp8, reduced after each pass.
#pragma once

#include "workloads/compute/compute_model.hpp"
#include "workloads/schedule/tasks.hpp"
#include "workloads/step/chunk_pass.hpp"
#include "workloads/step/stage_emitter.hpp"

namespace topsim::workloads {

// `slot`: the communicator that shares them; Slots::kNoSlot: none does, and nothing is added. Source:
// Transformer Engine, pytorch/fp8.py: reduce_and_update_fp8_tensors, as fp8_autocast ends and in the first
// module's backward pass. Maxima of every product's input, weights and result, backward of the gradients of
// its result and input, fp32, are joined, reduced, copied back, and made scales.
void add_shared_maxima(StageEmitter& emitter, const ModelSpec& model, const Chunk& chunk,
                       const StageTask& task, const Plan& plan, const ComputeModel& compute,
                       std::uint8_t slot);

}  // namespace topsim::workloads
