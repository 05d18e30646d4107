#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/base/error.hpp"
#include "sim/report/csv.hpp"
#include "sim/report/json.hpp"
#include "sim/report/member.hpp"
#include "sim/report/si.hpp"
#include "tests/report/sample.hpp"

namespace topsim::report::result_test {
using namespace topsim::testing;

TEST(Result, BusyAndIdleSumToTheStepOfEveryRankAndOfTheMean) {
  const Result result = sample_result();
  EXPECT_EQ(result.step, 10_ms);
  EXPECT_EQ(result.account.total(), result.step);
  for (const RankRow& row : result.ranks) EXPECT_EQ(row.account.total(), result.step) << row.device;
  EXPECT_EQ(result.account.busy, Duration(5'500'000'000));  // mean of both ranks, 6 and 5 ms
}

TEST(Result, UtilisationIsBytesOverCapacityTimesMeasuredTime) {
  const Result result = sample_result();
  ASSERT_EQ(result.links.size(), 2U);
  // Most utilised first: 0.5 GB in 20 ms on 25 GB/s, then on 50 GB/s.
  EXPECT_EQ(result.links[0].id, "leaf0 -> spine0");
  EXPECT_DOUBLE_EQ(result.links[0].utilization, 1.0);
  EXPECT_EQ(result.links[0].count, 2U);
  EXPECT_DOUBLE_EQ(result.links[1].utilization, 0.5);
  EXPECT_DOUBLE_EQ(result.links[1].peak_utilization, 1.0);
}

TEST(Result, BusBandwidthIsBytesTimesFactorOverTheMeanCall) {
  const Result result = sample_result();
  ASSERT_EQ(result.collectives.size(), 1U);
  EXPECT_EQ(result.collectives[0].each, 4_ms);  // two calls in 8 ms
  EXPECT_DOUBLE_EQ(result.collectives[0].bus_bandwidth, 0x1p27 / 4e-3);
  EXPECT_EQ(result.collectives[0].group, "data");
}

TEST(Result, CriticalPathIsSummedByOpAndByLimitingLink) {
  const Result result = sample_result();
  ASSERT_EQ(result.critical_path.size(), 2U);
  EXPECT_EQ(result.critical_path[0].what, "layer forward");
  EXPECT_DOUBLE_EQ(result.critical_path[0].share, 0.6);
  EXPECT_EQ(result.critical_path_links[1].what, "NDR 400 Gbit/s");
  EXPECT_EQ(result.critical_path_links[1].time, 8_ms);
}

TEST(ResultJson, WhatCommunicationCostsKernelsIsAPartOfTheBusyTime) {
  const topology::Topology topology = two_nodes();
  executor::Outcome outcome = two_steps(topology);
  for (executor::StepAccount& step : outcome.ranks[0].steps)
    step.slowed = step.hidden_communication = 1_ms, step.communication = 3_ms;
  const Result result = make_result(facts(), topology, two_ranks(), memory(), outcome);
  EXPECT_EQ(result.account.total(), result.step);  // it adds nothing to the sum
  const nlohmann::json document = nlohmann::json::parse(to_json(result));
  EXPECT_EQ(document["accelerators"]["slowed_seconds"], 5e-4);  // 1 ms of one rank of two
  EXPECT_EQ(document["ranks"][0]["slowed_seconds"], 1e-3);
  EXPECT_EQ(document["accelerators"]["communication_seconds"], 1.5e-3);
  EXPECT_EQ(document["ranks"][0]["hidden_communication_seconds"], 1e-3);
  EXPECT_EQ(to_json(result_from_json(document.dump(1) + '\n', "result.json")), to_json(result));
}

TEST(ResultJson, ReadsBackToTheSameBytes) {
  const std::string text = to_json(sample_result());
  EXPECT_EQ(to_json(result_from_json(text, "result.json")), text);
}

// Rows are written as text directly: order of members, line breaks, digits and escapes must be those of the
// library that writes the rest.
TEST(ResultJson, RowsAreWrittenAsTheLibraryWritesThem) {
  const auto as_library = [](const std::string& text) { return nlohmann::json::parse(text).dump(1) + '\n'; };
  Result result = sample_result();
  ASSERT_FALSE(result.ranks.empty());
  result.ranks[0].device = "rack \"A\"\\gpu0\n \"links\": null";
  result.ranks[0].program = "\xc3\xa9tage\x01";
  result.links[0].capacity = 1e300, result.links[0].utilization = 1.0 / 3,
  result.links[0].peak_utilization = 0;
  const std::string text = to_json(result);
  EXPECT_EQ(as_library(text), text);
  EXPECT_NE(text.find("\n   \"capacity\": 1e+300,\n"), std::string::npos);
  const Members members{1, {{result.ranks[0], 7}}, {{result.links[0], 2}, {result.links[1], 1}}};
  EXPECT_EQ(as_library(to_json(members)), to_json(members));
  result.ranks.clear(), result.links.clear();
  EXPECT_EQ(as_library(to_json(result)), to_json(result));
}

TEST(ResultJson, WholePicosecondsPrintAsTheirOwnDecimals) {
  Result result = sample_result();
  result.step = Duration(1234567890123);
  EXPECT_NE(to_json(result).find("\"seconds\": 1.234567890123\n"), std::string::npos);
  EXPECT_EQ(result_from_json(to_json(result), "r").step, Duration(1234567890123));
}

TEST(ResultJson, BytesOfLinksAreWholeNumbers) {
  // Half of 1 GB and a third of a byte, as the flow model's shares of a link come out.
  const topology::Topology topology = two_nodes();
  executor::Outcome outcome = two_steps(topology);
  outcome.links.front().bytes = 0.5e9 + 1.0 / 3;
  const Result result = make_result(facts(), topology, two_ranks(), memory(), outcome);
  EXPECT_NE(to_json(result).find("\"bytes\": 500000000,"), std::string::npos);
  EXPECT_NE(links_csv(result).find(",500000000,"), std::string::npos);
}

TEST(ResultJson, HoldsNothingMeasuredAboutTheRunItself) {
  const topology::Topology topology = two_nodes();
  executor::Outcome outcome = two_steps(topology);
  const std::string once = to_json(make_result(facts(), topology, two_ranks(), memory(), outcome));
  outcome.events = 999;
  outcome.group_classes = 7;
  EXPECT_EQ(to_json(make_result(facts(), topology, two_ranks(), memory(), outcome)), once);
}

TEST(ResultJson, WithoutAStepIsRefusedWhereOneIsNeeded) {
  Result result = sample_result();
  EXPECT_NO_THROW(require_step(result, "x.json"));
  result.step = {}, result.complete = false;
  try {
    require_step(result, "x.json");
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.problems()[0].message,
              "x.json has no step to compare or explain yet: its run was stopped before one ended");
    EXPECT_EQ(error.problems()[0].help, "run it again, to its end: topsim run SCENARIO --out DIR");
  }
  result.step = Duration(-1), result.complete = true;
  EXPECT_THROW(require_step(result, "x.json"), ConfigError);
}

TEST(ResultCsv, SaysThatARunWasStoppedAndHasNoFiguresOfAStepThatDidNotEnd) {
  Result result = sample_result();
  EXPECT_NE(summary_csv(result).find(",complete,1\n"), std::string::npos);
  result.step = {}, result.complete = false;
  const std::string text = summary_csv(result);
  EXPECT_NE(text.find(",complete,0\n"), std::string::npos);
  EXPECT_NE(text.find(",step.seconds,\n"), std::string::npos);
  EXPECT_NE(text.find(",accelerators.idle_seconds.host,\n"), std::string::npos);
  EXPECT_NE(text.find(fmt::format(",accelerators.count,{}\n", result.accelerators)), std::string::npos);
}

TEST(ResultCsv, HasTheFiguresOfTheResultUnderTheirKeys) {
  const Result result = sample_result();
  const std::string text = summary_csv(result);
  const double idle = si(result.account.idle_total()) / si(result.step);
  for (const std::string& line :
       {fmt::format("accelerators.idle_fraction,{}", idle),
        fmt::format("memory.fits,{}", result.memory.fits ? 1 : 0),
        fmt::format("memory.capacity_bytes,{}", static_cast<double>(result.memory.capacity.value())),
        fmt::format("throughput.tokens_per_second_per_accelerator,{}",
                    result.throughput.tokens_per_second_per_accelerator)})
    EXPECT_NE(text.find(',' + line + '\n'), std::string::npos) << line << '\n' << text;
}

TEST(ResultJson, WhatIsNoResultIsRefusedWithARemedy) {
  for (const char* text :
       {"", "[]", "{}", R"({"format":"topsim.result/2"})", R"({"format":"topsim.result/1"})"}) {
    try {
      (void)result_from_json(text, "x.json");
      ADD_FAILURE() << "accepted: " << text;
    } catch (const ConfigError& error) {
      EXPECT_NE(error.problems()[0].message.find("x.json"), std::string::npos) << text;
      EXPECT_FALSE(error.problems()[0].help.empty()) << text;
    }
  }
}
}  // namespace topsim::report::result_test
