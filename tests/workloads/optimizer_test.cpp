// Bytes per parameter that an update reads and writes.
#include "workloads/step/optimizer.hpp"

#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "tests/workloads/fixtures.hpp"
#include "workloads/memory/memory.hpp"
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

// Before the norm is known: gradients are read, 4. After it: clipping reads and writes, 8; Adam reads
// gradient, weight and both moments, 16, and writes the last three, 12; the working copy is read in fp32 and
// written in 16 bits, 6.
TEST(Optimizer, WithFp32GradientsAndMasterWeights) {
  const UpdateBytes bytes = update_bytes(plan_of("megatron", Precision::bf16));
  EXPECT_EQ(bytes.before_norm, 4);
  EXPECT_EQ(bytes.after_norm, 8 + 28 + 6);
}

// 16-bit gradients are first widened, 2 + 4, and fp16 ones unscaled and checked for infinities, 8; then the
// norm reads 4.
TEST(Optimizer, Fp16GradientsAreWidenedAndUnscaled) {
  const UpdateBytes bytes = update_bytes(plan_of("megatron@2021", Precision::fp16));
  EXPECT_EQ(bytes.before_norm, 6 + 8 + 4);
  EXPECT_EQ(bytes.after_norm, 8 + 28 + 6);
}

// FSDP's shards are fp32: no working copy. Clipping reads and writes gradients, 8. Foreach Adam has a kernel
// per call and reads the gradient twice, 8. Passes of 4 bytes over weights and moments: weight decay 2, lerp
// 2, mul 2, addcmul 2, sqrt 2, div 2, add 2, addcdiv 4.
TEST(Optimizer, Fp32WeightsHaveNoWorkingCopyAndForeachPassesEightTimes) {
  const UpdateBytes bytes = update_bytes(plan_of("fsdp", Precision::bf16));
  EXPECT_EQ(bytes.before_norm, 4);
  EXPECT_EQ(bytes.after_norm, 8 + 8 + 18 * 4);
}

// Whatever PyTorch reduces in 16 bits it keeps in the weights' 32.
TEST(Optimizer, ReadsGradientsAsWideAsFp32WeightsWhateverWasSent) {
  for (const char* set : {"ddp", "fsdp", "fsdp@2023", "fsdp@2024-flat"}) {
    WorkloadSpec workload;
    workload.model = complete(gpt(2, 1024, 16));
    workload.framework = set;
    workload.precision.gradients = Precision::bf16;
    workload.plan.global_batch = 8;
    const Plan plan = resolve(workload, 8);
    EXPECT_EQ(plan.gradient_bytes, 2) << set;
    EXPECT_EQ(update_bytes(plan).before_norm, 4) << set;
    EXPECT_EQ(update_bytes(plan).after_norm, 8 + 8 + 18 * 4) << set;
  }
}

// torchtitan's AdamW is fused since February 2025, compiled or not: one pass, 28 bytes.
TEST(Optimizer, TorchtitanOf2025FusesAdam) {
  for (const char* set : {"fsdp@2025-compile", "fsdp@2025-eager"})
    EXPECT_EQ(update_bytes(plan_of(set, Precision::bf16)).after_norm, 8 + 28) << set;
}

// Megatron's precision-aware optimiser (megatron/core/optimizer/optimizer_config.py) reads 16-bit gradients
// as they are: the norm 2, clipping 4, Adam 2; weights 4 + 4, moments of 16 bits 2 x (2 + 2), the working
// copy 6. Held are fp32 weights and two moments, 4 + 2 + 2.
TEST(Optimizer, PrecisionAwareReadsGradientsAsTheyAreAndHoldsNarrowMoments) {
  WorkloadSpec workload;
  workload.model = complete(gpt(2, 1024, 16));
  workload.precision.moments = workload.precision.gradients = Precision::bf16;
  workload.plan.global_batch = 8;
  const Plan plan = resolve(workload, 8);
  const UpdateBytes bytes = update_bytes(plan);
  EXPECT_EQ(bytes.before_norm, 2);
  EXPECT_EQ(bytes.after_norm, 4 + 2 + 8 + 8 + 6);
  WorkloadSpec plain = workload;
  plain.precision.moments.reset();  // 4 + 4 + 4, and an fp32 copy of the gradient
  const auto optimizer = [](const WorkloadSpec& each) {
    return memory_use(each, h100(), 8).peak().optimizer;
  };
  EXPECT_NEAR(optimizer(plain) / optimizer(workload), 16.0 / 8, 1e-9);
  workload.framework = "fsdp";
  EXPECT_THROW(resolve(workload, 8), ConfigError);
}

// All in 16 bits: half of these bytes, and 2 + 2 + 2 x 2 = 8 bytes per parameter are held.
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
