// Which kernels a framework has: facts of framework.cpp, as far as the workload uses them.
#include "workloads/plan/parts.hpp"

namespace topsim::workloads {

void set_kernels(const WorkloadSpec& workload, const Framework& defaults, Plan& plan, Mistakes& mistakes) {
  plan.attention = workload.model.attention.kernel.value_or(defaults.attention);
  plan.timed_passes = defaults.timed_passes && !plan.inference();
  plan.splits_messages = defaults.splits_messages && plan.tp > 1 && !plan.sequence_parallel;
  plan.dropout = workload.dropout.value_or(defaults.dropout);
  plan.fused_adam = defaults.fused_adam;
  plan.apex_norms = defaults.apex_norms;
  plan.gradient_passes = defaults.gradient_passes;
  plan.wide_inputs = defaults.wide_inputs;
  plan.ring_fp32 = defaults.ring_fp32;
  plan.batch_first_shards = defaults.batch_first_shards;
  plan.gathers_inputs_again = defaults.gathers_inputs_again;
  // Adapters read the norm's output, in 16 bits.
  const bool trains = !plan.inference() && plan.task != Task::lora;
  const bool one_scale = plan.gemm == Precision::fp8;
  const bool narrow = bytes_of(plan.gemm) < bytes_of(plan.activations);
  plan.gathers_narrow = trains && narrow && plan.sequence_parallel && plan.tp > 1 &&
                        (one_scale ? defaults.gathers_narrow : defaults.gathers_narrow_blocks);
  plan.casts_in_norms = defaults.casts_in_norms && trains && one_scale && narrow;
  plan.reads_either_layout = defaults.reads_either_layout && one_scale;
  plan.scatters_narrow = defaults.scatters_narrow && trains && one_scale;
  plan.dynamic_scales = defaults.dynamic_scales;
  plan.keeps_narrow_weights = defaults.keeps_narrow_weights;
  plan.fused_kernels = defaults.fused_kernels;
  plan.eager_norms = defaults.eager_norms;
  plan.complex_rotary = defaults.complex_rotary;
  plan.eager_squared_relu = defaults.eager_squared_relu;
  plan.bias_kernels = defaults.bias_kernels;
  plan.core_copies = defaults.core_copies;
  plan.gate_apart = defaults.gate_apart && workload.model.gated_ffn && !plan.inference();
  plan.qkv_apart = plan.gate_apart && plan.core_copies == CoreCopies::pytorch;
  plan.fused_accumulation = defaults.fused_accumulation;
  if (workload.compute.fused_experts && workload.model.experts.count == 0)
    mistakes.add("compute.fused_experts", "the model has no experts", "leave it out");
  plan.fused_experts = workload.compute.fused_experts;
}

void set_loss(const WorkloadSpec& workload, const Framework& defaults, Plan& plan, Mistakes& mistakes) {
  plan.fused_cross_entropy = workload.compute.fused_cross_entropy.value_or(defaults.fused_cross_entropy);
  plan.fused_loss_forward = defaults.fused_loss_forward;
  plan.loss_chunks = workload.compute.loss_chunks;
  for (const auto& [key, given] :
       {std::pair{"compute.fused_cross_entropy", workload.compute.fused_cross_entropy.has_value()},
        {"compute.loss_chunks", plan.loss_chunks > 1}}) {
    if (given && plan.inference()) mistakes.add(key, "inference has no loss", "leave it out");
  }
  if (plan.loss_chunks > 1 && plan.single_process)
    mistakes.add("compute.loss_chunks", "framework dataparallel gathers all logits on one device",
                 "leave it out, or use framework ddp");
  plan.logit_bytes = plan.fused_cross_entropy ? defaults.fused_logit_bytes : defaults.logit_bytes;
}
}  // namespace topsim::workloads
