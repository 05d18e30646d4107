// Mistakes in plans: each is one sentence with its place and a remedy, and all are reported at once.
#include "workloads/plan.hpp"

#include <gmock/gmock.h>

#include "sim/base/error.hpp"
#include "tests/workloads/fixtures.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads::plan_test {
using namespace testing;
using ::testing::HasSubstr;

std::vector<Problem> problems_of(WorkloadSpec workload, std::uint32_t accelerators = 64) {
  workload.model = complete(workload.model);
  try {
    (void)resolve(workload, accelerators);
  } catch (const ConfigError& error) {
    return error.problems();
  }
  return {};
}

TEST(Plan, DataParallelSizeFollowsFromTheAccelerators) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.plan.dp.reset();
  workload.model = complete(workload.model);
  const Plan plan = resolve(workload, 64);
  EXPECT_EQ(plan.dp, 4);
  EXPECT_EQ(plan.micro_batches, 32);
  EXPECT_EQ(plan.stage_layers, (std::vector<int>{40, 40}));
}

TEST(Plan, AProductThatIsNotTheAcceleratorCountIsNamedWithOneThatFits) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.plan.dp = 8;
  const auto problems = problems_of(workload);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].path, "workload.plan");
  EXPECT_EQ(problems[0].message, "tp 8 x pp 2 x cp 1 x dp 8 = 128 accelerators, the topology has 64");
  EXPECT_EQ(problems[0].help, "dp = 4 fits (or leave dp out)");
}

// 128 sequences are no multiple of the six replicas that 96 accelerators make; 132 are.
TEST(Plan, AProposedNumberOfReplicasComesWithABatchThatItDivides) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.plan.dp = 4;
  const auto problems = problems_of(workload, 96);
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(problems[0].help, "dp = 6 fits (or leave dp out), with a global_batch of 132");
}

TEST(Plan, SettingsOfExpertsAndGraphsAreNeverIgnored) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.compute.fused_experts = true;
  workload.compute.graph_parts = {"router"};
  const auto problems = problems_of(workload);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0].path, "workload.compute.graph_parts");
  EXPECT_EQ(problems[0].message, "the model has no router");
  EXPECT_EQ(problems[1].message, "the model has no experts");
  workload.compute.fused_experts = false;
  workload.compute.graph_parts = {"attention"};
  EXPECT_TRUE(problems_of(workload).empty());
  workload.compute.launch_overhead = from_microseconds(5);
  ASSERT_EQ(problems_of(workload).size(), 1u);
  EXPECT_EQ(problems_of(workload)[0].path, "workload.compute.graph_parts");
}

std::vector<int> stages_of(int layers, int stages) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.model.layers = layers;
  workload.plan.tp = 1, workload.plan.pp = stages, workload.plan.dp = 1;
  workload.plan.global_batch.reset();
  return resolve(workload, static_cast<std::uint32_t>(stages)).stage_layers;
}

// Llama 3.1 405B counts embedding and head as a layer each: 126 + 2 = 64 x 2 = 16 x 8, as Megatron's options
// for both; 30 layers on 16 stages are zero bubble's 6.2B model.
TEST(Plan, LayersThatDoNotDivideLeaveFewerToTheEnds) {
  std::vector<int> twos(64, 2), eights(16, 8);
  twos.front() = twos.back() = 1, eights.front() = eights.back() = 7;
  EXPECT_EQ(stages_of(126, 64), twos);
  EXPECT_EQ(stages_of(126, 16), eights);
  EXPECT_EQ(stages_of(30, 8), (std::vector<int>{3, 4, 4, 4, 4, 4, 4, 3}));
  EXPECT_EQ(stages_of(81, 2), (std::vector<int>{41, 40}));  // the head takes longer than the embedding
  EXPECT_EQ(stages_of(7, 4), (std::vector<int>{2, 2, 2, 1}));
  EXPECT_EQ(stages_of(8, 3), (std::vector<int>{3, 3, 2}));
  EXPECT_EQ(stages_of(80, 2), (std::vector<int>{40, 40}));
}

TEST(Plan, EndsMayHoldEmbeddingAndHeadAlone) {
  EXPECT_EQ(stages_of(3, 4), (std::vector<int>{1, 1, 1, 0}));
  EXPECT_EQ(stages_of(2, 4), (std::vector<int>{0, 1, 1, 0}));
  WorkloadSpec workload = llama3_70b_on_64();
  workload.plan.pp = 4;
  workload.model.layers = 1;
  const auto problems = problems_of(workload);
  EXPECT_EQ(problems.at(0).message, "4 stages (pp = 4) for 1 layers");
  EXPECT_EQ(problems.at(0).help, "at most 3: a layer each, and two that hold embedding and head alone");
}

TEST(Plan, StageLayersMustSumToTheModel) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.plan.stage_layers = {41, 40};
  const auto problems = problems_of(workload);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].path, "workload.plan.stage_layers");
  EXPECT_EQ(problems[0].message, "the entries sum to 81, the model has 80 layers");
}

TEST(Plan, HeadsAndColumnsMustDivide) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.plan.tp = 12, workload.plan.pp = 1, workload.plan.dp = 1, workload.plan.global_batch = 4;
  const auto problems = problems_of(workload, 12);
  ASSERT_EQ(problems.size(), 4u);  // heads, columns, key-value heads, sequence
  EXPECT_EQ(problems[0].message, "tp = 12 does not divide the model's 64 attention heads");
  // 8 divides the model too, but not 12 accelerators; 4 divides both.
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(problems[i].help, "tp = 4 would fit the model, the sequence and the accelerators");
}

