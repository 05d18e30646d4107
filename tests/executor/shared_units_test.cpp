// Kernels and a collective that want the same units and the same memory.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/executor/rank_state.hpp"
#include "tests/executor/small_world.hpp"

namespace topsim::executor::shared_units_test {

using namespace topsim::literals;
using program::Dimension;
using program::OpKind;

// Blocks that wait have their units just before the kernel ends.
constexpr Duration kPicosecond(1);
constexpr AcceleratorFacts kFacts{100, BytesPerSecond(1e12)};

Duration waited_for_units(const Outcome& outcome) {
  Duration waited{};
  for (const PathLeg& leg : outcome.critical_path) waited += leg.for_units ? leg.share : Duration{};
  return waited;
}

class SharedUnits : public testing::Test {
 protected:
  // An op of one kernel, and a collective of so many nanoseconds that holds 10 of 100 units and moves
  // `traffic` GB/s of 1,000. Its stream begins `late`, when the kernel runs.
  Outcome run(Duration kernel, std::int64_t collective, Duration late, float bound = 0, double traffic = 0) {
    SmallWorld world(2);
    world.memory_traffic = traffic;
    program::Op op = compute(kernel);
    op.memory_bound = bound;
    op.fills_memory = fills ? bound : 0;
    op.residual = residual;
    op.first_kernel = first;
    world.in_launch_order = in_launch_order;
    program::Op call = communicate(OpKind::collective, collective, 1);
    call.launch = late;
    call.units = units;
    late == Duration{} ? world.add_class({call, op}) : world.add_class({op, call});
    return world.run(Dimension::data, 1, kFacts, 10);
  }
  std::int16_t units = program::Op::kByChannels;
  float residual = 0.5F, first = 1;
  bool in_launch_order = true, fills = true;
};

TEST_F(SharedUnits, ACollectiveWaitsForTheKernelUnderWay) {
  // It comes at 10 us into a kernel of 100 us: half of that, then 60 us. Until 60 us the kernel runs alone,
  // then the 40 us that are left take 100 / 90 as long, 44.4: it ends before the collective.
  const Outcome outcome = run(100_us, 60'000, 10_us);
  EXPECT_EQ(outcome.step_times[0], 120_us);
  EXPECT_EQ(outcome.ranks[0].steps[0].busy, Duration(104'444'444));
  EXPECT_EQ(outcome.collectives[0].each, 60_us);
  EXPECT_EQ(outcome.ranks[0].steps[0].communication, 60_us);  // a profile sees its kernel from 60 us on
  EXPECT_EQ(waited_for_units(outcome), 50_us);                // from 10 to 60 us on the critical path
}

TEST_F(SharedUnits, WithoutAWaitWhereBlocksFindUnitsAtOnce) {
  residual = 0;
  const Outcome outcome = run(100_us, 60'000, 10_us);
  EXPECT_EQ(outcome.collectives[0].each, 60_us);
  EXPECT_EQ(waited_for_units(outcome), 0_us);
  EXPECT_EQ(run(10_us, 60'000, 5_us).step_times[0], 65_us);
}

TEST_F(SharedUnits, OfTwoThatCanStartTogetherTheOneLaunchedFirstDoesWithOneQueue) {
  // The collective is launched first and holds its units at once: 100 us of the kernel take 111.
  const Outcome outcome = run(100_us, 200'000, {});
  EXPECT_EQ(outcome.step_times[0], 200_us);
  EXPECT_EQ(outcome.ranks[0].steps[0].busy, Duration(111'111'111));
}

TEST_F(SharedUnits, ElseTheKernelDoesAndTheCollectiveWaitsForAllOfIt) {
  in_launch_order = false;
  const Outcome outcome = run(100_us, 200'000, {});
  EXPECT_EQ(outcome.step_times[0], 300_us - kPicosecond);
  EXPECT_EQ(outcome.ranks[0].steps[0].busy, 100_us);
  // The first of four kernels, then beside the others: 25 us and 75 x 10 / 9.
  first = 0.25F;
  EXPECT_EQ(run(100_us, 200'000, {}).step_times[0], 225_us);
  EXPECT_NEAR(seconds(run(100_us, 200'000, {}).ranks[0].steps[0].busy), 25e-6 + 75e-6 / 0.9, 1e-11);
}

TEST_F(SharedUnits, CopyEnginesWaitForNoUnits) {
  units = 0;
  EXPECT_EQ(run(100_us, 100'000, 10_us).step_times[0], 110_us);
}

TEST_F(SharedUnits, BesideAKernelThatFillsTheMemoryACollectiveGetsTheShareOfItsUnits) {
  // It would move 400 GB/s and gets 100, those of 10 of 100 units. So it moves a quarter of what it would:
  // beside a kernel that lasts longer 20 us become 80. The kernel has what is left of the 800 that kernels
  // reach, 1 / (1 - 100 / 800) = 8 / 7 as long.
  const Outcome outcome = run(210_us, 20'000, {}, 1, 400);
  // What it loses in the last 0.2 us that it was held back is left out, 0.6 us at this pace.
  EXPECT_NEAR(seconds(outcome.collectives[0].each), 80e-6, 0.6e-6);
  EXPECT_NEAR(seconds(outcome.ranks[0].steps[0].busy), 220e-6, 0.1e-6);  // 80 us do 70 of 210
}

TEST_F(SharedUnits, AndItsOwnPaceAgainWhenTheKernelEnds) {
  // 70 us of the kernel take 80, in which the collective moves what takes 20 us alone; 30 of its 50 are left.
  const Outcome outcome = run(70_us, 50'000, {}, 1, 400);
  EXPECT_NEAR(seconds(outcome.collectives[0].each), 110e-6, 0.6e-6);
}

TEST_F(SharedUnits, AKernelThatFillsTheMemoryForAPartOfItsTimeHoldsItBackForThat) {
  // Half of the time alone is the memory's, 8 / 7 as long, the other half shares units, 10 / 9 as long: of 1
  // it takes 0.507. The collective's pace is 1 - 0.75 x 0.507 = 0.620.
  const Outcome outcome = run(300_us, 62'000, {}, 0.5F, 400);
  const double filled = (8.0 / 7) / (8.0 / 7 + 10.0 / 9);
  EXPECT_NEAR(seconds(outcome.collectives[0].each), 62e-6 / (1 - 0.75 * filled), 0.6e-6);
}

TEST_F(SharedUnits, ACollectiveThatNeedsLessThanItsShareKeepsItsPace) {
  EXPECT_EQ(run(300_us, 60'000, {}, 1, 90).collectives[0].each, 60_us);
}

TEST_F(SharedUnits, ANormThatLeavesBandwidthHoldsNothingBackAndIsSlowedByAllThatMoves) {
  // 400 of the 800 that kernels reach: twice as long.
  fills = false;
  const Outcome outcome = run(100_us, 60'000, {}, 1, 400);
  EXPECT_EQ(outcome.collectives[0].each, 60_us);
  EXPECT_NEAR(seconds(outcome.ranks[0].steps[0].busy), 60e-6 + 70e-6, 1e-10);
}

TEST_F(SharedUnits, NobodyWaitsLongerThanTheKernelRuns) {
  // The collective comes at 90 us, when the kernel has 10 us left.
  EXPECT_EQ(run(100_us, 60'000, 90_us).step_times[0], 160_us - kPicosecond);
}

TEST_F(SharedUnits, ACollectiveOfNoBytesIsNotHeldBack) {
  EXPECT_EQ(run(100_us, 0, {}, 1, 400).step_times[0], run(100_us, 0, {}, 1, 0).step_times[0]);
}

TEST_F(SharedUnits, WhatCopyEnginesMoveIsNotAShareOfUnits) {
  // Copy engines move 300 of 1,000 GB/s, kernels reach 800: 1 / (1 - 3 / 8) as long. A ring on 10 units that
  // moves 100 as well: 1 / (1 - 4 / 8).
  program::Op copies = communicate(OpKind::collective, 1000, 1), ring = copies, kernel = compute(100_us);
  copies.units = 0;
  kernel.memory_bound = kernel.fills_memory = 1;
  fold::Activity activity;
  activity.ctas = 10;
  program::RankProgram program;
  program.ops = {kernel};
  program.dependency_begin = {0, 0};
  program.streams = {"compute"};
  const StreamTable table(program);
  Trace trace(table);
  RankState rank(program, table, kFacts, trace);
  rank.occupy(copies, activity, 1, 300'000'000'000);
  EXPECT_DOUBLE_EQ(rank.pace_of(kernel).shared, 1.6);
  rank.occupy(ring, activity, 1, 100'000'000'000);
  EXPECT_DOUBLE_EQ(rank.pace_of(kernel).shared, 2);
}

// Two ranks that compute and gather in turn, walked as one and event by event. The second step is like the
// first, so its walks are remembered.
TEST(SharedUnitsInLockStep, WalksWaitAndPayLikeEvents) {
  for (const bool in_launch_order : {false, true}) {
    std::vector<Duration> steps;
    std::vector<Duration> each;
    std::vector<std::uint64_t> events;
    for (const bool walks : {false, true}) {
      SmallWorld world(2);
      world.walks = walks;
      world.memory_traffic = 400;
      world.in_launch_order = in_launch_order;
      std::vector<program::Op> ops;
      std::vector<std::vector<std::uint32_t>> dependencies;
      for (std::uint32_t layer = 0; layer < 12; ++layer) {
        program::Op gather = communicate(OpKind::collective, 30'000 + 1'000 * layer, 1);
        program::Op kernels = compute(Duration((40 + 7 * layer % 5) * 1'000'003));
        kernels.residual = 0.3F, kernels.first_kernel = 0.4F;
        kernels.memory_bound = kernels.fills_memory = 0.1F * static_cast<float>(layer % 7);
        ops.push_back(gather);
        dependencies.emplace_back();
        ops.push_back(kernels);
        dependencies.push_back({2 * layer});
      }
      world.add_class(ops, dependencies);
      const Outcome outcome = world.run(Dimension::data, 2, kFacts, 10);
      steps.insert(steps.end(), outcome.step_times.begin(), outcome.step_times.end());
      for (const CollectiveRecord& record : outcome.collectives) each.push_back(record.each);
      steps.push_back(outcome.ranks[0].steps[1].busy);
      steps.push_back(outcome.ranks[0].steps[1].communication);
      events.push_back(outcome.events);
      EXPECT_EQ(outcome.walks > 0, walks);
      EXPECT_EQ(outcome.remembered_walks > 0, walks);
    }
    EXPECT_LT(events[1], events[0] / 2);
    const std::size_t half = steps.size() / 2;
    EXPECT_TRUE(std::equal(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(half),
                           steps.begin() + static_cast<std::ptrdiff_t>(half)));
    ASSERT_EQ(each.size(), 24U);
    EXPECT_TRUE(std::equal(each.begin(), each.begin() + 12, each.begin() + 12));
  }
}
}  // namespace topsim::executor::shared_units_test
