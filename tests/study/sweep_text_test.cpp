#include "sim/study/sweep_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/study/sweep.hpp"
#include "sim/study/sweep_figures.hpp"

namespace topsim::study::sweep_text_test {
using nlohmann::json;
using testing::HasSubstr;

const std::size_t kStep = sweep_figure("step_seconds");

SweepRow failed(std::size_t point, std::string message) {
  SweepRow row;
  row.point = point;
  row.message = std::move(message);
  return row;
}

// Eight reasons are shown, of nine and of ten.
TEST(SweepText, ReasonsBeyondTheEighthAreCounted) {
  SweepReport report{"many", vary("run.seed=0,1,2,3,4,5,6,7,8,9"), {}, kStep, {}, true};
  for (std::size_t i = 0; i < 9; ++i) report.rows.push_back(failed(i, std::string(1, char('a' + i))));
  constexpr std::size_t kColumns = 80;
  EXPECT_THAT(sweep_table(report, 0, kColumns), HasSubstr("\n  and 1 other reason\n"));
  report.rows.push_back(failed(9, "j"));
  EXPECT_THAT(sweep_table(report, 0, kColumns), HasSubstr("\n  and 2 other reasons\n"));
}

TEST(SweepText, TheJsonSaysWhatWasAskedForWhetherItIsDoneOrNot) {
  const SweepSpace space = product(vary("workload.plan.tp=8,4"), vary("topology.fabric.link=ib-ndr"));
  SweepReport report{"grid", space, {}, kStep, {kStep}, false};
  json asked = json::parse(sweep_json(report)).at("asked");
  EXPECT_EQ(asked, json::parse(R"({"points": 2, "best": null, "pareto": null, "allow_oom": false,
      "values": {"workload.plan.tp": [8, 4], "topology.fabric.link": ["ib-ndr"]}})"));
  report.asked = {kStep, true, true};
  asked = json::parse(sweep_json(report)).at("asked");
  EXPECT_EQ(asked.at("best"), "step_seconds");
  EXPECT_EQ(asked.at("pareto"), json::parse(R"(["step_seconds"])"));
  EXPECT_EQ(asked.at("allow_oom"), true);
}

TEST(SweepText, WaitsOfTracesHaveTheNamesThatARunGivesThem) {
  SweepReport report{"ring", vary("run.seed=1"), {}, kStep, {}, true};
  const auto called = [&](const std::string& name) {
    const json document = json::parse(sweep_json(report));
    for (const json& figure : document.at("figures"))
      if (figure.at("name") == name) return figure.at("label").get<std::string>();
    return std::string("none");
  };
  report.tasks = {"pretrain"};
  EXPECT_EQ(called("idle_seconds.pipeline_transfer"), "exposed pipeline transfer");
  report.tasks = {std::string(kReplay)};
  EXPECT_EQ(called("idle_seconds.pipeline_transfer"), "exposed messages");
  EXPECT_EQ(called("step_seconds"), "step time");
}
}  // namespace topsim::study::sweep_text_test
