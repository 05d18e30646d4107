#include <gtest/gtest.h>

#include "tests/workloads/fixtures.hpp"
#include "workloads/compute/compute_model.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads::compute_test {
using namespace testing;

// 6912 x 4096 x 4096 on an A100, formula of compute_model.hpp. Tiles of 256 x 128: 27 x 32 = 864 on 108 SMs,
// 8 full waves. Smaller tiles cover the same area at a lower rate.
//   e = 0.818 / (1 + 4.5 (1/256 + 1/128)) = 0.7770
//   t = 8 x 108 x 256 x 128 x 2 x (4096 + 73) / (312e12 x 0.7770) + 4.3 us = 973.7 us + 4.3 us
// Memory is not the limit: the operands, 147 MB, take 98 us.
TEST(Compute, GemmIsQuantisedToTilesAndWaves) {
  const auto accelerator = a100();
  const ComputeModel model(accelerator, {});
  const KernelCost cost = model.gemm({6912, 4096, 4096}, Precision::bf16);
  EXPECT_NEAR(cost.seconds, 978.0e-6, 0.05e-6);
  EXPECT_EQ(cost.memory_seconds, 0);
  EXPECT_DOUBLE_EQ(cost.flops, 2.0 * 6912 * 4096 * 4096);
  // One row more of tiles begins a ninth wave.
  EXPECT_GT(model.gemm({6912 + 1, 4096, 4096}, Precision::bf16).seconds, 1.03 * cost.seconds);
}

// One row, limited by memory: 33.5 MB of weights at 0.733 x 2.039 TB/s take 22.5 us; computing 67 MFLOP takes
// far less.
TEST(Compute, ThinGemmIsLimitedByMemory) {
  const auto accelerator = a100();
  const ComputeModel model(accelerator, {});
  const KernelCost cost = model.gemm({1, 4096, 4096}, Precision::bf16);
  const double bytes = 2.0 * (4096 + 4096.0 * 4096 + 4096);
  EXPECT_NEAR(cost.seconds, bytes / (2.039e12 * 0.733) + 4.3e-6, 1e-10);
  EXPECT_NEAR(cost.memory_seconds, 22.5e-6, 1e-7);
}

// A die of an MI250X multiplies fp32 at 47.85 TFLOP/s in its matrix cores, and has 23.95 in its vector units.
TEST(Compute, MatrixCoresThatMultiplyFp32AreUsed) {
  topology::Accelerator accelerator = a100();
  accelerator.dense_flops = {{"fp32", 23.95e12}, {"fp32_tensor", 47.85e12}, {"bf16", 191.5e12}};
  EXPECT_DOUBLE_EQ(ComputeModel(accelerator, {}).peak(Precision::fp32).value(), 47.85e12);
  accelerator.dense_flops.erase("fp32_tensor");
  EXPECT_DOUBLE_EQ(ComputeModel(accelerator, {}).peak(Precision::fp32).value(), 23.95e12);
}

TEST(Compute, NeverFasterThanTheBestMeasuredMatmul) {
  auto accelerator = h100();
  const ComputeModel model(accelerator, {});
  const KernelCost cost = model.gemm({65536, 16384, 16384}, Precision::bf16);
  EXPECT_LE(cost.flops / cost.seconds, 794.5e12);
}

// 8192 cubed on an H100: 2048 tiles of 256 x 128 are 16 waves of 132.
//   e = 0.946 / (1 + 16.8 (1/256 + 1/128)) = 0.7903
//   t = 16 x 132 x 256 x 128 x 2 x 8192 / (989.4e12 x 0.7903) = 1.4501 ms, or 758.2 TFLOP/s
// An accelerator that sustains 700 TFLOP/s in this product runs all matmuls and attention of the format 758.2
// / 700 times slower.
TEST(Compute, APartAtItsPowerLimitKeepsTheRateItSustains) {
  const auto free = h100();
  auto limited = free;
  limited.sustained_flops = {{"bf16", 700e12}};
  const double fixed = seconds(free.gemm.at("bf16").fixed);
  const auto gemm_time = [&](const topology::Accelerator& accelerator, double edge) {
    return ComputeModel(accelerator, {}).gemm({edge, edge, edge}, Precision::bf16).seconds - fixed;
  };
  EXPECT_NEAR(2 * 8192.0 * 8192 * 8192 / gemm_time(limited, 8192), 700e12, 1e6);
  EXPECT_NEAR(gemm_time(limited, 4096) / gemm_time(free, 4096), 758.2 / 700, 1e-3);
  // A sustained rate above that of the benchmarks speeds nothing up.
  limited.sustained_flops = {{"bf16", 900e12}};
  EXPECT_EQ(gemm_time(limited, 8192), gemm_time(free, 8192));
}

