#include "sim/study/sweep_session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "sim/scenario/read/read.hpp"
#include "tests/study/two_boxes.hpp"

namespace topsim::study::sweep_session_test {
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kPlan = R"(workload.plan={"dp": 2, "micro_batch": 1, "global_batch": 8})";

SweepRequest request(SweepSpace space, std::vector<std::string> settings = {}) {
  SweepRequest made;
  made.space = std::move(space);
  made.read = [settings](std::span<const std::string> assignments) {
    std::vector<std::string> all = settings;
    all.insert(all.end(), assignments.begin(), assignments.end());
    scenario::Scenario scenario =
        scenario::parse_scenario(kTwoBoxes, "typed", all, config::Library({"configs"}));
    scenario.name = "two boxes";
    return scenario;
  };
  made.settings = std::move(settings);
  return made;
}

std::string refusal(SweepRequest asked) {
  try {
    const SweepSession session(std::move(asked));
    return {};
  } catch (const ConfigError& error) {
    return error.problems().front().message;
  }
}

TEST(SweepSession, APathThatIsSetAndVariedIsRefused) {
  EXPECT_THAT(refusal(request(vary("run.seed=1,2"), {"run.seed=7"})), HasSubstr("run.seed is varied"));
  EXPECT_THAT(refusal(request(vary("topology.fabric.link=ib-ndr,ib-hdr"),
                              {R"(topology.fabric.link.latency="700 ns")"})),
              HasSubstr("topology.fabric.link is varied as a whole"));
}

// What a setting gives beside the varied path still counts, and a longer name is another key.
TEST(SweepSession, APathBelowOneThatIsSetMayVary) {
  EXPECT_EQ(refusal(request(vary("workload.plan.tp=4,8"), {kPlan})), "");
  EXPECT_EQ(refusal(request(vary("run.step=1"), {"run.steps=1"})).find("has no effect"), std::string::npos);
}

TEST(SweepSession, FiguresThatDoNotExistAreRefusedBeforeTheScenarioIsRead) {
  SweepRequest asked = request(vary("run.seed=1"));
  asked.read = [](std::span<const std::string>) -> scenario::Scenario { throw InternalError("it was read"); };
  asked.best = "step_second";
  EXPECT_THAT(refusal(asked), HasSubstr("step_second"));
  asked.best.clear();
  asked.pareto = {"mfu", "speed"};
  EXPECT_THAT(refusal(asked), HasSubstr("speed"));
}

TEST(SweepSession, ItsReportIsNamedAsARunOfItsScenario) {
  SweepSession session(request(vary("run.seed=1,2"), {"run.steps=2"}));
  EXPECT_FALSE(session.dp_follows());
  SweepProgress progress;
  session.run(1, progress);
  const SweepReport report = session.report();
  EXPECT_EQ(report.scenario, "two boxes");
  EXPECT_EQ(report.settings, std::vector<std::string>{"run.steps=2"});
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(report.rows.size(), 2u);
}

// Where the task is varied, its values that can be read; a file's own otherwise.
TEST(SweepSession, ItsReportSaysWhatAStepOfThePointsIs) {
  using Tasks = std::set<std::string>;
  EXPECT_EQ(SweepSession(request(vary("run.seed=1,2"))).report().tasks, Tasks{"pretrain"});
  const SweepSession several(request(vary("workload.task=decode,finetune"), {"workload.sequence=1024"}));
  EXPECT_EQ(several.report().tasks, (Tasks{"decode", "finetune"}));
}

TEST(SweepSession, ItsReportSaysWhatWasAskedFor) {
  SweepRequest asked = request(vary("run.seed=1,2"));
  EXPECT_FALSE(SweepSession(asked).report().asked.best);
  EXPECT_FALSE(SweepSession(asked).report().asked.pareto);
  asked.best = "mfu";
  asked.pareto = {"mfu"};
  asked.allow_oom = true;
  const SweepReport report = SweepSession(asked).report();
  EXPECT_TRUE(report.asked.best && report.asked.pareto && report.asked.allow_oom);
}

// tp 4 on 16 accelerators would leave dp 4; with dp 2 the plan has 8.
TEST(SweepSession, DataParallelismWithinAnObjectThatIsSetIsKept) {
  SweepSession session(request(vary("workload.plan.tp=4,8"), {kPlan}));
  EXPECT_FALSE(session.dp_follows());
  SweepProgress progress;
  session.run(2, progress);
  const std::vector<SweepRow> rows = session.report().rows;
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_FALSE(rows[0].ok);
  EXPECT_THAT(rows[0].message, HasSubstr("8 accelerators"));
  EXPECT_TRUE(rows[1].ok) << rows[1].message;
  EXPECT_TRUE(SweepSession(request(vary("workload.plan.tp=4,8"))).dp_follows());
}

TEST(SweepSession, RowsThatOthersComputeAreThoseOfARunHere) {
  const SweepSpace space = vary("run.seed=1,2");
  SweepSession here(request(space)), elsewhere(request(space));
  SweepProgress progress;
  here.run(1, progress);
  EXPECT_FALSE(elsewhere.report().complete);
  const std::vector<std::size_t> missing = elsewhere.claim_missing();
  EXPECT_THAT(missing, ElementsAre(0, 1));
  for (const std::size_t point : missing) {
    SweepRow row;
    executor::Progress running;
    ASSERT_TRUE(elsewhere.compute(point, row, running));
    EXPECT_EQ(row.key, elsewhere.key(point));
    elsewhere.add(row);
  }
  EXPECT_THAT(elsewhere.claim_missing(), IsEmpty());
  EXPECT_EQ(sweep_json(elsewhere.report()), sweep_json(here.report()));
}
}  // namespace topsim::study::sweep_session_test
