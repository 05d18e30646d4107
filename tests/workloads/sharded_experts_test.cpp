// FSDP of experts that are on ranks of their own: their weights are units within their layers (torchtitan's
// apply_fsdp).
#include <gmock/gmock.h>

#include <numeric>

#include "sim/base/error.hpp"
#include "tests/workloads/expect_mistake.hpp"
#include "tests/workloads/mixtures.hpp"
#include "tests/workloads/replay.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::sharded_experts_test {
using namespace testing;
using program::CollectiveKind;
using program::Dimension;
using program::OpKind;
using program::Phase;
using ::testing::ElementsAre;

// 4 layers of 8 experts, one micro-batch; of 8 ranks `ep` together hold a set of experts.
WorkloadSpec workload(int ep, std::optional<int> hsdp = {}) {
  WorkloadSpec result = small_moe(1, ep, 1);
  result.framework = "fsdp";
  result.plan.grad_accumulation = 1;
  result.plan.hsdp_shard = hsdp;
  return result;
}
struct Parameters {
  double dense, routed, ends;  // of a layer, on all ranks; of the root
};
Parameters parameters() {
  const ModelSpec model = complete(workload(4).model);
  const LayerParameters layer = layer_parameters(model, LayerKind::experts);
  return {layer.split() + layer.whole(), layer.routed(),
          total_parameters(model) - model.layers * layer.total()};
}
double sent(const program::Program& program, Dimension dimension, CollectiveKind kind) {
  double bytes = 0;
  for (const auto& op : collectives(program, dimension))
    if (op.collective == kind) bytes += static_cast<double>(op.bytes.value());
  return bytes;
}

// 4 of 8 ranks hold a set of experts, so 2 ranks share the shards of each quarter. They gather it in 16 bits,
// in 4 layers forward and 3 backward (the last stays), and reduce its gradients in fp32 once.
TEST(ShardedExperts, AreGatheredAndReducedOverTheRanksThatHoldThem) {
  const auto program = training_step(workload(4), h100(), 8);
  program::validate(program);
  const auto [dense, routed, ends] = parameters();
  EXPECT_DOUBLE_EQ(sent(program, Dimension::expert_data, CollectiveKind::all_gather), 2 * 7 * routed / 4);
  EXPECT_DOUBLE_EQ(sent(program, Dimension::expert_data, CollectiveKind::reduce_scatter), 4 * 4 * routed / 4);
  EXPECT_DOUBLE_EQ(sent(program, Dimension::data, CollectiveKind::all_gather), 2 * (7 * dense + ends));
  EXPECT_DOUBLE_EQ(sent(program, Dimension::data, CollectiveKind::reduce_scatter), 4 * (4 * dense + ends));
  EXPECT_THAT(groups(program, Dimension::expert_data),
              ElementsAre(ElementsAre(0, 4), ElementsAre(1, 5), ElementsAre(2, 6), ElementsAre(3, 7)));
}

// All-to-alls carry rows only, forward and backward, there and back; probabilities stay (torchtitan, as with
// score_before_experts). 512 tokens x 2 experts x 1024 x 2 B = 2 MiB.
TEST(ShardedExperts, RowsAreExchangedWithoutTheirProbabilities) {
  const auto program = training_step(workload(4), h100(), 8);
  EXPECT_DOUBLE_EQ(sent(program, Dimension::expert, CollectiveKind::all_to_all), 4 * 4 * (2 << 20));
}

// With ep = 8 every rank holds other experts: nothing of theirs is gathered or reduced.
TEST(ShardedExperts, ThatNobodyElseHoldsAreNeitherGatheredNorReduced) {
  const auto program = training_step(workload(8), h100(), 8);
  program::validate(program);
  EXPECT_TRUE(collectives(program, Dimension::expert_data).empty());
  EXPECT_FALSE(collectives(program, Dimension::data).empty());
}

