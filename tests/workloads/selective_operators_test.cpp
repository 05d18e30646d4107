// Recompute of PyTorch frameworks: torchtitan's "op", every second product and what is between; and where
// that of whole layers ends.
#include <gtest/gtest.h>

#include "tests/workloads/fixtures.hpp"
#include "workloads/layer/pieces.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"
#include "workloads/plan.hpp"

namespace topsim::workloads::selective_operators_test {
using namespace testing;

// Llama-3 8B: h 4096, 32 heads and 8 of keys and values of 128, FFN 14336; 8192 tokens.
constexpr double kTokens = 8192;
WorkloadSpec llama3_8b(const char* framework) {
  WorkloadSpec workload;
  workload.model = llama3_70b();
  workload.model.layers = 32, workload.model.hidden = 4096, workload.model.heads = 32;
  workload.model.ffn = 14336;
  workload.model = complete(workload.model);
  workload.framework = framework;
  workload.plan.recompute = RecomputeSpec{RecomputeKind::selective, {}};
  return workload;
}
double kept(const WorkloadSpec& workload, RecomputeKind kind) {
  return layer_activation_bytes(workload.model, resolve(workload, 8), kind);
}

// Input 4096, wq 4096, wv 1024, attention 4096, w1 14336, w2 4096: 31744 numbers a token in 2 bytes; compiled
// all but w2's, which no gradient reads. wk, wo, w3, norms and activation run again.
TEST(SelectiveOperators, KeepEverySecondProduct) {
  for (const char* framework : {"fsdp", "ddp"})
    EXPECT_DOUBLE_EQ(kept(llama3_8b(framework), RecomputeKind::selective), 2 * kTokens * 31744) << framework;
  EXPECT_DOUBLE_EQ(kept(llama3_8b("fsdp@2024-compile"), RecomputeKind::selective), 2 * kTokens * 27648);
  // Megatron's does the attention core again, of which flash attention keeps no scores.
  const WorkloadSpec megatron = llama3_8b("megatron");
  EXPECT_DOUBLE_EQ(kept(megatron, RecomputeKind::selective), kept(megatron, RecomputeKind::none));
}

// torchao calls torch.mm with tensors of 8 bits: what it answers, in 16, is kept as any product.
TEST(SelectiveOperators, KeepEightBitProductsToo) {
  WorkloadSpec workload = llama3_8b("fsdp@2024-compile");
  const double wide = kept(workload, RecomputeKind::selective);
  workload.precision.gemm = Precision::fp8;
  EXPECT_DOUBLE_EQ(kept(workload, RecomputeKind::selective), wide);
}

// Four tensor ranks: a fourth of the heads' and the FFN's numbers, w2's partial sums whole, and a fourth of
// the rows of the input and of two reduce-scatters.
TEST(SelectiveOperators, KeepReduceScattersOfTensorRanks) {
  WorkloadSpec workload = llama3_8b("fsdp");
  workload.plan.tp = 4;
  EXPECT_DOUBLE_EQ(kept(workload, RecomputeKind::selective),
                   2 * kTokens * (3 * 4096 / 4.0 + (4096 + 1024 + 4096 + 14336) / 4.0 + 4096));
  workload.framework = "fsdp@2024-compile";
  EXPECT_DOUBLE_EQ(kept(workload, RecomputeKind::selective),
                   2 * kTokens * (2 * 4096 / 4.0 + (4096 + 1024 + 4096 + 14336) / 4.0));
  workload.framework = "fsdp@2025-compile";
  EXPECT_DOUBLE_EQ(kept(workload, RecomputeKind::selective),
                   2 * kTokens * (4096 / 4.0 + (4096 + 1024 + 4096 + 14336) / 4.0));
}

// wk, wo and w3 are 4096 x (1024 + 4096 + 14336) weights: 2 FLOPs each a token, at half of 989.4 TFLOP/s
// where products are said to reach that. What passes memory beside them is less than as much again; the
// attention core, which grows with the sequence, is not among them.
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
  EXPECT_NEAR(added(65536) / added(8192), 8, 0.1);  // of which attention would be 64
}

struct Added {
  double backward, forward;
};
// By recompute of a kind, where products run at a hundredth of 989.4 TFLOP/s and little else counts.
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
constexpr double kOfAWeight = 2 * kTokens / (0.01 * 989.4e12);  // seconds of a forward product

// Four tensor ranks. Compiled, wo is read by its reduce-scatter alone, whose result is kept: 1024 + 14336
// columns of 4096 run again. Operator by operator, wo is one that runs again: 4096 more; since
// 2025 compiled too, as its scatter's result is not kept.
TEST(SelectiveOperators, WhatIsScatteredAndKeptIsNotMultipliedAgain) {
  const double compiled = kOfAWeight * 4096 * (1024 + 14336) / 4, eager = compiled * 19456 / 15360;
  EXPECT_NEAR(added("fsdp@2024-compile", 4, RecomputeKind::selective).backward, compiled, 0.02 * compiled);
  EXPECT_NEAR(added("fsdp", 4, RecomputeKind::selective).backward, eager, 0.02 * eager);
  EXPECT_NEAR(added("fsdp@2025-compile", 4, RecomputeKind::selective).backward, eager, 0.02 * eager);
}

// w2, 4096 x 14336, and the sum behind it (3 x 4096 numbers a token in 2 bytes, at 0.8 of 3.35 TB/s) are in
// no backward pass of a compiled layer, nor in a checkpoint without reentry. Others run all of it again.
TEST(Checkpoints, EndBeforeTheLastProduct) {
  const double last = kOfAWeight * 4096 * 14336 + kTokens * 3 * 4096 * 2 / (0.8 * 3.35e12);
  const Added compiled = added("fsdp@2024-compile", 1, RecomputeKind::full);
  EXPECT_NEAR(compiled.forward - compiled.backward, last, 1e-9);
  for (const char* framework : {"megatron", "fsdp@2023"}) {
    const Added whole = added(framework, 1, RecomputeKind::full);
    EXPECT_NEAR(whole.backward, whole.forward, 1e-12) << framework;
  }
}
}  // namespace topsim::workloads::selective_operators_test
