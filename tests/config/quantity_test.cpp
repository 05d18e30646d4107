#include "sim/config/quantity.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace topsim::config::quantity_test {

TEST(Quantity, ReadsEveryUnitOfTimeExactly) {
  EXPECT_EQ(parse_quantity(Dimension::time, "500 ns").exact, 500'000);
  EXPECT_EQ(parse_quantity(Dimension::time, "1.5us").exact, 1'500'000);
  EXPECT_EQ(parse_quantity(Dimension::time, "2 \xC2\xB5s").exact, 2'000'000);
  EXPECT_EQ(parse_quantity(Dimension::time, "0.001 ps").exact, 0);
  EXPECT_EQ(parse_quantity(Dimension::time, "1e-3 s").exact, 1'000'000'000);
  EXPECT_EQ(parse_quantity(Dimension::time, "2 h").exact, 7'200'000'000'000'000);
}

TEST(Quantity, TimesBeyondADoublesDigitsKeepTheirLastPicosecond) {
  // 9223372.036854775807 s is INT64_MAX ps; a double would round it away.
  EXPECT_EQ(parse_quantity(Dimension::time, "9223372.036854775807 s").exact,
            std::numeric_limits<std::int64_t>::max());
  EXPECT_TRUE(parse_quantity(Dimension::time, "9223372.036854775808 s").error);
}

TEST(Quantity, OneByteAt400GbitPerSecondIsTwentyPicoseconds) {
  EXPECT_EQ(parse_quantity(Dimension::bandwidth, "400 Gbit/s").value, 400e9 / 8);
  EXPECT_EQ(parse_quantity(Dimension::bandwidth, "50 GB/s").value, 50e9);
}

TEST(Quantity, BinaryAndDecimalPrefixesDiffer) {
  EXPECT_EQ(parse_quantity(Dimension::size, "16 MiB").exact, 16 * 1024 * 1024);
  EXPECT_EQ(parse_quantity(Dimension::size, "16 MB").exact, 16'000'000);
  EXPECT_EQ(parse_quantity(Dimension::size, "0.5 KiB").exact, 512);
}

TEST(Quantity, AZeroNeedsNoUnitButAnyOtherNumberDoes) {
  EXPECT_FALSE(parse_quantity(Dimension::time, "0").error);
  EXPECT_EQ(parse_quantity(Dimension::time, "500").error->label, "e.g. \"500 ns\"");
}

TEST(Quantity, AmbiguousBitsAndBytesAreExplained) {
  EXPECT_EQ(parse_quantity(Dimension::bandwidth, "400 Gb/s").error->label,
            "did you mean \"400 Gbit/s\" or \"400 GB/s\"? they differ by 8x");
  EXPECT_EQ(parse_quantity(Dimension::bandwidth, "900 GBps").error->label, "did you mean \"900 GB/s\"?");
  EXPECT_EQ(parse_quantity(Dimension::size, "4 M").error->label, "did you mean \"4 MB\" or \"4 MiB\"?");
  EXPECT_EQ(parse_quantity(Dimension::time, "20 m").error->label, "this is a length");
  EXPECT_EQ(parse_quantity(Dimension::time, "20 seconds").error->label, "did you mean \"20 s\"?");
}

TEST(Quantity, WhatIsNoNumberIsRefused) {
  for (const char* text :
       {"", " ", "ns", "fast", "1,000 ns", "1 000 ns", "0x10 ns", "1e999 s", "--1 ns", "."}) {
    EXPECT_TRUE(parse_quantity(Dimension::time, text).error) << text;
  }
  EXPECT_TRUE(parse_quantity(Dimension::flop_rate, "1e308 PFLOP/s").error);
}

// A link of 1e300 byte/s does not exist: everything real lies between 1e-9 and 1e18.
TEST(Quantity, WhatNothingCanHaveIsRefused) {
  EXPECT_EQ(parse_quantity(Dimension::bandwidth, "1e300 Gbit/s").error->label, "at most 1e+06 TB/s");
  EXPECT_TRUE(parse_quantity(Dimension::bandwidth, "8.1e18 bit/s").error);
  EXPECT_FALSE(parse_quantity(Dimension::bandwidth, "7.9e18 bit/s").error);
  EXPECT_TRUE(parse_quantity(Dimension::bandwidth, "1e-300 Gbit/s").error);
  EXPECT_TRUE(parse_quantity(Dimension::flop_rate, "1e16 PFLOP/s").error);
  EXPECT_FALSE(parse_quantity(Dimension::flop_rate, "1000 PFLOP/s").error);
  EXPECT_TRUE(parse_quantity(Dimension::length, "1e300 m").error);
  EXPECT_FALSE(parse_quantity(Dimension::bandwidth, "0 Gbit/s").error);
}

TEST(Quantity, PrintedTimesAndSizesReadBackTheSame) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const auto value = static_cast<std::int64_t>(random() >> (1 + random() % 62));
    for (const Dimension dimension : {Dimension::time, Dimension::size}) {
      const std::string text = format_exact(dimension, value);
      const ParsedQuantity read = parse_quantity(dimension, text);
      ASSERT_FALSE(read.error) << text;
      ASSERT_EQ(read.exact, value) << text;
    }
  }
}

TEST(Quantity, PrintedRatesReadBackTheSameDouble) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> exponent(-3, 17);
  for (int i = 0; i < 20'000; ++i) {
    const double value = std::pow(10.0, exponent(random));
    for (const Dimension dimension :
         {Dimension::bandwidth, Dimension::flop_rate, Dimension::flops, Dimension::power, Dimension::length,
          Dimension::energy_price, Dimension::money}) {
      const std::string text = format_quantity(dimension, value);
      const ParsedQuantity read = parse_quantity(dimension, text);
      ASSERT_FALSE(read.error) << text;
      ASSERT_EQ(read.value, value) << text;
    }
  }
}

// 0.0001e320 = 1e316 and 1000000e-330 = 1e-324; a double holds 2e-308 to 2e308, and zeros down to 5e-324.
TEST(Quantity, ANumberThatNoDoubleHoldsIsTooLargeOrTooSmall) {
  const auto message = [](const char* text) {
    const ParsedQuantity read = parse_quantity(Dimension::length, text);
    return read.error ? read.error->message.substr(read.error->message.rfind('"')) : "read";
  };
  for (const char* large : {"1e999 m", "-1e999 m", "0.0001e320 m"})
    EXPECT_EQ(message(large), "\" is too large") << large;
  for (const char* small : {"1e-999 m", ".5e-400 m", "1000000e-330 m"})
    EXPECT_EQ(message(small), "\" is too small") << small;
}

TEST(Quantity, PrintsWhatAPersonWouldWrite) {
  EXPECT_EQ(to_text(Duration(500'000)), "500 ns");
  EXPECT_EQ(to_text(Duration(1'500)), "1.5 ns");
  EXPECT_EQ(to_text(Duration(-1'500)), "-1.5 ns");
  EXPECT_EQ(to_text(Bytes(25 << 20)), "25 MiB");
  EXPECT_EQ(to_text(Bytes(25'000'000)), "25 MB");
  EXPECT_EQ(to_text(Bytes(4097)), "4097 B");
  EXPECT_EQ(to_text(BytesPerSecond(50e9)), "50 GB/s");
  EXPECT_EQ(to_text(Metres(20)), "20 m");
}
}  // namespace topsim::config::quantity_test
