#include "sim/report/compare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/report/candidates.hpp"

namespace topsim::report::compare_test {
using namespace topsim::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Compare, StepTimeComesFirstAndRowsFollowByTheirEffect) {
  Candidate slow = candidate("roce", 12_ms);
  slow.result.account.idle[static_cast<std::size_t>(Reason::host)] = 1_us;  // infinitely more, but only 1 us
  const Comparison comparison = of({candidate("ib", 10_ms), slow});
  EXPECT_EQ(comparison.rows[0].metric, "step.seconds");
  EXPECT_DOUBLE_EQ(comparison.rows[0].relative[1], 0.2);
  EXPECT_EQ(comparison.rows[1].metric, "accelerators.idle_seconds.data_parallel");
  EXPECT_DOUBLE_EQ(comparison.rows[1].effect, 0.2);  // 2 of 10 ms
  for (std::size_t i = 2; i < comparison.rows.size(); ++i) {
    EXPECT_LE(comparison.rows[i].effect, comparison.rows[i - 1].effect) << comparison.rows[i].metric;
  }
}

TEST(Compare, RowsAlikeAreLeftOut) {
  const Comparison comparison = of({candidate("ib", 10_ms), candidate("roce", 12_ms)});
  std::vector<std::string> shown;
  for (const ComparisonRow* row : rows_that_differ(comparison)) shown.push_back(row->metric);
  EXPECT_THAT(shown, ElementsAre("step.seconds", "accelerators.idle_seconds.data_parallel",
                                 "throughput.tokens_per_second"));
}

// A collective that only one plan has is not compared.
TEST(Compare, ACollectiveThatOneCandidateLacksIsNoRow) {
  Candidate a = candidate("tp8", 10_ms), b = candidate("tp4", 12_ms);
  CollectiveRow row;
  row.group = "data", row.kind = "all_reduce", row.bytes = Bytes(1000), row.calls = 1, row.group_size = 8;
  row.each = 1_ms, row.bus_bandwidth = 100e9;
  a.result.collectives.push_back(row);
  b.result.collectives.push_back(row);
  row.bytes = Bytes(2000);
  a.result.collectives.push_back(row);
  std::vector<std::string> metrics;
  for (const ComparisonRow& each : of({a, b}).rows) metrics.push_back(each.metric);
  EXPECT_THAT(metrics, ::testing::Contains("collectives.data.all_reduce.1000.bus_bandwidth"));
  EXPECT_THAT(metrics, ::testing::Not(::testing::Contains("collectives.data.all_reduce.2000.bus_bandwidth")));
}

TEST(Compare, SaysByWhatFactorTheFasterOneWins) {
  EXPECT_EQ(of({candidate("ib", 10_ms), candidate("roce", 12_ms)}).verdict,
            "ib is 1.20 times faster per step than roce; 100 % of the difference is exposed data parallel");
  EXPECT_THAT(of({candidate("ib", 12_ms), candidate("roce", 10_ms)}).verdict,
              HasSubstr("roce is 1.20 times faster per step than ib"));
}

// 104 of 80 GiB: the faster one cannot be had.
TEST(Compare, SaysFirstWhatDoesNotFit) {
  Candidate fast = candidate("tp4", 8_ms);
  fast.result.memory.fits = false;
  fast.result.memory.per_accelerator = 104_GiB;
  fast.result.memory.capacity = 80_GiB;
  EXPECT_THAT(of({candidate("tp8", 10_ms), fast}).verdict,
              ::testing::StartsWith("tp4 DOES NOT FIT the memory: 104 GiB of 80.0 GiB\ntp4 is 1.25 times"));
  EXPECT_THAT(of({fast, candidate("tp8", 10_ms)}).verdict, ::testing::StartsWith("tp4 DOES NOT FIT"));
}

