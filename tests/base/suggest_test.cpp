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
