// Steps of ranks that nothing synchronises, times in picoseconds: a rank's work counts in the rank's own
// step, and every rank's step lasts as long as the job's.
#include "sim/executor/accounting.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace topsim::executor::accounting_test {

constexpr SimTime at(std::int64_t ps) {
  return SimTime(Duration(ps));
}

void work(Accounting& accounting, std::uint32_t rank, std::int64_t begin, std::int64_t busy_until,
          std::int64_t end) {
  accounting.busy(rank, at(begin), at(busy_until));
  accounting.idle(rank, Reason::pipeline_bubble, at(busy_until), at(end));
  (void)accounting.finish_step(rank, at(end));
}

Duration idle(const StepAccount& step, Reason reason) {
  return step.idle[static_cast<std::size_t>(reason)];
}

// Rank 0 needs 10 per step, rank 1 needs 20, and nobody makes rank 0 wait. Rank 0 runs ahead, yet in every
// step of the job (20) it is counted as working 10 and waiting 10.
TEST(Accounting, ARankThatRunsAheadWorksInEveryStep) {
  Accounting accounting(2, 1, 2);
  for (int step = 0; step < 3; ++step) work(accounting, 0, 10 * step, 10 * step + 10, 10 * step + 10);
  for (int step = 0; step < 3; ++step) work(accounting, 1, 20 * step, 20 * step + 20, 20 * step + 20);
  for (const StepAccount& step : accounting.steps(0, Reason::straggler)) {
    EXPECT_EQ(step.busy, Duration(10));
    EXPECT_EQ(idle(step, Reason::straggler), Duration(10));
  }
  EXPECT_EQ(accounting.steps(0, Reason::straggler).size(), 2u);
}

// Two stages with steps of 30, the second 6 behind the first. The job's second step lasts from 36 to 66, and
// both stages are busy for all of it.
TEST(Accounting, StagesThatOverlapStepsAreNotIdleBetweenThem) {
  Accounting accounting(2, 1, 1);
  work(accounting, 0, 0, 30, 30), work(accounting, 0, 30, 60, 60);
  accounting.idle(1, Reason::pipeline_bubble, at(0), at(6));
  work(accounting, 1, 6, 36, 36), work(accounting, 1, 36, 66, 66);
  for (const std::uint32_t rank : {0u, 1u}) {
    const StepAccount step = accounting.steps(rank, Reason::straggler).at(0);
    EXPECT_EQ(step.busy, Duration(30)) << rank;  // 66 - 36
    EXPECT_EQ(std::accumulate(step.idle.begin(), step.idle.end(), Duration{}), Duration{}) << rank;
  }
}

// Rank 0 is 8 ahead after the first step and waits 8 in the second, when both end together. The job's steps
// are 20 each, so the wait counts in the first.
TEST(Accounting, WhatARankWaitsLaterItWaitedWhenItWasAhead) {
  Accounting accounting(2, 0, 2);
  work(accounting, 0, 0, 12, 12), work(accounting, 0, 12, 32, 40);
  work(accounting, 1, 0, 20, 20), work(accounting, 1, 20, 40, 40);
  const std::vector<StepAccount> steps = accounting.steps(0, Reason::straggler);
  EXPECT_EQ(steps[0].busy, Duration(12));
  EXPECT_EQ(idle(steps[0], Reason::pipeline_bubble) + idle(steps[0], Reason::straggler), Duration(8));
  EXPECT_EQ(steps[1].busy, Duration(20));
  EXPECT_EQ(idle(steps[1], Reason::pipeline_bubble), Duration(0));
}

// Rank 0 is 15 ahead after the first step and then works 35 without a pause. The job's second step lasts only
// 20, so 15 of that work counts in the first.
TEST(Accounting, WorkBeyondAStepOfTheJobWasDoneInTheOneBefore) {
  Accounting accounting(2, 0, 2);
  work(accounting, 0, 0, 5, 5), work(accounting, 0, 5, 40, 40);
  work(accounting, 1, 0, 20, 20), work(accounting, 1, 20, 40, 40);
  const std::vector<StepAccount> steps = accounting.steps(0, Reason::straggler);
  EXPECT_EQ(steps[0].busy, Duration(20));
  EXPECT_EQ(steps[1].busy, Duration(20));
}
}  // namespace topsim::executor::accounting_test
