#include "sim/study/sweep_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "sim/base/error.hpp"
#include "sim/study/sweep_figures.hpp"
#include "sim/study/sweep_text.hpp"

namespace topsim::study::sweep_choice_test {
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::size_t kStep = sweep_figure("step_seconds");
const std::size_t kMemory = sweep_figure("memory_bytes");
const std::size_t kMfu = sweep_figure("mfu");

SweepRow row(double step, double memory, double mfu = 0.5) {
  SweepRow made;
  made.ok = true;
  made.figures.resize(sweep_figures().size());
  made.figures[kStep] = step;
  made.figures[kMemory] = memory;
  made.figures[kMfu] = mfu;
  return made;
}

TEST(SweepChoice, RanksByTheFiguresOwnDirectionAndLeavesOutWhatHasNone) {
  std::vector<SweepRow> rows{row(2, 1, 0.3), row(1, 1, 0.5), SweepRow{}, row(3, 1, 0.5)};
  EXPECT_THAT(ranked(rows, kStep), ElementsAre(1, 0, 3));
  EXPECT_THAT(ranked(rows, kMfu), ElementsAre(1, 3, 0));  // equal ones in their order
  rows[3].figures[kMfu].reset();
  EXPECT_THAT(ranked(rows, kMfu), ElementsAre(1, 0));
}

// The fastest one has InfiniBand's cables in an Ethernet switch.
TEST(SweepChoice, WhatCannotBeBuiltIsNeitherBestNorInTheParetoSet) {
  std::vector<SweepRow> rows{row(1, 1), row(2, 2), row(3, 1)};
  rows[0].message = "NVIDIA SN5600 has no ports for NDR; it is simulated as if it had";
  EXPECT_THAT(ranked(rows, kStep), ElementsAre(1, 2, 0));
  EXPECT_THAT(pareto(rows, std::vector{kStep, kMemory}), ElementsAre(1, 2));
}

// 104 of 80 bytes are too much: the fastest one cannot run, and the best of the others is the slower one.
TEST(SweepChoice, WhatDoesNotFitTheMemoryIsBestOnlyWhereNothingFits) {
  std::vector<SweepRow> rows{row(1, 104), row(3, 80), row(2, 120)};
  for (SweepRow& each : rows) each.figures[sweep_figure("memory_usable_bytes")] = 80;
  EXPECT_FALSE(fits_memory(rows[0]));
  EXPECT_TRUE(fits_memory(rows[1]));  // to the last byte
  EXPECT_THAT(ranked(rows, kStep), ElementsAre(1, 0, 2));
  EXPECT_THAT(pareto(rows, std::vector{kStep, kMemory}), ElementsAre(1));
  rows.erase(rows.begin() + 1);
  EXPECT_THAT(ranked(rows, kStep), ElementsAre(0, 1));
  EXPECT_THAT(pareto(rows, std::vector{kStep, kMemory}), ElementsAre(0));
}

TEST(SweepChoice, ItsTextsSayWhatDoesNotFit) {
  SweepReport report;
  report.scenario = "two";
  report.space = SweepSpace{{"workload.plan.tp"}, {{"4"}, {"8"}}};
  report.rows = {row(1, 104), row(3, 80)};
  for (std::size_t i = 0; i < 2; ++i) {
    report.rows[i].point = i;
    report.rows[i].figures[sweep_figure("memory_usable_bytes")] = 80;
  }
  report.by = kStep;
  report.pareto_figures = {kStep};
  const std::string table = sweep_table(report, 0, 200);
  EXPECT_THAT(table, testing::HasSubstr("* best step_seconds of those that fit"));
  EXPECT_THAT(table, testing::HasSubstr("x does not fit the memory"));
  EXPECT_THAT(sweep_json(report), testing::HasSubstr("\"fits\": false"));
  EXPECT_THAT(sweep_csv(report), testing::HasSubstr("0,4,ok,,false,,1.0"));
  report.rows.pop_back();
  report.space.points.pop_back();
  EXPECT_THAT(sweep_table(report, 0, 200), testing::HasSubstr("best step_seconds, though no point fits"));
}

TEST(SweepChoice, TheParetoSetHoldsWhatNothingBeats) {
  // (step, memory): (1, 3) and (3, 1) are the ends, (2, 2) lies between, (3, 3) is beaten, the second (2, 2)
  // is equal.
  const std::vector<SweepRow> rows{row(1, 3), row(3, 1), row(2, 2), row(3, 3), row(2, 2)};
  EXPECT_THAT(pareto(rows, std::vector{kStep, kMemory}), ElementsAre(0, 1, 2, 4));
  EXPECT_THAT(pareto(rows, std::vector{kStep}), ElementsAre(0));
  EXPECT_THAT(pareto({}, std::vector{kStep}), IsEmpty());
}

// 80 of 100 bytes leave room, 95 are nearly all: only then is less memory an advantage.
TEST(SweepChoice, MemoryIsNoMeritWhereEveryPointHasRoom) {
  std::vector<SweepRow> rows{row(1, 80), row(2, 40)};
  for (SweepRow& each : rows) each.figures[sweep_figure("memory_capacity_bytes")] = 100;
  EXPECT_THAT(usual_pareto_figures(rows), ::testing::Not(::testing::Contains(kMemory)));
  rows[0].figures[kMemory] = 95;
  EXPECT_THAT(usual_pareto_figures(rows), ::testing::Contains(kMemory));
}

TEST(SweepChoice, TheParetoSetIsWhatItsDefinitionSaysOfRandomRows) {
  std::mt19937 generator(7);
  const auto random = [&] { return static_cast<double>(generator() % 8); };
  std::vector<SweepRow> rows;
  for (int i = 0; i < 200; ++i) rows.push_back(row(random(), random(), random()));
  const std::vector<std::size_t> figures{kStep, kMemory, kMfu};
  std::vector<std::size_t> expected;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    bool beaten = false;
    for (const SweepRow& other : rows) {
      const auto& a = other.figures;
      const auto& b = rows[i].figures;
      const bool no_worse = *a[kStep] <= *b[kStep] && *a[kMemory] <= *b[kMemory] && *a[kMfu] >= *b[kMfu];
      const bool better = *a[kStep] < *b[kStep] || *a[kMemory] < *b[kMemory] || *a[kMfu] > *b[kMfu];
      beaten = beaten || (no_worse && better);
    }
    if (!beaten) expected.push_back(i);
  }
  EXPECT_EQ(pareto(rows, figures), expected);
}

