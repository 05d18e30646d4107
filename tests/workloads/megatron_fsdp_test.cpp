// Megatron-FSDP: what megatron's zero 2 and 3 send, when, and hold (framework/megatron_fsdp.cpp).
#include <gtest/gtest.h>

#include <numeric>

#include "sim/base/error.hpp"
#include "tests/workloads/mixtures.hpp"
#include "tests/workloads/replay.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::megatron_fsdp_test {
using namespace testing;
using program::CollectiveKind;
using program::Dimension;
using program::Op;
using program::Phase;

WorkloadSpec sharded(int zero, int accumulation = 1) {
  WorkloadSpec workload = small("megatron", accumulation);
  workload.model = complete(workload.model);
  workload.plan.zero = zero;
  return workload;
}
std::vector<Op> sent(const program::Program& program, Phase phase, CollectiveKind kind,
                     Dimension dimension = Dimension::data) {
  std::vector<Op> ops;
  for (const Op& op : collectives(program, dimension))
    if (op.phase == phase && op.collective == kind) ops.push_back(op);
  return ops;
}
double bytes(const std::vector<Op>& ops) {
  return std::accumulate(ops.begin(), ops.end(), 0.0, [](double sum, const Op& op) {
    return sum + static_cast<double>(op.bytes.value());
  });
}
struct Sizes {
  double layer, embedding, head;  // the head with its norm
  double ends() const { return embedding + head; }
  double all() const { return 4 * layer + ends(); }
};
Sizes sizes() {
  const ModelSpec model = complete(sharded(3).model);
  return {layer_parameters(model).total(), embedding_parameters(model),
          head_parameters(model) + final_norm_parameters(model)};
}

TEST(MegatronFsdp, IsWhatItsStagesMean) {
  EXPECT_EQ(framework_of(sharded(1)).release, "2025");
  EXPECT_EQ(framework_of(sharded(2)).release, "2025-fsdp");
  EXPECT_EQ(framework_of(sharded(3)).release, "2025-fsdp");
  WorkloadSpec named = sharded(3);
  named.framework = "megatron@2025-fsdp", named.plan.zero.reset();
  EXPECT_EQ(resolve(named, 8).zero, 3);
}

// Every micro-batch gathers each of four layers forward and backward, in 16 bits, and reduces all gradients
// in fp32: layers, embedding and head are reduced one by one. Embedding and head are gathered once.
TEST(MegatronFsdp, GathersLayersTwiceAMicroBatchAndTheEndsOnce) {
  const auto [layer, embedding, head] = sizes();
  for (const int accumulation : {1, 3}) {
    const auto program = training_step(sharded(3, accumulation), a100(), 8);
    program::validate(program);
    const auto gathers = sent(program, Phase::parameter_sync, CollectiveKind::all_gather);
    EXPECT_EQ(gathers.size(), 2 + accumulation * 8u);
    EXPECT_DOUBLE_EQ(bytes(gathers), 2 * (embedding + head + accumulation * 8 * layer));
    EXPECT_EQ(static_cast<double>(gathers[0].bytes.value()), 2 * embedding);
    EXPECT_EQ(static_cast<double>(gathers[1].bytes.value()), 2 * head);
    const auto reductions = sent(program, Phase::gradient_sync, CollectiveKind::reduce_scatter);
    EXPECT_EQ(reductions.size(), accumulation * 6u);
    EXPECT_DOUBLE_EQ(bytes(reductions), accumulation * 4 * sizes().all());
  }
}

// Layers in 8 bits: embedding, norm and head stay 16-bit buckets.
TEST(MegatronFsdp, OnlyLayersAreGatheredIn8Bits) {
  WorkloadSpec workload = sharded(3);
  workload.precision.gemm = Precision::fp8, workload.precision.parameters_all_gather = Precision::fp8;
  const auto program = training_step(workload, h100(), 8);
  EXPECT_DOUBLE_EQ(bytes(sent(program, Phase::parameter_sync, CollectiveKind::all_gather)),
                   2 * sizes().ends() + 8 * sizes().layer);
}

// Stage 2 keeps whole parameters, gathered once a step; every micro-batch reduces all gradients in fp32.
TEST(MegatronFsdp, Stage2KeepsParametersAndReducesEveryMicroBatch) {
  const auto program = training_step(sharded(2, 3), a100(), 8);
  program::validate(program);
  EXPECT_DOUBLE_EQ(bytes(sent(program, Phase::parameter_sync, CollectiveKind::all_gather)),
                   2 * sizes().all());
  EXPECT_DOUBLE_EQ(bytes(sent(program, Phase::gradient_sync, CollectiveKind::reduce_scatter)),
                   3 * 4 * sizes().all());
}

