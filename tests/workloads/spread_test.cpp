#include "workloads/compute/spread.hpp"

#include <gtest/gtest.h>

#include "tests/workloads/fixtures.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::spread_test {
using namespace testing;

// The largest of n draws from a normal distribution lies 1.424 deviations above the mean for n = 8 and 2.508
// for n = 100 (tables of order statistics). Blom's formula is good to 0.015.
TEST(Spread, TheLargestOfSeveralDrawsIsThatOfTheTables) {
  EXPECT_EQ(expected_largest(1), 0);
  EXPECT_NEAR(expected_largest(8), 1.424, 0.015);
  EXPECT_NEAR(expected_largest(100), 2.508, 0.015);
}

// Chips differ by 0.1: matmuls of a job on 8 take 1 + 0.1 x 1.43 times as long; a single one waits for no
// other.
TEST(Spread, MatmulsOfAJobTakeAsLongAsOnTheSlowestChip) {
  const auto compute_time = [](double spread, std::uint32_t ranks) {
    WorkloadSpec workload;
    workload.model = gpt(8, 1024, 16);
    workload.framework = "megatron";
    workload.compute.chip_spread = spread;
    workload.compute.gemm_efficiency = 1e-3;  // nothing else matters
    double sum = 0;
    const auto program = training_step(workload, a100(), ranks);
    for (const program::Op& op : program.classes[0].ops) sum += seconds(op.duration);
    return sum;
  };
  EXPECT_NEAR(compute_time(0.1, 8) / compute_time(0, 8), 1.143, 0.003);
  EXPECT_EQ(compute_time(0.1, 1), compute_time(0, 1));
}
}  // namespace topsim::workloads::spread_test
