#include "sim/base/product.hpp"

#include <gtest/gtest.h>

#include <array>

namespace topsim::product_test {

TEST(Product, DoesNotWrapWhereAnIntWould) {
  // 2^30 x 2 x 2 = 2^32.
  EXPECT_EQ(product_of(std::array{1 << 30, 2, 2}), std::int64_t{1} << 32);
}

TEST(Product, IsNothingBeyondSixtyFourBits) {
  EXPECT_EQ(product_of(std::array{1 << 30, 1 << 30, 8}), std::nullopt);  // 2^60 x 8 = 2^63
  EXPECT_EQ(product_text(product_of(std::array{1 << 30, 1 << 30, 8})), "more than 9e18");
  EXPECT_EQ(product_text(product_of(std::array{3, 3})), "9");
}

TEST(Product, OfNothingIsOne) {
  EXPECT_EQ(product_of({}), 1);
}
}  // namespace topsim::product_test
