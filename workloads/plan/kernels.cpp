// The kernels of a framework: its facts (framework.hpp), less those that the workload does not use.
#include <algorithm>

#include "workloads/compute/compute_model.hpp"
#include "workloads/plan/parts.hpp"

namespace topsim::workloads {
namespace {

// megatron/model/fused_softmax.py: 16 bits; queries, and heads x sequences, in multiples of four.
bool fits_fused_softmax(const WorkloadSpec& workload, const Plan& plan) {
  const int keys = plan.sequence;
  const std::int64_t each = std::int64_t{workload.model.heads / std::max(1, plan.tp)} * plan.micro_batch;
  return bytes_of(plan.activations) < 4 && keys > 16 && keys <= plan.fused_softmax_keys && keys % 4 == 0 &&
         each % 4 == 0;
}
}  // namespace

void set_kernels(const WorkloadSpec& workload, const Framework& defaults, Plan& plan, Mistakes& mistakes) {
  static_cast<KernelFacts&>(plan) = defaults;
  if (const auto kernel = workload.model.attention.kernel) plan.attention = *kernel;
  plan.plain_softmax = plan.attention == AttentionKernel::unfused && plan.fused_softmax_keys > 0 &&
                       !fits_fused_softmax(workload, plan);
  if (workload.dropout) plan.dropout = *workload.dropout;
  plan.timed_passes = plan.timed_passes && !plan.inference();
  plan.splits_messages = plan.splits_messages && plan.tp > 1 && !plan.sequence_parallel;
  // Adapters read the norm's output in 16 bits.
  const bool trains = !plan.inference() && plan.task != Task::lora;
  const bool one_scale = plan.gemm == Precision::fp8;
  // In inference each token's row has a maximum of its own, computed by the kernel that casts it (vLLM,
  // csrc/quantization/fp8/common.cu, dynamic_per_token_scaled_fp8_quant).
  plan.dynamic_scales = plan.dynamic_scales && !plan.inference();
  const bool narrow = bytes_of(plan.gemm) < bytes_of(plan.activations);
  plan.gathers_narrow = trains && narrow && plan.sequence_parallel && plan.tp > 1 &&
                        (one_scale ? defaults.gathers_narrow : defaults.gathers_narrow_blocks);
  // Served, norms and activations write fp8 (vLLM, csrc/quantization/fused_kernels and the passes of its
  // compiler: rms_quant_fusion, activation_quant_fusion), with a scale for each token.
  const bool serves_narrow = plan.inference() && plan.fused_kernels && one_scale && narrow;
  const bool norm_feeds_product = !plan.sequence_parallel || plan.tp == 1;  // else its rows are gathered
  plan.casts_in_norms =
      (serves_narrow && norm_feeds_product) || (plan.casts_in_norms && trains && one_scale && narrow);
  plan.gathers_cast_weights = plan.gathers_cast_weights && trains && one_scale && narrow &&
                              plan.shards.by_unit && !workload.precision.parameters_all_gather;
  plan.casts_where_made = serves_narrow || (plan.casts_where_made && trains && one_scale && narrow);
  const AmaxReduction shared = workload.precision.amax_reduction.value_or(defaults.amax_reduction);
  const bool delayed = !plan.inference() && one_scale && narrow && !plan.dynamic_scales;
  plan.amax_reduction = delayed ? shared : AmaxReduction::none;
  if (workload.precision.amax_reduction.value_or(AmaxReduction::none) != AmaxReduction::none && !delayed)
    mistakes.add("precision.amax_reduction",
                 "only delayed scaling keeps maxima: training in fp8 whose scales are known beforehand",
                 "leave it out, or gemm fp8 in framework megatron@2024");
  plan.reads_either_layout = plan.reads_either_layout && one_scale;
  plan.swizzles_scales = plan.swizzles_scales && !plan.inference() &&
                         (plan.gemm == Precision::mxfp8 || plan.gemm == Precision::nvfp4);
  plan.scatters_narrow = plan.scatters_narrow && trains && one_scale;
  plan.gate_apart = plan.gate_apart && workload.model.gated_ffn && !plan.inference();
  plan.reduces_inputs_apart = plan.reduces_inputs_apart && !plan.inference();
  plan.qkv_apart =
      plan.reduces_inputs_apart ||
      (plan.gate_apart && (plan.core_copies == CoreCopies::pytorch || plan.core_copies == CoreCopies::apart));
  if (workload.compute.fused_experts && workload.model.experts.count == 0)
    mistakes.add("compute.fused_experts", "the model has no experts", "leave it out");
  plan.experts.fused = workload.compute.fused_experts;
}

void set_loss(const WorkloadSpec& workload, const Framework& defaults, Plan& plan, Mistakes& mistakes) {
  if (const auto fused = workload.compute.fused_cross_entropy) plan.fused_cross_entropy = *fused;
  plan.loss_chunks = workload.compute.loss_chunks;
  for (const auto& [key, given] :
       {std::pair{"compute.fused_cross_entropy", workload.compute.fused_cross_entropy.has_value()},
        {"compute.loss_chunks", plan.loss_chunks > 1}}) {
    if (given && plan.inference()) mistakes.add(key, "inference has no loss", "leave it out");
  }
  if (const auto predicted = workload.predictions_per_sequence) {
    plan.predictions = *predicted < plan.sequence ? *predicted : 0;
    if (plan.inference())
      mistakes.add("predictions_per_sequence", "inference has no loss", "leave it out");
    else if (*predicted > plan.sequence && plan.sequence > 0)
      mistakes.add("predictions_per_sequence",
                   fmt::format("{} of a sequence of {} tokens", *predicted, plan.sequence),
                   "at most the sequence; left out it is all of it");
    else if (predictions_of(workload.model) > 0)
      mistakes.add("predictions_per_sequence",
                   "modules of multi-token prediction are trained on all tokens of a causal model",
                   "leave it out, or set model.prediction_layers to 0");
  }
  if (plan.loss_chunks > 1 && plan.single_process)
    mistakes.add("compute.loss_chunks", "framework dataparallel gathers all logits on one device",
                 "leave it out, or use framework ddp");
  const auto& [whole, split] = plan.fused_cross_entropy
                                   ? std::tie(defaults.fused_loss, defaults.split_fused_loss)
                                   : std::tie(defaults.loss, defaults.split_loss);
  plan.loss = plan.tp > 1 && split ? *split : whole;
}
}  // namespace topsim::workloads
