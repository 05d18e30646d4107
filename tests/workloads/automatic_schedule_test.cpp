// The automatic schedule: every order it makes is played again here, with nothing but the dependencies
// between tasks.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "workloads/schedule/automatic.hpp"

namespace topsim::workloads::schedule {

struct Played {
  bool complete = true;
  std::vector<Duration> first, last, busy;
  std::vector<double> held;  // the most at any time, in activations of whole micro-batches
};

Played play(const std::vector<std::vector<StageTask>>& orders, const PipelineCosts& costs,
            int micro_batches) {
  const std::size_t p = orders.size();
  Played run{true, std::vector<Duration>(p), std::vector<Duration>(p), std::vector<Duration>(p),
             std::vector<double>(p)};
  std::vector<std::vector<Duration>> forwards(p), inputs(p);
  std::vector<std::size_t> next(p);
  std::vector<int> weights(p);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < p; ++s)
      for (; next[s] < orders[s].size(); ++next[s], moved = true) {
        const StageTask& task = orders[s][next[s]];
        const auto i = static_cast<std::size_t>(task.micro_batch);
        Duration ready = run.last[s], length = costs.stages[s].weight;
        if (task.action == Action::forward) {
          if (s > 0 && forwards[s - 1].size() <= i) break;
          if (s > 0) ready = std::max(ready, forwards[s - 1][i] + costs.transfer);
          length = costs.stages[s].forward;
          forwards[s].push_back(ready + length);
          EXPECT_EQ(forwards[s].size(), i + 1);
        } else if (task.action == Action::backward_input) {
          if (s + 1 < p && inputs[s + 1].size() <= i) break;
          if (s + 1 < p) ready = std::max(ready, inputs[s + 1][i] + costs.transfer);
          EXPECT_GT(forwards[s].size(), i);
          length = costs.stages[s].input;
          inputs[s].push_back(ready + length);
          EXPECT_EQ(inputs[s].size(), i + 1);
        } else {
          EXPECT_EQ(weights[s]++, task.micro_batch);
          EXPECT_GT(inputs[s].size(), i);
        }
        if (next[s] == 0) run.first[s] = ready;
        run.last[s] = ready + length;
        run.busy[s] += length;
        const auto f = static_cast<double>(forwards[s].size()), b = static_cast<double>(inputs[s].size());
        run.held[s] = std::max(run.held[s], f - b + costs.stages[s].until_weight * (b - weights[s]));
      }
  }
  for (std::size_t s = 0; s < p; ++s)
    run.complete &= next[s] == orders[s].size() && weights[s] == micro_batches &&
                    orders[s].size() == 3 * static_cast<std::size_t>(micro_batches);
  return run;
}

PipelineCosts equal_stages(int stages, int forward, int input, int weight, double until_weight) {
  const PassCosts cost{Duration(forward), Duration(input), Duration(weight), until_weight};
  return {std::vector(static_cast<std::size_t>(stages), cost), {}, 2 * stages};
}

TEST(AutomaticSchedule, LeavesNoGapWhereWeightGradientsAreShorter) {
  // Messages take no time, and a stage may hold 2 p micro-batches: no stage idles as long as one weight
  // gradient (W = 20) in total. The fixed zero-bubble order, made for F = I = W, would idle (p - 1)(F + I - 2
  // W).
  for (const int p : {2, 4, 8})
    for (const int m : {3 * p, 8 * p}) {
      const PipelineCosts costs = equal_stages(p, 30, 30, 20, 0.4);
      const Played run = play(automatic(costs, m), costs, m);
      ASSERT_TRUE(run.complete);
      for (std::size_t s = 0; s < run.busy.size(); ++s) {
        EXPECT_EQ(run.busy[s], Duration(m * (30 + 30 + 20)));
        EXPECT_LT(run.last[s] - run.first[s] - run.busy[s], Duration(20)) << p << " stages, " << m;
      }
    }
}

TEST(AutomaticSchedule, WithThePipelinesMemoryIsZeroBubbleH1) {
  // A stage may hold p micro-batches, as with 1F1B. The longest idle time of a stage, between its own first
  // and last task, is then (p - 1)(F + I - W), that of the authors' ZB-1p.
  for (const int p : {2, 4, 8})
    for (const int m : {3 * p, 8 * p}) {
      PipelineCosts costs = equal_stages(p, 30, 28, 20, 1);
      costs.held = p;
      const Played run = play(automatic(costs, m), costs, m);
      ASSERT_TRUE(run.complete);
      Duration longest{};
      for (std::size_t r = 0; r < run.busy.size(); ++r)
        longest = std::max(longest, run.last[r] - run.first[r] - run.busy[r]);
      EXPECT_EQ(longest, Duration((p - 1) * (30 + 28 - 20))) << p << " stages, " << m;
    }
}

TEST(AutomaticSchedule, HoldsNoMoreThanItMay) {
  for (const double until_weight : {0.3, 0.94, 1.0, 2.5})
    for (const int p : {2, 5, 8}) {
      const PipelineCosts costs = equal_stages(p, 29, 31, 17, until_weight);
      const Played run = play(automatic(costs, 6 * p), costs, 6 * p);
      ASSERT_TRUE(run.complete);
      for (const double held : run.held) EXPECT_LE(held, 2 * p + std::max(0.0, until_weight - 1) + 1e-9);
    }
}

TEST(AutomaticSchedule, FinishesWithStagesThatDiffer) {
  std::mt19937 random(2401);
  for (int round = 0; round < 300; ++round) {
    const int p = 1 + static_cast<int>(random() % 9), m = 1 + static_cast<int>(random() % 40);
    PipelineCosts costs;
    costs.transfer = Duration(static_cast<int>(random() % 30));
    costs.held = 2 * p;
    for (int s = 0; s < p; ++s)
      costs.stages.push_back(
          {Duration(1 + static_cast<int>(random() % 99)), Duration(1 + static_cast<int>(random() % 99)),
           Duration(static_cast<int>(random() % 99)), 0.1 * static_cast<int>(random() % 15)});
    const auto orders = automatic(costs, m);
    EXPECT_EQ(orders, automatic(costs, m));
    EXPECT_TRUE(play(orders, costs, m).complete) << "round " << round;
  }
}
}  // namespace topsim::workloads::schedule
