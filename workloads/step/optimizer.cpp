#include "workloads/step/optimizer.hpp"

#include "workloads/step/offload.hpp"

namespace topsim::workloads {

using program::Phase;

// Megatron's Float16OptimizerWithFloat16Params (megatron/optimizer/optimizer.py, clip_grads.py), DeepSpeed's
// and apex's alike, pass by pass; without master weights torch.nn.utils.clip_grad_norm_ and a fused Adam.
UpdateBytes update_bytes(const Plan& plan) {
  constexpr double kFp32 = 4;
  UpdateBytes bytes;
  // Gradients of 16 bits are first copied to fp32.
  if (plan.mixed_precision && plan.gradient_bytes < kFp32) bytes.before_norm += plan.gradient_bytes + kFp32;
  if (plan.activations == Precision::fp16) bytes.before_norm += 2 * kFp32;  // unscaled, infinities looked for
  bytes.before_norm += kFp32;                                               // the norm
  bytes.after_norm += 2 * kFp32;                                            // clipped
  bytes.after_norm += 4 * kFp32 + 3 * kFp32;  // Adam: gradient, weight, both moments; all but the first back
  if (plan.mixed_precision) bytes.after_norm += kFp32 + plan.parameter_bytes;  // the working copy
  return bytes;
}

void add_optimizer(StageEmitter& emitter, double parameters, double layers, const Plan& plan,
                   const ComputeModel& compute, std::uint8_t norm_slot,
                   std::span<const std::uint32_t> copies) {
  // Tensor by tensor in Python: gradients to fp32 before, weights back after.
  const double tensors = plan.host.parameter_tensors * layers / plan.optimizer_shards;
  const double calls = plan.counts_host_calls ? tensors * plan.host.optimizer_operators / 2 : 0;
  const UpdateBytes bytes = update_bytes(plan);
  emitter.compute(Part::optimizer, Phase::optimizer,
                  compute.memory_bound(parameters * bytes.before_norm, MemoryKernel::optimizer,
                                       (plan.activations == Precision::fp16 ? 4 : 2) + calls));
  if (norm_slot != Slots::kNoSlot)
    emitter.wait_for(emitter.collective("norm", norm_slot, Phase::gradient_sync, "gradient norm",
                                        program::CollectiveKind::all_reduce, 4, {}, true));
  if (plan.offload != Offload::none) {
    emitter.flush();
    std::vector<std::uint32_t> down(copies.begin(), copies.end());
    if (down.empty()) down.push_back(offload_gradients(emitter, parameters, {}, true));
    return host_optimizer(emitter, parameters, plan, down);
  }
  emitter.compute(Part::optimizer, Phase::optimizer,
                  compute.memory_bound(parameters * bytes.after_norm, MemoryKernel::optimizer,
                                       (plan.fused_kernels ? 4 : 40) + calls));
  emitter.flush();
}
}  // namespace topsim::workloads
