#include "sim/metrics/accounting.hpp"

#include <gtest/gtest.h>

#include <random>

namespace topsim::metrics::accounting_test {
using namespace topsim::literals;

executor::StepAccount step_of(std::int64_t busy, std::int64_t bubble, std::int64_t host) {
  executor::StepAccount step;
  step.busy = Duration(busy);
  step.idle[0] = Duration(bubble);
  step.idle[7] = Duration(host);
  return step;
}

TEST(Accounting, MeanOfStepsRoundsToTheNearestPicosecond) {
  EXPECT_EQ(mean_step(std::vector<Duration>{10_ps, 11_ps}), 11_ps);  // 10.5, half up
  EXPECT_EQ(mean_step(std::vector<Duration>{10_ps, 10_ps, 11_ps}), 10_ps);
  EXPECT_EQ(mean_step({}), 0_ps);
}

TEST(Accounting, PartsThatWouldAllRoundDownStillSumToTheMeanStep) {
  // Steps of 3 and 4 ps, mean 3.5 -> 4. Parts: busy 1.5, bubble 1, host 1: plain rounding down would give 3.
  executor::RankClass ranks{0, {RankId(0)}, {step_of(1, 1, 1), step_of(2, 1, 1)}};
  const Account mean = mean_account(ranks);
  EXPECT_EQ(mean.total(), 4_ps);
  EXPECT_EQ(mean.busy, 2_ps);
}

TEST(Accounting, MembersWeighInTheMeanOverAccelerators) {
  // Three members at busy 4 of 10, one at busy 8: (3 x 4 + 8) / 4 = 5.
  const std::vector<executor::RankClass> ranks{{0, {RankId(0), RankId(1), RankId(2)}, {step_of(4, 6, 0)}},
                                               {1, {RankId(3)}, {step_of(8, 0, 2)}}};
  const Account mean = mean_account(ranks);
  EXPECT_EQ(mean.busy, 5_ps);
  EXPECT_EQ(mean.idle[0] + mean.idle[7], 5_ps);  // 4.5 + 0.5, together 5
}

TEST(Accounting, WhatCommunicationCostsIsAMeanOfItsOwn) {
  executor::RankClass ranks{0, {RankId(0)}, {step_of(8, 2, 0), step_of(8, 2, 0)}};
  ranks.steps[0].slowed = 3_ps;  // and nothing in the other: 1.5, half up
  EXPECT_EQ(mean_account(ranks).slowed, 2_ps);
  ranks.steps[0].communication = 5_ps, ranks.steps[1].communication = 6_ps;  // 5.5, half up
  ranks.steps[1].hidden_communication = 4_ps;
  EXPECT_EQ(mean_account(ranks).communication, 6_ps);
  EXPECT_EQ(mean_account(ranks).hidden_communication, 2_ps);
  EXPECT_EQ(mean_account(ranks).total(), 10_ps);
}

TEST(Accounting, RandomTilingsSumExactlyWhateverTheNumbers) {
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<Duration> steps;
    const std::size_t count = 1 + random() % 7;
    for (std::size_t i = 0; i < count; ++i) steps.emplace_back(1 + random() % 1'000'000'000'000'000);
    std::vector<executor::RankClass> ranks(1 + random() % 5);
    for (auto& each : ranks) {
      each.members.resize(1 + random() % 100'000);
      for (Duration step : steps) {
        executor::StepAccount account;
        std::int64_t rest = step.count();
        for (Duration& part : account.idle) {
          part = Duration(static_cast<std::int64_t>(random()) & 0x7fffffffffffffff) % Duration(rest + 1);
          rest -= part.count();
        }
        account.busy = Duration(rest);
        each.steps.push_back(account);
      }
      EXPECT_EQ(mean_account(each).total(), mean_step(steps));
    }
    EXPECT_EQ(mean_account(ranks).total(), mean_step(steps));
  }
}
}  // namespace topsim::metrics::accounting_test
