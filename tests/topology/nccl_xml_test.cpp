// NCCL's topology file becomes devices and links. What it leaves out or gets wrong becomes a finding.
#include "topology/import/nccl_xml.hpp"

#include <gmock/gmock.h>

#include "sim/base/error.hpp"
#include "tests/comma_locale.hpp"
#include "tests/topology/fixtures.hpp"
#include "topology/catalogue/link_entry.hpp"
#include "topology/export/export.hpp"
#include "topology/topology.hpp"
#include "topology/validate/validate.hpp"

namespace topsim::topology::nccl_xml_test {
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace topsim::literals;

// One socket, one bridge with a GPU and a NIC behind it; the arguments are the parts that tests change.
std::string box(const std::string& bridge = R"(link_speed="32.0 GT/s PCIe" link_width="16")",
                const std::string& gpu = R"(link_speed="32.0 GT/s PCIe" link_width="16")",
                const std::string& nvlink = "", const std::string& net = R"(speed="400000")") {
  return R"(<system version="1"><cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:10:00.0" class="0x060400" )" +
         bridge + R"(>
      <pci busid="0000:1b:00.0" class="0x030200" vendor="0x10de" device="0x2330" )" +
         gpu + R"(><gpu dev="0" sm="90" rank="0" gdr="1">)" + nvlink + R"(</gpu></pci>
      <pci busid="0000:1c:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16">
        <nic><net name="mlx5_0" dev="0" )" +
         net + R"( port="1" gdr="1"/></nic></pci>
    </pci></cpu></system>)";
}

NcclXmlImport read(const std::string& text, const std::string& accelerator = "h100-sxm5") {
  NcclXmlOptions options;
  options.name = "topo.xml";
  options.accelerator = accelerator;
  return read_nccl_xml(text, options);
}

std::vector<std::string> findings(const std::string& text) {
  return read(text).findings;
}

double line_rate(const Topology& topology, const char* from, const char* to) {
  return topology.link(*topology.find_link(*topology.find_device(from), *topology.find_device(to)))
      .line_rate.value();
}

// 32 GT/s x 16 lanes x 128/130 / 8 = 63 GB/s; 400 Gbit/s = 50 GB/s.
TEST(NcclXml, SpeedsAndPlacesAreTheFilesOwn) {
  const NcclXmlImport import = read(box());
  EXPECT_NEAR(line_rate(import.topology, "node0/gpu0", "node0/pcie0"), 63e9, 0.1e9);
  EXPECT_NEAR(line_rate(import.topology, "node0/pcie0", "node0/cpu0"), 63e9, 0.1e9);
  const auto nic = *import.topology.find_device("node0/nic0");
  double fastest = 0;
  for (const Link& link : import.topology.links())
    if (link.from == nic && link.kind == LinkKind::infiniband) fastest = link.line_rate.value();
  EXPECT_DOUBLE_EQ(fastest, 50e9);
  EXPECT_THAT(import.findings, ::testing::ElementsAre(HasSubstr("the file ends at the NICs")));
}

TEST(NcclXml, SlotsCarryWhatTheCataloguesOfTheirGenerationDo) {
  const std::string gen4 = R"(link_speed="16.0 GT/s PCIe" link_width="16")";
  NcclXmlOptions options;
  options.catalogue = &test::catalogue();
  const auto import = read_nccl_xml(box(gen4, gen4), options);
  const LinkEntry& entry = test::catalogue().link("pcie4-x16");
  for (const Link& link : import.topology.links()) {
    const bool nic = import.topology.device(link.from).kind == DeviceKind::nic ||
                     import.topology.device(link.to).kind == DeviceKind::nic;
    if (link.kind != LinkKind::pcie || nic) continue;
    EXPECT_NEAR(link.capacity.value(), payload_capacity(entry).value(), 1e6);
    const bool host = import.topology.device(link.to).kind == DeviceKind::cpu;
    EXPECT_EQ(link.latency, host ? entry.host_latency : entry.latency);
  }
}

TEST(NcclXml, ABridgeSlowerThanWhatIsBehindItIsNotBelieved) {
  const NcclXmlImport import = read(box(R"(link_speed="2.5 GT/s PCIe" link_width="1")"));
  EXPECT_THAT(import.findings, Contains(HasSubstr("PCIe bridge 0000:10:00.0 claims 2.5 GT/s x1")));
  EXPECT_NEAR(line_rate(import.topology, "node0/pcie0", "node0/cpu0"), 63e9, 0.1e9);
}

