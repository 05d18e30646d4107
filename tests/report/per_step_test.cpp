#include "sim/report/per_step.hpp"

#include <gtest/gtest.h>

namespace topsim::report::per_step_test {

// 12 calls of groups of 8 are 96 of ranks; of 64 accelerators in three steps each has 96 / 64 / 3 = 0.5.
TEST(PerStep, CallsAreThoseOfARankAndBytesThoseOfAStep) {
  Result result;
  result.accelerators = 64;
  result.step_times.resize(3);
  CollectiveRow row;
  row.calls = 12, row.group_size = 8;
  EXPECT_DOUBLE_EQ(calls_of_a_rank_per_step(result, row), 0.5);
  LinkRow link;
  link.bytes = Bytes(300);
  EXPECT_DOUBLE_EQ(bytes_per_step(result, link), 100);
}
}  // namespace topsim::report::per_step_test
