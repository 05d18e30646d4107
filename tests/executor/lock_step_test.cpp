// Walks in lock-step that are remembered (sim/executor/walk_memory.hpp): what is taken over must be what
// would have happened. Random clusters: tests/property/lock_step_test.cpp.
#include <gtest/gtest.h>

#include "tests/executor/small_world.hpp"

namespace topsim::executor::lock_step_test {

using namespace topsim::literals;
using program::Dimension;
using program::OpKind;

// A collective of 30 us holds half of the units, so that 5 us of work beside it take 10, and of the 20 us
// that follow 10 are left when it ends; from there on 8 us more are walked. A step takes 10 + 20 + 10 + 8 =
// 48 us, all of them busy, 15 owed to the collective. In the first step work takes twice as long again for 3
// ps: 0.75 ps done instead of 1.5, which are 1 and 2 in whole picoseconds, so that the second kernel begins 1
// ps late. (20 us - 1 ps) / 2 of it done are 10 us in whole picoseconds: both steps go on from what looks
// like one state, and the second may not take over that its kernel was busy 1 ps less.
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
    const Outcome outcome = world.run(Dimension::tensor, 2, {2, BytesPerSecond(1e12)}, 1);
    ASSERT_EQ(outcome.step_times, (std::vector<Duration>{48_us, 48_us}));
    for (const RankClass& rank : outcome.ranks) {
      EXPECT_EQ(rank.steps[0].busy, 48_us) << walks;
      EXPECT_EQ(rank.steps[1].busy, 48_us) << walks;
      EXPECT_EQ(rank.steps[1].slowed, 15_us) << walks;
    }
  }
}
}  // namespace topsim::executor::lock_step_test