TEST(NcclXml, WhatIsMissingIsAssumedAsNcclDoesAndSaid) {
  EXPECT_THAT(findings(box(R"(link_speed="32.0 GT/s PCIe" link_width="16")", "")),
              ::testing::AllOf(Contains(HasSubstr("0000:1b:00.0 gives no PCIe width; 16 lanes")),
                               Contains(HasSubstr("0000:1b:00.0 gives no PCIe speed; 8 GT/s"))));
  const std::string full = R"(link_speed="32.0 GT/s PCIe" link_width="16")";
  EXPECT_THAT(findings(box(full, full, "", R"(speed="0")")),
              Contains(HasSubstr("mlx5_0 gives no speed; 10 Gbit/s")));
}

TEST(NcclXml, ADeviceThatIdlesAtALowSpeedIsAFinding) {
  const std::string idle = R"(link_speed="2.5 GT/s PCIe" link_width="16")";
  EXPECT_THAT(findings(box(R"(link_speed="32.0 GT/s PCIe" link_width="16")", idle)),
              Contains(HasSubstr("0000:1b:00.0 runs at 2.5 GT/s")));
}

TEST(NcclXml, AnNvlinkThatLeadsOutOfTheFileIsLeftOutAndSaid) {
  const std::string full = R"(link_speed="32.0 GT/s PCIe" link_width="16")";
  const NcclXmlImport import =
      read(box(full, full, R"(<nvlink target="0000:99:00.0" count="4" tclass="0x030200"/>)"));
  EXPECT_THAT(import.findings, Contains(HasSubstr("an NVLink leads to 0000:99:00.0")));
  for (const Link& link : import.topology.links()) EXPECT_NE(link.kind, LinkKind::nvlink);
}

TEST(NcclXml, LinksToSeveralNvswitchesAreOneCable) {
  // As on an HGX H100: 18 links to four switches, 20.6 GB/s each.
  const std::string full = R"(link_speed="32.0 GT/s PCIe" link_width="16")";
  const auto import = read(box(full, full, R"(<nvlink target="0000:05:00.0" count="4" tclass="0x068000"/>
      <nvlink target="0000:06:00.0" count="5" tclass="0x068000"/>
      <nvlink target="0000:07:00.0" count="5" tclass="0x068000"/>
      <nvlink target="0000:08:00.0" count="4" tclass="0x068000"/>)"));
  std::vector<Link> up;
  for (const Link& link : import.topology.links())
    if (link.kind == LinkKind::nvlink && import.topology.device(link.from).kind == DeviceKind::accelerator)
      up.push_back(link);
  ASSERT_EQ(up.size(), 1U);
  EXPECT_EQ(up.front().count, 18);
  EXPECT_NEAR(up.front().capacity.value(), 18 * 20.6e9, 1e4);
}

// Two GPUs of AMD's, joined by two links.
std::string amds(const std::string& gpu) {
  const std::string pci = R"(<pci class="0x038000" link_speed="16 GT/s" link_width="16" busid=")";
  const auto one = [&](const char* bus, const char* peer, const char* dev) {
    return pci + bus + R"("><gpu )" + gpu + R"( gdr="1" dev=")" + dev + R"("><xgmi target=")" + peer +
           R"(" count="2" tclass="0x038000"/></gpu></pci>)";
  };
  return R"(<system version="2"><cpu numaid="0" arch="x86_64" vendor="AuthenticAMD">)" +
         one("0000:43:00.0", "0000:03:00.0", "0") + one("0000:03:00.0", "0000:43:00.0", "1") +
         "</cpu></system>";
}
double infinity_fabric(const Topology& topology) {
  double capacity = 0;
  for (const Link& link : topology.links())
    if (link.kind == LinkKind::infinity_fabric) capacity = link.capacity.value();
  return capacity;
}

// RCCL counts a link by the architecture: 24 GB/s on Vega, 36 on MI200, 48 on MI300 (graph/topo.h). The
// catalogue knows what a wire carries, which the same link of a recipe has.
TEST(NcclXml, InfinityFabricIsAsFastAsItsArchitecture) {
  for (const auto& [gcn, usable, link] : {std::tuple("906", 24e9, ""),
                                          {"910", 36e9, "xgmi-mi250x"},
                                          {"gfx90a", 36e9, "xgmi-mi250x"},
                                          {"gfx942", 48e9, "xgmi-mi300x"},
                                          {"gfx950", 48e9, "xgmi-mi350x"}}) {
    const std::string text = amds(R"(sm="0" gcn=")" + std::string(gcn) + '"');
    EXPECT_DOUBLE_EQ(infinity_fabric(read(text, "").topology), 2 * usable) << gcn;
    NcclXmlOptions options;
    options.catalogue = &test::catalogue();
    const double wire = *link == '\0' ? usable : payload_capacity(test::catalogue().link(link)).value();
    EXPECT_DOUBLE_EQ(infinity_fabric(read_nccl_xml(text, options).topology), 2 * wire) << gcn;
  }
}