TEST(SweepChoice, AnUnknownFigureGetsTheClosest) {
  try {
    (void)sweep_figure("step_second");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.problems().front().help, testing::HasSubstr("did you mean step_seconds?"));
  }
  EXPECT_EQ(sweep_figure("step_time"), kStep);
}

TEST(SweepChoice, KeysOfTheResultNameTheirFigures) {
  EXPECT_EQ(sweep_figure("step.seconds"), kStep);
  EXPECT_EQ(sweep_figure("memory.per_accelerator_bytes"), kMemory);
  EXPECT_EQ(sweep_figure("throughput.mfu"), kMfu);
  EXPECT_EQ(sweep_figure("accelerators.idle_seconds.host"), sweep_figure("idle_seconds.host"));
  EXPECT_EQ(sweep_figure("accelerators.count"), sweep_figure("accelerators"));
  EXPECT_THROW((void)sweep_figure("throughput.seconds"), ConfigError);
}

TEST(SweepChoice, FiguresAreCalledAsAComparisonCallsThem) {
  for (const SweepFigure& figure : sweep_figures()) {
    EXPECT_NE(figure.label, "") << figure.name;
    EXPECT_NE(figure.meaning, "") << figure.name;
    for (const std::string& metric : {figure.key, "cost." + figure.name}) {
      const std::string label = report::metric_label(metric);
      EXPECT_TRUE(label == metric || label == figure.label) << figure.name << " is " << label;
    }
  }
}

TEST(SweepChoice, TheJsonSaysWhatItsFiguresAre) {
  const std::string json = sweep_json({"a", vary("run.seed=1"), {}, kStep, {}, true});
  EXPECT_THAT(json, HasSubstr(R"(
   "label": "accelerator busy",
   "main": false,
   "meaning": "of one accelerator, a step",
   "more_is_better": true,
   "name": "busy_seconds",
   "unit": "s"
)"));
}
}  // namespace topsim::study::sweep_choice_test
