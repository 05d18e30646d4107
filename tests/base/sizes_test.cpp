#include "sim/base/sizes.hpp"

#include <gtest/gtest.h>

#include "sim/base/suggest.hpp"

namespace topsim::sizes_test {
using Names = std::vector<std::string>;
const Names kModels{"gpt-neox-20b", "gpt3-175b", "gpt3-2.7b", "gpt3-6.7b", "korthikanti-22b", "llama2-70b",
                    "llama3-70b",   "llama3-8b", "mpt-30b",   "mpt-7b",    "mt-nlg-530b",     "opt-13b"};

// An OPT of 13 billion parameters is two letters from an MPT of as many, and another model.
TEST(Sizes, AFamilyWithoutTheSizeOffersItsOwn) {
  EXPECT_EQ(of_size("MPT-13b", kModels).others, (Names{"mpt-7b", "mpt-30b"}));  // x 1.9, x 2.3
  EXPECT_EQ(suggestion("MPT-70b", kModels), "of other sizes there are: mpt-30b, mpt-7b");
  EXPECT_EQ(of_size("GPT3_5B", kModels).others, (Names{"gpt3-6.7b", "gpt3-2.7b", "gpt3-175b"}));
  const Names links{"efa-100g", "eth-10g", "eth-40g", "eth-100g"};
  EXPECT_EQ(of_size("eth-50g", links).others, (Names{"eth-40g", "eth-100g", "eth-10g"}));
}

TEST(Sizes, AFamilyByAnotherNameHasTheSize) {
  EXPECT_EQ(of_size("GPT-530B", kModels).same, Names{"mt-nlg-530b"});
  EXPECT_EQ(of_size("megatron-22b", kModels).same, Names{"korthikanti-22b"});
  EXPECT_EQ(of_size("gpt-175b", kModels).same, Names{"gpt3-175b"});
  EXPECT_EQ(of_size("llama-70b", kModels).same, (Names{"llama2-70b", "llama3-70b"}));  // never guesses one
  EXPECT_EQ(of_size("gpt-20b", kModels).same, Names{"gpt-neox-20b"});
  EXPECT_EQ(of_size("lama3-8b", kModels).same, Names{"llama3-8b"});
}

TEST(Sizes, OtherNamesHaveNone) {
  for (const char* name :
       {"hgx-h100", "dgx-a100-40gb", "p5-48xlarge", "70b", "b", "", "llama3", "ib-ndr200"}) {
    EXPECT_TRUE(of_size(name, kModels).same.empty()) << name;
    EXPECT_TRUE(of_size(name, kModels).others.empty()) << name;
  }
}
}  // namespace topsim::sizes_test
