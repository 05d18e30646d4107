#include "sim/base/hints.hpp"

#include <gtest/gtest.h>

namespace topsim::hints_test {

// NeMo's containers are named by year and month; 25.09 is the first with the sets of 2025.
TEST(Hints, AContainersReleaseIsTheSetOfItsTime) {
  EXPECT_EQ(hint_of_value("framework", "megatron@24.07"), "did you mean \"megatron@2024\"?");
  EXPECT_EQ(hint_of_value("framework", "megatron@v24.11.1"), "did you mean \"megatron@2024\"?");
  EXPECT_EQ(hint_of_value("framework", "megatron@25.04"), "did you mean \"megatron@2024\"?");
  EXPECT_EQ(hint_of_value("framework", "NeMo@25.09"), "did you mean \"megatron@2025\"?");
  EXPECT_EQ(hint_of_value("framework", "megatron@23.11"), "did you mean \"megatron@2023\"?");
  EXPECT_NE(hint_of_value("framework", "megatron@0.8").find("the year"), std::string_view::npos);
  EXPECT_EQ(hint_of_value("framework", "megatron@2099"), "");
}

TEST(Hints, MarksAreNoDifference) {
  EXPECT_EQ(hint_of_value("schedule", "ZeroBubble"), hint_of_value("schedule", "zero-bubble"));
  EXPECT_NE(hint_of_value("schedule", "ZeroBubble"), "");
  EXPECT_NE(hint_of_key("nccl", "nccl_pxn_disable"), "");
}
}  // namespace topsim::hints_test
