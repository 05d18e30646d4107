#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/scenario/read/read.hpp"
#include "sim/scenario/run/simulate.hpp"
#include "sim/study/plan_gpus.hpp"
#include "sim/study/plan_search.hpp"
#include "sim/study/plan_text.hpp"

namespace topsim::study::plan_test {
using namespace topsim::literals;
using testing::HasSubstr;
using workloads::Schedule;

constexpr const char* kTwoBoxes = R"({
  "topology": {"node": "hgx-h100", "nodes": 2, "fabric": {"kind": "rail", "link": "ib-ndr", "switch": "qm9700"}},
  "workload": {"model": {"layers": 4, "hidden": 2048, "heads": 16, "vocab": 32000}, "sequence": 2048,
               "precision": "bf16", "framework": "megatron",
               "plan": {"tp": 2, "pp": 4, "micro_batch": 1, "global_batch": 8}},
  "run": {"steps": 1, "warmup": 0, "seed": 1}})";

// A space small enough to be searched at once.
PlanOptions quick() {
  PlanOptions options;
  options.space.keep = {"recompute", "micro_batch"};
  return options;
}

class Plans : public testing::Test {
 protected:
  scenario::Scenario two_boxes(std::vector<std::string> changes = {}) const {
    return scenario::parse_scenario(kTwoBoxes, "two", changes, library_);
  }
  PlanReport search(const scenario::Scenario& scenario, PlanOptions options) const {
    PlanProgress progress;
    return search_plans(scenario, catalogue_, options, progress);
  }
  config::Library library_{{"configs"}};
  topology::Catalogue catalogue_ = topology::Catalogue::load("configs");
};

template <class Call>
Problem refusal(const Call& call) {
  try {
    call();
  } catch (const ConfigError& error) {
    return error.problems().front();
  }
  return {};
}

