// Nodes by the accelerator that an unknown name says.
#include "topology/catalogue/node_meant.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/catalogue/world.hpp"

namespace topsim::topology {
namespace {
Catalogue::Impl& catalogue() {
  static Catalogue::Impl shipped({TOPSIM_SOURCE_DIR "/configs"});
  return shipped;
}

// What follows the question or the remedy is the list of all nodes.
std::string help_of(const std::string& name) {
  try {
    (void)shipped().node(name);
  } catch (const ConfigError& error) {
    const std::string& help = error.problems().front().help;
    return help.substr(0, std::min(help.find("known: "), help.size()));
  }
  return "\"" + name + '"';  // a node's own name
}

std::string capitals(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}
std::string with_spaces(std::string text) {
  std::replace(text.begin(), text.end(), '-', ' ');
  return text;
}

// The nodes in quotes.
std::set<std::string> named(const std::string& help) {
  std::set<std::string> nodes;
  for (const std::string& id : ids_of("node"))
    if (help.find('"' + id + '"') != std::string::npos) nodes.insert(id);
  return nodes;
}
}  // namespace

TEST(NodeMeant, HasTheAcceleratorThatIsSaid) {
  const std::pair<const char*, const char*> spellings[] = {
      {"DGX H20", "hgx-h20"},
      {"HGX_H20", "hgx-h20"},
      {"8xH20", "hgx-h20"},
      {"DGX GB200", "gb200-nvl72"},
      {"dgx gb200", "gb200-nvl72"},
      {"dgx-gb200", "gb200-nvl72"},
      {"DGX_GB300", "gb300-nvl72"},
      {"GB200 NVL36", "gb200-nvl72"},
      {"H100x8", "hgx-h100"},
      {"H100 x 8", "hgx-h100"},
      {"8xH100", "hgx-h100"},
      {"H100-8", "hgx-h100"},
      {"8 H100", "hgx-h100"},
      {"16xH100", "hgx-h100"},
      {"a100x8", "hgx-a100"},
      {"8xA100", "hgx-a100"},
      {"A100 80GB x8", "hgx-a100"},
      {"8x B200", "hgx-b200"},
      {"H200x8", "hgx-h200"},
      {"8x H100 NVL", "h100-nvl-pairs-8"},
      {"4xMI250X", "mi250x-4"},
      {"MI300X x 8", "mi300x-8"},
      {"mi300x8", "mi300x-8"},
      {"V100-SXM3-32GB", "dgx-2"},
      {"16xV100", "dgx-2"},
      {"NDasrA100_v4", "azure-ndv4"},
      {"ND96amsr_A100_v4", "azure-ndv4"},
      {"BM.GPU.B4.8", "hgx-a100-40gb"},
      {"Azure H100", "azure-nd-h100-v5"},
      {"AWS H100", "p5"},
      {"GCP A3 Mega H100", "gcp-a3-megagpu-8g"},
      {"DGX B300", "dgx-b300"},
      {"DGX H100 80GB", "dgx-h100"},
      {"dgx-h10O", "dgx-h100"},  // the letter O: no chip is said
      {"hgx-h100-4swich", "hgx-h100-4switch"},
      {"hgx-a100-40g", "hgx-a100-40gb"},
  };
  for (const auto& [name, node] : spellings)
    EXPECT_EQ(help_of(name).substr(0, help_of(name).find('?')), std::string("did you mean \"") + node + '"')
        << name;
}

TEST(NodeMeant, APartOfANodeIsWrittenAsOne) {
  EXPECT_EQ(help_of("4xH100"), "{\"use\": \"hgx-h100\", \"accelerators\": 4} is a part of one; ");
  EXPECT_EQ(help_of("H200 x 2"), "{\"use\": \"hgx-h200\", \"accelerators\": 2} is a part of one; ");
}

// Cards without a node of their own go where another's have no links but their slots.
TEST(NodeMeant, AnAcceleratorWithoutANodeIsPutIntoAnothers) {
  EXPECT_TRUE(help_of("H100 PCIe").starts_with("no node here has \"h100-pcie\"; {\"use\": \""));
  EXPECT_TRUE(help_of("BM.GPU.A10.4").starts_with("no node here has \"a10\"; {\"use\": \""));
  EXPECT_EQ(help_of("8xB100"), "no node here has \"b100\"; ");
  EXPECT_TRUE(help_of("a10").starts_with("\"a10\" is an accelerator, and no node here has it: {\"use\": \""));
}

// Whatever accelerator is named, and however, the nodes suggested have it.
TEST(NodeMeant, NeverHasAnotherAccelerator) {
  std::map<std::string, std::set<int>> counts;  // of the accelerators of nodes
  for (const auto& [id, node] : catalogue().nodes()) counts[node.accelerator].insert(node.accelerators);
  for (const auto& [accelerator, sizes] : counts) {
    const int size = *sizes.rbegin();
    const std::string number = std::to_string(size);
    for (const std::string& name :
         {number + 'x' + accelerator, accelerator + 'x' + number, "DGX " + accelerator}) {
      const std::string help = help_of(name);
      const std::set<std::string> nodes = named(help);
      EXPECT_FALSE(nodes.empty()) << name << ": " << help;
      for (const std::string& node : nodes)
        EXPECT_EQ(shipped().node(node).accelerator, accelerator) << name << ": " << help;
    }
    const std::string spaces = with_spaces(capitals(accelerator));
    for (const std::string& name : {"8x " + spaces, spaces + " x8", spaces + "-8", "8-GPU " + spaces,
                                    "dgx-" + accelerator, "HGX_" + spaces, "NVIDIA " + spaces}) {
      const auto meant = node_meant(catalogue(), name);
      ASSERT_TRUE(meant && !meant->ids.empty()) << name;
      for (const std::string& node : meant->ids)
        EXPECT_EQ(shipped().node(node).accelerator, accelerator) << name << ": " << node;
    }
  }
}

// "8xa100-sxm4-80gb" may be any of its nodes with eight, and none of another size.
TEST(NodeMeant, HasAsManyAcceleratorsAsAreSaid) {
  for (const auto& [id, node] : catalogue().nodes()) {
    const auto meant = node_meant(catalogue(), std::to_string(node.accelerators) + 'x' + node.accelerator);
    ASSERT_TRUE(meant && !meant->ids.empty()) << id;
    for (const std::string& other : meant->ids)
      EXPECT_EQ(shipped().node(other).accelerators, node.accelerators) << id << ' ' << other;
  }
}
}  // namespace topsim::topology
