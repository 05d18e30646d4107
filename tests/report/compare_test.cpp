#include "sim/report/compare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/report/sample.hpp"

namespace topsim::report::compare_test {
using namespace topsim::testing;
using ::testing::HasSubstr;
using ::testing::Not;

Candidate candidate(const std::string& name, Duration step, std::vector<Duration> samples = {}) {
  Candidate each;
  each.result = sample_result();
  each.result.name = name;
  // All of the difference to the sample's 10 ms is exposed data-parallel communication.
  each.result.account.idle[static_cast<std::size_t>(Reason::data_parallel)] += step - each.result.step;
  each.result.throughput.tokens_per_second *= seconds(each.result.step) / seconds(step);
  each.result.step = step;
  each.steps = std::move(samples);
  each.steps.insert(each.steps.begin(), step);
  return each;
}

Comparison of(std::vector<Candidate> candidates) {
  return compare(candidates);
}

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
  EXPECT_THAT(shown, ::testing::ElementsAre("step.seconds", "accelerators.idle_seconds.data_parallel",
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
  EXPECT_THAT(shown, ::testing::ElementsAre("step time", "memory of the fullest"));
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
  EXPECT_THAT(shown, ::testing::ElementsAre("step time", "busbw data all_reduce 9 MiB",
                                            "busbw data all_reduce 8 MiB", "busbw data all_reduce 7 MiB",
                                            "busbw data all_reduce 6 MiB", "busbw data all_reduce 5 MiB"));
}

TEST(Compare, SharpIsAdvisedOnlyWhereNobodyHasIt) {
  Candidate plain = candidate("plain", 10_ms), sharp = candidate("sharp", 9_ms);
  LinkRow link;
  link.kind = "infiniband";
  plain.result.links = sharp.result.links = {link};
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

TEST(Compare, WhoProcessesMoreTokensAStepIsJudgedByTheToken) {
  // Twice the tokens in 1.5 times the time: 1 / 0.75 = 1.33 times faster a token.
  Candidate small = candidate("small", 10_ms), large = candidate("large", 15_ms);
  small.result.throughput.tokens_per_second = 100 / 0.010;
  large.result.throughput.tokens_per_second = 200 / 0.015;
  const Comparison comparison = of({small, large});
  EXPECT_TRUE(comparison.per_token);
  EXPECT_THAT(comparison.verdict, HasSubstr("large is 1.33 times faster per token than small"));
}

TEST(Compare, AnUnusedFabricIsSaid) {
  Candidate a = candidate("a", 10_ms);
  a.result.findings = {
      {Severity::warning, "the fabric carried no traffic; this comparison cannot differ", "", ""}};
  EXPECT_THAT(of({a, a}).remarks,
              ::testing::Contains("the fabric carried no traffic; this comparison cannot differ"));
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

Interval exactly(double value) {
  return {value, value, value};
}

// Dollars per step and per token differ by the same share, up to rounding. Their order must not depend on it.
TEST(Compare, RowsOfOneEffectKeepTheirOrder) {
  for (int k = 0; k < 60; ++k) {
    std::vector<Candidate> both{candidate("ib", 10_ms + k * 7_us), candidate("roce", 11_ms + k * 13_us)};
    for (std::size_t c = 0; c < both.size(); ++c) {
      CostModel& cost = both[c].cost.emplace();
      const double price = 80.1 + 3.7 * static_cast<double>(c);
      cost.bill.items = {{BomCategory::server, "box", "box", 3, exactly(price), "quote", 700}};
      cost.years = exactly(4), cost.electricity = exactly(0.078), cost.pue = exactly(1.3);
    }
    const Comparison comparison = compare(both);
    const auto place = [&](const char* metric) {
      return std::find_if(comparison.rows.begin(), comparison.rows.end(),
                          [&](const ComparisonRow& row) { return row.metric == metric; }) -
             comparison.rows.begin();
    };
    EXPECT_LT(place("cost.usd_per_step"), place("cost.usd_per_million_tokens")) << k;
  }
}

TEST(Compare, CostNamesTheBreakEvenPriceOfTheFabric) {
  Candidate ib = candidate("ib", 10_ms);
  Candidate roce = candidate("roce", 11_ms);
  for (Candidate* each : {&ib, &roce}) {
    each->cost.emplace();
    each->cost->bill.items = {{BomCategory::server, "box", "box", 1, exactly(80), "quote", 0}};
    each->cost->years = exactly(4);
    each->cost->electricity = each->cost->pue = exactly(1);
  }
  ib.cost->bill.items.push_back({BomCategory::network_switch, "qm", "qm", 1, exactly(20), "quote", 0});
  roce.cost->bill.items.push_back({BomCategory::network_switch, "sn", "sn", 1, exactly(5), "quote", 0});
  // 85 x 11 against 100 x 10: 6.5 % less per token. Break-even: (100/1.1 - 80)/20 = 54.5 % of the other's
  // fabric price.
  const std::string verdict = of({ib, roce}).verdict;
  EXPECT_THAT(verdict, HasSubstr("cost per token: roce costs 6.50 % less than ib"));
  // It costs less now: 5 of 20 are 25 %.
  EXPECT_THAT(verdict, HasSubstr("roce wins if its fabric costs less than 54.5 % of ib's"));
  EXPECT_THAT(verdict, HasSubstr(", now it is 25.0 %"));
  // 100 x 10 against 85 x 13: its servers alone cost more than the other's total; (100/1.3 - 80)/20 = -15 %.
  roce.steps.assign(roce.steps.size(), 13_ms);
  EXPECT_THAT(of({ib, roce}).verdict, HasSubstr("roce would not win with a free fabric"));
  roce.steps.assign(roce.steps.size(), 11_ms);
  // Failures that take half of its time double its cost per token: 85 x 11 / 0.5 against 1000, 1.87 times.
  for (Candidate* each : {&ib, &roce}) each->result.goodput = Goodput{};
  ib.result.goodput->share = {1, 1, 1};
  roce.result.goodput->share = {0.5, 0.5, 0.5};
  EXPECT_THAT(of({ib, roce}).verdict, HasSubstr("roce costs 87.0 % more than ib"));
  // With failures of one candidate only, costs per token and per step are not compared.
  ib.result.goodput.reset();
  const Comparison uneven = of({ib, roce});
  EXPECT_THAT(uneven.verdict, HasSubstr("not compared: those of roce count failures"));
  for (const ComparisonRow& row : uneven.rows)
    EXPECT_THAT(row.metric, Not(::testing::StartsWith("cost.usd_per"))) << row.metric;
  roce.result.goodput.reset();
  // The range of the price is wider than the difference.
  roce.cost->bill.items[1].price = Interval{1, 11, 21};
  EXPECT_THAT(of({ib, roce}).verdict, HasSubstr("cost per token: no significant difference"));
}

// A job that never trains is not cheap: its step time with failures and its dollars are infinite.
TEST(Compare, WhatNeverTrainsIsNotFree) {
  std::vector<Candidate> both{candidate("runs", 10_ms), candidate("stuck", 9_ms)};
  for (Candidate& each : both) {
    each.cost.emplace();
    each.cost->bill.items = {{BomCategory::server, "box", "box", 1, exactly(80), "quote", 0}};
    each.cost->years = each.cost->electricity = each.cost->pue = exactly(1);
    each.result.goodput.emplace().share = exactly(each.result.name == "runs" ? 0.9 : 0);
  }
  const Comparison comparison = compare(both);
  for (const char* metric :
       {"reliability.step_seconds", "cost.usd_per_step", "cost.usd_per_million_tokens"}) {
    const auto row = std::find_if(comparison.rows.begin(), comparison.rows.end(),
                                  [&](const ComparisonRow& each) { return each.metric == metric; });
    ASSERT_NE(row, comparison.rows.end()) << metric;
    EXPECT_GT(row->values[0], 0) << metric;
    EXPECT_TRUE(std::isinf(row->values[1])) << metric;
    EXPECT_GT(row->relative[1], 0) << metric;
  }
  EXPECT_THAT(comparison.verdict, HasSubstr("failures leave stuck no time to train"));
  EXPECT_THAT(compare_table(comparison, false, 80), HasSubstr("never"));
  const auto rows = nlohmann::json::parse(compare_json(comparison)).at("rows");
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [](const auto& each) { return each.at("metric") == "cost.usd_per_step"; });
  EXPECT_TRUE(row->at("values").at(1).is_null());
  // As the baseline it is no standard either: the other's difference to it is not finite.
  std::swap(both[0], both[1]);
  EXPECT_THAT(compare(both).verdict, HasSubstr("failures leave stuck no time to train"));
}

// A switch without a known price is not free.
TEST(Compare, PartsWithoutAPriceAreNotComparedAsFree) {
  const auto with_cost = [](Candidate each, std::optional<Interval> price) {
    each.cost.emplace();
    each.cost->bill.items = {{BomCategory::server, "server", "server", 8, exactly(100), "quote", 0},
                             {BomCategory::network_switch, "rosetta", "a switch", 4, price, "", 0}};
    each.cost->years = exactly(4);
    each.cost->electricity = each.cost->pue = exactly(1);
    return each;
  };
  const auto verdict = [&](std::optional<Interval> a, std::optional<Interval> b) {
    return of({with_cost(candidate("slingshot", 10_ms), a), with_cost(candidate("ib", 12_ms), b)}).verdict;
  };
  EXPECT_THAT(verdict(std::nullopt, exactly(50)),
              HasSubstr("costs of slingshot and ib are not compared: no price is known of rosetta"));
  EXPECT_THAT(verdict(std::nullopt, std::nullopt),
              HasSubstr("costs 20.0 % more"));  // both have as many, so they are left out
  EXPECT_THAT(verdict(exactly(50), exactly(50)), HasSubstr("costs 20.0 % more"));
}

TEST(Compare, AnotherModelIsSaidToBeOtherWork) {
  Candidate a = candidate("big", 10_ms), b = candidate("small", 4_ms);
  a.result.scenario = R"({"workload": {"model": "llama3-8b"}})";
  b.result.scenario = R"({"workload": {"model": {"use": "llama3.2-1b"}}})";
  EXPECT_THAT(of({a, b}).remarks,
              ::testing::Contains("big computes llama3-8b, small llama3.2-1b: not the same work"));
  EXPECT_THAT(of({a, a}).remarks, ::testing::Not(::testing::Contains(HasSubstr("same work"))));
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

// The table shows the first sample, +20 %. The median is +5 %, and so is the cost, since the machines cost
// the same.
TEST(Compare, AnUnusualFirstSampleIsSaidAndDoesNotDecideTheCost) {
  Candidate ib = candidate("ib", 10_ms, {10_ms, 10_ms, 10_ms, 10_ms});
  Candidate roce = candidate("roce", 12_ms, {10'500_us, 10'500_us, 10'500_us, 10'500_us});
  for (Candidate* each : {&ib, &roce}) {
    each->cost.emplace();
    each->cost->bill.items = {{BomCategory::server, "box", "box", 1, exactly(80), "quote", 0},
                              {BomCategory::network_switch, "sw", "sw", 1, exactly(20), "quote", 0}};
    each->cost->years = exactly(4);
    each->cost->electricity = each->cost->pue = exactly(1);
  }
  const Comparison comparison = of({ib, roce});
  EXPECT_THAT(comparison.verdict, HasSubstr("roce costs 5.00 % more than ib (in the median"));
  EXPECT_THAT(comparison.remarks,
              ::testing::Contains(
                  HasSubstr("roce takes +20.0 % per step there, +5.00 % in the median of 5 samples")));
}

TEST(Compare, AListPriceBesideStreetOffersIsSaid) {
  std::vector<Candidate> boxes;
  for (const char* basis : {"street", "list"}) {
    Candidate& each = boxes.emplace_back(candidate(basis, 10_ms, {10_ms, 10_ms}));
    each.cost.emplace();
    each.cost->bill.items = {{BomCategory::server, "box", "box", 1, exactly(80), "offers", 0}};
    each.cost->bill.items[0].basis = basis;
    each.cost->years = exactly(4);
    each.cost->electricity = each.cost->pue = exactly(1);
  }
  const auto said = ::testing::Contains(HasSubstr("prices of different kinds"));
  EXPECT_THAT(of(boxes).remarks, said);
  boxes[1].cost->bill.items[0].basis = "street";
  EXPECT_THAT(of(boxes).remarks, ::testing::Not(said));
}
}  // namespace topsim::report::compare_test
