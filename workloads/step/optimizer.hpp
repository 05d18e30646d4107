// The update at the end of a step: gradient norm, then Adam.
#pragma once

#include "workloads/compute/compute_model.hpp"
#include "workloads/step/stage_emitter.hpp"

namespace topsim::workloads {

// Memory traffic of an update, per parameter whose states the rank holds: until the norm of all gradients is
// known, and after.
struct UpdateBytes {
  double before_norm = 0, after_norm = 0;
};
[[nodiscard]] UpdateBytes update_bytes(const Plan& plan);

// Of the `parameters` whose optimiser states the rank holds. `norm_slot`: the communicator over which the
// gradient norm is summed, Slots::kNoSlot where the rank has all of it. `layers` on the rank: what the host
// walks through tensor by tensor.
// `copies`: gradients in transfer to the host, with offload; empty: none is offloaded.
void add_optimizer(StageEmitter& emitter, double parameters, double layers, const Plan& plan,
                   const ComputeModel& compute, std::uint8_t norm_slot,
                   std::span<const std::uint32_t> copies = {});
}  // namespace topsim::workloads
