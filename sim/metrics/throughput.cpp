#include "sim/metrics/throughput.hpp"

namespace topsim::metrics {

Throughput throughput(const program::StepFacts& facts, Duration step, std::uint32_t accelerators) {
  Throughput result;
  const double t = seconds(step);
  const auto n = static_cast<double>(accelerators);
  if (t <= 0 || n <= 0) return result;
  result.samples_per_second = facts.samples / t;
  result.tokens_per_second = facts.tokens / t;
  result.tokens_per_second_per_accelerator = result.tokens_per_second / n;
  result.model_tflops_per_accelerator = facts.model_flops.value() / (t * n) * 1e-12;
  const double peak = facts.peak_per_accelerator.value();
  if (peak > 0) {
    result.mfu = facts.model_flops.value() / (t * n * peak);
    result.mfu_full_attention = facts.model_flops_full_attention.value() / (t * n * peak);
  }
  return result;
}
}  // namespace topsim::metrics
