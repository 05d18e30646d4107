#include "sim/study/digest.hpp"

#include <gtest/gtest.h>

namespace topsim::study::digest_test {

std::string of(std::initializer_list<std::string_view> parts) {
  Digest digest;
  for (const std::string_view part : parts) digest.add(part);
  return digest.text();
}

TEST(Digest, IsThirtyTwoDigitsAndTheSameForTheSameParts) {
  EXPECT_EQ(of({"ab", "c"}), of({"ab", "c"}));
  EXPECT_EQ(of({"ab", "c"}).size(), 32U);
  EXPECT_EQ(of({"ab", "c"}).find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST(Digest, KeepsPartsApart) {
  EXPECT_NE(of({"ab", "c"}), of({"a", "bc"}));
  EXPECT_NE(of({"ab", "c"}), of({"abc"}));
  EXPECT_NE(of({"ab", "c"}), of({"c", "ab"}));
  EXPECT_NE(of({""}), of({}));
  EXPECT_NE(of({"", ""}), of({""}));
}
}  // namespace topsim::study::digest_test
