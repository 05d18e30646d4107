// What comparisons say of dollars.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/report/compare.hpp"
#include "tests/report/candidates.hpp"

namespace topsim::report::compare_cost_test {
using namespace topsim::testing;
using ::testing::HasSubstr;
using ::testing::Not;

Interval exactly(double value) {
  return {value, value, value};
}

// Dollars per step and per token differ by the same share, up to rounding. Their order must not depend on it.
TEST(CompareCost, RowsOfOneEffectKeepTheirOrder) {
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

TEST(CompareCost, CostNamesTheBreakEvenPriceOfTheFabric) {
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

// A server for 80 and a switch for 20.
void give_a_bill_of_100(Candidate& candidate) {
  candidate.cost.emplace();
  candidate.cost->bill.items = {{BomCategory::server, "box", "box", 1, exactly(80), "quote", 0},
                                {BomCategory::network_switch, "sw", "sw", 1, exactly(20), "quote", 0}};
  candidate.cost->years = exactly(4);
  candidate.cost->electricity = candidate.cost->pue = exactly(1);
}

// What models do not resolve of a step is no reason to pay more or less for it.
TEST(CompareCost, ATimeBeneathTheResolutionIsNoCost) {
  Candidate ib = candidate("ib", 10'000_us, {10'000_us, 10'000_us});
  Candidate roce = candidate("roce", 10'025_us, {10'025_us, 10'025_us});  // +0.25 %
  for (Candidate* each : {&ib, &roce}) give_a_bill_of_100(*each);
  const Comparison alike = of({ib, roce});
  EXPECT_THAT(alike.verdict, HasSubstr("no significant difference between ib and roce"));
  EXPECT_THAT(alike.verdict, HasSubstr("ib and roce cost the same per token"));
  EXPECT_THAT(alike.verdict, Not(HasSubstr("wins if")));
  // 90 against 100: 10 % less, whatever the 0.25 %; with them it would be 9.78 %.
  roce.cost->bill.items[1].price = exactly(10);
  EXPECT_THAT(of({ib, roce}).verdict, HasSubstr("cost per token: roce costs 10.0 % less than ib"));
  EXPECT_THAT(of({ib, roce}).verdict, HasSubstr("the token's +0.25 % not counted"));
}

// Of a run of 1e12 tokens; steps that are 0.25 % apart are alike, but what was asked for is shown.
TEST(CompareCost, TheCostOfARunIsShownWhereTokensAreGiven) {
  Candidate ib = candidate("ib", 10'000_us), roce = candidate("roce", 10'025_us);
  const auto shown = [&] {
    std::vector<std::string> metrics;
    const Comparison comparison = of({ib, roce});
    for (const ComparisonRow* row : rows_that_differ(comparison)) metrics.push_back(row->metric);
    return metrics;
  };
  for (Candidate* each : {&ib, &roce}) give_a_bill_of_100(*each);
  EXPECT_THAT(shown(), ::testing::ElementsAre("step.seconds"));
  ib.cost->tokens = roce.cost->tokens = 1e12;
  EXPECT_THAT(shown(), ::testing::UnorderedElementsAre("step.seconds", "cost.usd_per_run"));
}

// A job that never trains is not cheap: its step time with failures and its dollars are infinite.
TEST(CompareCost, WhatNeverTrainsIsNotFree) {
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
TEST(CompareCost, PartsWithoutAPriceAreNotComparedAsFree) {
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

// Another machine's price says nothing of a server's cost, and accelerators that stand for their servers cost
// less than servers.
TEST(CompareCost, ServersWithoutAPriceOfTheirOwnAreNotCompared) {
  const auto with = [](Candidate each, BomItem item) {
    each.cost.emplace();
    each.cost->bill.items = {std::move(item)};
    each.cost->years = exactly(4);
    each.cost->electricity = each.cost->pue = exactly(1);
    return each;
  };
  const BomItem own{BomCategory::server, "h200", "server", 8, exactly(100), "quote", 0};
  BomItem lent = own, chips = own;
  lent.id = "mi355x-8", lent.priced_as = "mi300x-8";
  chips.category = BomCategory::accelerator, chips.id = "l40s";
  for (const auto& [other, missing] : {std::pair(lent, "mi355x-8"), {chips, "servers of l40s"}}) {
    const Comparison comparison = of({with(candidate("a", 10_ms), own), with(candidate("b", 12_ms), other)});
    EXPECT_THAT(comparison.verdict,
                HasSubstr(std::string("costs of a and b are not compared: no price is known of ") + missing));
    EXPECT_TRUE(std::none_of(comparison.rows.begin(), comparison.rows.end(),
                             [](const auto& row) { return row.metric == "cost.capital_usd"; }));
  }
}

// A cluster of eight servers with NICs of 10 in each and switches for 50, and the same as a file, which names
// no servers: 64 NICs count beside the switches, 50 + 64 x 10 = 690, which is no other fabric.
TEST(CompareCost, AFabricWithTheNicsIsNotComparedWithOneWhoseServersHoldThem) {
  const auto with = [](Candidate each, bool servers) {
    each.cost.emplace();
    each.cost->bill.items = {{BomCategory::network_switch, "switch", "switch", 1, exactly(50), "quote", 100},
                             {BomCategory::nic, "nic", "nic", 64, exactly(10), "quote", 20}};
    each.cost->bill.items.back().included = servers;
    each.cost->bill.items.push_back({servers ? BomCategory::server : BomCategory::accelerator, "h100", "h100",
                                     8, exactly(100), "quote", servers ? 1000.0 : 700.0});
    each.cost->years = exactly(4);
    each.cost->electricity = each.cost->pue = exactly(1);
    return each;
  };
  const auto metrics = [](const Comparison& comparison) {
    std::set<std::string> names;
    for (const ComparisonRow& row : comparison.rows) names.insert(row.metric);
    return names;
  };
  const Candidate servers = with(candidate("recipe", 10_ms), true),
                  file = with(candidate("file", 10_ms), false);
  const Comparison apart = of({servers, file}), alike = of({file, file});
  EXPECT_THAT(metrics(apart), ::testing::Not(::testing::Contains(HasSubstr("cost."))));
  EXPECT_THAT(
      apart.remarks,
      ::testing::Contains("price of the fabric and power of recipe and file are not compared: recipe's "
                          "servers contain NICs and hosts, and file's are not known"));
  EXPECT_THAT(of({file, servers}).remarks, ::testing::Contains(HasSubstr("file's are not known")));
  EXPECT_THAT(metrics(alike), ::testing::IsSupersetOf({"cost.fabric_usd", "cost.watts"}));
  EXPECT_THAT(alike.remarks, ::testing::Not(::testing::Contains(HasSubstr("not compared"))));
  for (const ComparisonRow& row : alike.rows) {
    if (row.metric == "cost.fabric_usd") {
      EXPECT_DOUBLE_EQ(row.values[1], 690);
    }
  }
}

// The table shows the first sample, +20 %. The median is +5 %, and so is the cost, since the machines cost
// the same.
TEST(CompareCost, AnUnusualFirstSampleIsSaidAndDoesNotDecideTheCost) {
  Candidate ib = candidate("ib", 10_ms, {10_ms, 10_ms, 10_ms, 10_ms});
  Candidate roce = candidate("roce", 12_ms, {10'500_us, 10'500_us, 10'500_us, 10'500_us});
  for (Candidate* each : {&ib, &roce}) give_a_bill_of_100(*each);
  const Comparison comparison = of({ib, roce});
  EXPECT_THAT(comparison.verdict, HasSubstr("roce costs 5.00 % more than ib (in the median"));
  EXPECT_THAT(comparison.remarks,
              ::testing::Contains(
                  HasSubstr("roce takes +20.0 % per step there, +5.00 % in the median of 5 samples")));
}

TEST(CompareCost, AListPriceBesideStreetOffersIsSaid) {
  std::vector<Candidate> boxes;
  for (const PriceBasis basis : {PriceBasis::street, PriceBasis::list}) {
    Candidate& each = boxes.emplace_back(candidate(std::string(name_of(basis)), 10_ms, {10_ms, 10_ms}));
    each.cost.emplace();
    each.cost->bill.items = {{BomCategory::server, "box", "box", 1, exactly(80), "offers", 0}};
    each.cost->bill.items[0].basis = basis;
    each.cost->years = exactly(4);
    each.cost->electricity = each.cost->pue = exactly(1);
  }
  const auto said = ::testing::Contains(HasSubstr("prices of different kinds"));
  EXPECT_THAT(of(boxes).remarks, said);
  boxes[1].cost->bill.items[0].basis = PriceBasis::street;
  EXPECT_THAT(of(boxes).remarks, ::testing::Not(said));
}
}  // namespace topsim::report::compare_cost_test
