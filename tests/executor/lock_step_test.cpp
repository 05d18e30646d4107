// Walks in lock-step that are remembered (sim/executor/walk_memory.hpp): a remembered walk must give what
// would have happened. Random clusters are in tests/property/lock_step_test.cpp.
#include <gtest/gtest.h>

#include "tests/executor/small_world.hpp"

namespace topsim::executor::lock_step_test {

using namespace topsim::literals;
using program::Dimension;
using program::OpKind;

// A step: a collective of 30 us holds half of the units, so 5 us of work beside it take 10. Of the next 20 us
// of work 10 are done when it ends, and 10 are left; then 8 us follow, which are walked. 10 + 20 + 10 + 8 =
// 48 us, all busy, 15 of them owed to the collective.
// In the first step work runs at half its pace for the first 3 ps: 0.75 ps of work are done instead of 1.5,
// in whole picoseconds 1 instead of 2, so the second kernel begins 1 ps late. Of it (20 us - 1 ps) / 2 are
// done when the collective ends, in whole picoseconds 10 us. So both steps seem to go on from the same state,
// but the second must not take over that its kernel was busy for 1 ps less. The third may take over the
// second's.
TEST(LockStep, RemembersNoWalkForAKernelThatBeganAtAnotherTime) {
  for (const bool walks : {false, true}) {
    SmallWorld world(2);
    world.walks = walks;
    std::vector<program::Op> ops{compute(5_us), communicate(OpKind::collective, 30'000, 1), compute(20_us)};
    for (int i = 0; i < 8; ++i) ops.push_back(compute(1_us));
    world.add_class(ops);
    for (std::uint32_t rank = 0; rank < 2; ++rank)
      world.pace_changes.insert(world.pace_changes.end(),
                                {{SimTime{}, RankId(rank), 0.5}, {SimTime(3_ps), RankId(rank), 1}});
    const Outcome outcome = world.run(Dimension::tensor, 3, {2, BytesPerSecond(1e12)}, 1);
    ASSERT_EQ(outcome.step_times, (std::vector<Duration>{48_us, 48_us, 48_us}));
    EXPECT_EQ(outcome.walks, walks ? 3U : 0U);
    EXPECT_EQ(outcome.remembered_walks, walks ? 1U : 0U);
    for (const RankClass& rank : outcome.ranks) {
      EXPECT_EQ(rank.steps[0].busy, 48_us) << walks;
      EXPECT_EQ(rank.steps[1].busy, 48_us) << walks;
      EXPECT_EQ(rank.steps[1].slowed, 15_us) << walks;
      EXPECT_EQ(rank.steps[2].busy, 48_us) << walks;
    }
  }
}

// A trace may be replayed on accelerators of two models. A call of 10 us, a kernel of 1 us, and a kernel of
// 10 us beside a call of 20 us that holds one unit: of 5 units 4 are left, so the kernel takes 12.5 us; of 2
// units one, so it takes 20. Three kernels of 1 us follow the call: 10 + 1 + 20 + 3 = 34 us. Only where both
// have 5 units they walk.
TEST(LockStep, IsForAcceleratorsOfOneModel) {
  const auto run = [](bool walks, int units) {
    SmallWorld world(2);
    world.walks = walks;
    world.other = {units, BytesPerSecond(1e12)};
    world.add_class({communicate(OpKind::collective, 10'000, 1), compute(1_us),
                     communicate(OpKind::collective, 20'000, 1), compute(10_us), compute(1_us), compute(1_us),
                     compute(1_us)},
                    {{}, {0}, {1}, {}, {2}});
    return world.run(Dimension::tensor, 1, {5, BytesPerSecond(1e12)}, 1);
  };
  for (const bool walks : {false, true}) {
    const Outcome outcome = run(walks, 2);
    EXPECT_EQ(outcome.walks, 0U);
    ASSERT_EQ(outcome.step_times, (std::vector<Duration>{34_us}));
    EXPECT_EQ(outcome.ranks[0].steps[0].busy, Duration(16'500'000)) << walks;
    EXPECT_EQ(outcome.ranks[1].steps[0].busy, 24_us) << walks;
  }
  const Outcome walked = run(true, 5), unwalked = run(false, 5);
  EXPECT_EQ(walked.ranks[1].steps[0].busy, Duration(16'500'000));
  EXPECT_GT(walked.walks, 0U);
  EXPECT_LT(walked.events, unwalked.events);
}
}  // namespace topsim::executor::lock_step_test