// A layer's experts are gathered after the rest of the layer; backward they are reduced before it, as their
// gradients are complete earlier.
TEST(ShardedExperts, ComeBeforeTheirLayerBackwardAndBehindItForward) {
  const auto program = training_step(workload(4), h100(), 8);
  std::vector<Dimension> gathers, reductions;
  for (const auto& op : program.classes[0].ops) {
    if (op.kind != OpKind::collective) continue;
    const auto of = program.communicators[program.communicator_slots[op.slot][0].index()].dimension;
    if (op.collective == CollectiveKind::all_gather && op.phase == Phase::parameter_sync)
      gathers.push_back(of);
    if (op.collective == CollectiveKind::reduce_scatter && op.phase == Phase::gradient_sync)
      reductions.push_back(of);
  }
  const Dimension d = Dimension::data, e = Dimension::expert_data;
  EXPECT_THAT(gathers, ElementsAre(d, d, e, d, e, d, e, d, e, d, e, d, e, d, e));
  EXPECT_THAT(reductions, ElementsAre(e, d, e, d, e, d, e, d, d));
}

// The next layer's gathers are launched before this one computes (set_modules_to_forward_prefetch). With 50
// us each, shorter than a layer, only those of the root and of the first layer are exposed.
TEST(ShardedExperts, GathersArePrefetched) {
  WorkloadSpec wide = workload(4);
  wide.plan.micro_batch = 16;
  const auto program = training_step(wide, h100(), 8);
  const double grown = growth_by_parameter_sync(program, from_microseconds(50));
  EXPECT_GE(grown, 50e-6);
  EXPECT_LT(grown, 5 * 50e-6);
}

// Hybrid sharding in groups of 4 of 8 ranks: each group holds all experts, divided over 2 ranks and sharded
// over 2. Shards of half of a rank's experts are then summed over both groups.
TEST(ShardedExperts, HybridShardingSumsTheirShardsOverReplicas) {
  const auto program = training_step(workload(2, 4), h100(), 8);
  program::validate(program);
  const double routed = parameters().routed / 2;  // of a rank
  EXPECT_DOUBLE_EQ(sent(program, Dimension::expert_data, CollectiveKind::all_gather), 2 * 7 * routed);
  EXPECT_DOUBLE_EQ(sent(program, Dimension::expert_data, CollectiveKind::reduce_scatter), 4 * 4 * routed);
  EXPECT_DOUBLE_EQ(sent(program, Dimension::expert_data, CollectiveKind::all_reduce), 4 * 4 * routed / 2);
  EXPECT_THAT(groups(program, Dimension::expert_data),
              ElementsAre(ElementsAre(0, 2), ElementsAre(4, 6), ElementsAre(1, 3), ElementsAre(5, 7),
                          ElementsAre(0, 4), ElementsAre(2, 6), ElementsAre(1, 5), ElementsAre(3, 7)));
}

// fp32 weights, gradients and two moments, 16 bytes per parameter: dense ones in 8 shards, a rank's quarter
// of the experts in 2. Gathered in 2 bytes: the root and a layer with its experts; the buffers of two gathers
// (two layers, or root and first layer); and an eighth of the larger of root and layer, cast for sending.
// Gradients on their way are in the memory of the logits.
TEST(ShardedExperts, MemoryIsShardsTwoLayersAndTwoGathers) {
  WorkloadSpec wide = workload(4);
  wide.plan.micro_batch = 4;  // activations and logits large enough for gradients in their place
  const MemoryParts parts = memory_use(wide, h100(), 8).peak();
  const auto [dense, routed, ends] = parameters();
  const double layer = dense + routed / 4;
  const double states = 16 * (4 * dense + ends) / 8 + 16 * 4 * routed / 4 / 2;
  const double buffers = std::max(ends + layer, 2 * layer) + std::max(ends, layer) / 8;
  EXPECT_NEAR(parts.weights + parts.gradients + parts.optimizer, states + 2 * (ends + layer + buffers), 1);
}

// The same model FLOPs as Megatron's.
TEST(ShardedExperts, ComputeWhatOthersCompute) {
  WorkloadSpec megatron = workload(4);
  megatron.framework = "megatron";
  const auto flops = [](const WorkloadSpec& spec) {
    double sum = 0;
    const auto program = training_step(spec, h100(), 8);
    for (const auto& op : program.classes[0].ops) sum += op.flops.value();
    return sum;
  };
  EXPECT_NEAR(flops(workload(4)), flops(megatron), 1e-9 * flops(megatron));
}