// RCCL writes the architecture as if it were a compute capability: 64 for gfx906, 94 for gfx942.
TEST(NcclXml, AmdsHaveNoComputeCapability) {
  for (const char* gpu : {R"(sm="94" gcn="gfx942")", R"(sm="94")"}) {
    const NcclXmlImport import = read(amds(gpu), "mi300x");
    EXPECT_EQ(import.topology.facts_of(import.topology.accelerators()[0]).compute_capability, 0) << gpu;
    EXPECT_FALSE(import.topology.nvlink_sharp) << gpu;
  }
  NcclXmlOptions options;
  options.accelerator = "h100-sxm5";
  options.catalogue = &test::catalogue();
  EXPECT_THAT(read_nccl_xml(amds(R"(sm="94")"), options).findings,
              Contains("the file's GPUs are AMD's, h100-sxm5 is not: is it the right one?"));
}

TEST(NcclXml, AcceleratorsWithoutAModelAreKnownByTheirPciIds) {
  EXPECT_THAT(read(box(), "").findings, Contains(HasSubstr("known only as pci-0x10de-0x2330")));
  EXPECT_THAT(findings(box()), Not(Contains(HasSubstr("known only"))));
}

// NCCL gives a <nic> right under its <cpu>, as virtual machines have it, 5000 GB/s to the processor.
TEST(NcclXml, ANicThatIsNoPcieDeviceIsNoMistakeOfTheTopology) {
  std::string text = box();
  text.insert(text.find("<pci"), R"(<nic><net name="eth0" dev="1" speed="100000" port="1"/></nic>)");
  const Topology topology = read(text).topology;
  EXPECT_EQ(line_rate(topology, "node0/nic0", "node0/cpu0"), 5e12);
  for (const Finding& each : check(topology, test::catalogue()))
    EXPECT_NE(each.severity, Severity::error) << each.message;
}

TEST(NcclXml, NumbersThatCountNothingAreSentences) {
  for (const char* width : {"-1", "4294967296", "NaN", "1.5"}) {
    const std::string link = std::string(R"(link_speed="32.0 GT/s PCIe" link_width=")") + width + '"';
    EXPECT_THROW((void)read(box(R"(link_speed="32.0 GT/s PCIe" link_width="16")", link)), ConfigError)
        << width;
  }
  for (const char* links : {"65", "-1", "NaN", "inf"})
    EXPECT_THROW((void)read(box("", "",
                                std::string(R"(<nvlink target="0000:1b:00.0" count=")") + links +
                                    R"(" tclass="0x068000"/>)")),
                 ConfigError)
        << links;
  EXPECT_THROW((void)read(box("", "", "", R"(speed="NaN")")), ConfigError);
}

// As clouds ship them: eight GPUs and a NIC that only their PCI classes identify, no <gpu>, <nvlink> or
// <net>.
std::string cloud_box(const std::string& gpu = "") {
  std::string text = R"(<system version="1"><cpu numaid="0" arch="x86_64" vendor="AuthenticAMD">)";
  for (int i = 0; i < 8; ++i)
    text += "<pci busid=\"0000:1" + std::to_string(i) +
            R"(:00.0" class="0x030200" link_speed="16 GT/s" link_width="16">)" + gpu + "</pci>";
  return text + R"(<pci busid="0000:20:00.0" class="0x020700" link_speed="16 GT/s" link_width="16"/>
    </cpu></system>)";
}

NcclXmlImport of_cloud(const std::string& accelerator, const std::string& nic_link = "",
                       const std::string& text = cloud_box()) {
  NcclXmlOptions options;
  options.accelerator = accelerator;
  options.nic_link = nic_link;
  options.catalogue = &test::catalogue();
  return read_nccl_xml(text, options);
}

