// What adapters do beside their products, on the accelerator and on the host, by who wrote them.
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "tests/workloads/adapters.hpp"
#include "tests/workloads/fixtures.hpp"
#include "workloads/host/host.hpp"
#include "workloads/layer/lora.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads::adapter_passes_test {
using namespace testing;

// Llama-3 8B on one accelerator, 4096 tokens, adapters of rank 16. The projection is 4096 x 4096.
constexpr double kTokens = 4096, kWidth = 4096, kRank = 16;

PiecePair layer(const Plan& plan) {
  const topology::Accelerator accelerator = h100();
  const ComputeModel compute(accelerator, {});
  PiecePair pair = adapted_layer(adapted("ddp").model, LayerKind::dense, plan, compute, RecomputeKind::none);
  set_host_time(pair, LayerKind::dense, adapted("ddp").model, plan, RecomputeKind::none);
  return pair;
}
KernelCost sum(const PieceList& list) {
  KernelCost cost;
  for (const Piece& piece : list.pieces()) cost += piece.cost;
  return cost;
}
// What `list` has more than `other`: kernels, and bytes at 0.8 x 3.35 TB/s.
void expect_more(const PieceList& list, const PieceList& other, double kernels, double bytes) {
  const KernelCost more = sum(list), less = sum(other);
  EXPECT_NEAR(more.kernels - less.kernels, kernels, 1e-9);
  EXPECT_NEAR(more.seconds - less.seconds, bytes / (0.8 * 3.35e12), 1e-9);
}

// One kernel each for scale (2 numbers) and sum (3), forward of the output, backward of its gradient and of
// the input's. Compiled: forward the next kernel reads one number more; backward the scaled gradient is
// written by the kernel that made it, and the sum is one number more again. 4 and 3 numbers of 2 bytes.
TEST(AdapterPasses, ScaleAndSumAreKernelsUnlessTheyAreCompiled) {
  const Plan eager = plan_of("fsdp");
  Plan compiled = eager;
  compiled.adapters.facts.fused = true;
  expect_more(layer(eager).forward, layer(compiled).forward, 2, 4 * 2 * kTokens * kWidth);
  expect_more(layer(eager).backward, layer(compiled).backward, 2, 3 * 2 * kTokens * kWidth);
  for (const char* framework : {"fsdp@2025-compile", "fsdp@2024-compile", "ddp@2024-compile"})
    EXPECT_TRUE(plan_of(framework).adapters.facts.fused) << framework;
  for (const char* framework : {"fsdp@2025-eager", "fsdp@2024-flat", "deepspeed", "megatron"})
    EXPECT_FALSE(plan_of(framework).adapters.facts.fused) << framework;
}

// Autocast: X to fp32 and back, 2 x 6 bytes a number, and so the 16 x 8192 weights once, in four kernels;
// backward as their gradients. Whose adapters have the activations' width casts nothing.
TEST(AdapterPasses, PeftCastsInputsToTheAdaptersWidth) {
  const Plan casts = plan_of("ddp");
  EXPECT_TRUE(casts.adapters.casts);
  Plan without = casts;
  without.adapters.casts = false;
  const double bytes = 6 * (2 * kTokens * kWidth + kRank * 8192);
  expect_more(layer(casts).forward, layer(without).forward, 4, bytes);
  expect_more(layer(casts).backward, layer(without).backward, 4, bytes);
  for (const char* framework : {"fsdp", "fsdp@2024-flat", "deepspeed", "megatron", "ddp@2024-compile"})
    EXPECT_FALSE(plan_of(framework).adapters.casts) << framework;
  WorkloadSpec narrow = adapted("ddp");
  narrow.precision.optimizer = Precision::bf16;
  EXPECT_FALSE(resolve(narrow, 1).adapters.casts);
}

// Dropout reads and writes 2 bytes a number and its mask of 1, each way.
TEST(AdapterPasses, DropoutIsAPassOverTheInput) {
  WorkloadSpec drops = adapted("fsdp");
  drops.lora->dropout = true;
  const PiecePair with = layer(resolve(drops, 1)), without = layer(plan_of("fsdp"));
  expect_more(with.forward, without.forward, 1, 5 * kTokens * kWidth);
  expect_more(with.backward, without.backward, 1, 5 * kTokens * kWidth);
}

// Queries, keys and values share an input of 2 bytes a number. With dropout each keeps its own and a mask, 3
// x 3 bytes; with casts its own, 3 x 2.
TEST(AdapterPasses, WhatIsMadeForAnAdapterIsKeptForIt) {
  const auto kept = [](const Plan& plan) {
    return layer_activation_bytes(adapted("ddp").model, plan, RecomputeKind::none, LayerKind::dense);
  };
  Plan plan = plan_of("fsdp", {"qkv"});
  const double shared = kept(plan);
  plan.adapters.dropout = true;
  EXPECT_NEAR(kept(plan) - shared, (9 - 2) * kTokens * kWidth, 1);
  plan.adapters.dropout = false, plan.adapters.casts = true;
  EXPECT_NEAR(kept(plan) - shared, (6 - 2) * kTokens * kWidth, 1);
}

