// Steps of ranks that nobody synchronises, in picoseconds: what a rank did is its own step's, and every
// rank's step is as long as the job's.
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

// Rank 0 takes 10 a step and is a whole step ahead after one of rank 1's 20: it works 10 and waits 10 in
// each.
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

// Stages of a pipeline without a common end: the first is 6 ahead of the last, step for step, and never idle.
TEST(Accounting, StagesThatOverlapStepsAreNotIdleBetweenThem) {
  Accounting accounting(2, 1, 1);
  work(accounting, 0, 0, 30, 30), work(accounting, 0, 30, 60, 60);
  accounting.idle(1, Reason::pipeline_bubble, at(0), at(6));
  work(accounting, 1, 6, 36, 36), work(accounting, 1, 36, 66, 66);
  for (const std::uint32_t rank : {0u, 1u}) {
    const StepAccount step = accounting.steps(rank, Reason::straggler).at(0);
    EXPECT_EQ(step.busy, Duration(30)) << rank;  // of 66 - 36
    EXPECT_EQ(std::accumulate(step.idle.begin(), step.idle.end(), Duration{}), Duration{}) << rank;
  }
}

// 8 ahead after the first step, it waits 8 in the second and ends with the other: it waited in the first.
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

// 15 ahead, then a step of 35 without a pause where the job's has 20: 15 of it came before the boundary.
TEST(Accounting, WorkBeyondAStepOfTheJobWasDoneInTheOneBefore) {
  Accounting accounting(2, 0, 2);
  work(accounting, 0, 0, 5, 5), work(accounting, 0, 5, 40, 40);
  work(accounting, 1, 0, 20, 20), work(accounting, 1, 20, 40, 40);
  const std::vector<StepAccount> steps = accounting.steps(0, Reason::straggler);
  EXPECT_EQ(steps[0].busy, Duration(20));
  EXPECT_EQ(steps[1].busy, Duration(20));
}
}  // namespace topsim::executor::accounting_test
