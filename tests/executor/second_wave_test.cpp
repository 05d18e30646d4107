// Matrix products beside a collective that holds 24 of 132 SMs: min(2 T, t + T) for a persistent grid that
// meets one of t, waves on the SMs that are left for others.
#include <gtest/gtest.h>

#include "tests/executor/small_world.hpp"

namespace topsim::executor::second_wave_test {

using namespace topsim::literals;
using program::Dimension;
using program::OpKind;

// 24 units are the third entry of a table; the others would show.
constexpr program::Grids::PerStep third(float value) {
  return {9, 9, value, 9};
}

class SecondWave : public testing::Test {
 protected:
  StepAccount last;  // of the run that was asked for last

  // How long one op computes beside a collective of so many nanoseconds that both ranks launch after `late`.
  Duration busy(const program::Grids& grids, Duration work, std::int64_t collective, Duration late = {}) {
    SmallWorld world(2);
    world.grids = {grids};
    program::Op op = compute(work);
    op.grids = 1;
    program::Op call = communicate(OpKind::collective, collective, 1);
    call.launch = late;
    call.units = units;
    if (pace != 1) world.pace_changes = {{SimTime{}, RankId(0), pace}, {SimTime{}, RankId(1), pace}};
    // The host launches in program order: what is not to wait for the collective's launch comes before it.
    late == Duration{} ? world.add_class({call, op}) : world.add_class({op, call});
    const Outcome outcome = world.run(Dimension::data, 1, {132, BytesPerSecond(1e12)}, 24);
    last = outcome.ranks[0].steps[0];
    return last.busy;
  }
  std::int16_t units = program::Op::kByChannels;
  double pace = 1;  // of both ranks, from the start
  // Every block has as many tiles as any: the left-over ones take as long as the others.
  program::Grids one{0, {}, 1, third(1), 1};
};

TEST_F(SecondWave, BlocksThatFoundNoUnitStartWhenTheOthersEnd) {
  EXPECT_EQ(busy(one, 100_us, 150'000), 200_us);
  EXPECT_EQ(busy(one, 100_us, 300'000), 200_us);
}

TEST_F(SecondWave, OrWhenTheCommunicationEnds) {
  EXPECT_EQ(busy(one, 100_us, 50'000), 150_us);
}

TEST_F(SecondWave, WhatCommunicationCostsIsToldOfTheBusyTime) {
  // 100 us alone; 200 beside 150 us of a collective, 150 beside 50; alone nothing is lost.
  busy(one, 100_us, 150'000);
  EXPECT_EQ(last.slowed, 100_us);
  busy(one, 100_us, 50'000);
  EXPECT_EQ(last.slowed, 50_us);
  busy(one, 100_us, 150'000, 30_us);
  EXPECT_EQ(last.slowed, 0_us);
}

TEST_F(SecondWave, IsToldApartFromASlowAccelerator) {
  // At half its pace for good: 200 us alone, 400 beside a collective that lasts longer. The rest is the
  // communication's.
  pace = 0.5;
  EXPECT_EQ(busy(one, 100_us, 500'000), 400_us);
  EXPECT_EQ(last.slowed, 200_us);
}

TEST_F(SecondWave, TakesAsLongAsTheTilesOfItsBlocks) {
  // Blocks that come last have 3 of 4 tiles: 75 us after the first 100, or from 20 us on, beside them.
  one.left_over = third(0.75F);
  EXPECT_EQ(busy(one, 100_us, 150'000), 175_us);
  EXPECT_EQ(busy(one, 100_us, 20'000), 100_us);
  EXPECT_EQ(busy(one, 100_us, 60'000), 135_us);
}

TEST_F(SecondWave, DoesNotExistWhereProductsLeaveRoom) {
  one.left_over = third(0);
  EXPECT_EQ(busy(one, 100_us, 150'000), 100_us);
}

TEST_F(SecondWave, AGridThatWasLaunchedBeforeKeepsItsUnits) {
  EXPECT_EQ(busy(one, 100_us, 150'000, 30_us), 100_us);
}

TEST_F(SecondWave, IsNotCutShortBetweenTwoCollectivesWithoutAGap) {
  // 50 us, and at once 100 more: the blocks that wait find no unit in between.
  SmallWorld world(2);
  world.grids = {one};
  program::Op op = compute(100_us);
  op.grids = 1;
  world.add_class(
      {communicate(OpKind::collective, 50'000, 1), communicate(OpKind::collective, 100'000, 1), op});
  const Outcome outcome = world.run(Dimension::data, 1, {132, BytesPerSecond(1e12)}, 24);
  EXPECT_EQ(outcome.ranks[0].steps[0].busy, 200_us);
}

TEST_F(SecondWave, EachGridOfARunHasItsOwn) {
  // Two grids of 100 us. Beside 50 us: 150 + 100. Beside 250: 200, then 50 us are left: 50 + 100.
  one.count = 2;
  EXPECT_EQ(busy(one, 200_us, 50'000), 250_us);
  EXPECT_EQ(busy(one, 200_us, 250'000), 350_us);
  // From 30 us to 180: the first keeps its units until 100, the second meets the 80 us that are left.
  EXPECT_EQ(busy(one, 200_us, 150'000, 30_us), 280_us);
  // Ten of them, of 100 us, beside 700: three pass in 200 us each, the fourth's rest starts 100 us after it.
  one.count = 10;
  EXPECT_EQ(busy(one, 1000_us, 700'000), 600_us + 200_us + 600_us);
}

TEST_F(SecondWave, FollowsWhatSharesUnits) {
  // 50 us that share units take 132 / 108 of it, 61.1 us; then the grid of 50 us meets 18.9 us that are left.
  const program::Grids half{0, {}, 0.5F, third(0.5F), 1};
  EXPECT_EQ(busy(half, 100_us, 80'000), 80_us + 50_us);
  // Beside 22 us: 18 us of work are done, 32 and the grid's 50 go on alone.
  EXPECT_EQ(busy(half, 100_us, 22'000), 22_us + 82_us);
}

TEST_F(SecondWave, GridsInWavesTakeTheWavesThatWereCounted) {
  // Four waves become five: 50 us do 40 of work.
  const program::Grids waves{1, third(0.25F), 0, {}, 0};
  EXPECT_EQ(busy(waves, 100_us, 50'000), 110_us);
}

TEST_F(SecondWave, CommunicationByCopyEnginesTakesNoUnits) {
  units = 0;
  EXPECT_EQ(busy(one, 100_us, 150'000), 100_us);
  // Two of them are as bad as eight for a grid of as many blocks as units.
  units = 2;
  one.left_over = {1, 0, 0, 0};
  EXPECT_EQ(busy(one, 100_us, 150'000), 200_us);
}

TEST_F(SecondWave, SlowsWithTheAccelerator) {
  // Half the pace from the start: 200 us of the first blocks, 200 of the others.
  pace = 0.5;
  EXPECT_EQ(busy(one, 100_us, 900'000), 400_us);
}
}  // namespace topsim::executor::second_wave_test
