#include "sim/executor/executor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "sim/base/error.hpp"
#include "tests/executor/small_world.hpp"

namespace topsim::executor::executor_test {

using namespace topsim::literals;
using program::Dimension;
using program::OpKind;

Duration idle(const Outcome& outcome, std::size_t rank, Reason reason) {
  Duration sum{};
  for (const auto& step : outcome.ranks[rank].steps) sum += step.idle[static_cast<std::size_t>(reason)];
  return sum;
}
Duration busy(const Outcome& outcome, std::size_t rank) {
  Duration sum{};
  for (const auto& step : outcome.ranks[rank].steps) sum += step.busy;
  return sum;
}

TEST(Executor, RunsTheOpsOfAStreamOneAfterTheOther) {
  SmallWorld world(1);
  world.add_class({compute(3_us), compute(4_us)});
  const Outcome outcome = world.run(Dimension::world, 2);
  EXPECT_THAT(outcome.step_times, testing::ElementsAre(Duration(7_us), Duration(7_us)));
  EXPECT_EQ(busy(outcome, 0), 14_us);
}

TEST(Executor, ChargesKernelsShorterThanTheirLaunchToTheHost) {
  // Ten kernels of 1 us, each launched in 5 us: the last is issued at 50 us and ends at 51 us; busy 10,
  // host 41.
  SmallWorld world(1);
  world.add_class(std::vector<program::Op>(10, compute(1_us, 5_us)));
  const Outcome outcome = world.run(Dimension::world);
  EXPECT_EQ(outcome.step_times[0], 51_us);
  EXPECT_EQ(idle(outcome, 0, Reason::host), 41_us);
}

TEST(Executor, HidesLaunchesBehindKernelsLongerThanThem) {
  // Launch 5 us, kernels 10 us: only the first launch is exposed.
  SmallWorld world(1);
  world.add_class(std::vector<program::Op>(4, compute(10_us, 5_us)));
  const Outcome outcome = world.run(Dimension::world);
  EXPECT_EQ(outcome.step_times[0], 45_us);
  EXPECT_EQ(idle(outcome, 0, Reason::host), 5_us);
}

TEST(Executor, MakesTheHostWaitAtASynchronisation) {
  // Kernel 20 us with host_sync, launched in 5 (ends at 25); only then does the host spend 5 on the next:
  // starts at 30.
  SmallWorld world(1);
  auto first = compute(20_us, 5_us);
  first.host_sync = true;
  world.add_class({first, compute(1_us, 5_us)});
  EXPECT_EQ(world.run(Dimension::world).step_times[0], 31_us);
}

TEST(Executor, ThrottlesWhatIsUnderWayOnEveryStream) {
  // 100 us of work, at half the pace from 50 us on: 50 + 2 x 50.
  for (const auto stream : {std::uint16_t{0}, std::uint16_t{1}}) {
    SmallWorld world(1);
    auto work = compute(100_us);
    work.stream = stream;
    world.add_class({work});
    world.pace_changes = {{SimTime(50_us), RankId(0), 0.5}};
    EXPECT_EQ(world.run(Dimension::world).step_times[0], 150_us) << stream;
  }
}

TEST(Executor, ChargesTheHostForEveryLaunchThatAWaitHolds) {
  // A kernel of 1 us, then two collectives of 5 us that the host waits for, then a kernel; these three are
  // launched in 10 us each: 1 + 10 + 5 + 10 + 5 + 10 + 1 = 42. Before the last kernel lie 40 us: three
  // launches and two collectives.
  SmallWorld world(2);
  auto synchronising = compute(1_us);
  auto collective = communicate(OpKind::collective, 5000, 1);
  collective.launch = 10_us;
  synchronising.host_sync = collective.host_sync = true;
  world.add_class({synchronising, collective, collective, compute(1_us, 10_us)}, {{}, {}, {}, {2}});
  const Outcome outcome = world.run(Dimension::data);
  EXPECT_EQ(outcome.step_times[0], 42_us);
  EXPECT_EQ(idle(outcome, 0, Reason::host), 30_us);
  EXPECT_EQ(idle(outcome, 0, Reason::data_parallel), 10_us);
  Duration host{};
  for (const PathLeg& leg : outcome.critical_path)
    host += leg.reason == Reason::host ? leg.share : Duration{};
  EXPECT_EQ(host, 30_us);
}

TEST(Executor, StartsLateWhatWasLaunchedBeforeASynchronisationThatIsOver) {
  // Two collectives of 50 us on one stream, then a kernel of 10 us the host waits for. The second collective
  // was launched before that synchronisation but starts after it: 50 + 50, then the last kernel.
  SmallWorld world(2);
  auto synchronising = compute(10_us);
  synchronising.host_sync = true;
  world.add_class({communicate(OpKind::collective, 50000, 1), communicate(OpKind::collective, 50000, 1),
                   synchronising, compute(1_us)},
                  {{}, {}, {}, {1}});
  EXPECT_EQ(world.run(Dimension::data).step_times[0], 101_us);
}

TEST(Executor, SplitsAWaitIntoTheSlowestMemberAndTheCollectiveItself) {
  // Rank 1 computes 2x longer: 20 us. Rank 0 waits 10 us for it, then both 5 us for the bytes.
  SmallWorld world(2);
  world.add_class({compute(10_us), communicate(OpKind::collective, 5000, 1), compute(1_us)}, {{}, {0}, {1}});
  const Outcome outcome = world.run(Dimension::data, 1, {}, 0, {1.0, 2.0});
  EXPECT_EQ(outcome.step_times[0], 27_us);  // 20 + 5 + 2
  EXPECT_EQ(idle(outcome, 0, Reason::straggler),
            10_us + 1_us);  // and 1 us at the end for rank 1's last kernel
  EXPECT_EQ(idle(outcome, 0, Reason::data_parallel), 5_us);
  EXPECT_EQ(idle(outcome, 1, Reason::straggler), 0_us);
  EXPECT_EQ(idle(outcome, 1, Reason::data_parallel), 5_us);
}

TEST(Executor, StartsAMessageWhenBothSidesHaveArrived) {
  // Stage 0 sends after 10 us; stage 1 needs it for its 10 us: bubble 10, transfer 2, ends at 22.
  SmallWorld world(2);
  world.add_class({compute(10_us), communicate(OpKind::send, 2000, 1, 0)}, {{}, {0}});
  world.add_class({communicate(OpKind::recv, 2000, 1, 1), compute(10_us)}, {{}, {0}});
  const Outcome outcome = world.run(Dimension::pipeline);
  EXPECT_EQ(outcome.step_times[0], 22_us);
  EXPECT_EQ(idle(outcome, 1, Reason::pipeline_bubble), 10_us);
  EXPECT_EQ(idle(outcome, 1, Reason::pipeline_transfer), 2_us);
  EXPECT_EQ(idle(outcome, 0, Reason::pipeline_transfer), 2_us);  // its own send
  EXPECT_EQ(idle(outcome, 0, Reason::pipeline_bubble), 10_us);   // then nothing to do until the step ends
}

TEST(Executor, GivesAnEmptyMessageItsLatencyUnlessItsTimeIsTakenElsewhere) {
  // Stage 0 sends after 10 us; stage 1 needs it for its 10 us: 10 + 4 + 10 with a latency of 4 us.
  for (const auto& [elsewhere, expected] : {std::pair{false, 24_us}, std::pair{true, 20_us}}) {
    SmallWorld world(2);
    auto send = communicate(OpKind::send, 0, 1, 0), recv = communicate(OpKind::recv, 0, 1, 1);
    send.timed_elsewhere = recv.timed_elsewhere = elsewhere;
    world.add_class({compute(10_us), send}, {{}, {0}});
    world.add_class({recv, compute(10_us)}, {{}, {0}});
    world.latency = 4_us;
    EXPECT_EQ(world.run(Dimension::pipeline).step_times[0], expected);
  }
}

TEST(Executor, CountsAsBusyWhatAnyStreamComputes) {
  // Streams 1 and 2 compute for 4 and 6 us beside an exchange of 10 us; the compute stream follows for 2 us.
  // Of 12 us 8 are busy, and 4 us of the exchange are waited for.
  SmallWorld world(1);
  auto one = compute(4_us), two = compute(6_us);
  one.stream = 1, two.stream = 2;
  world.add_class({one, two, communicate(OpKind::collective, 10'000, 3), compute(2_us)},
                  {{}, {}, {}, {0, 1, 2}});
  const Outcome outcome = world.run(Dimension::tensor, 2);
  EXPECT_THAT(outcome.step_times, testing::ElementsAre(Duration(12_us), Duration(12_us)));
  EXPECT_EQ(busy(outcome, 0), 16_us);
  EXPECT_EQ(idle(outcome, 0, Reason::tensor_parallel), 8_us);
  ASSERT_EQ(outcome.idle.size(), 2u);
  EXPECT_EQ(outcome.idle[0].begin, SimTime(6_us));
  EXPECT_EQ(outcome.idle[0].end, SimTime(10_us));
}

TEST(Executor, ChargesTheWaitForALateRankOfAnotherProgramToItWhereThereIsNoPipeline) {
  // Two programs of a trace meet in a collective of 5 us, after 1 us and after 10 us: the first waits 9 us.
  SmallWorld world(2);
  world.add_class({compute(1_us), communicate(OpKind::collective, 5000, 1)}, {{}, {0}});
  world.add_class({compute(10_us), communicate(OpKind::collective, 5000, 1)}, {{}, {0}});
  const Outcome outcome = world.run(Dimension::tensor);
  EXPECT_EQ(outcome.step_times[0], 15_us);
  EXPECT_EQ(idle(outcome, 0, Reason::straggler), 9_us);
  EXPECT_EQ(idle(outcome, 0, Reason::tensor_parallel), 5_us);
  EXPECT_EQ(idle(outcome, 0, Reason::pipeline_bubble), 0_us);
}

TEST(Executor, ChargesATransferWhoseTimeIsGivenToThePipelineAndOtherWorkOfTheHostToOffload) {
  for (const auto& [phase, reason] : {std::pair{program::Phase::transfer, Reason::pipeline_transfer},
                                      std::pair{program::Phase::optimizer, Reason::offload}}) {
    SmallWorld world(1);
    program::Op away;
    away.kind = OpKind::host_work;
    away.phase = phase;
    away.stream = 1;
    away.duration = 3_us;
    world.add_class({compute(1_us), away, compute(1_us)}, {{}, {0}, {1}});
    EXPECT_EQ(idle(world.run(Dimension::world), 0, reason), 3_us);
  }
}

TEST(Executor, AddsUpCallsOfMoreCommunicatorsThanTheClockHasTimeFor) {
  // A call of 3.6e12 bytes takes an hour, 3.6e15 ps. 2^20 communicators take 3.8e21 ps together, more than
  // the 9.2e18 that the clock can hold.
  SmallWorld world(2);
  world.communicators = 1U << 20;
  world.add_class({communicate(OpKind::collective, 3'600'000'000'000, 1)});
  const Outcome outcome = world.run(Dimension::data);
  ASSERT_EQ(outcome.collectives.size(), 1U);
  EXPECT_EQ(outcome.collectives[0].calls, 1U << 20);
  EXPECT_EQ(outcome.collectives[0].each, Duration(std::chrono::hours(1)));
  EXPECT_DOUBLE_EQ(outcome.collectives[0].seconds, 3600.0 * (1 << 20));
}

TEST(Executor, SlowsComputeWhileACollectiveHoldsItsMultiprocessors) {
  // 100 us of work, a collective of 50 us beside it holding 33 of 132 SMs: pace 3/4 for 50 us does 37.5 us of
  // work, the remaining 62.5 us run alone: 112.5 us.
  SmallWorld world(2);
  world.add_class({communicate(OpKind::collective, 50000, 1), compute(100_us)});
  const Outcome outcome = world.run(Dimension::data, 1, {132, BytesPerSecond(1e12)}, 33);
  EXPECT_EQ(outcome.step_times[0], Duration(112500000));
}

TEST(Executor, DoesNotSlowComputeWhenCommunicationIsOver) {
  SmallWorld world(2);
  world.add_class({communicate(OpKind::collective, 50000, 1), compute(100_us)}, {{}, {0}});
  EXPECT_EQ(world.run(Dimension::data, 1, {132, BytesPerSecond(1e12)}, 33).step_times[0], 150_us);
}

TEST(Executor, TilesEveryStepOfEveryRankExactly) {
  SmallWorld world(3);
  world.add_class({compute(7_us, 2_us), communicate(OpKind::collective, 1234, 1), compute(3_us, 9_us)},
                  {{}, {0}, {1}});
  const Outcome outcome = world.run(Dimension::tensor, 3, {}, 0, {1.0, 1.31, 1.7});
  for (const auto& rank : outcome.ranks) {
    ASSERT_EQ(rank.steps.size(), outcome.step_times.size());
    for (std::size_t s = 0; s < rank.steps.size(); ++s) {
      const Duration total =
          std::accumulate(rank.steps[s].idle.begin(), rank.steps[s].idle.end(), rank.steps[s].busy);
      EXPECT_EQ(total, outcome.step_times[s]);
    }
  }
}

TEST(Executor, TilesTheCriticalPathOverTheLastStep) {
  SmallWorld world(2);
  world.add_class({compute(10_us), communicate(OpKind::collective, 5000, 1), compute(1_us)}, {{}, {0}, {1}});
  const Outcome outcome = world.run(Dimension::data, 2, {}, 0, {1.0, 2.0});
  Duration sum{};
  for (const PathLeg& leg : outcome.critical_path) sum += leg.share;
  EXPECT_EQ(sum, outcome.step_times.back());
  for (const PathLeg& leg : outcome.critical_path) {
    if (leg.op != 0) continue;
    EXPECT_EQ(leg.rank_class, 1U);  // through the slow rank's kernel, not the fast one's wait
  }
}

TEST(Executor, NamesWhoWaitsForWhomInADeadlock) {
  SmallWorld world(2);
  world.add_class({communicate(OpKind::recv, 10, 1, 0)});  // from rank 1, which waits for rank 0
  world.add_class({communicate(OpKind::recv, 10, 1, 1)});
  try {
    static_cast<void>(world.run(Dimension::pipeline));
    FAIL() << "a deadlock must be reported";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("cannot finish"));
    EXPECT_THAT(error.problems()[0].help, testing::HasSubstr("rank 1 waits"));
  }
}
}  // namespace topsim::executor::executor_test
