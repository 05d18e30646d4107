// Number formats, and measured stage times.
#include <fmt/format.h>

#include "workloads/compute/compute_model.hpp"
#include "workloads/plan/parts.hpp"

namespace topsim::workloads {

void set_precision(const WorkloadSpec& workload, const Framework& defaults, Plan& plan, Mistakes& mistakes) {
  const PrecisionSpec& precision = workload.precision;
  if (precision.attention && bytes_of(*precision.attention) < 2)
    mistakes.add("precision.attention", "no framework stores all its activations in 8 bits",
                 "\"attention_core\" computes attention in them, \"gemm\" the linear layers");
  plan.gemm = precision.gemm;
  const bool full = precision.gemm == Precision::fp32 || precision.gemm == Precision::tf32;
  const bool sixteen = precision.gemm == Precision::fp16 || precision.gemm == Precision::bf16;
  plan.activations = precision.attention.value_or(full || sixteen ? precision.gemm : Precision::bf16);
  plan.attention_core = precision.attention_core.value_or(plan.activations);
  plan.kv_cache = precision.kv_cache.value_or(plan.activations);
  // If the optimiser keeps 16 bits there is no master copy: weights and gradients have that format too.
  plan.optimizer_bytes = bytes_of(
      precision.optimizer.value_or(defaults.narrow_states && !full ? Precision::bf16 : Precision::fp32));
  const bool narrow = plan.optimizer_bytes < 4;
  const bool wide_weights = full || (defaults.parameters_fp32 && !narrow);
  plan.mixed_precision = !wide_weights && !narrow;
  // Megatron-Core, optimizer/optimizer_config.py: use_precision_aware_optimizer, exp_avg_dtype,
  // exp_avg_sq_dtype.
  plan.precision_aware = precision.moments.has_value();
  plan.moment_bytes = precision.moments ? bytes_of(*precision.moments) : plan.optimizer_bytes;
  if (plan.precision_aware && workload.plan.zero.value_or(defaults.zero) == 0)
    mistakes.add("precision.moments", "Megatron's precision-aware optimiser is its distributed one",
                 "set zero to 1, or leave it out");
  if (plan.precision_aware && (defaults.family != FrameworkFamily::megatron || !plan.mixed_precision))
    mistakes.add("precision.moments",
                 plan.mixed_precision ? "Megatron's optimiser alone keeps moments in a format of their own"
                                      : "moments have a format of their own beside a master copy alone",
                 "leave it out");
  plan.cast_weights = !full && wide_weights;
  plan.parameter_bytes = wide_weights ? 4 : 2;
  const bool wide_gradients =
      defaults.gradients_fp32 && (defaults.fp16_gradients_fp32 || plan.activations != Precision::fp16);
  const bool own_width = !narrow || (defaults.narrow_states && !precision.optimizer);
  plan.gradient_bytes = full || (wide_gradients && own_width) ? 4 : 2;
  if (precision.gradients) plan.gradient_bytes = bytes_of(*precision.gradients);
  plan.kept_gradient_bytes = defaults.widens_reduced ? plan.parameter_bytes : plan.gradient_bytes;
  plan.read_gradient_bytes = defaults.widens_in_update ? plan.gradient_bytes : plan.kept_gradient_bytes;
  const bool one_scale = plan.gemm == Precision::fp8;
  const bool trains = !plan.inference() && plan.task != Task::lora;
  const bool narrow_weights = defaults.keeps_narrow_weights && trains && plan.mixed_precision;
  const bool cast =
      one_scale && (defaults.gathers_cast_weights || (narrow_weights && defaults.fp8_parameters));
  plan.gathered_parameter_bytes = full ? 4 : cast ? 1 : 2;
  if (narrow_weights && (plan.gemm == Precision::fp8_blockwise || plan.gemm == Precision::nvfp4))
    plan.narrow_copy_bytes = 2 * bytes_of(plan.gemm);  // both layouts
  if (precision.parameters_all_gather)
    plan.gathered_parameter_bytes = bytes_of(*precision.parameters_all_gather);
}

void set_stage_times(const StageTimes& given, Plan& plan, Mistakes& mistakes) {
  const auto spread = [&](const char* key, const std::vector<Duration>& times) {
    const auto stages = static_cast<std::size_t>(plan.pp);
    if (times.size() <= 1) return std::vector<Duration>(stages, times.empty() ? Duration{} : times.front());
    if (times.size() != stages)
      mistakes.add(fmt::format("compute.stage_times.{}", key),
                   fmt::format("{} times for {} stages", times.size(), stages),
                   "one for all, or one for each stage");
    return times;
  };
  if (given.forward.empty()) {
    if (!given.backward_input.empty() || !given.backward_weight.empty() || !given.transfer.empty())
      mistakes.add("compute.stage_times", "stage times need the forward pass", "add \"forward\"");
    return;
  }
  plan.stage_times.forward = spread("forward", given.forward);
  plan.stage_times.backward_input = spread("backward_input", given.backward_input);
  plan.stage_times.backward_weight = spread("backward_weight", given.backward_weight);
  if (!given.transfer.empty()) plan.stage_times.transfer = spread("transfer", given.transfer);
}
}  // namespace topsim::workloads
