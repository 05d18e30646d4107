// What an update reads and writes, in bytes a parameter.
#include "workloads/step/optimizer.hpp"

#include <gtest/gtest.h>

#include "tests/workloads/fixtures.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads::optimizer_test {
using namespace testing;

Plan plan_of(const std::string& framework, Precision precision) {
  WorkloadSpec workload;
  workload.model = complete(gpt(2, 1024, 16));
  workload.framework = framework;
  workload.precision.gemm = precision;
  workload.plan.global_batch = 8;
  return resolve(workload, 8);
}

// The norm reads 4. Clipping reads and writes, 8; Adam reads gradient, weight and both moments, 16, and
// writes the last three, 12; the working copy is read in fp32 and written in 16 bits, 6.
TEST(Optimizer, WithFp32GradientsAndMasterWeights) {
  const UpdateBytes bytes = update_bytes(plan_of("megatron", Precision::bf16));
  EXPECT_EQ(bytes.before_norm, 4);
  EXPECT_EQ(bytes.after_norm, 8 + 28 + 6);
}

// Gradients of 16 bits are widened first, 2 + 4, and in fp16 unscaled while infinities are looked for, 8.
TEST(Optimizer, Fp16GradientsAreWidenedAndUnscaled) {
  const UpdateBytes bytes = update_bytes(plan_of("megatron@2021", Precision::fp16));
  EXPECT_EQ(bytes.before_norm, 6 + 8 + 4);
  EXPECT_EQ(bytes.after_norm, 8 + 28 + 6);
}

// FSDP's shards are fp32 themselves. Foreach Adam, each call a kernel: the gradient is read twice, 8; what is
// kept is read or written by weight decay 2 times, lerp 2, mul 2, addcmul 2, sqrt 2, div 2, add 2, addcdiv 4.
TEST(Optimizer, Fp32WeightsHaveNoWorkingCopyAndForeachPassesEightTimes) {
  const UpdateBytes bytes = update_bytes(plan_of("fsdp", Precision::bf16));
  EXPECT_EQ(bytes.before_norm, 4);
  EXPECT_EQ(bytes.after_norm, 8 + 8 + 18 * 4);
}

// Everything in 16 bits: half of the figures above, and 2 + 2 + 2 x 2 = 8 bytes a parameter are held.
TEST(Optimizer, PureBf16HalvesWhatMovesAndWhatIsHeld) {
  WorkloadSpec workload;
  workload.model = complete(gpt(2, 1024, 16));
  workload.framework = "fsdp";
  workload.precision.optimizer = Precision::bf16;
  workload.plan.global_batch = 8;
  const Plan plan = resolve(workload, 8);
  EXPECT_EQ(update_bytes(plan).before_norm, 2);
  EXPECT_EQ(update_bytes(plan).after_norm, 4 + 4 + 18 * 2);
  EXPECT_EQ(plan.parameter_bytes + plan.gradient_bytes + 2 * plan.optimizer_bytes, 8);
  EXPECT_FALSE(plan.cast_weights || plan.mixed_precision);
}
}  // namespace topsim::workloads::optimizer_test
