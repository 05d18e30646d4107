#include "sim/base/suggest.hpp"

#include <gtest/gtest.h>

#include "sim/base/nearest_words.hpp"

namespace topsim::suggest_test {

TEST(Closest, ALetterWrongOrLeftOutIsFound) {
  const std::vector<std::string> known{"nodes", "fabric", "placement"};
  EXPECT_EQ(closest("nods", known), "nodes");
  EXPECT_EQ(closest("fabirc", known), "fabric");
  EXPECT_EQ(closest("xyz", known), std::nullopt);
}

TEST(Closest, TheFirstPartOfANameStandsForIt) {
  const std::vector<std::string> known{"b100", "h100-nvl", "h100-sxm5", "h200"};
  EXPECT_EQ(closest("h100", known), "h100-nvl");
  EXPECT_EQ(closest("H100", known), "h100-nvl");
}

// Tables and clouds say more than the catalogue's names do.
TEST(Closest, ANameWithMoreAfterItStandsForItsBeginning) {
  const std::vector<std::string> known{"b200",     "g5-48xlarge",    "h100",     "h100-sxm5",
                                       "h200-sxm", "h100-sxm5-96gb", "hgx-a100", "hgx-a100-40gb",
                                       "ib-ndr",   "ib-ndr200",      "p5"};
  EXPECT_EQ(closest("H100-SXM5-80GB", known), "h100-sxm5");
  EXPECT_EQ(closest("B200-SXM", known), "b200");
  EXPECT_EQ(closest("hgx-a100-80gb", known), "hgx-a100");
  EXPECT_EQ(closest("p5.48xlarge", known), "p5");
  EXPECT_EQ(closest("hgx-a100-40g", known), "hgx-a100-40gb");  // a letter left out
  EXPECT_EQ(closest("ib-ndr-200", known), "ib-ndr200");
}

// A digit or a letter more is another chip: dgx-b200 is one edit from dgx-gb200, and another machine.
TEST(Closest, AnotherChipIsNeverMeant) {
  const std::vector<std::string> known{"dgx-b200", "dgx-b300", "gb200-nvl72", "gb300-nvl72", "gb300x4"};
  EXPECT_EQ(closest("dgx-gb200", known), "gb200-nvl72");
  EXPECT_EQ(closest("dgx-gb300", known), "gb300-nvl72");
  EXPECT_EQ(closest("DGX GB300", known), "gb300-nvl72");
  EXPECT_EQ(closest("dgx_gb200", known), "gb200-nvl72");
  EXPECT_EQ(closest("dgx-b201", known), "dgx-b200");  // no such chip: mistyped
  // Rates and sizes of instances are no chips.
  const std::vector<std::string> more{"efa-400g", "g4dn-12xlarge", "g5-48xlarge", "g6-48xlarge",
                                      "hgx-a100", "ib-ndr",        "p5",          "dgx-a100-40gb"};
  EXPECT_EQ(closest("p5-48xlarge", more), "p5");
  EXPECT_EQ(closest("g6-12xlarge", more), "g6-48xlarge");
  EXPECT_EQ(closest("ib-400g", more), std::nullopt);
  EXPECT_EQ(closest("a100-sxm4-80gb", more), "hgx-a100");  // of two the shorter
  const std::vector<std::string> models{"llama1-33b", "llama2-13b", "llama2-70b", "codellama-34b"};
  EXPECT_EQ(closest("llama2-34b", models), "llama2-13b");
}

TEST(Closest, AChipStandsForItsUsualNode) {
  const std::vector<std::string> nodes{"dgx-h100", "h100-nvl-pairs-8", "hgx-h100"},
      chips{"h100-nvl", "h100-sxm5"};
  EXPECT_EQ(suggestion("h100", nodes), "did you mean \"hgx-h100\"?");
  EXPECT_EQ(suggestion("h100", chips), "did you mean \"h100-nvl\" or \"h100-sxm5\"?");
}

TEST(Suggestion, OffersAllNamesThatBeginAlikeAndElseTheClosest) {
  const std::vector<std::string> known{"b100",       "h100-nvl",  "h100-sxm5",  "h200-sxm",
                                       "llama3-70b", "llama3-8b", "llama3-405b"};
  EXPECT_EQ(suggestion("H100", known), "did you mean \"h100-nvl\" or \"h100-sxm5\"?");
  EXPECT_EQ(suggestion("llama3", known), "did you mean \"llama3-70b\", \"llama3-8b\" or \"llama3-405b\"?");
  EXPECT_EQ(suggestion("h200", known), "did you mean \"h200-sxm\"?");
  EXPECT_EQ(suggestion("b10", known), "did you mean \"b100\"?");
  EXPECT_EQ(suggestion("dragonfly", known), "");
  const std::vector<std::string> formats{"fp8", "nvfp4"};
  EXPECT_EQ(suggestion("fp4", formats), "did you mean \"nvfp4\"?");  // not the one that is a letter away
}

// "gpu" is one letter from "cpu" but means something else; the key of another program finds ours.
TEST(Closest, WhatOthersCallAThingIsUnderstood) {
  const std::vector<std::string> kinds{"accelerator", "cpu", "nic"}, keys{"layers", "hidden", "heads"};
  EXPECT_EQ(closest("GPU", kinds), "accelerator");
  EXPECT_EQ(closest("num_hidden_layers", keys), "layers");
  EXPECT_EQ(closest("num_hidden_layers", kinds), std::nullopt);
}

// A provider's own name for a machine is no edit of a known name, but shares words with it.
TEST(Nearest, NamesShareMostWords) {
  const std::vector<std::string> known{"a3-megagpu-8g", "azure-nd-h100-v5", "gcp-a3-megagpu-8g", "hgx-h100"};
  const std::vector<std::string> nearest{"gcp-a3-megagpu-8g", "a3-megagpu-8g"};  // 2.5 and 1.5 words shared
  EXPECT_EQ(closest("gcp-a3-mega", known), std::nullopt);
  EXPECT_EQ(nearest_by_words("GCP a3 mega", known, 2), nearest);
  EXPECT_TRUE(nearest_by_words("tpu", known, 2).empty());
}

// A name that differs in nothing but case is the one meant.
TEST(Closest, TheWholeNameComesBeforeLongerOnes) {
  const std::vector<std::string> known{"h100-nvl", "h100"};
  EXPECT_EQ(closest("H100", known), "h100");
}
}  // namespace topsim::suggest_test
