#include "sim/metrics/throughput.hpp"

#include <gtest/gtest.h>

namespace topsim::metrics::throughput_test {
using namespace topsim::literals;

TEST(Throughput, IsWorkOverTimeAndMachines) {
  program::StepFacts facts;
  facts.samples = 8;
  facts.tokens = 8192;
  facts.model_flops = Flops(4e15);
  facts.model_flops_full_attention = Flops(5e15);
  facts.peak_per_accelerator = FlopsPerSecond(1e15);
  const Throughput rates = throughput(facts, 500_ms, 16);
  EXPECT_DOUBLE_EQ(rates.samples_per_second, 16);
  EXPECT_DOUBLE_EQ(rates.tokens_per_second, 16384);
  EXPECT_DOUBLE_EQ(rates.tokens_per_second_per_accelerator, 1024);
  EXPECT_DOUBLE_EQ(rates.model_tflops_per_accelerator, 500);  // 4e15 / (0.5 x 16) = 5e14
  EXPECT_DOUBLE_EQ(rates.mfu, 0.5);
  EXPECT_DOUBLE_EQ(rates.mfu_full_attention, 0.625);
}

TEST(Throughput, OfNothingIsZeroNotNan) {
  EXPECT_EQ(throughput({}, 0_ps, 8).mfu, 0);
  EXPECT_EQ(throughput({}, 1_ms, 0).samples_per_second, 0);
  EXPECT_EQ(throughput({}, 1_ms, 8).mfu, 0);  // no peak known
}
}  // namespace topsim::metrics::throughput_test
