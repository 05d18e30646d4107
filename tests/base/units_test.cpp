// Numbers that become times.
#include "sim/base/units.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace topsim::units_test {

TEST(Units, SecondsBecomeTheNearestPicosecond) {
  EXPECT_EQ(from_seconds(1.6e-12), Duration(2));
  EXPECT_EQ(from_microseconds(-1.4e-6), Duration(-1));
  EXPECT_EQ(from_seconds(9e6), Duration(9'000'000'000'000'000'000));
}

// 64 bits hold 9.22e6 seconds, 106 days. A terabyte at a byte a second takes 1e12.
TEST(Units, WhatTheClockCannotHoldIsItsEnd) {
  const Duration end(9'200'000'000'000'000'000);
  EXPECT_EQ(Bytes(1'000'000'000'000) / BytesPerSecond(1), end);
  EXPECT_EQ(Bytes(1) / BytesPerSecond(0), end);
  EXPECT_EQ(from_microseconds(1e300), end);
  EXPECT_EQ(from_seconds(-1e300), -end);
  EXPECT_EQ(from_seconds(std::numeric_limits<double>::quiet_NaN()), end);
}
}  // namespace topsim::units_test