// Of 10 ms more, 4 are data parallel, 3 bubble, 2 waiting, 1 host: the first two reasons explain more than
// half.
TEST(Compare, NamesTheReasonsThatExplainHalfOfTheDifference) {
  Candidate slow = candidate("roce", 10_ms);
  auto& idle = slow.result.account.idle;
  idle[static_cast<std::size_t>(Reason::data_parallel)] += 4_ms;
  idle[static_cast<std::size_t>(Reason::pipeline_bubble)] += 3_ms;
  idle[static_cast<std::size_t>(Reason::straggler)] += 2_ms;
  idle[static_cast<std::size_t>(Reason::host)] += 1_ms;
  slow.result.step = 20_ms;
  slow.result.throughput.tokens_per_second /= 2;
  slow.steps = {20_ms};
  EXPECT_THAT(of({candidate("ib", 10_ms), slow}).verdict,
              HasSubstr("; 40.0 % of the difference is exposed data parallel, 30.0 % pipeline bubble"));
}

// Only one of two candidates counts failures: the other's reliability is unknown, not zero, and is not
// compared.
TEST(Compare, WhatOneCandidateDoesNotKnowIsNoZero) {
  Candidate plain = candidate("plain", 10_ms), days = candidate("days", 10_ms);
  days.result.goodput = Goodput{};
  days.result.goodput->share = {0.9, 0.9, 0.9};
  const Comparison comparison = of({plain, days});
  for (const ComparisonRow& row : comparison.rows)
    EXPECT_THAT(row.metric, Not(::testing::StartsWith("reliability."))) << row.metric;
}

// A replayed trace has no such figures; its zeros mean unknown.
TEST(Compare, ATraceHasNoTokensFlopsAndMemoryToCompare) {
  const auto rows = [](bool trace) {
    Candidate model = candidate("model", 10_ms), other = candidate("other", 10_ms);
    other.result.trace = trace;
    std::string metrics;
    for (const ComparisonRow& row : of({model, other}).rows) metrics += row.metric + "\n";
    return metrics;
  };
  for (const char* metric :
       {"throughput.tokens_per_second\n", "throughput.mfu\n", "memory.per_accelerator_bytes\n"}) {
    EXPECT_THAT(rows(false), HasSubstr(metric));
    EXPECT_THAT(rows(true), Not(HasSubstr(metric)));
  }
}

// A warning of a run, such as of a switch without ports for its link, must not disappear in a comparison.
TEST(Compare, RepeatsWhatTheRunsWarnOf) {
  Candidate a = candidate("a", 10_ms), b = candidate("b", 10_ms);
  for (Candidate* each : {&a, &b})
    each->result.findings.push_back({Severity::warning, "both are odd", "topology.fabric", {}});
  b.result.findings.push_back(
      {Severity::warning, "the switch has no such ports", "topology.fabric.switch", {}});
  b.result.findings.push_back({Severity::note, "by the way", "topology.fabric", {}});
  EXPECT_THAT(of({a, b}).remarks,
              ::testing::IsSupersetOf({"both are odd", "b: the switch has no such ports"}));
  EXPECT_THAT(of({a, b}).remarks, Not(::testing::Contains(HasSubstr("by the way"))));
}

