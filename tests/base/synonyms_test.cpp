#include "sim/base/synonyms.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace topsim::synonyms_test {

TEST(SameButForMarks, CapitalsHyphensUnderscoresSpacesAndDotsAreNoDifference) {
  const std::vector<std::string> known{"fat-tree", "llama3.1-8b", "zb-v"};
  EXPECT_EQ(same_but_for_marks("Fat_Tree", known), "fat-tree");
  EXPECT_EQ(same_but_for_marks("LLaMA 3.1 8B", known), "llama3.1-8b");
  EXPECT_EQ(same_but_for_marks("llama31_8b", known), "llama3.1-8b");
  EXPECT_EQ(same_but_for_marks("ZBV", known), "zb-v");
  EXPECT_EQ(same_but_for_marks("fat-trees", known), std::nullopt);
  EXPECT_EQ(same_but_for_marks("-", known), std::nullopt);
}

// A dot is a mark of its own as long as one of the names has it there.
TEST(SameButForMarks, TwoThatAreAlikeAreNotGuessed) {
  const std::vector<std::string> known{"gpt3-1.3b", "gpt3-13b"};
  EXPECT_EQ(same_but_for_marks("GPT3_13B", known), "gpt3-13b");
  EXPECT_EQ(same_but_for_marks("GPT3_1.3B", known), "gpt3-1.3b");
  const std::vector<std::string> twice{"a-b", "a_b"};
  EXPECT_EQ(same_but_for_marks("ab", twice), std::nullopt);
}

TEST(SameMeaning, IsComparedWithoutMarks) {
  const std::vector<std::string> formats{"fp32", "fp16", "bf16", "fp8", "mxfp8"};
  EXPECT_EQ(same_meaning("TE bf16", formats), "bf16");
  EXPECT_EQ(same_meaning("amp_fp8", formats), "fp8");
  EXPECT_EQ(same_meaning("fp8-mx", formats), "mxfp8");
  EXPECT_EQ(same_meaning("Half", formats), "fp16");
  EXPECT_EQ(same_meaning("double", formats), std::nullopt);
}

TEST(SameMeaning, OfTasksPositionsAndCollectives) {
  const std::vector<std::string> tasks{"pretrain", "finetune", "lora", "prefill", "decode"},
      positions{"learned", "rotary", "alibi"}, collectives{"broadcast", "reduce"},
      kinds{"none", "selective", "full"}, formats{"bf16", "fp8", "mxfp8", "fp8-blockwise"};
  EXPECT_EQ(same_meaning("SFT", tasks), "finetune");
  EXPECT_EQ(same_meaning("peft", tasks), "lora");
  EXPECT_EQ(same_meaning("RoPE", positions), "rotary");
  EXPECT_EQ(same_meaning("bcast", collectives), "broadcast");
  EXPECT_EQ(same_meaning("selective (attention)", kinds), "selective");
  EXPECT_EQ(same_meaning("fp8 rowwise", formats), "fp8");
  EXPECT_EQ(same_meaning("fp8_tensorwise", formats), "fp8");
}

// "network" is the fabric of a topology, and the link of a fabric.
TEST(SameMeaning, DependsOnWhatIsKnownThere) {
  const std::vector<std::string> topology{"fabric", "node", "nodes"}, fabric{"kind", "link"};
  EXPECT_EQ(same_meaning("network", topology), "fabric");
  EXPECT_EQ(same_meaning("network", fabric), "link");
  EXPECT_EQ(same_meaning("type", fabric), "kind");
}
}  // namespace topsim::synonyms_test
