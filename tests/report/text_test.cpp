#include "sim/report/text.hpp"

#include <gtest/gtest.h>

namespace topsim::report::text_test {
using namespace topsim::literals;

TEST(Text, ThreeDigitsWithoutAnExponent) {
  EXPECT_EQ(three_digits(8.514), "8.51");
  EXPECT_EQ(three_digits(9.996), "10.0");  // the carry keeps three digits
  EXPECT_EQ(three_digits(0.01234), "0.0123");
  EXPECT_EQ(three_digits(61634), "61600");
  EXPECT_EQ(three_digits(-47.04), "-47.0");
  EXPECT_EQ(three_digits(0), "0");
  EXPECT_EQ(three_digits(1), "1.00");
}

TEST(Text, ATimeChoosesItsUnitAfterRounding) {
  EXPECT_EQ(duration_text(8510_ms), "8.51 s");
  EXPECT_EQ(duration_text(Duration(999'600'000)), "1.00 ms");
  EXPECT_EQ(duration_text(Duration(999'400'000)), "999 us");
  EXPECT_EQ(duration_text(20_ps), "20.0 ps");
  EXPECT_EQ(duration_text(0_ps), "0 ps");
}

TEST(Text, SizesPeopleChoseStayBinary) {
  EXPECT_EQ(message_text(128_MiB), "128 MiB");
  EXPECT_EQ(message_text(Bytes(1536)), "1.5 KiB");
  EXPECT_EQ(message_text(Bytes(62'500 * 1024)), "61.0 MiB");  // 62,500 KiB / 1,024
  EXPECT_EQ(message_text(Bytes(125 << 19)), "62.5 MiB");
  EXPECT_EQ(message_text(Bytes(206'976 * 1024)), "202 MiB");  // 202.125 MiB; one unit for a whole column
  EXPECT_EQ(memory_text(80_GiB), "80.0 GiB");
  EXPECT_EQ(bytes_text(1.5e12), "1.50 TB");
}

TEST(Text, SmallDifferencesHaveTwoDecimalsAndNoSignOfNothing) {
  EXPECT_EQ(signed_percent_text(0.0763), "+7.63 %");
  EXPECT_EQ(signed_percent_text(-0.000149), "-0.01 %");
  EXPECT_EQ(signed_percent_text(-0.00004), "0 %");
  EXPECT_EQ(signed_percent_text(0), "0 %");
}

TEST(Text, LargeCountsAreGrouped) {
  EXPECT_EQ(count_text(61634), "61 600");
  EXPECT_EQ(count_text(1234567), "1 230 000");
  EXPECT_EQ(exact_count_text(1234567), "1 234 567");
  EXPECT_EQ(exact_count_text(21), "21");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(2), "2");
  EXPECT_EQ(count_text(2.5), "2.50");
}

TEST(Text, WrapsAtSpacesAndIndents) {
  EXPECT_EQ(wrap("  note: one two three", 12, 4),
            (std::vector<std::string>{"  note: one", "    two", "    three"}));
  // "  limits 92.3" has 13 columns, "  costs 2 770" as many.
  EXPECT_EQ(wrap("  limits 92.3 %", 14, 4), (std::vector<std::string>{"  limits", "    92.3 %"}));
  EXPECT_EQ(wrap("  costs 2 770 000 USD", 14, 4),
            (std::vector<std::string>{"  costs", "    2 770 000", "    USD"}));
  EXPECT_EQ(wrap("", 12, 4), std::vector<std::string>{""});
}

TEST(Text, WidthCountsCharactersNotBytes) {
  EXPECT_EQ(width("\u2588\u258f"), 2U);
  EXPECT_EQ(width(clip("node0/gpu3 -> node0/nvswitch0", 12)), 12U);
  EXPECT_EQ(clip("short", 12), "short");
  EXPECT_EQ(clip_end("InfiniBand NDR", 11), "InfiniBand\u2026");
  EXPECT_EQ(pad_left("7", 3), "  7");
  EXPECT_EQ(bar(0.5, 4), "\u2588\u2588");
  EXPECT_EQ(bar(1.0 / 32, 4), "\u258f");
}
}  // namespace topsim::report::text_test
