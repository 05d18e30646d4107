// Every order is executed event by event, with equal stages and free transfers: it must give the closed form
// of schedule.hpp in integer time, and no stage may wait forever.
#include "workloads/schedule/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace topsim::workloads::schedule_test {

struct Times {
  long forward, input, weight;  // of one chunk
};
struct Execution {
  long makespan = 0;
  std::vector<long> first, last, busy;  // per stage
  std::vector<int> held;                // most micro-batch passes held at once, per stage
  bool complete = true;
};

// The part of the model (global stage) that a chunk of a stage is.
int part_of(Schedule schedule, int stage, int chunk, int stages) {
  if (schedule == Schedule::zb_v) return chunk == 0 ? stage : 2 * stages - 1 - stage;
  if (schedule == Schedule::dualpipe) return chunk == 0 ? stage : stages - 1 - stage;
  return chunk * stages + stage;
}

Execution execute(Schedule schedule, int stages, int micro_batches, int chunks, const Times& times) {
  const int parts = schedule == Schedule::zb_v       ? 2 * stages
                    : schedule == Schedule::dualpipe ? stages
                                                     : stages * chunks;
  std::vector<std::vector<StageTask>> orders;
  for (int r = 0; r < stages; ++r) orders.push_back(order_of(schedule, r, stages, micro_batches, chunks));
  Execution run;
  run.first.assign(orders.size(), -1), run.last.assign(orders.size(), 0), run.busy.assign(orders.size(), 0);
  run.held.assign(orders.size(), 0);
  std::vector<int> holding(orders.size(), 0);
  std::vector<std::size_t> next(orders.size(), 0);
  std::map<std::tuple<bool, int, int>, long> done;  // (forward, micro-batch, part) -> end
  bool moved = true;
  while (moved) {
    moved = false;
    for (int r = 0; r < stages; ++r) {
      const auto s = static_cast<std::size_t>(r);
      while (next[s] < orders[s].size()) {
        // A fused pair starts when both of its tasks can, and ends as one.
        const std::size_t tasks = orders[s][next[s]].with_next ? 2 : 1;
        long ready = run.last[s], length = 0;
        bool possible = true;
        for (std::size_t i = 0; i < tasks; ++i) {
          const StageTask& task = orders[s][next[s] + i];
          const int part = part_of(schedule, r, task.chunk, stages);
          const auto need = [&](bool forward, int of_part) {
            const auto found = done.find({forward, task.micro_batch, of_part});
            if (found == done.end()) return possible = false;
            ready = std::max(ready, found->second);
            return true;
          };
          if (task.action == Action::forward && part > 0) need(true, part - 1);
          if (task.action == Action::backward || task.action == Action::backward_input) {
            need(true, part);
            if (part + 1 < parts) need(false, part + 1);
          }
          if (task.action == Action::backward_weight) need(false, part);
          length += task.action == Action::forward          ? times.forward
                    : task.action == Action::backward       ? times.input + times.weight
                    : task.action == Action::backward_input ? times.input
                                                            : times.weight;
        }
        if (!possible) break;
        if (run.first[s] < 0) run.first[s] = ready;
        run.last[s] = ready + length;
        run.busy[s] += length;
        for (std::size_t i = 0; i < tasks; ++i, ++next[s]) {
          const StageTask& task = orders[s][next[s]];
          const int part = part_of(schedule, r, task.chunk, stages);
          if (task.action == Action::forward) done[{true, task.micro_batch, part}] = run.last[s];
          if (task.action == Action::backward || task.action == Action::backward_input)
            done[{false, task.micro_batch, part}] = run.last[s];
          holding[s] += task.action == Action::forward ? 1 : task.action == Action::backward_input ? 0 : -1;
          run.held[s] = std::max(run.held[s], holding[s]);
        }
        moved = true;
      }
    }
  }
  for (std::size_t s = 0; s < orders.size(); ++s) {
    run.complete = run.complete && next[s] == orders[s].size() && holding[s] == 0;
    run.makespan = std::max(run.makespan, run.last[s]);
  }
  return run;
}

long bubble(const Execution& run, std::size_t stage) {
  return run.makespan - run.busy[stage];
}

const Times kUneven{7, 11, 5};  // F < I, W < F: no equality by chance

TEST(Schedule, GPipeAnd1F1BIdleForPMinus1MicroBatches) {
  for (const Schedule schedule : {Schedule::gpipe, Schedule::one_f_one_b})
    for (const int p : {1, 2, 3, 4, 8, 16})
      for (const int m : {p, 2 * p, 5 * p + 1}) {
        const Execution run = execute(schedule, p, m, 1, kUneven);
        ASSERT_TRUE(run.complete);
        for (std::size_t r = 0; r < run.busy.size(); ++r) EXPECT_EQ(bubble(run, r), (p - 1) * (7 + 11 + 5));
        // The share of the step: (p-1) / (m + p-1).
        EXPECT_EQ(run.makespan, (m + p - 1) * (7 + 11 + 5));
      }
}

