#include "sim/base/mirror_bits.hpp"

#include <gtest/gtest.h>

namespace topsim::mirror_bits_test {

// Of eight: 1 is 001, mirrored 100 = 4; 3 is 011, mirrored 110 = 6.
TEST(MirrorBits, SpreadsNeighboursOverEqualParts) {
  const int eight[] = {0, 4, 2, 6, 1, 5, 3, 7};
  for (int value = 0; value < 8; ++value) EXPECT_EQ(mirror_bits(value, 8), eight[value]) << value;
  EXPECT_EQ(mirror_bits(1U, 2U), 1U);
  EXPECT_EQ(mirror_bits(0U, 1U), 0U);
}
}  // namespace topsim::mirror_bits_test
