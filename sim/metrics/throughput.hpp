// What a step time means in samples, tokens and floating-point work.
//
//   model FLOP/s utilisation  mfu = F / (t n P)     F model FLOPs of one step, t step time, n accelerators,
//                                                   P peak dense FLOP/s of one accelerator
// Two conventions for F, which differ in attention only: the causal half counted as half (mfu), or the full
// square (mfu_full_attention, Megatron's and PaLM's; PaLM 2022, arXiv 2204.02311, appendix B).
// Recomputed work counts in neither.
#pragma once

#include "sim/program/program.hpp"

namespace topsim::metrics {

struct Throughput {
  double samples_per_second = 0;
  double tokens_per_second = 0;
  double tokens_per_second_per_accelerator = 0;
  double model_tflops_per_accelerator = 0;  // 1e12 FLOP/s
  double mfu = 0;
  double mfu_full_attention = 0;
};

// All zero when the step takes no time or nobody runs it.
[[nodiscard]] Throughput throughput(const program::StepFacts& facts, Duration step,
                                    std::uint32_t accelerators);
}  // namespace topsim::metrics