// 0.75 us against 1 us is a third more, but a fortieth of a thousandth of the step: a row for --all only.
// Memory is always a row.
TEST(Compare, TriflesAreNoRows) {
  Candidate a = candidate("a", 10_ms), b = candidate("b", 10_ms);
  a.result.account.idle[static_cast<std::size_t>(Reason::other)] = Duration(750'000);
  b.result.account.idle[static_cast<std::size_t>(Reason::other)] = Duration(1'000'000);
  a.result.memory.per_accelerator = 40_GiB, b.result.memory.per_accelerator = 60_GiB;
  const Comparison comparison = of({a, b});
  std::vector<std::string> shown;
  for (const ComparisonRow* each : rows_that_differ(comparison)) shown.push_back(metric_label(each->metric));
  EXPECT_THAT(shown, ElementsAre("step time", "memory of the fullest"));
}

TEST(Compare, OfManyCollectivesTheFiveWorthMostAreRows) {
  Candidate a = candidate("a", 10_ms), b = candidate("b", 10_ms);
  for (int i = 1; i <= 9; ++i) {
    CollectiveRow row;
    row.group = "data", row.kind = "all_reduce", row.bytes = i * 1_MiB, row.calls = 2, row.group_size = 2;
    row.each = i * 1_ms, row.bus_bandwidth = 100e9;
    a.result.collectives.push_back(row);
    row.bus_bandwidth = 50e9;
    b.result.collectives.push_back(row);
  }
  const Comparison comparison = of({a, b});
  std::vector<std::string> shown;
  for (const ComparisonRow* each : rows_that_differ(comparison)) shown.push_back(metric_label(each->metric));
  EXPECT_THAT(shown, ElementsAre("step time", "busbw data all_reduce 9 MiB", "busbw data all_reduce 8 MiB",
                                 "busbw data all_reduce 7 MiB", "busbw data all_reduce 6 MiB",
                                 "busbw data all_reduce 5 MiB"));
}

TEST(Compare, SharpIsAdvisedOnlyWhereNobodyHasIt) {
  Candidate plain = candidate("plain", 10_ms), sharp = candidate("sharp", 9_ms);
  LinkRow link;
  link.kind = topology::LinkKind::infiniband;
  plain.result.links = sharp.result.links = {link};
  plain.result.library = sharp.result.library = "RCCL";
  EXPECT_THAT(of({plain, plain}).remarks, ::testing::Not(::testing::Contains(HasSubstr("sharp=true"))));
  plain.result.library = sharp.result.library = "NCCL";
  const auto advice = ::testing::Contains(HasSubstr("sharp=true"));
  EXPECT_THAT(of({plain, plain}).remarks, advice);
  sharp.result.scenario = R"({"topology": {"fabric": {"sharp": true}}})";
  EXPECT_THAT(of({plain, sharp}).remarks, ::testing::Not(advice));
}

TEST(Compare, IdenticalScenariosTakeTheSameTime) {
  EXPECT_EQ(of({candidate("a", 10_ms), candidate("a", 10_ms)}).verdict, "a and a #2 take the same step time");
}

TEST(Compare, OverlappingSamplesAreNoSignificantDifference) {
  const auto verdict =
      of({candidate("ib", 10_ms, {10_ms, 10_ms}), candidate("roce", 11_ms, {9_ms, 11_ms})}).verdict;
  EXPECT_THAT(verdict, HasSubstr("no significant difference between ib and roce"));
  EXPECT_THAT(verdict, HasSubstr("of 3 samples"));
}

TEST(Compare, SamplesThatAgreeAreSignificant) {
  EXPECT_THAT(
      of({candidate("ib", 10_ms, {10_ms, 10_ms}), candidate("roce", 11_ms, {11_ms, 12_ms})}).verdict,
      HasSubstr("ib is 1.10 times faster per step than roce (+10.0 % in the median of 3 samples; 5th to 95th "
                "percentile +10.0 % to"));
}

// 3 ms where the other waits for 1 us: a factor, no percentage.
TEST(Compare, ManyTimesNextToNothingIsNoPercentage) {
  Candidate ib = candidate("ib", 10_ms), roce = candidate("roce", 12_ms);
  ib.result.account.idle[static_cast<std::size_t>(executor::Reason::straggler)] = 1_us;
  roce.result.account.idle[static_cast<std::size_t>(executor::Reason::straggler)] = 3_ms;
  EXPECT_THAT(compare_table(of({ib, roce}), false, 200), HasSubstr("x 3"));
}

TEST(Compare, BelowTheModelsResolutionNothingIsClaimed) {
  EXPECT_THAT(
      of({candidate("ib", 10_ms), candidate("roce", 10_ms + 50_us)}).verdict,
      HasSubstr("no significant difference between ib and roce: +0.50 % per step; differences below 1.0 %"));
}

// +0.5 % to +3 %: a part of the range is within what the models do not resolve.
TEST(Compare, ARangeThatReachesIntoTheResolutionIsNotSignificant) {
  const Comparison c = of({candidate("ib", 10_ms, {10_ms, 10_ms}),
                           candidate("roce", 10_ms + 200_us, {10_ms + 50_us, 10_ms + 300_us})});
  EXPECT_THAT(c.verdict, HasSubstr("roce takes 2.0 % longer per step than ib"));
  EXPECT_THAT(c.verdict, HasSubstr("at the limit of what the models resolve, 1.0 % either way"));
}

// A step of decoding makes a token for each sequence; one of training computes all tokens of the batch.
TEST(Compare, OtherTasksHaveNoRatio) {
  Candidate serve = candidate("serve", 10_ms), lora = candidate("lora", 20_ms);
  serve.result.scenario = R"({"workload": {"model": "llama3-70b", "task": "decode"}})";
  lora.result.scenario = R"({"workload": {"model": "llama3-70b", "task": "lora"}})";
  const std::string verdict = of({serve, lora}).verdict;
  EXPECT_THAT(verdict,
              HasSubstr("serve does decode, lora lora: not the same work; a step takes 10.0 ms in serve, "
                        "20.0 ms in lora"));
  EXPECT_THAT(verdict, ::testing::Not(HasSubstr("times faster")));
}

TEST(Compare, OnlyModelsOfOneNameAreVariants) {
  const auto remark = [](const char* a, const char* b) {
    Candidate here = candidate("a", 10_ms), there = candidate("b", 20_ms);
    here.result.scenario = std::string(R"({"workload": {"model": )") + a + "}}";
    there.result.scenario = std::string(R"({"workload": {"model": )") + b + "}}";
    return of({here, there}).remarks;
  };
  EXPECT_THAT(remark(R"({"layers": 48})", R"({"layers": 32})"),
              ::testing::Contains(HasSubstr("a computes a model of its own, b another: not the same work")));
  EXPECT_THAT(remark(R"("llama3-8b")", R"({"use": "llama3-8b", "layers": 16})"),
              ::testing::Contains(HasSubstr("a computes llama3-8b, b a variant of it")));
}

TEST(Compare, WhoProcessesMoreTokensAStepIsJudgedByTheToken) {
  // Twice the tokens in 1.5 times the time: 1 / 0.75 = 1.33 times faster a token.
  Candidate small = candidate("small", 10_ms), large = candidate("large", 15_ms);
  small.result.throughput.tokens_per_second = 100 / 0.010;
  large.result.throughput.tokens_per_second = 200 / 0.015;
  const Comparison comparison = of({small, large});
  EXPECT_TRUE(comparison.per_token);
  EXPECT_THAT(comparison.verdict, HasSubstr("large is 1.33 times faster per token than small"));
}

// Of one candidate it is said of its run; of all, once of the comparison, which differs by the plan alone.
TEST(Compare, AnUnusedFabricIsSaid) {
  Candidate a = candidate("a", 10_ms), plan = candidate("plan", 12_ms), used = candidate("used", 12_ms);
  a.result.findings = {
      {Severity::warning, "the fabric carried no traffic; no other fabric would change this step", "", ""}};
  plan.result.findings = a.result.findings;
  const auto fabric = [](const std::vector<Candidate>& candidates) {
    std::vector<std::string> said = of(candidates).remarks;
    std::erase_if(said, [](const auto& each) { return each.find("no traffic") == std::string::npos; });
    return said;
  };
  EXPECT_THAT(fabric({a, a}), ElementsAre("the fabric carried no traffic; this comparison cannot differ"));
  EXPECT_THAT(fabric({a, plan}),
              ElementsAre("the fabric carried no traffic; what differs here is not the fabric's"));
  EXPECT_THAT(fabric({a, used}),
              ElementsAre("a: the fabric carried no traffic; no other fabric would change this step"));
}

// 3 of 4 ms more are waits for messages.
TEST(Compare, WaitsOfTracesHaveTheNamesThatARunGivesThem) {
  Candidate quick = candidate("quick", 10_ms), slow = candidate("slow", 14_ms);
  slow.result.account.idle[static_cast<std::size_t>(Reason::data_parallel)] -= 3_ms;
  slow.result.account.idle[static_cast<std::size_t>(Reason::pipeline_transfer)] += 3_ms;
  EXPECT_THAT(of({quick, slow}).verdict, HasSubstr("exposed pipeline transfer"));
  quick.result.trace = slow.result.trace = true;
  const Comparison comparison = of({quick, slow});
  EXPECT_THAT(comparison.verdict, HasSubstr("exposed messages"));
  EXPECT_THAT(compare_table(comparison, true, 80), HasSubstr("\nexposed messages "));
  EXPECT_THAT(compare_json(comparison), HasSubstr(R"("label": "exposed messages")"));
}

TEST(Compare, JsonHoldsTheContractsKeys) {
  const auto document =
      nlohmann::json::parse(compare_json(of({candidate("ib", 10_ms), candidate("roce", 12_ms)})));
  EXPECT_EQ(document.at("format"), "topsim.compare/1");
  EXPECT_EQ(document.at("baseline"), "ib");
  const auto& row = document.at("rows").at(0);
  EXPECT_EQ(row.at("metric"), "step.seconds");
  EXPECT_EQ(row.at("values").size(), 2U);
  EXPECT_NEAR(row.at("relative").at(1).get<double>(), 0.2, 1e-12);
  EXPECT_FALSE(document.at("verdict").get<std::string>().empty());
}

TEST(Compare, TablesShowValuesWithUnits) {
  const std::vector<Candidate> both{candidate("ib", 10_ms), candidate("roce", 12_ms)};
  const Comparison comparison = compare(both);
  const std::string table = compare_table(comparison, false, 80);
  EXPECT_THAT(table, HasSubstr("10.0 ms"));
  EXPECT_THAT(table, HasSubstr("+20.0 %"));
  const std::string memo = compare_markdown(comparison, both, false);
  EXPECT_THAT(memo, HasSubstr("| step time | 10.0 ms | 12.0 ms | +20.0 % |"));
}

TEST(Compare, LongNamesBecomeLettersSoThatTheTableFitsTheWindow) {
  const Comparison comparison = compare(std::vector<Candidate>{
      candidate("a rail-optimised InfiniBand fabric", 10_ms),
      candidate("a two-tier RoCE fabric of the same price", 12_ms), candidate("a three-tier one", 12_ms)});
  const std::string table = compare_table(comparison, true, 80);
  EXPECT_THAT(table, HasSubstr("B: a two-tier RoCE fabric of the same price\n"));
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST(Compare, TheTwentySeventhCandidateHasALetterOfItsOwn) {
  std::vector<Candidate> many;
  for (int c = 0; c < 28; ++c) many.push_back(candidate("candidate " + std::to_string(c), 10_ms));
  const std::string table = compare_table(compare(many), false, 80);
  EXPECT_THAT(table, HasSubstr("Z: candidate 25\nAA: candidate 26\nAB: candidate 27\n"));
}

TEST(Compare, AnotherModelIsSaidToBeOtherWork) {
  Candidate a = candidate("big", 10_ms), b = candidate("small", 4_ms);
  a.result.scenario = R"({"workload": {"model": "llama3-8b"}})";
  b.result.scenario = R"({"workload": {"model": {"use": "llama3.2-1b"}}})";
  EXPECT_THAT(of({a, b}).remarks,
              ::testing::Contains("big computes llama3-8b, small llama3.2-1b: not the same work"));
  EXPECT_THAT(of({a, a}).remarks, ::testing::Not(::testing::Contains(HasSubstr("same work"))));
}

// What a name without a release means depends on the accelerators and on settings.
TEST(Compare, TheVerdictSaysThatAReleaseDiffersWhichNobodyAskedFor) {
  const auto verdict = [](const char* stated, const char* taken, const char* other_stated,
                          const char* other_taken) {
    Candidate a = candidate("a100", 10_ms), b = candidate("h100", 4_ms);
    const auto say = [](Candidate& c, const std::string& said, const std::string& chosen) {
      c.result.scenario = R"({"workload": {"model": "llama3-8b", "framework": ")" + said + "\"}}";
      c.result.left_open = chosen.empty() ? "{}" : R"({"framework": ")" + chosen + "\"}";
    };
    say(a, stated, taken), say(b, other_stated, other_taken);
    return of({a, b}).verdict;
  };
  const auto none = ::testing::Not(HasSubstr("assumed to run"));
  EXPECT_THAT(
      verdict("megatron", "megatron@2024", "megatron", "megatron@2025"),
      HasSubstr("\na100 is assumed to run megatron@2024, h100 is assumed to run megatron@2025: a part of "
                "the difference is the release's; --set workload.framework=megatron@2025 gives both "
                "one"));
  EXPECT_THAT(
      verdict("megatron@2024", "", "megatron", "megatron@2025"),
      HasSubstr("a100 runs megatron@2024, h100 is assumed to run megatron@2025: a part of the "
                "difference is the release's; --set workload.framework=megatron@2024 gives both one"));
  EXPECT_THAT(verdict("megatron@2024", "", "megatron@2025", ""), none);  // both stated
  EXPECT_THAT(verdict("megatron", "megatron@2025", "megatron", "megatron@2025"), none);
  EXPECT_THAT(verdict("megatron", "megatron@2025", "megatron", "megatron@2025-fsdp"),
              none);  // what ZeRO 3 means
  EXPECT_THAT(verdict("megatron", "megatron@2025", "fsdp", "fsdp@2024"), none);
  EXPECT_THAT(verdict("megatron", "megatron@2023", "megatron", "megatron@2025-fsdp"),
              HasSubstr("assumed to run megatron@2023"));
  EXPECT_THAT(verdict("megatron@2020", "megatron@2021", "megatron@2024", ""), none);  // a year's own set
  EXPECT_THAT(verdict("maxtext", "maxtext@2024-gpu", "maxtext", "maxtext@2025"), none);
}