double host_seconds(const Plan& plan) {
  const PiecePair pair = layer(plan);
  return sum(pair.forward).host + sum(pair.backward).host;
}

// Prices of host/host.cpp: an operator 10 us, a view 2.5, a Function 26, a module 3.5. PEFT: forward 4
// operators, a view, 4 modules (56.5 us), backward 8 operators; its casts 4 operators each way. torchtune: 4
// operators, 3 modules; 8 operators. Compiled: 2 and 4 operators. Queries, keys and values have one each.
TEST(AdapterPasses, EachAdapterCostsTheHostItsCalls) {
  const auto each = [](const char* framework) {
    return (host_seconds(plan_of(framework, {"qkv", "proj"})) - host_seconds(plan_of(framework))) / 3;
  };
  EXPECT_NEAR(each("ddp"), 56.5e-6 + 80e-6 + 80e-6, 1e-9);
  EXPECT_NEAR(each("fsdp@2024-flat"), 56.5e-6 + 80e-6, 1e-9);
  EXPECT_NEAR(each("fsdp"), 50.5e-6 + 80e-6, 1e-9);
  EXPECT_NEAR(each("fsdp@2025-compile"), 60e-6, 1e-9);
}

// Megatron-Bridge: one adapter of queries, keys and values. Forward 4 operators, 8 views, 4 Functions, 5
// modules, 181.5 us; backward 6, 8 and 4, 184 us; twice as slow in a step. A graph of attention has it all.
TEST(AdapterPasses, AGraphContainsItsAdapters) {
  EXPECT_NEAR(host_seconds(plan_of("megatron", {"qkv", "proj"})) - host_seconds(plan_of("megatron")),
              2 * (181.5e-6 + 184e-6), 1e-9);
  const auto graphed = [](std::vector<std::string> targets) {
    WorkloadSpec workload = adapted("megatron", std::move(targets));
    workload.compute.graph_parts = {"attention"};
    return host_seconds(resolve(workload, 1));
  };
  EXPECT_NEAR(graphed({"qkv", "proj"}), graphed({"proj"}), 1e-9);
}

// Frozen weights have no gradients: 7 products and the additions to 9 tensors fewer, 160 us. One adapter of
// torchtune costs 130.5.
TEST(AdapterPasses, FrozenWeightsSaveTheHostTheirGradients) {
  WorkloadSpec trained = adapted("fsdp");
  trained.task = Task::finetune, trained.lora.reset();
  const topology::Accelerator accelerator = h100();
  const ComputeModel compute(accelerator, {});
  const Plan plan = resolve(trained, 1);
  PiecePair all = transformer_layer(trained.model, LayerKind::dense, plan, compute, RecomputeKind::none);
  set_host_time(all, LayerKind::dense, trained.model, plan, RecomputeKind::none);
  EXPECT_NEAR(sum(all.forward).host + sum(all.backward).host - host_seconds(plan_of("fsdp")),
              160e-6 - 130.5e-6, 1e-9);
}

// A mixture of Megatron's: attention has 4 additions and 2 products fewer, each of 8 experts 2 products, 2
// empty tensors and 2 hooks; Python takes twice as long in a step: 2 x 40 + 2 x 24 us, 8 x (2 x (5 + 7) +
// 48). The projection's adapter costs 2 x 365.5.
TEST(AdapterPasses, FrozenExpertsSaveTheHostTheirGradients) {
  WorkloadSpec mixture = adapted("megatron");
  mixture.model.experts.count = 8, mixture.model.experts.top_k = 2, mixture.model.experts.ffn = 1024;
  WorkloadSpec trained = mixture;
  trained.task = Task::finetune, trained.lora.reset();
  const topology::Accelerator accelerator = h100();
  const ComputeModel compute(accelerator, {});
  const auto seconds_of = [&](PiecePair pair, const Plan& plan) {
    set_host_time(pair, LayerKind::experts, mixture.model, plan, RecomputeKind::none);
    return sum(pair.forward).host + sum(pair.backward).host;
  };
  const Plan some = resolve(mixture, 1), all = resolve(trained, 1);
  const double less =
      seconds_of(adapted_layer(mixture.model, LayerKind::experts, some, compute, RecomputeKind::none), some);
  const double whole = seconds_of(
      transformer_layer(mixture.model, LayerKind::experts, all, compute, RecomputeKind::none), all);
  EXPECT_NEAR(whole - less, 80e-6 + 48e-6 + 8 * (24e-6 + 48e-6) - 731e-6, 1e-9);
}
}  // namespace topsim::workloads::adapter_passes_test