// Where every head has keys of its own, what tp does not divide is one thing and is said once.
TEST(Plan, HeadsWithTheirOwnKeysAreNamedOnce) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.model.kv_heads = workload.model.heads;
  workload.plan.tp = 12, workload.plan.pp = 1, workload.plan.dp = 1, workload.plan.global_batch = 4;
  const auto problems = problems_of(workload, 12);
  ASSERT_EQ(problems.size(), 3u);  // heads, columns, sequence
  EXPECT_EQ(problems[0].message, "tp = 12 does not divide the model's 64 attention heads");
}

// Qwen2.5-7B: 28 heads, 4 key-value heads, 18944 = 8 x 2368 columns. 7 divides the heads only; 4 divides
// everything.
TEST(Plan, AProposedTensorGroupFitsEverything) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.model.heads = 28, workload.model.kv_heads = 4, workload.model.hidden = 3584;
  workload.model.ffn = 18944;
  workload.plan.dp.reset();
  const auto problems = problems_of(workload);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].help, "tp = 4 would fit the model, the sequence and the accelerators");
  workload.plan.tp = 4;
  EXPECT_TRUE(problems_of(workload).empty());
}

TEST(Plan, AFoldedPipelineNeedsOne) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.plan.schedule = Schedule::zb_v, workload.plan.pp = 1, workload.plan.dp = 8;
  const auto problems = problems_of(workload);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].path, "workload.plan.schedule");
  EXPECT_EQ(problems[0].help, "use 1f1b, or set pp to 2 or more");
}

TEST(Plan, AGlobalBatchMustBeAMultipleOfWhatRunsAtOnce) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.plan.micro_batch = 3, workload.plan.global_batch = 128;
  const auto problems = problems_of(workload);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].message, "global_batch = 128 is no multiple of micro_batch 3 x dp 4 = 12");
  EXPECT_EQ(problems[0].help, "120 or 132 would be");
}

// 2^20 x 4 replicas x 1000 rounds are more than 2^30 sequences.
TEST(Plan, AStepHasAsManySequencesAsCanBeCounted) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.plan.micro_batch = 1 << 20, workload.plan.grad_accumulation = 1000;
  workload.plan.global_batch.reset();
  const auto problems = problems_of(workload);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0].message, HasSubstr("= 4194304000 sequences a step"));
}

TEST(Plan, ShardGroupsAreRunsOfRanks) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.plan.tp = 1, workload.plan.pp = 1, workload.plan.cp = 2, workload.plan.dp = 32;
  workload.plan.zero_group.kind = ZeroGroup::Kind::node;
  EXPECT_TRUE(problems_of(workload).empty());
  workload.plan.rank_order = {"tp", "dp", "cp", "ep", "pp"};
  ASSERT_EQ(problems_of(workload).size(), 1u);
  EXPECT_THAT(problems_of(workload)[0].message, HasSubstr("differ in cp before dp"));
}

// DualPipe with 4 replicas holds each stage 8 times, in two directions; a group of four would be one whole
// direction.
TEST(Plan, ShardGroupsOfDualPipeTakeBothDirections) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.plan.schedule = Schedule::dualpipe;
  workload.plan.zero_group = {ZeroGroup::Kind::ranks, 4};
  ASSERT_EQ(problems_of(workload).size(), 1u);
  EXPECT_THAT(problems_of(workload)[0].message, HasSubstr("one whole direction of DualPipe"));
  workload.plan.zero_group.ranks = 2;
  EXPECT_TRUE(problems_of(workload).empty());
}

TEST(Plan, InterleavingNeedsRoundsOfThePipeline) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.plan.virtual_stages = 2, workload.plan.global_batch = 12;  // three micro-batches, two stages
  const auto problems = problems_of(workload);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0].message, HasSubstr("needs a multiple of pp = 2 micro-batches, this plan has 3"));
  EXPECT_EQ(problems[0].help, "global_batch = 16 would be");
}

TEST(Plan, WhatIsNotSupportedIsRefusedAndNeverIgnored) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.framework = "ddp";
  workload.plan.offload = Offload::cpu;
  workload.plan.cp_kind = ContextKind::ring;
  const auto problems = problems_of(workload);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].path, "workload.plan.offload");
}

TEST(Plan, EveryMistakeIsReportedAtOnce) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.plan.stage_layers = {40, 41};
  workload.plan.dp = 8;
  workload.plan.rank_order = {"tp", "tp", "ep", "dp", "pp"};
  workload.compute.stage_times.transfer = {Duration{1}};
  EXPECT_EQ(problems_of(workload).size(), 4u);
}

TEST(Plan, RankOrderMovesTheDimensions) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.plan.rank_order = {"dp", "tp", "cp", "ep", "pp"};
  EXPECT_TRUE(problems_of(workload).empty());
  // cp and ep are 1, so their place does not matter and they may be left out; tp may not.
  workload.plan.rank_order = {"dp", "tp", "pp"};
  EXPECT_TRUE(problems_of(workload).empty());
  workload.plan.rank_order = {"dp", "pp"};
  EXPECT_EQ(problems_of(workload).size(), 1u);
}
}  // namespace topsim::workloads::plan_test