// Gathers of 50 us, each shorter than a layer. Exposed are the embedding's at the start and the last layer's
// in the backward pass, before which no hook runs; the head's may delay the first layer's.
TEST(MegatronFsdp, LayersArePrefetchedInBothDirections) {
  WorkloadSpec workload = sharded(3);
  workload.plan.micro_batch = 16;
  const double grown = growth_by_parameter_sync(training_step(workload, a100(), 8), from_microseconds(50));
  EXPECT_GT(grown, 1.9 * 50e-6);
  EXPECT_LT(grown, 5 * 50e-6);
}

// Reductions of 300 us hide behind the next layer's backward pass. Those of the first layer and of the
// embedding have none, and the compute stream waits for both in each of three micro-batches.
TEST(MegatronFsdp, EveryBackwardPassWaitsForItsReductions) {
  WorkloadSpec workload = sharded(3, 3);
  workload.plan.micro_batch = 16;
  const auto program = training_step(workload, a100(), 8);
  Replay network = free_network();
  const double alone = seconds(network.run(program).step);
  const Duration each = from_microseconds(300);
  network.collective = [&](const Op& op, const program::Communicator&) {
    return op.phase == Phase::gradient_sync && op.bytes > Bytes(4) ? each : Duration{};
  };
  const double grown = seconds(network.run(program).step) - alone;
  EXPECT_NEAR(grown, 3 * 2 * 300e-6, 1e-6);
}

// 18 Psi / 8. Whole in 16 bits: the ends and two layers; in fp32 buffers for the gradients of two layers.
// Head's and embedding's gradients fit in what logits and activations leave.
TEST(MegatronFsdp, MemoryIsShardsEndsAndTwoLayers) {
  WorkloadSpec workload = sharded(3);
  workload.plan.micro_batch = 8;
  const MemoryParts parts = memory_use(workload, a100(), 8).peak();
  const auto [layer, embedding, head] = sizes();
  EXPECT_NEAR(parts.weights, 2 * sizes().all() / 8 + 2 * (embedding + head + 2 * layer), 1);
  EXPECT_NEAR(parts.gradients, 4 * sizes().all() / 8 + 2 * 4 * layer, 1);
  EXPECT_NEAR(parts.optimizer, 12 * sizes().all() / 8, 1);
}
// 2 Psi + 16 Psi / 8 and one bucket of 40 million elements or more: that of the words is one, whole.
TEST(MegatronFsdp, MemoryOfStage2IsWholeWeightsAndABucket) {
  WorkloadSpec workload = sharded(2);
  workload.plan.micro_batch = 8;
  const MemoryParts parts = memory_use(workload, a100(), 8).peak();
  EXPECT_NEAR(parts.weights, 2 * sizes().all(), 1);
  EXPECT_NEAR(parts.gradients, 4 * sizes().all() / 8 + 4 * head_parameters(complete(workload.model)), 1);
  EXPECT_NEAR(parts.optimizer, 12 * sizes().all() / 8, 1);
}

// With experts on ranks of their own, four of which hold a set, buffers are for a layer with its quarter of
// them: the two that hold the same ones share their shards.
TEST(MegatronFsdp, BuffersHaveRoomForExperts) {
  WorkloadSpec workload = small_moe(1, 4, 1);
  workload.framework = "megatron", workload.plan.zero = 3, workload.plan.micro_batch = 8;
  const ModelSpec model = complete(workload.model);
  const LayerParameters each = layer_parameters(model, LayerKind::experts);
  const double dense = each.split() + each.whole(), routed = each.routed() / 4;
  const double ends = total_parameters(model) - 4 * each.total();
  const MemoryParts parts = memory_use(workload, h100(), 8).peak();
  const double states = (4 * dense + ends) / 8 + 4 * routed / 2;
  EXPECT_NEAR(parts.weights, 2 * states + 2 * (ends + 2 * (dense + routed)), 1);
  EXPECT_NEAR(parts.gradients, 4 * states + 2 * 4 * (dense + routed), 1);
}

// A tensor group of 8 that holds the model once: two of its ranks hold the same quarter of the experts and
// share their states, and from stage 2 on their gradients.
TEST(MegatronFsdp, ExpertsThatATensorGroupHoldsTwiceAreShared) {
  WorkloadSpec workload = small_moe(1, 4, 1);
  workload.framework = "megatron", workload.plan.tp = 8;
  workload.model = complete(workload.model);
  for (const int zero : {1, 2, 3}) {
    workload.plan.zero = zero;
    const Plan plan = resolve(workload, 8);
    EXPECT_EQ(plan.experts.optimizer_shards, 2) << zero;
    EXPECT_EQ(plan.experts.gradient_shards, zero == 1 ? 1 : 2) << zero;
    EXPECT_EQ(plan.shards.parameters, 1) << zero;
  }
}