// NeMo AutoModel gathers every unit once a step, where it stays, and reduces after the last micro-batch, in
// the 16 bits of its weights; with three micro-batches as with one.
TEST(ShardedExperts, OfAutomodelAreGatheredAndReducedOnce) {
  WorkloadSpec automodel = workload(4);
  automodel.framework = "fsdp@2025-automodel", automodel.plan.grad_accumulation = 3;
  const auto program = training_step(automodel, h100(), 8);
  program::validate(program);
  const auto [dense, routed, ends] = parameters();
  EXPECT_DOUBLE_EQ(sent(program, Dimension::data, CollectiveKind::all_gather), 2 * (4 * dense + ends));
  EXPECT_DOUBLE_EQ(sent(program, Dimension::data, CollectiveKind::reduce_scatter), 4 * (4 * dense + ends));
  EXPECT_DOUBLE_EQ(sent(program, Dimension::expert_data, CollectiveKind::all_gather), 2 * 4 * routed / 4);
  EXPECT_DOUBLE_EQ(sent(program, Dimension::expert_data, CollectiveKind::reduce_scatter), 4 * 4 * routed / 4);
  automodel.model = complete(automodel.model);
  EXPECT_EQ(resolve(automodel, 8).optimizer_bytes, 2);
  automodel.precision.optimizer = Precision::fp32;
  EXPECT_EQ(resolve(automodel, 8).optimizer_bytes, 4);
}

// With ZeRO 3 parameters that are reduced once stay whole from one micro-batch to the next, as with ZeRO 2:
// shards, all parameters in 16 bits, all gradients in fp32.
TEST(ShardedExperts, OfAutomodelStayWholeBetweenMicroBatches) {
  WorkloadSpec automodel = workload(4);
  automodel.framework = "fsdp@2025-automodel", automodel.plan.zero = 3, automodel.sequence = 64;
  automodel.plan.recompute = RecomputeSpec{RecomputeKind::full, std::nullopt};
  const auto weights = [&](int micro_batches) {
    automodel.plan.grad_accumulation = micro_batches;
    const MemoryParts parts = memory_use(automodel, h100(), 8).peak();
    return std::pair(parts.weights, parts.activations);
  };
  const auto [dense, routed, ends] = parameters();
  const double shards = 2 * ((4 * dense + ends) / 8 + 4 * routed / 4 / 2),
               whole = 2 * (4 * dense + ends + routed);
  const auto [once, unused] = weights(1);
  const auto [several, activations] = weights(3);
  EXPECT_LT(once, several);
  EXPECT_NEAR(several, std::max(once, shards + whole - activations), 1);
}

// Full recompute sends rows there and back again, 6 exchanges a layer. AutoModel's ends before the way back:
// 5.
TEST(ShardedExperts, OfAutomodelAreNotCombinedAgain) {
  WorkloadSpec again = workload(4);
  again.plan.recompute = RecomputeSpec{RecomputeKind::full, std::nullopt};
  again.plan.token_dispatcher = TokenDispatcher::deepep;
  const auto exchanges = [&](const char* framework) {
    again.framework = framework;
    return collectives(training_step(again, h100(), 8), Dimension::expert).size();
  };
  EXPECT_EQ(exchanges("fsdp@2025-eager"), 4 * 6u);
  EXPECT_EQ(exchanges("fsdp@2025-automodel"), 4 * 5u);
}

TEST(ShardedExperts, MistakesSayWhatWouldDo) {
  const auto with_model = [](WorkloadSpec spec) {
    spec.model = complete(spec.model);
    return spec;
  };
  WorkloadSpec deepspeed = with_model(workload(4));
  deepspeed.framework = "deepspeed", deepspeed.plan.zero = 3;
  expect_mistake(deepspeed, "plan.ep", "fsdp");
  expect_mistake(with_model(workload(8, 4)), "plan.ep", "ep = 4 would");
  WorkloadSpec turned = with_model(workload(2, 4));
  turned.plan.rank_order = {"dp", "tp", "cp", "ep", "pp"};
  expect_mistake(turned, "plan.rank_order", "leave rank_order out");
}
}  // namespace topsim::workloads::sharded_experts_test