TEST(Compute, AnEfficiencyReplacesTheTileModelAndTheClockDerates) {
  const auto accelerator = a100();
  const ComputeModel half(accelerator, {0.5, 1, true});
  const KernelCost cost = half.gemm({4096, 4096, 4096}, Precision::bf16);
  EXPECT_DOUBLE_EQ(cost.seconds, cost.flops / 156e12);
  const ComputeModel slow(accelerator, {0.5, 0.9, true});
  EXPECT_DOUBLE_EQ(slow.gemm({4096, 4096, 4096}, Precision::bf16).seconds, cost.seconds / 0.9);
}

// A norm that reads and writes 1 GB each: at 0.8 of the bandwidth when fused, at 0.35 when eager.
TEST(Compute, MemoryBoundKernelsRunAtAShareOfTheBandwidth) {
  const auto accelerator = a100();
  EXPECT_DOUBLE_EQ(ComputeModel(accelerator, {}).memory_bound(2e9, MemoryKernel::norm).seconds,
                   2e9 / (2.039e12 * 0.8));
  EXPECT_DOUBLE_EQ(ComputeModel(accelerator, {{}, 1, false}).memory_bound(2e9, MemoryKernel::norm).seconds,
                   2e9 / (2.039e12 * 0.35));
}

// Backward has five matmuls and forward two. In model FLOPs backward counts twice the forward pass: the
// recomputed scores do not count. Without a mask 8 heads of 64 tiles, 512, are four rounds of 132 units: 4 x
// (8,192 keys + 180) at 0.705 of the peak rate forward, 4 x (8,192 + 380) at 0.595 backward.
TEST(Compute, FlashBackwardIsTwoAndAHalfForwardsOfWork) {
  const auto accelerator = h100();
  const ComputeModel model(accelerator, {});
  const AttentionShape shape{1, 8, 1, 8192, 8192, 128, 128, false, false};
  const KernelCost forward = model.attention_forward(shape, AttentionKernel::flash, Precision::bf16);
  const KernelCost backward = model.attention_backward(shape, AttentionKernel::flash, Precision::bf16);
  const double flops = 4 * 132 * 128.0 * 4 * 128;  // of 4 rounds on one key
  EXPECT_NEAR(forward.seconds, flops * (8192 + 180) / (0.705 * 989.4e12), 1e-9);
  EXPECT_NEAR(backward.seconds, 2.5 * flops * (8192 + 380) / (0.595 * 989.4e12), 1e-9);
  EXPECT_DOUBLE_EQ(forward.flops, 4 * 8 * 8192.0 * 8192 * 128);
  EXPECT_DOUBLE_EQ(backward.flops, 2 * forward.flops);
}

// A rank of four that share a sequence has a quarter of the queries, with a window and without; both passes
// take a quarter of the time. 64 heads, so that no tile is waited for long.
TEST(Compute, APartOfTheQueriesTakesItsShareOfBothPasses) {
  const auto accelerator = h100();
  const ComputeModel model(accelerator, {});
  for (const double window : {0.0, 4096.0}) {
    const AttentionShape whole{1, 64, 8, 32768, 32768, 128, 128, true, false, window};
    AttentionShape part = whole;
    part.queries /= 4;
    const auto forward = [&](const AttentionShape& shape) {
      return model.attention_forward(shape, AttentionKernel::flash, Precision::bf16).seconds;
    };
    const auto backward = [&](const AttentionShape& shape) {
      return model.attention_backward(shape, AttentionKernel::flash, Precision::bf16).seconds;
    };
    EXPECT_NEAR(forward(part) / forward(whole), 0.25, 0.02) << window;
    // A tile of keys starts as often, and its window ends within a block as often, for a quarter of the
    // queries.
    EXPECT_NEAR(backward(part) / backward(whole), 0.25, 0.09) << window;
  }
}

TEST(Compute, UnfusedAttentionComputesTheWholeMatrix) {
  const auto accelerator = a100();
  const ComputeModel model(accelerator, {});
  const AttentionShape shape{1, 12, 12, 2048, 2048, 128, 128, true, true};
  const KernelCost unfused = model.attention_forward(shape, AttentionKernel::unfused, Precision::bf16);
  const KernelCost flash = model.attention_forward(shape, AttentionKernel::flash, Precision::bf16);
  EXPECT_GT(unfused.seconds, 2 * flash.seconds);
  EXPECT_DOUBLE_EQ(unfused.flops, flash.flops);  // model FLOPs do not depend on the kernel
}

