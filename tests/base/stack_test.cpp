#include "sim/base/stack.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace topsim::stack_test {
namespace {

// `levels` frames of at least 1 KiB.
int depth(int levels) {
  volatile char frame[1024];
  frame[0] = 1;
  const int below = levels == 1 ? 0 : depth(levels - 1);
  return below + frame[0];
}

TEST(Stack, HoldsWhatThreadsUsuallyCannot) {
  constexpr int kLevels = 1 << 15;  // 32 MiB and more; a main thread mostly has 8
  int reached = 0;
  on_stack_of(std::size_t{256} << 20, [&] { reached = depth(kLevels); });
  EXPECT_EQ(reached, kLevels);
}

TEST(Stack, WhatIsThrownOnItIsThrownOn) {
  EXPECT_THROW(on_stack_of(1 << 20, [] { throw std::runtime_error("here"); }), std::runtime_error);
}
}  // namespace
}  // namespace topsim::stack_test