// fp32 gradients are averaged by the reduction itself, 16-bit ones by a kernel that reads and writes them.
TEST(MegatronFsdp, OnlyNarrowGradientsAreScaledBeforeTheyAreSent) {
  WorkloadSpec workload = sharded(3);
  EXPECT_EQ(resolve(workload, 8).gradient_passes, 0);
  workload.precision.gradients = Precision::bf16;
  EXPECT_EQ(resolve(workload, 8).gradient_passes, 2);
}

// 4 of 8 ranks hold a set of experts: the two that hold the same ones gather and reduce them.
TEST(MegatronFsdp, ExpertsAreUnitsOfTheRanksThatHoldThem) {
  WorkloadSpec workload = small_moe(1, 4, 1);
  workload.framework = "megatron", workload.plan.zero = 3;
  const auto program = training_step(workload, h100(), 8);
  program::validate(program);
  const double routed = layer_parameters(complete(workload.model), LayerKind::experts).routed() / 4;
  const auto of = [&](Phase phase, CollectiveKind kind) {
    return bytes(sent(program, phase, kind, Dimension::expert_data));
  };
  EXPECT_DOUBLE_EQ(of(Phase::parameter_sync, CollectiveKind::all_gather), 2 * 2 * 8 * routed);
  EXPECT_DOUBLE_EQ(of(Phase::gradient_sync, CollectiveKind::reduce_scatter), 2 * 4 * 4 * routed);
}

// Of 32 ranks 8 share a set of shards. They are summed over the four sets with the last of three
// micro-batches alone, in both stages; a framework without that fact does so with each.
TEST(MegatronFsdp, HybridShardsAreSummedOnce) {
  for (const int zero : {2, 3}) {
    WorkloadSpec workload = sharded(zero, 3);
    workload.plan.hsdp_shard = 8;
    double over_replicas = 0;
    const auto program = training_step(workload, a100(), 32);
    program::validate(program);
    for (const Op& op : program.classes[0].ops)
      if (op.kind == program::OpKind::collective && op.phase == Phase::gradient_sync &&
          op.collective == CollectiveKind::all_reduce && op.bytes > Bytes(4))
        over_replicas += static_cast<double>(op.bytes.value());
    EXPECT_NEAR(over_replicas, 4 * sizes().all() / 8, 8) << zero;
  }
}

// With a vocabulary of 128,256 embedding and head have 13 times a bucket's parameters each, and either of
// them is a bucket: 4 bytes for each of them beside the shards.
TEST(MegatronFsdp, ABucketHoldsTheLargestGradientWhole) {
  WorkloadSpec workload = sharded(2);
  workload.model.hidden = 4096, workload.model.vocab = 128256;
  workload.model = complete(workload.model);
  const ModelSpec& model = workload.model;
  const double all = 4 * layer_parameters(model).total() + embedding_parameters(model) +
                     head_parameters(model) + final_norm_parameters(model);
  const MemoryParts parts = memory_use(workload, a100(), 8).peak();
  EXPECT_NEAR(parts.gradients, 4 * all / 8 + 4.0 * 128256 * 4096, 1);
}

std::string refusal(const WorkloadSpec& workload) {
  try {
    (void)resolve(workload, 8);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}
TEST(MegatronFsdp, WhatItLacksIsRefusedWithWhatWouldDo) {
  WorkloadSpec piped = sharded(3, 2);
  piped.plan.pp = 2;
  EXPECT_NE(refusal(piped).find("under a pipeline is not supported"), std::string::npos);
  WorkloadSpec exposed = sharded(2);
  exposed.plan.overlap_grad_reduce = false;
  EXPECT_NE(refusal(exposed).find("overlaps what its shards exchange"), std::string::npos);
  exposed = sharded(3), exposed.plan.overlap_param_gather = false;
  EXPECT_NE(refusal(exposed).find("overlaps what its shards exchange"), std::string::npos);
  exposed.plan.zero = 2;  // whole parameters may be gathered after the update
  EXPECT_EQ(refusal(exposed), "");
  WorkloadSpec sized = sharded(3);
  sized.plan.bucket_size = Bytes(1 << 20);
  EXPECT_NE(refusal(sized).find("reduces a layer's gradients together"), std::string::npos);
  WorkloadSpec earlier = sharded(3);
  earlier.framework = "megatron@2024";
  EXPECT_NE(refusal(earlier).find("framework megatron@2024 has no ZeRO stage 3"), std::string::npos);
  WorkloadSpec whole = sharded(1);
  whole.framework = "megatron@2025-fsdp";
  EXPECT_NE(refusal(whole).find("framework megatron@2025-fsdp has no ZeRO stage 1"), std::string::npos);
}
}  // namespace topsim::workloads::megatron_fsdp_test
