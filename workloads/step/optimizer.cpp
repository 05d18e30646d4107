#include "workloads/step/optimizer.hpp"

#include "workloads/step/offload.hpp"

namespace topsim::workloads {

using program::Phase;

void add_optimizer(StageEmitter& emitter, double parameters, double layers, const Plan& plan,
                   const ComputeModel& compute, std::uint8_t norm_slot,
                   std::span<const std::uint32_t> copies) {
  // Tensor by tensor in Python: gradients to fp32 before, weights back after.
  const double tensors = plan.host.parameter_tensors * layers / plan.optimizer_shards;
  const double calls = plan.counts_host_calls ? tensors * plan.host.optimizer_operators / 2 : 0;
  // The norm reads every gradient of the shard once; fp16 looks for infinities as well.
  const double passes = plan.activations == Precision::fp16 ? 2 : 1;
  emitter.compute(Part::optimizer, Phase::optimizer,
                  compute.memory_bound(passes * parameters * plan.gradient_bytes, MemoryKernel::optimizer,
                                       2 * passes + calls));
  if (norm_slot != Slots::kNoSlot)
    emitter.wait_for(emitter.collective("norm", norm_slot, Phase::gradient_sync, "gradient norm",
                                        program::CollectiveKind::all_reduce, 4, {}, true));
  if (plan.offload != Offload::none) {
    emitter.flush();
    std::vector<std::uint32_t> down(copies.begin(), copies.end());
    if (down.empty()) down.push_back(offload_gradients(emitter, parameters, {}, true));
    return host_optimizer(emitter, parameters, plan, down);
  }
  // Adam: reads gradient, master weight and both moments, writes the last three in fp32 and the working copy.
  const double adam = plan.gradient_bytes + 12 + 12 + (plan.mixed_precision ? plan.parameter_bytes : 0);
  emitter.compute(Part::optimizer, Phase::optimizer,
                  compute.memory_bound(adam * parameters, MemoryKernel::optimizer,
                                       (plan.fused_kernels ? 4 : 40) + calls));
  emitter.flush();
}
}  // namespace topsim::workloads