TEST(Compare, AnotherTaskSequenceTraceOrNetworkModelIsSaid) {
  const auto remarks = [](const std::string& base, const std::string& other, const std::string& left_open) {
    Candidate a = candidate("a", 10_ms), b = candidate("b", 4_ms);
    a.result.scenario = R"({"workload": )" + base + "}";
    b.result.scenario = R"({"workload": )" + other + "}";
    a.result.left_open = left_open;
    b.result.network_model = "analytic";
    return of({a, b}).remarks;
  };
  using ::testing::Contains;
  const std::string model = R"({"model": "llama3-8b"})";
  EXPECT_THAT(remarks(model, R"({"model": "llama3-8b", "task": "prefill"})", "{}"),
              Contains("a does pretrain, b prefill: not the same work"));
  // What the scenario leaves out is taken from the run.
  EXPECT_THAT(remarks(model, R"({"model": "llama3-8b", "sequence": 512})", R"({"sequence": 8192})"),
              Contains("sequences have 8192 tokens in a, 512 in b: not the same work"));
  EXPECT_THAT(remarks(model, R"({"trace": {"format": "goal", "path": "x.goal"}})", "{}"),
              Contains("b replays a trace and a computes a model: not the same work"));
  EXPECT_THAT(
      remarks(model, model, "{}"),
      Contains(
          "a is simulated with network model flow, b with analytic: a part of the difference is theirs"));
}
}  // namespace topsim::report::compare_test
