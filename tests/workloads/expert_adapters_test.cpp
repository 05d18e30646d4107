// Low-rank adapters of routed experts: each its own (PEFT), or one for all of a rank (Megatron-Bridge).
#include <gmock/gmock.h>

#include "sim/base/error.hpp"
#include "tests/workloads/mixtures.hpp"
#include "workloads/layer/lora.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::expert_adapters_test {
using namespace testing;
using program::CollectiveKind;
using program::Dimension;

// h 1024, 8 experts of 2048, gated; attention of 16 heads of 64. Rank 16.
constexpr double kRank = 16, kHidden = 1024, kWidth = 2048;
// k + n: QKV 1024 + 3072, projection 2048; of an expert fc1 1024 + 4096, fc2 2048 + 1024.
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

// One adapter for the two experts of a rank, or two.
TEST(ExpertAdapters, AreOneForARankOrOneForEach) {
  EXPECT_DOUBLE_EQ(parameters(adapted(4)).routed, kRank * kExpert);
  EXPECT_DOUBLE_EQ(parameters(adapted(4, false)).routed, 2 * kRank * kExpert);
  EXPECT_DOUBLE_EQ(parameters(adapted(4)).dense, kRank * kAttention);
  // No ranks of their own: among the layer's.
  EXPECT_DOUBLE_EQ(parameters(adapted(1, false)).dense, kRank * (kAttention + 8 * kExpert));
  EXPECT_EQ(parameters(adapted(1, false)).routed, 0);
}

// PEFT on transformers' modules: queries, keys, values, gate and up have adapters of their own, 2 x 1024 and
// 1024 inputs more.
TEST(ExpertAdapters, OfModulesApartAreMore) {
  WorkloadSpec spec = adapted(1);
  spec.framework = "fsdp";
  EXPECT_DOUBLE_EQ(parameters(spec).dense, kRank * (kAttention + 2 * kHidden + 8 * (kExpert + kHidden)));
}

// Their gradients follow those who hold the experts, 2 of 8 ranks; nothing else of experts or router is
// reduced. fp32, 4 layers.
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

// Parts of an expert: A of the second matrix and B of the first are split, X A is summed over both parts,
// forward for rows and backward for columns: 2 x 1024 rows (512 tokens of two ranks, halved by sequence
// parallelism, twice) of 16 numbers in 2 bytes, in 4 layers.
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

// The ops' work is the model's: frozen products have no weight gradient, each token passes the adapters of
// two experts.
TEST(ExpertAdapters, FlopsOfTheOpsAreThoseOfTheModel) {
  for (const bool shared : {true, false}) {
    WorkloadSpec spec = adapted(4, shared);
    spec.plan.recompute = RecomputeSpec{RecomputeKind::none, {}};
    const auto program = training_step(spec, h100(), 8);
    const double facts = program.facts.model_flops.value();
    EXPECT_NEAR(flops_of_all_ranks(program), facts, 1e-6 * facts);
  }
}

// Frozen in 2 bytes (the final norm's 1024 too), trained in 18, moments and master copies over the ranks that
// share them.
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

// Between their matrices 16 numbers a row, of 512 tokens twice in attention and of 1024 rows twice in
// experts; without fc1's the rows that arrive are not kept, 1024 of 1024 numbers.
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

// Under FSDP frozen experts on ranks of their own are gathered for both passes, and their adapters' gradients
// alone are reduced.
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
