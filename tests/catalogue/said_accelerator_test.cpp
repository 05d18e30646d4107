#include "topology/catalogue/said_accelerator.hpp"

#include <gtest/gtest.h>

namespace topsim::topology {
namespace {
using Words = std::vector<std::string>;
const Words kIds{"a10",
                 "a10g",
                 "a100-pcie-80gb",
                 "a100-sxm4-40gb",
                 "a100-sxm4-80gb",
                 "b200",
                 "gaudi2",
                 "gb200",
                 "h100-nvl",
                 "h100-sxm5",
                 "h20",
                 "h200-sxm",
                 "mi250x-gcd",
                 "mi300x",
                 "rtx-4090",
                 "rtx-6000-ada",
                 "rtx-a6000",
                 "t4",
                 "titan-v",
                 "tpu-v5e",
                 "v100-sxm3-32gb",
                 "v100-sxm3-32gb-450w"};

std::string chip(std::string_view name) {
  const auto said = said_accelerator(name, kIds);
  return said ? said->chip : "";
}
std::optional<int> count(std::string_view name) {
  const auto said = said_accelerator(name, kIds);
  return said ? said->count : std::nullopt;
}
Words accelerators(std::string_view name) {
  const auto said = said_accelerator(name, kIds);
  return said ? said->accelerators : Words();
}
}  // namespace

TEST(SaidAccelerator, IsFoundWhateverTheMarks) {
  for (const char* name : {"DGX H20", "dgx_h20", "h20", "8xH20", "H20x8", "H-20"})
    EXPECT_EQ(chip(name), "h20") << name;
  for (const char* name : {"NDasrA100_v4", "A100PCIe", "hgxa100", "A100-SXM4", "A 100"})
    EXPECT_EQ(chip(name), "a100") << name;
  EXPECT_EQ(chip("Gaudi 2"), "gaudi2");
  EXPECT_EQ(chip("TPU v5e"), "tpuv5e");
  EXPECT_EQ(chip("Titan V"), "titanv");
  EXPECT_EQ(chip("4090 server"), "4090");
}

// A letter or a digit more is another chip.
TEST(SaidAccelerator, IsNoPartOfAnother) {
  EXPECT_EQ(chip("DGX GB200"), "gb200");
  EXPECT_EQ(chip("dgx-h200"), "h200");
  EXPECT_EQ(chip("A10G"), "a10g");
  EXPECT_EQ(chip("RTX A6000"), "rtxa6000");
  for (const char* name : {"t4g", "H2000", "XB200", "g5-48xlarge", "p5", "dgx", "", "-", "14090"})
    EXPECT_EQ(chip(name), "") << name;
}

TEST(SaidAccelerator, IsCounted) {
  for (const char* name :
       {"8xH100", "H100x8", "8 x H100", "H100 x 8", "H100-8", "8-GPU H100", "HGX H100 8-GPU", "BM.GPU.H100.8",
        "h100_8gpu", "A100-SXM4-80GBx8", "8xMI300X", "MI300X x8", "mi300x8", "8x4090", "8x RTX 4090"})
    EXPECT_EQ(count(name), 8) << name;
  // 6000 is the chip, a generation no count.
  for (const char* name : {"DGX H100", "RTX 6000 Ada", "NDasrA100_v4", "DGX-1 V100", "A100-80GB"})
    EXPECT_EQ(count(name), std::nullopt) << name;
}

TEST(SaidAccelerator, HasMostOfTheNamesOtherWords) {
  EXPECT_EQ(accelerators("HGX A100 80GB"), (Words{"a100-pcie-80gb", "a100-sxm4-80gb"}));
  EXPECT_EQ(accelerators("A100-SXM4-80GB"), Words{"a100-sxm4-80gb"});
  EXPECT_EQ(accelerators("8x H100 NVL"), Words{"h100-nvl"});
  EXPECT_EQ(accelerators("V100 SXM3 32GB"), Words{"v100-sxm3-32gb"});
  EXPECT_EQ(said_accelerator("Azure ND A100 v4, 8 GPUs", kIds)->words, (Words{"azure", "nd", "v4"}));
}
}  // namespace topsim::topology
