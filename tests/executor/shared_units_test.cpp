// Kernels and a collective that want the same units and the same memory.
#include <gtest/gtest.h>

#include "tests/executor/small_world.hpp"

namespace topsim::executor::shared_units_test {

using namespace topsim::literals;
using program::Dimension;
using program::OpKind;

constexpr AcceleratorFacts kFacts{100, BytesPerSecond(1e12)};

class SharedUnits : public testing::Test {
 protected:
  // An op of one kernel, and a collective of so many nanoseconds that holds 10 of 100 units and moves
  // `traffic` GB/s of 1,000. Its stream begins `late`, when the kernel runs.
  Outcome run(Duration kernel, std::int64_t collective, Duration late, float bound = 0, double traffic = 0) {
    SmallWorld world(2);
    world.memory_traffic = traffic;
    program::Op op = compute(kernel);
    op.memory_bound = bound;
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
  bool in_launch_order = true;
};

TEST_F(SharedUnits, ACollectiveWaitsForTheKernelUnderWay) {
  // It comes at 10 us into a kernel of 100 us: half of that, then 60 us. Until 60 us the kernel runs alone,
  // then the 40 us that are left take 100 / 90 as long, 44.4: it ends before the collective.
  const Outcome outcome = run(100_us, 60'000, 10_us);
  EXPECT_EQ(outcome.step_times[0], 120_us);
  EXPECT_EQ(outcome.ranks[0].steps[0].busy, Duration(104'444'444));
  EXPECT_EQ(outcome.collectives[0].each, 60_us);
  EXPECT_EQ(outcome.ranks[0].steps[0].communication, 60_us);  // a profile sees its kernel from 60 us on
}

TEST_F(SharedUnits, WithoutAWaitWhereBlocksFindUnitsAtOnce) {
  residual = 0;
  EXPECT_EQ(run(100_us, 60'000, 10_us).collectives[0].each, 60_us);
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
  EXPECT_EQ(outcome.step_times[0], 300_us);
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
  EXPECT_NEAR(seconds(outcome.collectives[0].each), 80e-6, 0.2e-6);
  EXPECT_NEAR(seconds(outcome.ranks[0].steps[0].busy), 220e-6, 0.1e-6);  // 80 us do 70 of 210
}

TEST_F(SharedUnits, AndItsOwnPaceAgainWhenTheKernelEnds) {
  // 70 us of the kernel take 80, in which the collective moves what takes 20 us alone; 30 of its 50 are left.
  const Outcome outcome = run(70_us, 50'000, {}, 1, 400);
  EXPECT_NEAR(seconds(outcome.collectives[0].each), 110e-6, 0.2e-6);
}

TEST_F(SharedUnits, AKernelThatFillsTheMemoryForAPartOfItsTimeHoldsItBackForThat) {
  // Half of the time alone is the memory's, 8 / 7 as long, the other half shares units, 10 / 9 as long: of 1
  // it takes 0.507. The collective's pace is 1 - 0.75 x 0.507 = 0.620.
  const Outcome outcome = run(300_us, 62'000, {}, 0.5F, 400);
  const double fills = (8.0 / 7) / (8.0 / 7 + 10.0 / 9);
  EXPECT_NEAR(seconds(outcome.collectives[0].each), 62e-6 / (1 - 0.75 * fills), 0.2e-6);
}

TEST_F(SharedUnits, ACollectiveThatNeedsLessThanItsShareKeepsItsPace) {
  EXPECT_EQ(run(300_us, 60'000, {}, 1, 90).collectives[0].each, 60_us);
}
}  // namespace topsim::executor::shared_units_test
