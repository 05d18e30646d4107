#include "workloads/step/optimizer.hpp"

#include "workloads/step/offload.hpp"

namespace topsim::workloads {

using program::Phase;

namespace {
// How often Adam reads or writes a gradient, and each number that it keeps (weight, two moments, a
// temporary).
struct AdamPasses {
  double gradient, kept;
};
// apex and DeepSpeed: gradient, weight and moments are read, all but the gradient written.
constexpr AdamPasses kFusedAdam{1, 6};
// torch/optim/adam.py, _multi_tensor_adam, each call is a pass: weight decay 2 (weight read, written), lerp 2
// and the gradient, mul 2, addcmul 2 and the gradient, sqrt 2 (a temporary written), div 2, add 2, addcdiv 4.
constexpr AdamPasses kForeachAdam{2, 18};
}  // namespace

// Pass by pass, Megatron's Float16OptimizerWithFloat16Params (megatron/optimizer/optimizer.py,
// clip_grads.py), and likewise DeepSpeed's and apex's; without master weights torch.nn.utils.clip_grad_norm_.
UpdateBytes update_bytes(const Plan& plan) {
  constexpr double kFp32 = 4;
  const AdamPasses adam = plan.fused_adam ? kFusedAdam : kForeachAdam;
  // With a master copy gradients are as wide as the copy, or read as they are.
  const bool widens = plan.mixed_precision && !plan.precision_aware;
  const double read = plan.read_gradient_bytes, gradient = widens ? kFp32 : read;
  UpdateBytes bytes;
  // Gradients of 16 bits are first copied to fp32.
  if (widens && read < kFp32) bytes.before_norm += read + kFp32;
  if (plan.activations == Precision::fp16) bytes.before_norm += 2 * gradient;  // unscaled, infinities sought
  bytes.before_norm += gradient;                                               // the norm
  bytes.after_norm += 2 * gradient;                                            // clipped
  const double narrower = 4 * (plan.optimizer_bytes - plan.moment_bytes);  // two moments, read and written
  bytes.after_norm += adam.gradient * gradient + adam.kept * plan.optimizer_bytes - narrower;
  if (plan.mixed_precision) bytes.after_norm += kFp32 + plan.parameter_bytes;  // the working copy
  return bytes;
}

void add_optimizer(StageEmitter& emitter, double parameters, double layers, const Plan& plan,
                   const ComputeModel& compute, std::uint8_t norm_slot,
                   std::span<const std::uint32_t> copies) {
  // Tensor by tensor in Python: gradients to fp32 before the update, weights back after it.
  const double tensors = plan.host.profile.parameter_tensors * layers / plan.shards.optimizer;
  const double calls = plan.host.counts_calls ? tensors * plan.host.profile.optimizer_operators / 2 : 0;
  const UpdateBytes bytes = update_bytes(plan);
  emitter.compute(Part::optimizer, Phase::optimizer,
                  compute.memory_bound(parameters * bytes.before_norm, MemoryKernel::optimizer,
                                       (plan.activations == Precision::fp16 ? 4 : 2) + calls));
  if (norm_slot != Slots::kNoSlot)
    emitter.wait_for(emitter.collective({.stream = "norm",
                                         .slot = norm_slot,
                                         .phase = Phase::gradient_sync,
                                         .label = "gradient norm",
                                         .kind = program::CollectiveKind::all_reduce,
                                         .bytes = 4,
                                         .host_sync = true}));
  if (plan.offload.to != Offload::none) {
    emitter.flush();
    std::vector<std::uint32_t> down(copies.begin(), copies.end());
    if (down.empty()) down.push_back(offload_gradients(emitter, parameters, plan, {}, true));
    return host_optimizer(emitter, parameters, plan, down);
  }
  emitter.compute(Part::optimizer, Phase::optimizer,
                  compute.memory_bound(parameters * bytes.after_norm, MemoryKernel::optimizer,
                                       (plan.fused_adam ? 4 : 40) + calls));
  emitter.flush();
}
}  // namespace topsim::workloads