// 12 NVLinks of 25 GB/s each: 300 GB/s a GPU and direction to the NVSwitches of its board.
TEST(NcclXml, NvlinksThatTheFileLeavesToNvmlAreTheBoardsAndSaid) {
  const NcclXmlImport import = of_cloud("a100-sxm4-40gb");
  EXPECT_THAT(import.findings,
              Contains(HasSubstr("names no NVLink though a100-sxm4-40gb has 12: NCCL reads")));
  EXPECT_NEAR(line_rate(import.topology, "node0/gpu0", "node0/nvswitch0"), 300e9, 1);
  EXPECT_EQ(import.topology.facts_of(*import.topology.find_device("node0/gpu7")).compute_capability, 80);
}

// Eight V100 may be wired as a hybrid cube mesh or by NVSwitches, so no NVLinks are assumed.
TEST(NcclXml, NvlinksOfUnknownWiringAreLeftOutAndSaid) {
  const NcclXmlImport import = of_cloud("v100-sxm2-32gb");
  EXPECT_THAT(import.findings, Contains(HasSubstr("how they are wired is not known")));
  for (const Link& link : import.topology.links()) EXPECT_NE(link.kind, LinkKind::nvlink);
}

TEST(NcclXml, AMachineThatNcclLookedAtHasTheNvlinksOfItsDump) {
  std::string asked = cloud_box();
  for (int i = 0; i < 8; ++i)
    asked.insert(asked.find("\"></pci>") + 2, "<gpu dev=\"" + std::to_string(i) + "\" sm=\"90\"/>");
  const NcclXmlImport import = of_cloud("a100-sxm4-40gb", "", asked);
  EXPECT_THAT(import.findings, Contains(HasSubstr("NCCL found none on that machine")));
  EXPECT_THAT(import.findings, Contains(HasSubstr("of compute capability 90 (sm), a100-sxm4-40gb is of 80")));
  for (const Link& link : import.topology.links()) EXPECT_NE(link.kind, LinkKind::nvlink);
}

TEST(NcclXml, NicsWithoutANetworkGetTheCableThatIsNamed) {
  EXPECT_THAT(of_cloud("a100-sxm4-40gb").findings,
              Contains(HasSubstr("NICs without <net> in the file: 1 a machine; they have no cable")));
  const NcclXmlImport import = of_cloud("a100-sxm4-40gb", "ib-hdr");
  EXPECT_EQ(import.topology.fabric_kind, FabricKind::rail);
  EXPECT_TRUE(import.topology.fabric_is_infiniband);
  EXPECT_DOUBLE_EQ(line_rate(import.topology, "node0/nic0", "leaf0"), 25e9);  // HDR: 200 Gbit/s
}

TEST(NcclXml, AMachineReadTwiceIsASentence) {
  const auto refused = [](const std::string& text) {
    try {
      (void)of_cloud("a100-sxm4-40gb", "", text);
    } catch (const ConfigError& error) {
      return error.problems().front().message;
    }
    return std::string();
  };
  EXPECT_THAT(refused(cloud_box(R"(<gpu dev="0"/>)")), HasSubstr("two GPUs of a machine are dev=\"0\""));
  EXPECT_THAT(refused(R"(<system><cpu host_hash="0x1"/><cpu host_hash="0x2"/></system>)"),
              HasSubstr("describes 2 machines (host_hash)"));
}

// NCCL counts 22 GB/s between Sapphire Rapids and 16 between AMD's, to rank paths by. Four UPI of 32 GB/s and
// three xGMI of 36 carry more.
TEST(NcclXml, TheSocketsLinkIsThatOfTheFamilyAndSaid) {
  const std::string intel = R"(vendor="GenuineIntel" familyid="6" modelid="143")",
                    amd = R"(vendor="AuthenticAMD" familyid="143" modelid="49")";
  for (const auto& [cpu, link, rate, nccls] :
       {std::tuple(intel, "upi-spr x4", 128e9, 22e9), {amd, "xgmi2 x3", 108e9, 16e9}}) {
    std::string text = box();
    text.replace(text.find(intel), intel.size(), cpu);
    text.insert(text.find("</system>"), R"(<cpu numaid="1" arch="x86_64" )" + cpu + "/>");
    NcclXmlOptions options;
    EXPECT_DOUBLE_EQ(line_rate(read_nccl_xml(text, options).topology, "node0/cpu0", "node0/cpu1"), nccls);
    options.catalogue = &test::catalogue();
    const NcclXmlImport import = read_nccl_xml(text, options);
    EXPECT_DOUBLE_EQ(line_rate(import.topology, "node0/cpu0", "node0/cpu1"), rate);
    EXPECT_THAT(import.findings,
                Contains("the sockets' link is not told: " + std::string(link) + " is assumed"));
  }
  EXPECT_THAT(of_cloud("a100-sxm4-40gb").findings, Not(Contains(HasSubstr("sockets"))));  // it has one
}

