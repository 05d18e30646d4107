#include "sim/network/past_levels.hpp"

#include <gtest/gtest.h>

#include "sim/network/rounding.hpp"

namespace topsim::network::past_levels_test {

constexpr SimTime at(std::int64_t picoseconds) {
  return SimTime(Duration(picoseconds));
}

// Levels 5, 3, 4 and 1: since the second the highest is the third, 4, which hides the 3.
TEST(PastLevels, KnowTheHighestSinceTheBeginningOfEach) {
  PastLevels past;
  EXPECT_EQ(past.highest_since(at(0)), 0);
  const double levels[] = {5, 3, 4, 1}, highest[] = {5, 4, 4, 1};
  for (int i = 0; i < 4; ++i) past.add(at(10 * i), levels[i]);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(past.highest_since(at(10 * i)), highest[i]) << i;
  EXPECT_EQ(past.highest_since(at(40)), 0);
  past.add(at(40), 6);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(past.highest_since(at(10 * i)), 6) << i;
  past.clear();
  EXPECT_EQ(past.highest_since(at(0)), 0);
}

// 7 ps and 1.6 ps are 8.6, of which 1.6 is rounded, since instants are whole: 7 + 2. 9.2e6 s are 106 days.
TEST(AfterSeconds, RoundsToTheNearestPicosecondAndKnowsTheEndOfTheClock) {
  EXPECT_EQ(after_seconds(at(7), 1.6e-12), at(9));
  EXPECT_EQ(after_seconds(at(7), 1.4e-12), at(8));
  EXPECT_EQ(after_seconds(at(7), 9.2e6), kNever);
  EXPECT_LT(after_seconds(at(7), 9.1e6), kNever);
  EXPECT_EQ(after_seconds(after_seconds(at(0), 9e6), 0.3e6), kNever);
  EXPECT_EQ(after_seconds(at(7), -1), at(7));
  EXPECT_EQ(after_seconds(at(7), 0), at(7));
}
}  // namespace topsim::network::past_levels_test