// 72 B s L h^2 (1 + s / (6 h) + V / (12 h L)): Narayanan et al., SC'21, without recompute. Causal attention
// counts half: s / (12 h).
TEST(Models, FlopsOfGptShapesAreTheClosedForm) {
  const ModelSpec model = complete(gpt(96, 12288, 96));
  const double s = 2048, h = 12288, layers = 96, v = 51200;
  EXPECT_NEAR(model_flops_per_sequence(model, 2048, false),
              72 * s * layers * h * h * (1 + s / (6 * h) + v / (12 * h * layers)), 1e4);
  EXPECT_NEAR(model_flops_per_sequence(model, 2048, true),
              72 * s * layers * h * h * (1 + s / (12 * h) + v / (12 * h * layers)), 1e4);
}

// 64 heads of 128, 16,384 tokens without a mask: 4 s^2 a d FLOPs, 8,192 tiles. Two of FlashAttention-2's
// share one of 132 units, 32 rounds where 31.03 would do, each of 16,384 keys and 120, at 38 % of an H100's
// 989.4 TFLOP/s. On an A100 it is as fast as the default; the first version reaches 40 % of 312 TFLOP/s on
// 108 units: 76 rounds for 75.85, of 310 keys more.
TEST(ComputeModel, FlashAttention2IsSlowOnHopper) {
  AttentionShape shape;
  shape.heads = shape.kv_heads = 64, shape.queries = shape.keys = 16384;
  shape.head_dim = shape.value_dim = 128, shape.causal = false;
  const auto seconds_on = [&](const topology::Accelerator& accelerator, AttentionKernel kernel) {
    return ComputeModel(accelerator, {}).attention_forward(shape, kernel, Precision::bf16).seconds;
  };
  const double flops = 4.0 * 16384 * 16384 * 64 * 128;
  const double second = seconds_on(h100(), AttentionKernel::flash2);
  EXPECT_NEAR(second, flops / (0.38 * 989.4e12) * (16384 + 120) / 16384 * 32 / (8192 / 264.0), 1e-9);
  EXPECT_GT(second, 1.5 * seconds_on(h100(), AttentionKernel::flash));
  EXPECT_EQ(seconds_on(a100(), AttentionKernel::flash2), seconds_on(a100(), AttentionKernel::flash));
  EXPECT_NEAR(seconds_on(a100(), AttentionKernel::flash1),
              flops / (0.40 * 312e12) * (16384 + 310) / 16384 * 76 / (8192 / 108.0), 1e-9);
}

// Forward and backward pass together, Transformer Engine pull request 3313: 0.695 ms without dropout, 0.728
// with.
TEST(Attention, DropoutInAFlashKernelCostsWhatWasMeasured) {
  const topology::Accelerator accelerator = h100();
  const ComputeModel compute(accelerator, {});
  AttentionShape shape;
  shape.heads = 16, shape.kv_heads = 16, shape.queries = shape.keys = 4096;
  shape.head_dim = shape.value_dim = 128;
  const auto both = [&](bool dropout) {
    shape.dropout = dropout;
    return compute.attention_forward(shape, AttentionKernel::flash2, Precision::bf16).seconds +
           compute.attention_backward(shape, AttentionKernel::flash2, Precision::bf16).seconds;
  };
  EXPECT_NEAR(both(true) / both(false), 0.728 / 0.695, 0.005);
}
// Scores of 16 heads, 1024 x 1024 each. Bytes per score that pass through memory, forward, in eager PyTorch:
// scale 4, mask 4 + 2, cast to fp32 6, softmax 8, cast back 6: 30 in all. The first Megatron, in 16 bits
// throughout, has 16. Backward 34 and 14. Single operators run at 0.5 of the memory bandwidth.
TEST(Compute, EagerAttentionPassesItsScoresLineByLine) {
  const auto accelerator = a100();
  ComputeSettings settings;
  settings.fused = false;
  const ComputeModel first(accelerator, settings);
  settings.eager_softmax = true;
  const ComputeModel eager(accelerator, settings);
  const AttentionShape shape{1, 16, 16, 1024, 1024, 64, 64, true, false, 0};
  const double scores = 16.0 * 1024 * 1024, rate = 0.5 * 2.039e12;
  const auto forward = [&](const ComputeModel& model) {
    return model.attention_forward(shape, AttentionKernel::unfused, Precision::bf16).seconds;
  };
  const auto backward = [&](const ComputeModel& model) {
    return model.attention_backward(shape, AttentionKernel::unfused, Precision::bf16).seconds;
  };
  EXPECT_NEAR(forward(eager) - forward(first), 14 * scores / rate, 1e-9);
  EXPECT_NEAR(backward(eager) - backward(first), 20 * scores / rate, 1e-9);
}
}  // namespace topsim::workloads::compute_test
