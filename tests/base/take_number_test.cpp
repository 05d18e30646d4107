#include "sim/base/take_number.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/comma_locale.hpp"

namespace topsim::take_number_test {

TEST(TakeNumber, ReadsAPointAsAPointWhereTheHostWritesCommas) {
  const test::CommaLocale locale;
  if (!locale.holds()) GTEST_SKIP() << "no locale with a comma, and no localedef";
  std::string_view text = "1.5 GT/s";
  EXPECT_EQ(std::strtod("1.5", nullptr), 1);  // what it is there for
  EXPECT_EQ(take_number<double>(text), 1.5);
  EXPECT_EQ(text, " GT/s");
}

TEST(TakeNumber, GoesOnBehindTheNumber) {
  std::string_view text = " +2.5e3 17\n";
  EXPECT_EQ(take_number<double>(text), 2500);
  EXPECT_EQ(take_number<std::uint64_t>(text), 17U);
  EXPECT_EQ(take_number<double>(text), std::nullopt);
  EXPECT_EQ(text, "\n");
}

TEST(TakeNumber, IsNothingWhereTheNumberDoesNotFit) {
  std::string_view text = "1e999";
  EXPECT_EQ(take_number<double>(text), std::nullopt);
  EXPECT_EQ(text, "1e999");
}
}  // namespace topsim::take_number_test