// Eight channels of DDR5-4800 of Sapphire Rapids, 8 x 38.4 GB/s. GeForce cards, which cannot read each
// other's memory, copy through it, as in the recipe that was written.
TEST(NcclXml, AProcessorHasTheMemoryOfItsFamilyAndSaid) {
  NcclXmlOptions options;
  options.catalogue = &test::catalogue();
  const NcclXmlImport import = read_nccl_xml(box(), options);
  EXPECT_DOUBLE_EQ(line_rate(import.topology, "node0/cpu0", "node0/mem0"), 8 * 38.4e9);
  EXPECT_THAT(import.findings, Contains("host memory is not told: 307.2 GB/s a socket is assumed"));
  options.accelerator = "rtx-4090";
  const Topology built = build(test::cluster("srv-8x4090-dual", 1), test::catalogue());
  const Topology back = read_nccl_xml(to_nccl_xml(built, 0), options).topology;
  for (const Topology* t : {&built, &back})
    EXPECT_EQ(test::path_of(*t, test::route(Router(*t, 1), "node0/gpu0", "node0/gpu1")),
              "gpu0 pcie0 cpu0 mem0 cpu0 pcie0 gpu1");
}

// The file ends at NICs. 400 Gbit/s is NDR: 0.45 us a switch, measured with its cables. 100 Gbit/s is EDR: 90
// ns of an SB7800, and 20 m of 5 ns to it and from it; hosts leave 0.972 of its payload.
TEST(NcclXml, TheSwitchBehindANicTakesWhatItsCablesUsualOneDoes) {
  const std::string full = R"(link_speed="32.0 GT/s PCIe" link_width="16")";
  const auto out = [&](const char* speed, const char* from, const char* to) {
    NcclXmlOptions options;
    options.catalogue = &test::catalogue();
    const Topology t =
        read_nccl_xml(box(full, full, "", "speed=\"" + std::string(speed) + '"'), options).topology;
    return t.link(*t.find_link(*t.find_device(from), *t.find_device(to)));
  };
  EXPECT_EQ(out("400000", "node0/nic0", "leaf0").latency, 450_ns);
  EXPECT_EQ(out("400000", "leaf0", "node0/nic0").latency, Duration{});
  EXPECT_EQ(out("100000", "node0/nic0", "leaf0").latency, 190_ns);
  EXPECT_EQ(out("100000", "leaf0", "node0/nic0").latency, 100_ns);
  EXPECT_NEAR(out("100000", "node0/nic0", "leaf0").capacity.value(), 0.972 * 12.5e9 * 4096 / 4122, 1);
  // A cable that is named does the same.
  const Topology named = of_cloud("a100-sxm4-40gb", "ib-edr").topology;
  EXPECT_EQ(
      named.link(*named.find_link(*named.find_device("node0/nic0"), *named.find_device("leaf0"))).latency,
      190_ns);
}

// 2.5 GT/s of PCIe, and a cable of 1500.5 Mbit/s.
TEST(NcclXml, SpeedsWithAPointAreTheSameInAHostThatWritesCommas) {
  const std::string text = box(R"(link_speed="2.5 GT/s PCIe" link_width="16")",
                               R"(link_speed="32.0 GT/s PCIe" link_width="16")", "", R"(speed="1500.5")");
  const auto rates = [&] {
    std::vector<double> all;
    const NcclXmlImport import = read(text);
    for (const Link& link : import.topology.links()) all.push_back(link.line_rate.value());
    return all;
  };
  const std::vector<double> plain = rates();
  const topsim::test::CommaLocale locale;
  if (!locale.holds()) GTEST_SKIP() << "no locale with a comma, and no localedef";
  EXPECT_EQ(rates(), plain);
}

TEST(NcclXml, WhatIsNoTopologyIsASentence) {
  const auto message = [](const std::string& text) {
    try {
      (void)read(text);
    } catch (const ConfigError& error) {
      return error.problems().front().message;
    }
    return std::string();
  };
  EXPECT_THAT(message("<machine/>"), HasSubstr("topo.xml has no <system> element"));
  EXPECT_THAT(message("<system><cpu numaid=\"0\"/></system>"), HasSubstr("describes no accelerator"));
}
}  // namespace topsim::topology::nccl_xml_test