TEST(Schedule, GPipeHoldsAllMicroBatches1F1BAtMostThePipeline) {
  EXPECT_EQ(execute(Schedule::gpipe, 4, 12, 1, kUneven).held, (std::vector<int>{12, 12, 12, 12}));
  EXPECT_EQ(execute(Schedule::one_f_one_b, 4, 12, 1, kUneven).held, (std::vector<int>{4, 3, 2, 1}));
}

TEST(Schedule, InterleavingDividesTheBubbleByTheChunks) {
  for (const int p : {2, 4, 8})
    for (const int v : {2, 3, 4})
      for (const int m : {p, 2 * p, 6 * p}) {
        const Execution run = execute(Schedule::interleaved, p, m, v, kUneven);
        ASSERT_TRUE(run.complete) << p << ' ' << v << ' ' << m;
        // (p - 1) (F + B) in chunk times; a whole stage takes v of them.
        for (std::size_t r = 0; r < run.busy.size(); ++r) EXPECT_EQ(bubble(run, r), (p - 1) * (7 + 11 + 5));
        EXPECT_EQ(run.held[0], std::min(m * v, v * p + p - 1));
      }
}

TEST(Schedule, InterleavingHolds11AndAHalfStagesOf8WithTwoChunks) {
  // p (1 + (p-1)/(p v)) stages: for p = 8 11.5 with v = 2 and 9.75 with v = 4; in chunks v times as many.
  EXPECT_EQ(execute(Schedule::interleaved, 8, 32, 2, kUneven).held[0], 23);
  EXPECT_EQ(execute(Schedule::interleaved, 8, 32, 4, kUneven).held[0], 39);
}

TEST(Schedule, ZeroBubbleH1HidesTwoWeightGradientsOfEachStep) {
  for (const int p : {2, 4, 8})
    for (const int m : {2 * p, 5 * p}) {
      for (const Times& times : {Times{10, 10, 10}, Times{10, 12, 8}, Times{9, 9, 7}}) {
        const Execution run = execute(Schedule::zb_h1, p, m, 1, times);
        ASSERT_TRUE(run.complete);
        const long b = times.input + times.weight;
        for (std::size_t r = 0; r < run.busy.size(); ++r) {
          EXPECT_EQ(bubble(run, r), (p - 1) * (times.forward + b - 2 * times.weight));
          EXPECT_LE(run.held[r], p);
        }
      }
    }
}

TEST(Schedule, ZeroBubble2PLeavesNoGapInsideAStage) {
  for (const int p : {2, 4, 8})
    for (const int m : {2 * p, 4 * p, 4 * p + 3}) {
      const Execution run = execute(Schedule::zb_2p, p, m, 1, {10, 10, 10});
      ASSERT_TRUE(run.complete);
      for (std::size_t r = 0; r < run.busy.size(); ++r) {
        EXPECT_EQ(run.last[r] - run.first[r], run.busy[r]) << "p " << p << " m " << m << " stage " << r;
        EXPECT_LE(run.held[r], 2 * p);
      }
    }
}

TEST(Schedule, ZeroBubbleVIdlesForHalfAForwardAStage) {
  for (const int p : {2, 4, 8})
    for (const int m : {2 * p, 3 * p, 6 * p}) {
      const Execution run = execute(Schedule::zb_v, p, m, 2, {10, 10, 10});
      ASSERT_TRUE(run.complete);
      // F of a stage is two chunks of 10: (p - 1) F / 2 = (p - 1) 10.
      for (std::size_t r = 0; r < run.busy.size(); ++r) {
        EXPECT_EQ(bubble(run, r), (p - 1) * 10);
        EXPECT_LE(run.held[r], 2 * p);
      }
    }
}

TEST(Schedule, DualPipeIdlesAsItsReportSays) {
  for (const int p : {2, 4, 8, 16})
    for (const int m : {2 * p, 4 * p}) {
      const Times times{10, 10, 10};  // B = 20, F&B = F + B = 30
      const Execution run = execute(Schedule::dualpipe, p, m, 2, times);
      ASSERT_TRUE(run.complete) << p << ' ' << m;
      long most = 0;
      for (std::size_t r = 0; r < run.busy.size(); ++r) most = std::max(most, bubble(run, r));
      EXPECT_EQ(most, (p / 2 - 1) * (30 + 20 - 3 * 10)) << p << ' ' << m;
      for (const int held : run.held) EXPECT_LE(held, p + 1);
    }
}
}  // namespace topsim::workloads::schedule_test
