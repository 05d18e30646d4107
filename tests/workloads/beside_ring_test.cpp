// Rings and kernels beside each other, timed for topsim (tests/golden/accelerator, *-ring.json): what the
// executor takes from each. Of the H100 comes one constant, executor::kReached; the H200 is blind.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "sim/executor/rank_state.hpp"
#include "tests/workloads/timed_kernels.hpp"

namespace topsim::workloads::beside_ring_test {
using namespace testing;

using nlohmann::json;

struct Chip {
  const char *file, *accelerator;
};

class BesideRing : public ::testing::TestWithParam<Chip> {
 protected:
  // Every byte that a ring sends is three of the memory's: one read that came from a neighbour, one copy or
  // one read of the rank's own, one that comes meanwhile.
  static constexpr double kBytesOfMemory = 3;
  struct Row {
    std::string work;
    int blocks;
    bool has_wires;  // that limit it
    double sends, ratio, beside;
  };
  template <class Visit>
  static void each_row(Visit visit) {
    const json rows = timed_rows(GetParam().file, "ring");
    for (const json& row : rows) visit(Row{row[0], row[1], row[2] > 0, row[5], row[4], row[6]});
  }
  static bool fills_memory(const std::string& work) {
    return work.starts_with("copy") || work.starts_with("mul");
  }
  static bool is_norm(const std::string& work) { return work.starts_with("rms"); }

  BesideRing() {
    const topology::Accelerator& chip = shipped().accelerator(GetParam().accelerator);
    facts_ = {chip.compute_units, chip.memory_bandwidth};
    kernel_.memory_bound = kernel_.fills_memory = kernel_.first_kernel = 1;
    kernel_.residual = 0.5F;
    call_.kind = program::OpKind::collective;
    program_.ops = {kernel_, call_, kernel_};
    program_.dependency_begin = {0, 0, 0, 0};
    program_.streams = {"compute"};
  }
  [[nodiscard]] executor::RankState rank() { return {program_, table_, facts_, trace_}; }
  // Times as long as alone that a kernel takes whose time is the memory's.
  double predicted_ratio(const Row& row) {
    executor::RankState state = rank();
    fold::Activity ring;
    ring.ctas = row.blocks;
    state.occupy(call_, ring, 1, traffic(row));
    program::Op kernel = kernel_;
    kernel.fills_memory = is_norm(row.work) ? 0 : 1;
    return state.pace_of(kernel).shared;
  }
  // Of one that comes when half of a kernel is left, which the executor takes on average.
  double wait_beside_a_kernel(double seconds_alone) {
    executor::RankState state = rank();
    fold::Activity ring;
    ring.ctas = 24;
    const Duration alone = from_seconds(seconds_alone);
    state.compute.start(0, alone.count(), nullptr, executor::Pace{}, SimTime{});
    return seconds(state.wait_for_units(1, ring, SimTime{} + alone / 2));
  }
  double predicted_rate(const Row& row) {
    fold::Activity ring;
    ring.ctas = row.blocks;
    return row.sends * (1 - rank().held_back(call_, ring, traffic(row)));
  }

  // Of one that can start when the kernel does.
  double wait_for_a_kernel_that_begins(double seconds_alone, bool one_queue, bool ring_launched_first) {
    program_.in_launch_order = one_queue;
    executor::RankState state = rank();
    fold::Activity ring;
    ring.ctas = 24;
    state.compute.start(ring_launched_first ? 2 : 0, from_seconds(seconds_alone).count(), nullptr,
                        executor::Pace{}, SimTime{});
    return seconds(state.wait_for_units(1, ring, SimTime{}));
  }

