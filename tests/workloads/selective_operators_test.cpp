// Selective recompute of PyTorch frameworks, torchtitan's "op": every second product runs again, and what
// lies between; and where full recompute ends.
#include <gtest/gtest.h>

#include "tests/workloads/mixtures.hpp"
#include "workloads/layer/pieces.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"
#include "workloads/plan.hpp"

namespace topsim::workloads::selective_operators_test {
using namespace testing;

// Llama-3 8B: h 4096, 32 query heads and 8 key-value heads of 128, FFN 14336; 8192 tokens.
constexpr double kTokens = 8192;
double kept(const WorkloadSpec& workload, RecomputeKind kind) {
  return layer_activation_bytes(workload.model, resolve(workload, 8), kind);
}

// Kept per token: input 4096, wq 4096, wv 1024, attention 4096, w1 14336, w2 4096, together 31744 numbers of
// 2 bytes, and attention's sums of 32 heads in 4; compiled without w2's, which no gradient reads, 27648. wk,
// wo, w3, norms and activation run again.
constexpr double kSums = 4 * 32 * kTokens;
TEST(SelectiveOperators, KeepEverySecondProduct) {
  for (const char* framework : {"fsdp", "ddp"})
    EXPECT_DOUBLE_EQ(kept(llama3_8b(framework), RecomputeKind::selective), 2 * kTokens * 31744 + kSums)
        << framework;
  EXPECT_DOUBLE_EQ(kept(llama3_8b("fsdp@2024-compile"), RecomputeKind::selective),
                   2 * kTokens * 27648 + kSums);
  // Megatron's selective recompute repeats the attention core; of flash attention, which keeps no scores, it
  // saves the sums alone.
  const WorkloadSpec megatron = llama3_8b("megatron");
  EXPECT_DOUBLE_EQ(kept(megatron, RecomputeKind::selective), kept(megatron, RecomputeKind::none) - kSums);
}

// torchao's 8-bit products are calls of torch.mm too, so their 16-bit results are kept like others.
TEST(SelectiveOperators, KeepEightBitProductsToo) {
  WorkloadSpec workload = llama3_8b("fsdp@2024-compile");
  const double wide = kept(workload, RecomputeKind::selective);
  workload.precision.gemm = Precision::fp8;
  EXPECT_DOUBLE_EQ(kept(workload, RecomputeKind::selective), wide);
}

// Four tensor ranks keep a quarter of the heads', their sums' and the FFN's columns; w2's partial sums whole
// (eager only); a quarter of the rows of the input and of the results of two reduce-scatters, compiled of
// one, since 2025 of none.
TEST(SelectiveOperators, KeepReduceScattersOfTensorRanks) {
  WorkloadSpec workload = llama3_8b("fsdp");
  workload.plan.tp = 4;
  EXPECT_DOUBLE_EQ(kept(workload, RecomputeKind::selective),
                   2 * kTokens * (3 * 4096 / 4.0 + (4096 + 1024 + 4096 + 14336) / 4.0 + 4096) + kSums / 4);
  workload.framework = "fsdp@2024-compile";
  EXPECT_DOUBLE_EQ(kept(workload, RecomputeKind::selective),
                   2 * kTokens * (2 * 4096 / 4.0 + (4096 + 1024 + 4096 + 14336) / 4.0) + kSums / 4);
  workload.framework = "fsdp@2025-compile";
  EXPECT_DOUBLE_EQ(kept(workload, RecomputeKind::selective),
                   2 * kTokens * (4096 / 4.0 + (4096 + 1024 + 4096 + 14336) / 4.0) + kSums / 4);
}

// Recomputed are wk, wo and w3, 4096 x (1024 + 4096 + 14336) weights, 2 FLOPs per token each, at an
// efficiency of half of 989.4 TFLOP/s. Memory-bound kernels beside them take less than as long again. The
// attention core is not recomputed, so the time grows with the sequence, not with its square.
TEST(SelectiveOperators, CostEverySecondProductAndNoAttention) {
  WorkloadSpec workload = llama3_8b("fsdp@2024-compile");
  const topology::Accelerator accelerator = h100();
  ComputeSettings settings;
  settings.gemm_efficiency = 0.5;
  const ComputeModel compute(accelerator, settings);
  const auto added = [&](int sequence) {
    workload.sequence = sequence;
    const Plan plan = resolve(workload, 8);
    const auto backward = [&](RecomputeKind kind) {
      const PiecePair layer = transformer_layer(workload.model, LayerKind::dense, plan, compute, kind);
      double sum = 0;
      for (const Piece& piece : layer.backward.pieces()) sum += piece.cost.seconds;
      return sum;
    };
    return backward(RecomputeKind::selective) - backward(RecomputeKind::none);
  };
  const double products = 2 * kTokens * 4096 * (1024 + 4096 + 14336.0) / (0.5 * 989.4e12);
  EXPECT_GT(added(8192), products);
  EXPECT_LT(added(8192), 2 * products);
  EXPECT_NEAR(added(65536) / added(8192), 8, 0.1);  // attention would grow 64-fold
}

struct Added {
  double backward, forward;
};
// What recompute of a kind adds, with matmuls at a hundredth of 989.4 TFLOP/s so that little else counts.
Added added(const char* framework, int tp, RecomputeKind kind) {
  static const topology::Accelerator accelerator = h100();
  ComputeSettings settings;
  settings.gemm_efficiency = 0.01;
  const ComputeModel compute(accelerator, settings);
  WorkloadSpec workload = llama3_8b(framework);
  workload.plan.tp = tp;
  const Plan plan = resolve(workload, 8);
  const auto sum = [](const PieceList& list) {
    double seconds = 0;
    for (const Piece& piece : list.pieces()) seconds += piece.cost.seconds;
    return seconds;
  };
  const auto layer = [&](RecomputeKind again) {
    return transformer_layer(workload.model, LayerKind::dense, plan, compute, again);
  };
  const PiecePair none = layer(RecomputeKind::none);
  return {sum(layer(kind).backward) - sum(none.backward), sum(none.forward)};
}
constexpr double kOfAWeight = 2 * kTokens / (0.01 * 989.4e12);  // seconds of a forward product, per weight

// Four tensor ranks. Compiled, only its reduce-scatter reads wo's result, and that one's result is kept: wk
// and w3 run again, 4096 x (1024 + 14336). Eager, and since 2025 compiled, wo runs again too, 4096 columns
// more.
TEST(SelectiveOperators, WhatIsScatteredAndKeptIsNotMultipliedAgain) {
  const double compiled = kOfAWeight * 4096 * (1024 + 14336) / 4, eager = compiled * 19456 / 15360;
  EXPECT_NEAR(added("fsdp@2024-compile", 4, RecomputeKind::selective).backward, compiled, 0.02 * compiled);
  EXPECT_NEAR(added("fsdp", 4, RecomputeKind::selective).backward, eager, 0.02 * eager);
  EXPECT_NEAR(added("fsdp@2025-compile", 4, RecomputeKind::selective).backward, eager, 0.02 * eager);
}

// Full recompute of a compiled layer, and of a checkpoint without reentry, leaves out w2, 4096 x 14336, and
// the sum after it, 3 x 4096 numbers of 2 bytes per token at 0.8 of 3.35 TB/s: no gradient reads them. Others
// run the whole layer again.
TEST(Checkpoints, EndBeforeTheLastProduct) {
  const double last = kOfAWeight * 4096 * 14336 + kTokens * 3 * 4096 * 2 / (0.8 * 3.35e12);
  const Added compiled = added("fsdp@2024-compile", 1, RecomputeKind::full);
  EXPECT_NEAR(compiled.forward - compiled.backward, last, 1e-9);
  for (const char* framework : {"megatron", "fsdp@2023"}) {
    const Added whole = added(framework, 1, RecomputeKind::full);
    EXPECT_NEAR(whole.backward, whole.forward, 1e-12) << framework;
  }
}

// Of a layer with experts are kept, per token of h = 1024: its input, wq, wv and the core's answer, and for
// each of its 2 experts the row that an all-to-all brings there and the one that comes back; a shared expert
// keeps w1's 2048 numbers and, in eager mode, w2's result. 16 heads' sums in 4 bytes.
TEST(SelectiveOperators, KeepWhatIsExchangedWithExperts) {
  const auto numbers = [](int ep, int shared, const char* framework) {
    WorkloadSpec workload = small_moe(1, ep, 1);
    workload.framework = framework;
    workload.model.experts.shared = shared;
    workload.model = complete(workload.model);
    const Plan plan = resolve(workload, 8);
    const double bytes =
        layer_activation_bytes(workload.model, plan, RecomputeKind::selective, LayerKind::experts);
    return bytes / 512 - 4 * 16;
  };
  EXPECT_DOUBLE_EQ(numbers(1, 0, "fsdp"), 2 * 4 * 1024);
  EXPECT_DOUBLE_EQ(numbers(4, 0, "fsdp"), 2 * (4 + 4) * 1024);
  EXPECT_DOUBLE_EQ(numbers(4, 1, "fsdp"), 2 * (4 + 4 + 2 + 1) * 1024);
  EXPECT_DOUBLE_EQ(numbers(4, 1, "fsdp@2025-compile"), 2 * (4 + 4 + 2) * 1024);
}

// Grouped products run again, 3 x 1024 x 2048 weights for each of 2 rows a token, and so do wk and wo, 1024 x
// 1024 each: 2 FLOPs per weight at half of 989.4 TFLOP/s. Rows are not exchanged again.
TEST(SelectiveOperators, CostTheProductsOfExpertsButNotTheirExchanges) {
  WorkloadSpec workload = small_moe(1, 4, 1);
  workload.framework = "fsdp@2025-compile", workload.plan.micro_batch = 128;
  workload.model = complete(workload.model);
  const Plan plan = resolve(workload, 8);
  const topology::Accelerator accelerator = h100();
  ComputeSettings settings;
  settings.gemm_efficiency = 0.5;
  const ComputeModel compute(accelerator, settings);
  double seconds[2] = {}, exchanges[2] = {};
  for (const bool again : {false, true}) {
    const RecomputeKind kind = again ? RecomputeKind::selective : RecomputeKind::none;
    const PiecePair layer = transformer_layer(workload.model, LayerKind::experts, plan, compute, kind);
    for (const Piece& piece : layer.backward.pieces()) {
      seconds[again] += piece.collective ? 0 : piece.cost.seconds;
      exchanges[again] += piece.collective ? 1 : 0;
    }
  }
  const double products = 2 * 128 * 512 * (2 * 3 * 1024 * 2048.0 + 2 * 1024 * 1024) / (0.5 * 989.4e12);
  EXPECT_GT(seconds[1] - seconds[0], products);
  EXPECT_LT(seconds[1] - seconds[0], 2 * products);
  EXPECT_EQ(exchanges[1], exchanges[0]);
}
}  // namespace topsim::workloads::selective_operators_test
