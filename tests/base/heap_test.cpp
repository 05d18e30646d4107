#include "sim/base/heap.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <numeric>
#include <vector>

namespace topsim::heap_test {

// Memory keeps its content wherever its pages come from. List n of 64 holds the 2^16 numbers from n on; all
// together sum to 64 x (2^16 x (2^16 - 1) / 2) + 2^16 x (0 + 1 + ... + 63) = 137,436,856,320 + 132,120,576.
TEST(Heap, HoldsWhatItHeldWhereverItsPagesComeFrom) {
  const std::vector<std::size_t> before(1000, 7);
  keep_freed_memory();
  for (int twice = 0; twice < 2; ++twice) {
    put_heap_on_huge_pages(std::size_t{64} << 20);
    std::vector<std::vector<std::size_t>> lists(64, std::vector<std::size_t>(1U << 16));
    std::size_t sum = 0;
    for (std::size_t n = 0; n < lists.size(); ++n) std::iota(lists[n].begin(), lists[n].end(), n);
    for (const auto& list : lists) sum = std::accumulate(list.begin(), list.end(), sum);
    EXPECT_EQ(sum, 137'436'856'320U + 132'120'576U);
  }
  EXPECT_EQ(before, std::vector<std::size_t>(1000, 7));
}
}  // namespace topsim::heap_test