std::vector<Duration> first_steps(const PlanReport& report) {
  std::vector<Duration> steps;
  for (const PlanRow& row : report.rows) steps.push_back(row.first_step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

// tp 2 x pp 4 on 16 accelerators leave dp 2. A stage has 2 x 1 x 2 ranks, which ep 4 x etp 2 = 8 does not
// divide.
TEST_F(Plans, WhatIsKeptAndRulesOutEveryPlanIsRefusedAsARunRefusesIt) {
  const scenario::Scenario scenario = two_boxes(
      {"workload.model=mixtral-8x7b", "workload.plan.ep=4", "workload.plan.etp=2", "workload.plan.dp=2"});
  PlanOptions options = quick();
  options.space.keep.insert(options.space.keep.end(), {"tp", "pp", "ep"});
  EXPECT_THAT(refusal([&] { search(scenario, options); }).message,
              HasSubstr("ep 4 x etp 2 = 8 does not divide the tp x cp x dp = 4 ranks of a stage"));
}

// With one stage all schedules are the same plan. Shard groups are checked against the real number of
// replicas.
TEST_F(Plans, OfOneStageAndOfShardGroupsAreAmongTheSearched) {
  PlanOptions options = quick();
  options.space.keep = {"recompute", "micro_batch", "tp", "cp"};
  options.space.schedules = {Schedule::interleaved, Schedule::zb_h1};
  options.top = 100;
  const PlanReport report = search(two_boxes(), options);
  EXPECT_EQ(std::count_if(report.rows.begin(), report.rows.end(),
                          [](const PlanRow& row) { return row.choice.pp == 1; }),
            1);

  options.space.keep.push_back("pp");
  options.space.schedules = {Schedule::one_f_one_b};
  // tp 2, pp 4: two replicas, one shard group of 2.
  EXPECT_EQ(search(two_boxes({"workload.plan.zero=1", "workload.plan.zero_group=2"}), options).impossible,
            0u);
}

// The search against the whole space: no bound exceeds the step it bounds, and the search finds the best
// plans.
TEST_F(Plans, NoBoundIsAboveItsStepAndTheCutSearchFindsTheBestOfTheExhaustiveOne) {
  const std::vector<std::vector<std::string>> cases = {
      {},
      {"workload.plan.sequence_parallel=false", "workload.plan.tp_overlap=none"},
      {"workload.framework=fsdp", "workload.plan.pp=1"},
      {"workload.sequence=8192", "workload.plan.global_batch=4"},
      {"topology.node=ws-4x4090", "topology.fabric={\"kind\": \"fat-tree\", \"link\": \"ib-hdr\"}"},
      {"workload.plan.pp=2", "workload.plan.stage_layers=[1,3]"},
      {"workload.model.experts={\"count\": 4, \"top_k\": 2}"},
      {"workload.framework=fsdp", "workload.model=llama2-13b", "workload.sequence=4096",
       "workload.plan.global_batch=64", "workload.plan.pp=2", "workload.plan.tp=4"},
      {"workload.framework=deepspeed", "workload.plan.pp=2"},
      {"topology.node=hgx-b200", "workload.precision=mxfp8", "workload.plan.micro_batch=1"},
  };
  for (const auto& changes : cases) {
    const scenario::Scenario scenario = two_boxes(changes);
    PlanOptions options;
    options.space.keep = {"recompute"};
    const auto changes_a = [&](const char* word) {
      return std::any_of(changes.begin(), changes.end(),
                         [&](const std::string& change) { return change.find(word) != std::string::npos; });
    };
    if (changes_a("stage_layers"))
      options.space.keep.insert(options.space.keep.end(), {"pp", "virtual_stages"});
    if (changes_a("pp=1")) options.space.keep.emplace_back("pp");
    if (changes_a("13b"))
      options.space.keep.insert(options.space.keep.end(), {"tp", "pp", "cp", "micro_batch"});
    if (changes_a("deepspeed")) options.space.keep.insert(options.space.keep.end(), {"tp", "pp"});
    if (changes_a("mxfp8")) options.space.keep.insert(options.space.keep.end(), {"tp", "micro_batch"});
    if (changes_a("experts"))
      options.space.keep.insert(options.space.keep.end(), {"micro_batch", "virtual_stages"});
    options.exhaustive = true;
    options.top = 10000;
    const PlanReport all = search(scenario, options);
    ASSERT_GT(all.rows.size(), 3u);
    for (const PlanRow& row : all.rows)
      EXPECT_LE(row.bound, row.first_step) << testing::PrintToString(changes) << plan_words(row);
    options.exhaustive = false;
    options.top = 3;
    const PlanReport cut = search(scenario, options);
    std::vector<Duration> best = first_steps(all);
    best.resize(3);
    EXPECT_EQ(first_steps(cut), best);
    EXPECT_EQ(cut.simulated + cut.cut, all.simulated);
  }
}

// At 8 k tokens passes are most of a step, as in jobs that need planning. At 2 k the reduction of gradients
// and the optimiser, which the bound leaves out, are a third.
TEST_F(Plans, TheBoundIsTightEnoughToCutMostOfASpace) {
  PlanOptions options = quick();
  options.top = 1;
  const PlanReport report = search(two_boxes({"workload.sequence=8192"}), options);
  EXPECT_GT(report.cut, 3 * report.simulated);
}

// One accelerator and one micro-batch: the bound is the computation of its pass; the step adds the optimiser
// and a few milliseconds of the host. Optimiser: 4 layers of 12 h^2 and two embeddings of 32,000 h, h = 2048,
// are 332 M parameters; 46 bytes each at 0.8 x 3.35 TB/s take 5.7 ms.
TEST_F(Plans, OnOneAcceleratorTheBoundIsWithinTheOptimisersShare) {
  const scenario::Scenario one = two_boxes(
      {"topology={\"node\": \"h100x1\", \"nodes\": 1}", "workload.plan.tp=1", "workload.plan.pp=1"});
  PlanOptions options;
  options.space.keep = {"recompute", "micro_batch"};
  const PlanReport report = search(one, options);
  ASSERT_EQ(report.rows.size(), 1u);
  const PlanRow& row = report.rows.front();
  EXPECT_LE(row.bound, row.first_step);
  const double optimiser = 332e6 * 46 / (0.8 * 3.35e12);
  EXPECT_GT(seconds(row.bound) + optimiser, 0.96 * seconds(row.first_step));
}

TEST_F(Plans, TheBestPlansFiguresAreThoseOfARunOfTheScenarioItWrites) {
  PlanOptions options = quick();
  options.top = 2;
  const PlanReport report = search(two_boxes(), options);
  const scenario::Scenario written =
      scenario::parse_scenario(scenario::to_json(report.best), "best", {}, library_);
  EXPECT_EQ(scenario::simulate(written, catalogue_, {}, nullptr).result.step,
            report.rows.front().result.step);
  EXPECT_EQ(written.workload.plan.dp, report.rows.front().dp);
}

TEST_F(Plans, TheOutcomeDoesNotDependOnHowManyRunAtOnce) {
  PlanOptions options = quick();
  options.jobs = 1;
  const std::string one = plan_json(search(two_boxes(), options));
  options.jobs = 2;
  EXPECT_EQ(plan_json(search(two_boxes(), options)), one);
}

TEST_F(Plans, WhatIsKeptStays) {
  PlanOptions options;
  options.space.keep = {"tp", "schedule", "recompute"};
  for (const PlanRow& row : search(two_boxes(), options).rows) {
    EXPECT_EQ(row.choice.tp, 2);
    EXPECT_EQ(row.choice.schedule, Schedule::one_f_one_b);
  }
}

// Eight experts with tp 8 and ep 8 on 16 ranks: possible with etp 1, whole experts on each rank. Divided like
// the rest (etp = tp) they would need 64 ranks.
TEST_F(Plans, ExpertsAreDividedByEpAndEtpNotByEpAlone) {
  const std::vector<std::string> experts = {
      "workload.model.experts={\"count\": 8, \"top_k\": 2, \"ffn\": 2048}", "workload.plan.tp=8",
      "workload.plan.pp=1", "workload.plan.ep=8", "workload.plan.micro_batch=1"};
  PlanOptions options;
  options.space.keep = {"tp", "pp", "ep", "cp", "recompute", "micro_batch", "schedule"};
  std::vector<std::string> whole = experts;
  whole.emplace_back("workload.plan.etp=1");
  EXPECT_EQ(search(two_boxes(whole), options).rows.size(), 1U);
  EXPECT_EQ(search(two_boxes(experts), options).rows.size(), 1U);  // etp is 1, as 16 ranks are not 8 x 8
  whole.back() = "workload.plan.etp=8";
  EXPECT_THROW((void)search(two_boxes(whole), options), ConfigError);
}

// 2^14 each: their product wraps to 0 in 32 bits, by which nothing can be divided. No plan is left, and the
// reason is that of the scenario's own plan.
TEST_F(Plans, SizesWhoseProductIsBeyondAnyCountDivideNothing) {
  PlanOptions options;
  options.space.keep = {"tp", "pp", "cp"};
  EXPECT_THAT(refusal([&] {
                (void)search(
                    two_boxes({"workload.plan.tp=16384", "workload.plan.pp=16384", "workload.plan.cp=16384"}),
                    options);
              }).message,
              HasSubstr("tp = 16384 does not divide the model's 16 attention heads"));
}

// Two stages of two layers; the scenario's own plan recomputes one layer.
TEST_F(Plans, ANumberOfLayersRecomputedIsTheOwnPlansAlone) {
  const scenario::Scenario one_layer =
      two_boxes({"workload.plan.recompute=1", "workload.plan.pp=2", "workload.plan.micro_batch=1"});
  PlanOptions options;
  options.space.keep = {"tp", "pp", "cp", "micro_batch", "schedule"};
  const PlanReport report = search(one_layer, options);
  std::vector<std::string> words;
  for (const PlanRow& row : report.rows) words.push_back(recompute_words(row.choice));
  EXPECT_THAT(words, testing::UnorderedElementsAre("none", "selective", "full"));
  ASSERT_TRUE(report.own);
  EXPECT_EQ(recompute_words(report.own->choice), "1 layer");
  for (const PlanRow& row : report.rows) {
    if (row.choice.recompute != workloads::RecomputeKind::full) continue;
    EXPECT_GT(row.result.account.busy, report.own->result.account.busy);  // two layers recomputed, not one
  }
  options.space.keep.emplace_back("recompute");
  EXPECT_EQ(recompute_words(search(one_layer, options).rows.at(0).choice), "1 layer");
}

// PyTorch's frameworks recompute nothing by default; a list of modules makes it selective.
TEST_F(Plans, ModulesToRecomputeMakeTheOwnPlanSelectiveAndHinderNoOther) {
  const scenario::Scenario modules =
      two_boxes({"workload.framework=ddp", "workload.plan.tp=1", "workload.plan.pp=1",
                 "workload.plan.global_batch=16", "workload.plan.recompute_modules=[\"core_attn\"]"});
  EXPECT_EQ(own_choice(modules).recompute, workloads::RecomputeKind::selective);
  PlanOptions options;
  options.space.keep = {"tp", "pp", "cp", "micro_batch", "schedule"};
  const PlanReport report = search(modules, options);
  EXPECT_EQ(report.impossible, 0u);
  EXPECT_EQ(report.rows.size(), 3u);
  EXPECT_TRUE(report.own);
}

// 10^8 / 8 nodes.
TEST_F(Plans, MoreAcceleratorsThanATopologyHasNodesForAreRefused) {
  scenario::Scenario scenario = two_boxes();
  const Problem problem = refusal([&] { use_accelerators(scenario, catalogue_, 100'000'000); });
  EXPECT_EQ(problem.message, "--gpus 100000000: 12500000 nodes of 8, and a topology has at most 1000000");
  EXPECT_EQ(problem.help, "at most --gpus 8000000");
}

// 4 ms slower in all: 519 ms more exposed communication, 515 ms less computing.
TEST(PlanText, AGainThatCancelsALossIsNamed) {
  PlanRow best, row;
  best.result.step = 10'000_ms;
  best.result.account.busy = 10'000_ms;
  row.result.step = 10'004_ms;
  row.result.account.busy = 9'485_ms;
  row.result.account.idle[static_cast<std::size_t>(executor::Reason::tensor_parallel)] = 519_ms;
  EXPECT_EQ(why_slower(row, best), "+519 ms exposed tensor parallel, -515 ms computing");
}

// The file describes two boxes; the written scenario has four.
TEST_F(Plans, WhatIsWrittenDescribesTheClusterItIsFor) {
  scenario::Scenario scenario = two_boxes();
  scenario.description = "Two boxes.";
  use_accelerators(scenario, catalogue_, 32);
  const PlanReport report = search(scenario, quick());
  const std::string json = best_plan_json(report);
  EXPECT_THAT(json, HasSubstr(" on 32 accelerators: the fastest plan that topsim plan found, tp "));
  EXPECT_THAT(json, testing::Not(HasSubstr("Two boxes")));
}

TEST_F(Plans, OnlySchedulesThatWereAskedForAreSearched) {
  PlanOptions options = quick();
  options.space.schedules = {Schedule::one_f_one_b};
  for (const PlanRow& row : search(two_boxes(), options).rows)
    EXPECT_EQ(row.choice.schedule, Schedule::one_f_one_b);
  EXPECT_THROW((void)schedule_named("1f1c"), ConfigError);
}

TEST_F(Plans, AJobThatFitsNowhereIsRefusedWithCountsTheNearestPlanAndWhatWouldHoldIt) {
  const scenario::Scenario large = two_boxes({"workload.model=gpt3-175b"});
  const Problem problem = refusal([&] { (void)search(large, {}); });
  EXPECT_THAT(problem.message, HasSubstr("need more memory than h100-sxm5 has"));
  EXPECT_THAT(problem.message,
              testing::ContainsRegex("the nearest needs [0-9.]+ GiB, [0-9.]+ GiB too much \\(tp"));
  EXPECT_THAT(problem.message, testing::Not(HasSubstr("ZeRO stage")));
  // What is proposed does hold it.
  const std::string more = "--gpus ";
  ASSERT_THAT(problem.help, testing::StartsWith(more));
  scenario::Scenario grown = large;
  use_accelerators(grown, catalogue_, std::stoi(problem.help.substr(more.size())));
  PlanOptions one;
  one.top = 1;
  one.space.keep = {"schedule"};
  EXPECT_EQ(search(grown, one).rows.size(), 1U);
}

// 4096 accelerators for a batch of 8. The same count must not be proposed, and the one proposed must divide.
TEST_F(Plans, WhereNothingDividesTheSameCountIsNoRemedy) {
  scenario::Scenario scenario = two_boxes();
  use_accelerators(scenario, catalogue_, 4096);
  const std::string help = refusal([&] { (void)search(scenario, quick()); }).help;
  EXPECT_THAT(help, HasSubstr("--gpus "));
  EXPECT_THAT(help, testing::Not(HasSubstr("--gpus 4096")));
  use_accelerators(scenario, catalogue_, std::stoi(help.substr(help.find("--gpus ") + 7)));
  EXPECT_THAT(refusal([&] { (void)search(scenario, quick()); }).message,
              testing::Not(HasSubstr("do not divide")));
}

// Twelve ranks and eight sequences: dp has a factor 3, unless tp x pp has it, and then heads or layers do not
// divide.
TEST_F(Plans, WhereNothingDividesABatchAndACountThatMayDoAreProposed) {
  EXPECT_THAT(refusal([&] { (void)search(two_boxes({"topology.accelerators=14"}), quick()); }).help,
              HasSubstr("a global batch of 14, or --gpus 8, may do"));
}

// A name alone means the set of 2023 on A100; all plans are compared under it, and it is said.
TEST_F(Plans, AreComparedUnderTheReleaseThatTheScenarioMeans) {
  const std::vector<std::string> old{"topology.node=dgx-a100", "workload.model=gpt3-2.7b",
                                     "workload.sequence=2048"};
  const PlanReport report = search(two_boxes(old), quick());
  EXPECT_EQ(report.assumed_release, "megatron@2023");
  EXPECT_EQ(report.best.workload.framework, "megatron@2023");
  EXPECT_EQ(search(two_boxes(), quick()).assumed_release, "");
  std::vector<std::string> large = old;
  large[1] = "workload.model=gpt3-175b";
  EXPECT_THAT(refusal([&] { (void)search(two_boxes(large), quick()); }).message,
              HasSubstr("under megatron@2023 (--set workload.framework=megatron@2025 is the newest)"));
}

// 14 layers are 2 x 7; with embedding and head as one each 4 x 4, 8 x 2 and 16 x 1. 126 on 16 stages are
// interleaved by 2, 4 and 8, where 128 divides.
TEST_F(Plans, StagesMayCountEmbeddingAndHeadAsLayers) {
  PlanOptions options = quick();
  options.space.keep = {"tp", "cp", "recompute", "micro_batch"};
  options.space.schedules = {Schedule::one_f_one_b};
  options.top = 100;
  const PlanReport report =
      search(two_boxes({"workload.model.layers=14", "workload.plan.tp=1", "workload.plan.dp=null"}), options);
  std::set<int> stages;
  for (const PlanRow& row : report.rows) stages.insert(row.choice.pp);
  EXPECT_EQ(stages, (std::set<int>{2, 4, 8, 16}));
}

TEST(Alike, CountsEmbeddingAndHead) {
  for (const int chunks : {2, 4, 8}) EXPECT_TRUE(alike(126, 16 * chunks));
  for (const int stages : {1, 2, 3, 7, 127, 128}) EXPECT_TRUE(alike(126, stages)) << stages;
  for (const int stages : {5, 10, 16 * 7, 129}) EXPECT_FALSE(alike(126, stages)) << stages;
}

TEST_F(Plans, WhatIsWrongWithEveryPlanIsSaidAsOfTheScenario) {
  const Problem problem = refusal([&] {
    (void)search(two_boxes({"workload.framework=fsdp", "workload.plan.bucket_size=40 MB"}), quick());
  });
  EXPECT_THAT(problem.message, HasSubstr("FSDP reduces a layer's gradients together"));
  EXPECT_EQ(problem.path, "workload.plan.bucket_size");
}

TEST_F(Plans, WhereNothingRunsTheReasonIsSaid) {
  EXPECT_THAT(
      refusal([&] { (void)search(two_boxes({"topology.fabric={\"kind\": \"none\"}"}), quick()); }).message,
      HasSubstr("cannot reach"));
}

TEST_F(Plans, AClusterGrowsByItsNodes) {
  scenario::Scenario scenario = two_boxes();
  use_accelerators(scenario, catalogue_, 64);
  EXPECT_EQ(scenario.topology.nodes, 8);
  EXPECT_FALSE(scenario.topology.accelerators);
  use_accelerators(scenario, catalogue_, 12);
  EXPECT_EQ(scenario.topology.nodes, 2);
  EXPECT_EQ(scenario.topology.accelerators, 12);
}
}  // namespace topsim::study::plan_test
