// Matrix products beside a collective that holds 24 of 132 SMs. A persistent grid of T meets a collective
// that has t left: the blocks without an SM start when the others end or when the collective does, so it
// takes min(2 T, t + T). Grids in waves share the SMs that are left.
#include <gtest/gtest.h>

#include "tests/executor/small_world.hpp"

namespace topsim::executor::second_wave_test {

using namespace topsim::literals;
using program::Dimension;
using program::OpKind;

// 24 units are the third entry of a table by units; if another entry were read, its 9 would show.
constexpr program::Grids::PerStep third(float value) {
  return {9, 9, value, 9};
}

class SecondWave : public testing::Test {
 protected:
  StepAccount last;  // of the latest run

  // Busy time of one op beside a collective of so many nanoseconds, which both ranks launch after `late`.
  Duration busy(const program::Grids& grids, Duration work, std::int64_t collective, Duration late = {}) {
    SmallWorld world(2);
    world.grids = {grids};
    world.memory_traffic = traffic;
    program::Op op = compute(work);
    op.grids = 1;
    program::Op call = communicate(OpKind::collective, collective, 1);
    call.launch = late;
    call.units = units;
    if (pace != 1) world.pace_changes = {{SimTime{}, RankId(0), pace}, {SimTime{}, RankId(1), pace}};
    // The host launches in program order, so a late collective comes after the op, which must not wait for
    // its launch.
    late == Duration{} ? world.add_class({call, op}) : world.add_class({op, call});
    const Outcome outcome = world.run(Dimension::data, 1, {132, BytesPerSecond(1e12)}, 24);
    last = outcome.ranks[0].steps[0];
    return last.busy;
  }
  std::int16_t units = program::Op::kByChannels;
  double pace = 1;     // of both ranks, from the start
  double traffic = 0;  // of the collective, GB/s, beside a memory of 1,000
  // The blocks that wait have as many tiles as the others and take as long.
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
  // 100 us of work: 200 beside 150 us of a collective, 150 beside 50. A collective that comes later costs
  // nothing.
  busy(one, 100_us, 150'000);
  EXPECT_EQ(last.slowed, 100_us);
  busy(one, 100_us, 50'000);
  EXPECT_EQ(last.slowed, 50_us);
  busy(one, 100_us, 150'000, 30_us);
  EXPECT_EQ(last.slowed, 0_us);
}

TEST_F(SecondWave, IsToldApartFromASlowAccelerator) {
  // At half its pace the op takes 200 us alone, and 400 beside a longer collective: only 200 are the
  // communication's.
  pace = 0.5;
  EXPECT_EQ(busy(one, 100_us, 500'000), 400_us);
  EXPECT_EQ(last.slowed, 200_us);
}

TEST_F(SecondWave, TakesAsLongAsTheTilesOfItsBlocks) {
  // Blocks that wait have 3 of 4 tiles, 75 us: after the first 100 us; beside them from 20 us on, within the
  // 100; or from 60 us on, to 135.
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
  // A collective of 50 us and at once another of 100: the waiting blocks find no unit in between.
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
  // Two grids of 100 us. Collective of 50 us: 150 + 100. Collective of 250: the first takes 200 and the
  // second meets the 50 that are left, 50 + 100.
  one.count = 2;
  EXPECT_EQ(busy(one, 200_us, 50'000), 250_us);
  EXPECT_EQ(busy(one, 200_us, 250'000), 350_us);
  // Collective from 30 to 180 us: the first grid keeps its units until 100, the second meets the 80 us that
  // are left: 100 + 180.
  EXPECT_EQ(busy(one, 200_us, 150'000, 30_us), 280_us);
  // Ten grids of 100 us, collective of 700: three take 200 us each, the fourth meets 100 us, 100 + 100, and
  // six run alone.
  one.count = 10;
  EXPECT_EQ(busy(one, 1000_us, 700'000), 600_us + 200_us + 600_us);
}

TEST_F(SecondWave, FollowsWhatSharesUnits) {
  // 50 us of work share the units that are left and take 132 / 108 times as long, 61.1 us. Then a grid of 50
  // us meets the 18.9 us that are left of the collective: 80 + 50.
  const program::Grids half{0, {}, 0.5F, third(0.5F), 1};
  EXPECT_EQ(busy(half, 100_us, 80'000), 80_us + 50_us);
  // Collective of 22 us: 18 us of work are done meanwhile; 32 and the grid's 50 follow alone.
  EXPECT_EQ(busy(half, 100_us, 22'000), 22_us + 82_us);
}

TEST_F(SecondWave, GridsInWavesTakeTheWavesThatWereCounted) {
  // Four waves become five: the 50 us beside the collective do 40 us of work.
  const program::Grids waves{1, third(0.25F), 0, {}, 0};
  EXPECT_EQ(busy(waves, 100_us, 50'000), 110_us);
}

TEST_F(SecondWave, CommunicationByCopyEnginesTakesNoUnits) {
  units = 0;
  EXPECT_EQ(busy(one, 100_us, 150'000), 100_us);
  // Two held units count as up to eight, the table's first entry: a grid of as many blocks as units has a
  // second wave either way.
  units = 2;
  one.left_over = {1, 0, 0, 0};
  EXPECT_EQ(busy(one, 100_us, 150'000), 200_us);
}

TEST_F(SecondWave, ProductsShareTheMemoryWithTheCollective) {
  // A collective that takes a fifth of the memory's bandwidth: traffic that takes 0.4 of a product's time
  // alone takes 1.25 times as long, the product 1.1 times. It does so in its second wave and in counted waves
  // too, and all of that is the communication's.
  traffic = 200;
  one.traffic = 0.4F;
  EXPECT_EQ(busy(one, 100_us, 300'000), 220_us);
  EXPECT_EQ(last.slowed, 120_us);
  units = 0;
  EXPECT_EQ(busy(one, 100_us, 300'000), 110_us);
  const program::Grids waves{1, third(0.25F), 0, {}, 0, 0.4F};
  units = 24;
  EXPECT_EQ(busy(waves, 100_us, 300'000), 137500_ns);
}

TEST_F(SecondWave, SlowsWithTheAccelerator) {
  // Half the pace from the start: 200 us for the first blocks, 200 for those that wait.
  pace = 0.5;
  EXPECT_EQ(busy(one, 100_us, 900'000), 400_us);
}
}  // namespace topsim::executor::second_wave_test
