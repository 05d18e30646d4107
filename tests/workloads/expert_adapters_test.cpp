// Low-rank adapters of routed experts: each its own (PEFT), or one for all of a rank (Megatron-Bridge).
#include <gmock/gmock.h>

#include "sim/base/error.hpp"
#include "tests/workloads/mixtures.hpp"
#include "workloads/host/host.hpp"
#include "workloads/layer/lora.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::expert_adapters_test {
using namespace testing;
using program::CollectiveKind;
using program::Dimension;

// h 1024, 8 gated experts of width 2048; attention of 16 heads of 64. Adapters of rank 16.
constexpr double kRank = 16, kHidden = 1024, kWidth = 2048;
// An adapter of a k x n matrix has rank (k + n) parameters. k + n in attention: QKV 1024 + 3072, projection
// 2048; in an expert: fc1 1024 + 4096, fc2 2048 + 1024.
constexpr double kAttention = 4096 + 2048, kExpert = 5120 + 3072;

WorkloadSpec adapted(int ep, std::optional<bool> shared = {}, int tp = 1, std::optional<int> etp = {}) {
  WorkloadSpec workload = small_moe(tp, ep, etp);
  workload.model = complete(workload.model);
  workload.task = Task::lora;
  workload.lora.emplace().share_expert_adapters = shared;
  workload.plan.grad_accumulation = 1;
  return workload;
}
AdapterParameters parameters(const WorkloadSpec& spec) {
  return adapter_parameters(spec.model, LayerKind::experts, resolve(spec, 8));
}
double sent(const program::Program& program, Dimension dimension, CollectiveKind kind) {
  double bytes = 0;
  for (const auto& op : collectives(program, dimension))
    if (op.collective == kind && op.bytes > Bytes(4)) bytes += static_cast<double>(op.bytes.value());
  return bytes;
}

// 8 experts on 4 ranks: a rank has one adapter for its two experts (the default), or two.
TEST(ExpertAdapters, AreOneForARankOrOneForEach) {
  EXPECT_DOUBLE_EQ(parameters(adapted(4)).routed, kRank * kExpert);
  EXPECT_DOUBLE_EQ(parameters(adapted(4, false)).routed, 2 * kRank * kExpert);
  EXPECT_DOUBLE_EQ(parameters(adapted(4)).dense, kRank * kAttention);
  // With ep = 1 experts are not on ranks of their own, and their adapters count among the layer's.
  EXPECT_DOUBLE_EQ(parameters(adapted(1, false)).dense, kRank * (kAttention + 8 * kExpert));
  EXPECT_EQ(parameters(adapted(1, false)).routed, 0);
}

// PEFT adapts queries, keys, values, gate and up separately. Each of these adapters has its own k = 1024:
// twice more in attention, once more in an expert.
TEST(ExpertAdapters, OfModulesApartAreMore) {
  WorkloadSpec spec = adapted(1);
  spec.framework = "fsdp";
  EXPECT_DOUBLE_EQ(parameters(spec).dense, kRank * (kAttention + 2 * kHidden + 8 * (kExpert + kHidden)));
}

// An adapter of Megatron-Bridge costs 2 x (181.5 + 184) us (adapter_passes_test.cpp). Queries, keys and
// values share one; 8 experts have two each, fc1's and fc2's, or all together two.
TEST(ExpertAdapters, CostTheHostTheirCalls) {
  const auto host = [](std::vector<std::string> targets, bool shared) {
    WorkloadSpec spec = adapted(1, shared);
    spec.lora->targets = std::move(targets);
    const topology::Accelerator accelerator = h100();
    const ComputeModel compute(accelerator, {});
    const Plan plan = resolve(spec, 8);
    PiecePair layer = adapted_layer(spec.model, LayerKind::experts, plan, compute, RecomputeKind::none);
    set_host_time(layer, LayerKind::experts, spec.model, plan, RecomputeKind::none);
    double seconds = 0;
    for (const PieceList* list : {&layer.forward, &layer.backward})
      for (const Piece& piece : list->pieces()) seconds += piece.cost.host;
    return seconds;
  };
  constexpr double kEach = 2 * (181.5e-6 + 184e-6);
  const double least = host({"proj"}, false);
  EXPECT_NEAR(host({"qkv", "proj"}, false) - least, kEach, 1e-9);
  EXPECT_NEAR(host({"proj", "fc1", "fc2"}, false) - least, 16 * kEach, 1e-9);
  EXPECT_NEAR(host({"proj", "fc1", "fc2"}, true) - host({"proj"}, true), 2 * kEach, 1e-9);
}

// Adapter gradients of an expert are reduced over the ranks that hold it, 2 of 8; nothing else of experts or
// router is reduced. fp32 (4 B), 4 layers.
TEST(ExpertAdapters, AreReducedOverTheRanksThatHoldThem) {
  for (const bool shared : {true, false}) {
    const auto program = training_step(adapted(4, shared), h100(), 8);
    program::validate(program);
    EXPECT_DOUBLE_EQ(sent(program, Dimension::expert_data, CollectiveKind::reduce_scatter),
                     4.0 * 4 * kRank * kExpert * (shared ? 1 : 2));
    EXPECT_DOUBLE_EQ(sent(program, Dimension::data, CollectiveKind::reduce_scatter),
                     4.0 * 4 * kRank * kAttention);
  }
}

