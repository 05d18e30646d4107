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

// torchtitan compiles the loss since April 2025: half the memory of logits before that is missing.
TEST(Hints, TorchtitanIsTheSetOfItsYear) {
  const auto first = [](std::string_view name) {
    const std::string_view hint = hint_of_value("framework", name);
    return hint.substr(0, hint.find('"', 1) + 1);
  };
  EXPECT_EQ(first("torchtitan@2024"), "\"fsdp@2024-compile\"");
  EXPECT_EQ(first("TorchTitan@2024.11"), "\"fsdp@2024-compile\"");
  EXPECT_EQ(first("torchtitan@2025"), "\"fsdp@2025-compile\"");
  EXPECT_EQ(first("torchtitan@2026"), "\"fsdp@2026-compile\"");
  EXPECT_EQ(first("torchtitan"), "\"fsdp@2025-compile\"");
  EXPECT_NE(hint_of_value("framework", "torchtitan").find("\"fsdp@2024-compile\""), std::string_view::npos);
}

// "silu" would leave the gate out.
TEST(Hints, AGatedActivationIsAKeyAndAnActivation) {
  for (const char* word : {"swiglu", "SwiGLU", "geglu", "reglu", "glu"})
    EXPECT_TRUE(hint_of_value("activation", word).starts_with("\"gated_ffn\": true")) << word;
}

TEST(Hints, GroupsOfAdaptersAreLists) {
  EXPECT_EQ(hint_of_value("targets", "all-linear"), "\"targets\": [\"qkv\", \"proj\", \"fc1\", \"fc2\"]");
  EXPECT_EQ(hint_of_value("targets", "attention"), "\"targets\": [\"qkv\", \"proj\"]");
}

TEST(Hints, MarksAreNoDifference) {
  EXPECT_EQ(hint_of_value("schedule", "ZeroBubble"), hint_of_value("schedule", "zero-bubble"));
  EXPECT_NE(hint_of_value("schedule", "ZeroBubble"), "");
  EXPECT_NE(hint_of_key("nccl", "nccl_pxn_disable"), "");
}
}  // namespace topsim::hints_test
