#include "sim/base/parallel.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace topsim::parallel::parallel_test {
namespace {

std::string thrown_by(const std::function<void()>& run) {
  try {
    run();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(Parallel, EveryIndexRunsOnce) {
  std::vector<int> small(10'000), large(100);
  for_each(small.size(), [&](std::size_t i) { ++small[i]; });
  in_order(large.size(), 0, [&](std::size_t i) { ++large[i]; });
  EXPECT_EQ(small, std::vector<int>(small.size(), 1));
  EXPECT_EQ(large, std::vector<int>(large.size(), 1));
}

TEST(Parallel, OfSeveralExceptionsTheLowestIndexIsThrownOnHoweverOftenItIsTried) {
  const auto body = [](std::size_t i) {
    if (i % 7 == 5) throw std::runtime_error(std::to_string(i));  // 5, 12, 19...
  };
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(thrown_by([&] { for_each(1000, body); }), "5");
    EXPECT_EQ(thrown_by([&] { in_order(1000, 0, body); }), "5");
  }
}

TEST(Parallel, NothingIsBegunAfterAnExceptionOrWhenToldToStop) {
  std::atomic<std::size_t> begun{0};
  EXPECT_EQ(thrown_by([&] {
              in_order(1000, 1, [&](std::size_t i) {
                ++begun;
                if (i == 3) throw std::runtime_error("three");
              });
            }),
            "three");
  EXPECT_EQ(begun, 4U);  // 0, 1, 2, 3 on the one lane
  begun = 0;
  in_order(
      1000, 1, [&](std::size_t) { ++begun; }, [&] { return begun >= 2; });
  EXPECT_EQ(begun, 2U);
}

TEST(Parallel, OneJobRunsInTheOrderOfTheIndicesAndLoopsMayHoldLoops) {
  std::vector<std::size_t> order;
  std::atomic<std::size_t> inner{0};
  in_order(50, 1, [&](std::size_t i) {
    order.push_back(i);
    for_each(10, [&](std::size_t) { ++inner; });
  });
  std::vector<std::size_t> expected(50);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
  EXPECT_EQ(inner, 500U);
}

TEST(Parallel, LanesNeverExceedTheCores) {
  EXPECT_EQ(lanes(1), 1);
  EXPECT_GE(lanes(0), 1);
  EXPECT_LE(lanes(1'000'000), lanes(0));
}
}  // namespace
}  // namespace topsim::parallel::parallel_test