// Experts in two parts (etp 2): split are B of the first matrix and A of the second. The inner result X A is
// summed over both parts, forward for fc2 and backward for fc1: 2 sums in each of 4 layers. Each has 1024
// rows (512 tokens / 2 with sequence parallelism, of 2 ranks, each token to 2 experts) of 16 numbers of 2
// bytes.
TEST(ExpertAdapters, InnerResultsAreSummedOverPartsOfAnExpert) {
  const WorkloadSpec spec = adapted(4, true, 2, 2);
  const auto program = training_step(spec, h100(), 8);
  EXPECT_DOUBLE_EQ(expert_rows(spec.model, resolve(spec, 8)), 2 * 256 * 2);
  const double expert = (kHidden + kWidth) + (kWidth / 2 + kHidden);
  EXPECT_DOUBLE_EQ(parameters(spec).routed, kRank * expert);
  int sums = 0;
  for (const auto& op : collectives(program, Dimension::tensor))
    sums += op.collective == CollectiveKind::all_reduce && op.bytes == Bytes(1024 * 16 * 2) ? 1 : 0;
  EXPECT_EQ(sums, 2 * 4);
}

// FLOPs of the ops against those of the model: frozen products have no weight gradient, and each token passes
// the adapters of two experts.
TEST(ExpertAdapters, FlopsOfTheOpsAreThoseOfTheModel) {
  for (const bool shared : {true, false}) {
    WorkloadSpec spec = adapted(4, shared);
    spec.plan.recompute = RecomputeSpec{RecomputeKind::none, {}};
    const auto program = training_step(spec, h100(), 8);
    const double facts = program.facts.model_flops.value();
    EXPECT_NEAR(flops_of_all_ranks(program), facts, 1e-6 * facts);
  }
}

// Frozen weights take 2 bytes each (the final norm's 1024 too), trained adapters 18: with zero = 0 nothing is
// shared.
TEST(ExpertAdapters, HoldFrozenExpertsInTwoBytes) {
  WorkloadSpec spec = adapted(4, false);
  spec.plan.zero = 0;
  const MemoryParts parts = memory_use(spec, h100(), 8).peak();
  const LayerParameters layer = layer_parameters(spec.model, LayerKind::experts);
  const double frozen =
      4 * (layer.split() + layer.whole() + layer.routed() / 4) + 2 * head_parameters(spec.model) + 1024;
  const double trained = 4 * kRank * (kAttention + 2 * kExpert);
  EXPECT_NEAR(parts.weights + parts.gradients + parts.optimizer, 2 * frozen + 18 * trained, 1);
}

// Kept in 2 bytes per number. Each adapter keeps its inner result, 16 numbers for each of 1024 rows. Without
// fc2's adapter its input is not kept, 1024 rows of 2048; without fc1's neither the rows that arrive at the
// experts, 1024 of 1024 numbers, nor the layer's 512 normed tokens.
TEST(ExpertAdapters, KeepInnerResultsAndTheInputsOfAdaptedMatrices) {
  const auto bytes = [](std::vector<std::string> targets) {
    WorkloadSpec spec = adapted(4);
    spec.lora->targets = std::move(targets);
    return layer_activation_bytes(spec.model, resolve(spec, 8), RecomputeKind::none, LayerKind::experts);
  };
  const double inner = 2.0 * 16 * 1024;
  EXPECT_DOUBLE_EQ(bytes({"qkv", "fc1", "fc2"}) - bytes({"qkv", "fc1"}), 2.0 * 1024 * kWidth + inner);
  EXPECT_DOUBLE_EQ(bytes({"qkv", "fc1", "fc2"}) - bytes({"qkv", "fc2"}),
                   2.0 * 1024 * kHidden + inner + 2.0 * 512 * kHidden);
}

// FSDP gathers frozen experts on ranks of their own for both passes: 4 layers forward, 3 backward (the last
// stays), in 2 bytes. Only the adapters' gradients are reduced, in 4 bytes.
TEST(ExpertAdapters, FrozenExpertsAreGatheredFromTheirShards) {
  WorkloadSpec spec = adapted(4, false);
  spec.framework = "fsdp";
  const auto program = training_step(spec, h100(), 8);
  program::validate(program);
  const double held = layer_parameters(spec.model, LayerKind::experts).routed() / 4;
  const double adapters = 2 * kRank * (kExpert + kHidden);
  EXPECT_NEAR(sent(program, Dimension::expert_data, CollectiveKind::all_gather), 2 * 7 * (held + adapters),
              16);
  EXPECT_NEAR(sent(program, Dimension::expert_data, CollectiveKind::reduce_scatter), 4 * 4 * adapters, 16);
}

TEST(ExpertAdapters, SharingNeedsExperts) {
  WorkloadSpec spec = adapted(1, true);
  spec.model.experts = {};
  try {
    static_cast<void>(resolve(spec, 8));
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.problems().size(), 1u);
    EXPECT_EQ(error.problems()[0].path, "workload.lora.share_expert_adapters");
  }
}
}  // namespace topsim::workloads::expert_adapters_test