 private:
  static std::int64_t traffic(const Row& row) {
    return static_cast<std::int64_t>(kBytesOfMemory * row.sends * 1e9);
  }
  executor::AcceleratorFacts facts_;
  program::Op kernel_, call_;
  program::RankProgram program_;
  executor::StreamTable table_{program_};
  executor::Trace trace_{table_};
};
INSTANTIATE_TEST_SUITE_P(Chips, BesideRing,
                         ::testing::Values(Chip{"h100-sxm5-ring", "h100-sxm5"},
                                           Chip{"h200-sxm-ring", "h200-sxm"}),
                         [](const auto& chip) { return chip.index == 0 ? "H100" : "H200"; });

TEST_P(BesideRing, GetsItsShareOfTheMemoryBesideKernelsThatFillIt) {
  Errors error;
  each_row([&](const Row& row) {
    if (fills_memory(row.work)) error.add(predicted_rate(row), row.beside);
  });
  EXPECT_EQ(error.count, 38);
  EXPECT_NEAR(error.bias(), 0.1, 0.15);
  EXPECT_LT(error.mean(), 0.2);
}

TEST_P(BesideRing, IsNotHeldBackByProductsAttentionAndNormsWhereWiresLimitIt) {
  int rows = 0;
  each_row([&](const Row& row) {
    // 16 blocks that send 330 GB/s are at their own limit, and so send less.
    if (fills_memory(row.work) || !row.has_wires || row.sends / row.blocks > 20) return;
    ++rows;
    EXPECT_NEAR(row.beside / row.sends, 1, 0.03) << row.work << " " << row.blocks << " " << row.sends;
  });
  EXPECT_GT(rows, 60);
}

TEST_P(BesideRing, TakesFromKernelsWhatItMoves) {
  Errors error;
  each_row([&](const Row& row) {
    if (fills_memory(row.work) || is_norm(row.work)) error.add(predicted_ratio(row), row.ratio);
  });
  EXPECT_EQ(error.count, 57);
  EXPECT_NEAR(error.bias(), 0, 0.05);
  EXPECT_LT(error.mean(), 0.08);
}

// At the default priority, one ring after another. An instant within kernels that follow each other has half
// of one left on average; a kernel that has not launched all its blocks goes first, too. Products of fewer
// blocks than units are left out, beside which its first blocks begin at once.
TEST_P(BesideRing, WaitsForHalfOfTheKernelUnderWay) {
  const json rows = timed_rows(GetParam().file, "ring_waits");
  double waits = 0, predicted = 0;
  int count = 0;
  for (const json& row : rows) {
    const std::string work = row[0];
    if (row[1] != 0 || work == "fwd 4096 1280 8192") continue;
    waits += (row[7].get<double>() - row[6].get<double>()) / row[5].get<double>();
    predicted += wait_beside_a_kernel(1e-6 * row[5].get<double>()) / row[5].get<double>() * 1e6;
    ++count;
  }
  EXPECT_EQ(count, 45);
  EXPECT_NEAR(predicted / waits, 1.18, 0.18);
}

// A ring and a call that can start at one instant: with eight queues to the device the call starts, whichever
// was launched first, and the ring when all of the call's blocks have units, 0.65 to 1 of the call later (a
// product of fewer blocks than units leaves it some). With one queue what was launched first starts.
class RingOrder : public BesideRing {};
INSTANTIATE_TEST_SUITE_P(Chips, RingOrder, ::testing::Values(Chip{"h100-sxm5-ring", "h100-sxm5"}));
TEST_P(RingOrder, OneQueueKeepsTheOrderOfLaunchesAndEightPreferTheComputeStream) {
  const json rows = timed_rows(GetParam().file, "ring_order"),
             waits = timed_rows(GetParam().file, "ring_waits");
  int alone = 0;
  for (const json& row : rows) {
    const std::string work = row[0];
    const double ring = row[3], call = row[4];
    if (work == "fwd 4096 1280 8192") continue;
    const auto same =
        std::find_if(waits.begin(), waits.end(), [&](const json& its) { return its[0] == work; });
    const double once = same->at(5);
    const double predicted = 1e6 * wait_for_a_kernel_that_begins(1e-6 * once, row[1] == 1, row[2] == 1);
    if (predicted == 0) {
      ++alone;
      EXPECT_LT(ring, 3.5) << work;
      EXPECT_LT(ring, call) << work;
    } else {
      EXPECT_LT(call, 5) << work;
      EXPECT_NEAR(ring / predicted, 0.84, 0.2) << work;
    }
  }
  EXPECT_EQ(alone, 9);
}
}  // namespace topsim::workloads::beside_ring_test
