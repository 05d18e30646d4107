// The table of importers: which of them a text is, and what is said of all.
#include "topology/import/importers.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/topology/fixtures.hpp"
#include "topology/import/import.hpp"

namespace topsim::topology::importers_test {
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

struct Read {
  Topology topology;
  std::vector<std::string> findings;
};
Read read(const std::string& text, const char* accelerator) {
  const ReadTopology out =
      find_importer(detect_format(text))->read(text, {test::catalogue(), "input", accelerator, "", 1});
  const auto* spec = std::get_if<TopologySpec>(&out.what);
  return {spec != nullptr ? build(*spec, test::catalogue()) : std::get<Topology>(out.what), out.findings};
}

constexpr const char* kHwloc =
    R"(<topology version="2.0"><object type="Machine"><object type="Package" gp_index="3">
<object type="Bridge" bridge_type="0-1"><object type="PCIDev" gp_index="1" pci_type="0302 [10de:2330]"
pci_link_speed="63"/><object type="PCIDev" gp_index="2" pci_type="0680 [10de:22a3]" pci_link_speed="1"/>
</object></object></object><distances2hetero name="NVLinkBandwidth"><indexes>PCIDev:1 PCIDev:2</indexes>
<u64values>1000000 450000 450000 1000000</u64values></distances2hetero></topology>)";

// Words of several formats in one text: a host of a fabric may be called GPU0-NV.
TEST(Importers, ATextIsOneOfThemAtMost) {
  const std::string_view words[] = {"<system version=\"1\">", "<topology>", "switchguid=0x1 GPU0-NV",
                                    "caguid=0x1", "GPU0 GPU1\nGPU0 X NV4"};
  for (const std::string_view a : words)
    for (const std::string_view b : words) {
      const std::string text = std::string(a) + '\n' + std::string(b);
      const auto is = [&](const Importer& each) { return each.is(text); };
      EXPECT_EQ(std::count_if(importers().begin(), importers().end(), is), 1) << text;
    }
  EXPECT_EQ(detect_format(words[2]), "ibnet");
  EXPECT_EQ(detect_format("nothing of theirs"), "");
}

TEST(Importers, AreFoundByTheirNames) {
  for (const std::string& name : importer_names()) {
    ASSERT_NE(find_importer(name), nullptr);
    EXPECT_EQ(find_importer(name)->name, name);
  }
  EXPECT_EQ(find_importer(""), nullptr);
  EXPECT_EQ(importer_inputs(), "NCCL's topology XML, hwloc's XML, nvidia-smi topo -m, or ibnetdiscover");
}
// Of GeForce cards; their tools do not say it.
TEST(Importers, WhatADriverForbidsIsNotAssumedAndSaid) {
  const std::string nccl =
      R"(<system version="1"><cpu numaid="0" arch="x86_64" vendor="AuthenticAMD"><pci busid="0000:1b:00.0"
class="0x030000" vendor="0x10de" device="0x2684" link_speed="16 GT/s" link_width="16"/></cpu></system>)";
  const std::string smi = "\tGPU0\tGPU1\nGPU0\t X \tPHB\nGPU1\tPHB\t X \n";
  const std::string ibnet =
      "switchguid=0x1(1)\nSwitch\t8 \"S-1\"\t\t# \"leaf\" lid 1\n[1]\t\"H-a\"[1](b) \t\t# \"a mlx5_0\" lid "
      "3 4xNDR\n\ncaguid=0xa\nCa\t1 \"H-a\"\t\t# \"a mlx5_0\"\n[1](b) \t\"S-1\"[1]\t\t# lid 3 lmc 0 "
      "\"leaf\" lid 1 4xNDR\n";
  const auto note = Contains(HasSubstr("copies go through host memory"));
  for (const std::string& text : {nccl, smi, ibnet, std::string(kHwloc)}) {
    const Read geforce = read(text, "rtx-4090"), other = read(text, "a40");
    EXPECT_FALSE(geforce.topology.peer_to_peer) << text;
    EXPECT_FALSE(geforce.topology.facts_of(geforce.topology.accelerators()[0]).gpu_direct) << text;
    EXPECT_THAT(geforce.findings, note) << text;
    EXPECT_TRUE(other.topology.peer_to_peer) << text;
    EXPECT_THAT(other.findings, Not(note)) << text;
  }
}

// NVLink SHARP came with Hopper's, whose GPUs are the first with 18 links.
TEST(Importers, AnNvswitchReducesFromHoppersOn) {
  const std::string twelve =
      "\tGPU0\tGPU1\tGPU2\nGPU0\t X \tNV12\tNV12\nGPU1\tNV12\t X \tNV12\nGPU2\tNV12\tNV12\t X \n";
  for (const std::string& text : {std::string(kHwloc), twelve}) {
    EXPECT_TRUE(read(text, "h100-sxm5").topology.nvlink_sharp) << text;
    EXPECT_FALSE(read(text, "a100-sxm4-80gb").topology.nvlink_sharp) << text;
  }
  std::string eighteen = twelve;
  for (std::size_t at = 0; (at = eighteen.find("NV12", at)) != std::string::npos;)
    eighteen.replace(at, 4, "NV18");
  EXPECT_TRUE(read(eighteen, "").topology.nvlink_sharp);
  EXPECT_FALSE(read(twelve, "").topology.nvlink_sharp);
}

// Eight channels of DDR4-3200 on AMD's Rome, 8 x 25.6 GB/s; of DDR5-4800 where the family is not told.
TEST(Importers, AHostHasMemoryToOffloadTo) {
  const Read unknown = read(kHwloc, "h100-sxm5");
  std::string text = kHwloc;
  text.insert(text.find("<object type=\"Bridge\""), R"(<info name="CPUVendor" value="AuthenticAMD"/>)");
  const Read amd = read(text, "h100-sxm5");
  for (const auto& [from, rate] : {std::pair(&unknown, 307.2), {&amd, 204.8}}) {
    const Topology& t = from->topology;
    const auto memory = t.find_link(test::device(t, "node0/cpu0"), test::device(t, "node0/mem0"));
    ASSERT_TRUE(memory);
    EXPECT_DOUBLE_EQ(t.link(*memory).capacity.value(), rate * 1e9);
    EXPECT_THAT(from->findings, Contains(HasSubstr("host memory is not told")));
  }
}
}  // namespace topsim::topology::importers_test
