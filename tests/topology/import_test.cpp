#include "topology/import/import.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <tuple>

#include "sim/base/error.hpp"
#include "tests/topology/fixtures.hpp"
#include "topology/catalogue/link_entry.hpp"
#include "topology/export/export.hpp"

namespace topsim::topology::test::import_test {

using testing::Contains;
using testing::HasSubstr;

int count(const Topology& t, DeviceKind kind) {
  return static_cast<int>(
      std::count_if(t.devices().begin(), t.devices().end(), [&](const Device& d) { return d.kind == kind; }));
}

constexpr const char* kFabric = R"(# one leaf, one spine, one adapter
switchguid=0x1(1)
Switch	8 "S-0000000000000001"		# "leaf" base port 0 lid 1 lmc 0
[1]	"H-000000000000000a"[1](b) 		# "host0 mlx5_0" lid 3 4xNDR
[7]	"S-0000000000000002"[3]		# "spine" lid 2 2xNDR

switchguid=0x2(2)
Switch	8 "S-0000000000000002"		# "spine" base port 0 lid 2 lmc 0
[3]	"S-0000000000000001"[7]		# "leaf" lid 1 2xNDR

caguid=0xa
Ca	1 "H-000000000000000a"		# "host0 mlx5_0"
[1](b) 	"S-0000000000000001"[1]		# lid 3 lmc 0 "leaf" lid 1 4xNDR
)";

TEST(Import, IbnetdiscoverCablesAreCountedOnceAtTheirSpeed) {
  ImportOptions options;
  options.accelerator = "h100-sxm5";
  const Topology t = build(read_ibnetdiscover(kFabric, options).spec, catalogue());
  EXPECT_EQ(count(t, DeviceKind::fabric_switch), 2);
  EXPECT_EQ(count(t, DeviceKind::nic), 1);
  // Two cables and the adapter's bus, each in both directions.
  EXPECT_EQ(t.links().size(), 6U);
  const DeviceId nic = device(t, "node0/nic0");
  for (const LinkId l : t.links_from(nic))
    if (t.link(l).kind == LinkKind::infiniband) {
      EXPECT_DOUBLE_EQ(t.link(l).line_rate.value(), 50e9);  // 4 lanes x 100 Gbit/s
      EXPECT_EQ(t.device(t.link(l).to).tier, 1);            // a switch with adapters is a leaf
    }
  const LinkId up = *t.find_link(device(t, "switch0"), device(t, "switch1"));
  EXPECT_DOUBLE_EQ(t.link(up).line_rate.value(), 25e9);  // 2 lanes
}

TEST(Import, AcceleratorsBesideAdaptersHaveTheirOwnBus) {
  ImportOptions options;
  options.accelerator = "a100-sxm4-80gb";
  options.figures = &catalogue().accelerator(options.accelerator);
  const Imported imported = read_ibnetdiscover(kFabric, options);
  const Topology t = build(imported.spec, catalogue());
  EXPECT_DOUBLE_EQ(t.link(*t.find_link(device(t, "node0/gpu0"), device(t, "node0/nic0"))).line_rate.value(),
                   32e9);  // Gen4 x16
  EXPECT_THAT(imported.findings, Contains(HasSubstr("meet in the fabric alone")));
}

TEST(Import, EndsOfACableThatDisagreeAreAFinding) {
  std::string text = kFabric;
  text.replace(text.rfind("2xNDR"), 5, "2xHDR");
  EXPECT_THAT(read_ibnetdiscover(text, {}).findings, Contains(HasSubstr("disagree")));
}

TEST(Import, AggregationNodesAndLostDevicesAreNoCablesOfTheFabric) {
  std::string text = kFabric;
  text.insert(
      text.find("switchguid=0x2"),
      R"([9]	"H-00000000000000aa"[1](aa) 		# "Mellanox Technologies Aggregation Node" lid 9 4xHDR
[8]	"H-00000000000000bb"[1](bb) 		# "host1 mlx5_0" lid 7 4xNDR
)");
  text += R"(caguid=0xaa
Ca	1 "H-00000000000000aa"		# "Mellanox Technologies Aggregation Node"
[1](aa) 	"S-0000000000000001"[9]		# lid 9 lmc 0 "leaf" lid 1 4xHDR
)";
  const auto findings = read_ibnetdiscover(text, {}).findings;
  EXPECT_THAT(findings, Contains("1 hosts with 1 adapters, 2 switches, 2 cables"));
  EXPECT_THAT(findings, Contains(HasSubstr("without a record of their own: 1")));
}

TEST(Import, ARouterIsNoHostOfTheFabric) {
  std::string text = kFabric;
  text.insert(text.find("switchguid=0x2"),
              "[9]\t\"R-000000000000000c\"[1](c) \t\t# \"router\" lid 9 4xHDR\n");
  text +=
      "rtguid=0xc\nRt\t1 \"R-000000000000000c\"\t\t# \"router\"\n"
      "[1](c) \t\"S-0000000000000001\"[9]\t\t# lid 9 lmc 0 \"leaf\" lid 1 4xHDR\n";
  const auto findings = read_ibnetdiscover(text, {}).findings;
  EXPECT_THAT(findings, Contains("1 hosts with 1 adapters, 2 switches, 2 cables"));
  EXPECT_THAT(findings, Contains("routers to other subnets: 1, left out with their cables"));
}

// Hosts 1, 2 and 10 on one leaf, with two adapters on host 2: they come in this order however they are
// padded, so node0 is host 1, node1 host 2 and its nic0 is mlx5_2 (port 3), and node2 is host 10.
TEST(Import, HostsAndAdaptersAreNumberedAsPeopleCount) {
  const auto fabric = [](int digits) {
    std::string ports, adapters;
    int port = 0;
    for (const auto& [host, adapter] :
         {std::pair(10, "mlx5_0"), {2, "mlx5_10"}, {2, "mlx5_2"}, {1, "mlx5_0"}}) {
      const std::string id = fmt::format("H-{:016x}", ++port);
      const std::string named = fmt::format("gpu{:0{}} {}", host, digits, adapter);
      ports += fmt::format("[{}]\t\"{}\"[1](b)\t# \"{}\" lid {} 4xNDR\n", port, id, named, port);
      adapters +=
          fmt::format("\nCa\t1 \"{}\"\t# \"{}\"\n[1](b)\t\"S-1\"[{}]\t# lid 9 lmc 0 \"leaf\" lid 9 4xNDR\n",
                      id, named, port);
    }
    return "switchguid=0x1(1)\nSwitch\t8 \"S-1\"\t# \"leaf\" base port 0\n" + ports + adapters;
  };
  const Imported imported = read_ibnetdiscover(fabric(1), {});
  std::vector<std::string> cabled;  // in the order of the leaf's ports: gpu10, mlx5_10, mlx5_2, gpu1
  for (const LinkSpec& cable : imported.spec.links)
    cabled.push_back(cable.from == "switch0" ? cable.to : cable.from);
  EXPECT_THAT(cabled, testing::ElementsAre("node2/nic0", "node1/nic1", "node1/nic0", "node0/nic0"));
  const auto read = [&](int digits) {
    return to_json(build(read_ibnetdiscover(fabric(digits), {}).spec, catalogue()));
  };
  EXPECT_EQ(read(1), read(2));
  EXPECT_EQ(read(1), read(3));
}

// As in its manual page, and quoted.
TEST(Import, AnIndentedFabricIsTheFabric) {
  const auto drawn = [](const std::string& before) {
    std::string text = before;
    for (const char c : std::string(kFabric)) text += c == '\n' ? "\n" + before : std::string(1, c);
    return to_json(build(read_ibnetdiscover(text, {}).spec, catalogue()));
  };
  EXPECT_EQ(drawn("   "), drawn(""));
  EXPECT_EQ(drawn("> "), drawn(""));
}

TEST(Import, LinksOfHwlocCarryWhatTheCataloguesDo) {
  // Two V100 behind a switch of Gen3 x16, joined by two NVLinks: 2 x 25 GB/s, of which 20 each are payload.
  constexpr const char* kBox = R"(<topology version="2.0"><object type="Machine"><object type="Package">
    <info name="CPUVendor" value="GenuineIntel"/><info name="CPUFamilyNumber" value="6"/>
    <info name="CPUModelNumber" value="85"/>
    <object type="Bridge" bridge_type="0-1"><object type="Bridge" bridge_type="1-1" pci_link_speed="15.753846">
    <object type="PCIDev" gp_index="1" pci_type="0302 [10de:1db8]" pci_link_speed="15.753846"/>
    <object type="PCIDev" gp_index="2" pci_type="0302 [10de:1db8]" pci_link_speed="7.876923"/>
    </object></object></object></object>
    <distances2 name="NVLinkBandwidth"><indexes>PCIDev:1 PCIDev:2</indexes>
    <u64values>1000000 50000 50000 1000000</u64values></distances2></topology>)";
  ImportOptions options;
  options.accelerator = "v100-sxm2-32gb";
  options.figures = &catalogue().accelerator(options.accelerator);
  const Topology t = build(read_hwloc_xml(kBox, options).spec, catalogue());
  const auto link = [&](const char* from, const char* to) {
    return t.link(*t.find_link(device(t, from), device(t, to)));
  };
  const Link nvlink = link("node0/gpu0", "node0/gpu1");
  EXPECT_EQ(nvlink.count, 2);
  EXPECT_NEAR(nvlink.capacity.value(), 2 * 25.78125e9 * 128 / 144, 1e6);  // NVLink 2's packets
  for (const auto& [from, to, like] : {std::tuple("node0/gpu0", "node0/pcie0", "pcie3-x16"),
                                       {"node0/gpu1", "node0/pcie0", "pcie3-x8"},
                                       {"node0/pcie0", "node0/cpu0", "pcie3-x16"}}) {
    const LinkEntry& entry = catalogue().link(like);
    EXPECT_DOUBLE_EQ(link(from, to).capacity.value(), payload_capacity(entry).value()) << from;
    const bool host = std::string_view(to) == "node0/cpu0";
    EXPECT_EQ(link(from, to).latency, host ? entry.host_latency : entry.latency) << from;
  }
}

TEST(Import, AnAdapterWithoutCablesIsASentence) {
  try {
    const Imported imported = read_ibnetdiscover("caguid=0xa\nCa 1 \"H-a\" # \"host0 mlx5_0\"\n", {});
    FAIL() << imported.spec.devices.size();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.problems()[0].message, HasSubstr("no cable"));
  }
}

constexpr const char* kMatrix = R"(	GPU0	GPU1	GPU2	GPU3	NIC0	CPU Affinity	NUMA Affinity
GPU0	 X 	NV12	NV12	NV12	PXB	0-31	0
GPU1	NV12	 X 	NV12	NV12	PXB	0-31	0
GPU2	NV12	NV12	 X 	NV12	SYS	32-63	1
GPU3	NV12	NV12	NV12	 X 	SYS	32-63	1
NIC0	PXB	PXB	SYS	SYS	 X 

Legend:
)";

TEST(Import, TheSameNvlinkCountEverywhereIsAnNvswitch) {
  ImportOptions options;
  options.accelerator = "a100-sxm4-80gb";
  options.nic_link = "ib-hdr";
  const Topology t = build(read_nvidia_smi(kMatrix, options).spec, catalogue());
  EXPECT_EQ(count(t, DeviceKind::nvswitch), 1);
  EXPECT_EQ(count(t, DeviceKind::pcie_switch), 1);
  const Router router(t, 1);
  EXPECT_EQ(path_of(t, route(router, "node0/gpu0", "node0/nic0")), "gpu0 pcie0 nic0");
  EXPECT_EQ(path_of(t, route(router, "node0/gpu0", "node0/gpu3")), "gpu0 nvswitch0 gpu3");
}

// HGX A100 4-GPU: each GPU has 12 NVLinks, four to each of three others. They are cables of 4 x 25 GB/s a
// pair.
TEST(Import, AsManyNvlinksAsAnAcceleratorHasAreCables) {
  ImportOptions options;
  options.figures = &catalogue().accelerator("a100-sxm4-80gb");
  std::string text = kMatrix;
  for (std::size_t at = 0; (at = text.find("NV12")) != std::string::npos;) text.replace(at, 4, "NV4");
  const Topology t = build(read_nvidia_smi(text, options).spec, catalogue());
  EXPECT_EQ(count(t, DeviceKind::nvswitch), 0);
  const auto link = t.find_link(device(t, "node0/gpu0"), device(t, "node0/gpu3"));
  ASSERT_TRUE(link);
  EXPECT_EQ(t.link(*link).line_rate.value() / 1e9, 4 * 25.0);
}

TEST(Import, AMatrixThatIsCutOffIsNoSmallerMachine) {
  const std::string text = kMatrix;
  try {
    (void)read_nvidia_smi(text.substr(0, text.find("GPU2\tNV12")), {});
    ADD_FAILURE() << "two rows of five were taken";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.problems()[0].message, "the row of GPU2 is missing, which the heading names");
  }
}

TEST(Import, NvlinksThatCannotBeAreASentence) {
  std::string oneway = kMatrix, many = kMatrix;
  oneway.replace(oneway.find("NV12"), 4, "NV4 ");
  EXPECT_THROW((void)read_nvidia_smi(oneway, {}), ConfigError);
  for (std::size_t at = 0; (at = many.find("NV12")) != std::string::npos;) many.replace(at, 4, "NV99");
  EXPECT_THROW((void)read_nvidia_smi(many, {}), ConfigError);
}

// Where all GPUs are joined by NVLink, their cells do not show sockets. GPUs with the same CPU affinity share
// a socket; without affinities one socket is assumed.
TEST(Import, GpusBesideTheSameCpusShareASocket) {
  std::string text = kMatrix;
  const std::string nic = "NIC0\tPXB\tPXB\tSYS\tSYS\t X \n";
  text.erase(text.find(nic), nic.size());
  text.erase(text.find("NIC0\t"), 5);  // of the heading
  for (const char* cell : {"NV12\tPXB", "NV12\tSYS", " X \tSYS"})
    for (std::size_t at = 0; (at = text.find(cell)) != std::string::npos;) text.erase(text.find('\t', at), 4);
  const auto sockets = [](const std::string& matrix) {
    return count(build(read_nvidia_smi(matrix, {}).spec, catalogue()), DeviceKind::cpu);
  };
  EXPECT_EQ(sockets(text), 2);
  for (const std::string cpus : {"0-31\t0", "32-63\t1"})
    for (std::size_t at = 0; (at = text.find(cpus)) != std::string::npos;) text.erase(at, cpus.size());
  EXPECT_EQ(sockets(text), 1);
}

// 12 links look like NVLink 3 (25 GB/s). The accelerator, if it is named, says which NVLink it has (B200:
// NVLink 5, 50 GB/s), and which PCIe slot: 32 GB/s a direction for A100, else 64 GB/s.
TEST(Import, TheAcceleratorTellsTheNvlink) {
  const auto speed = [](const char* accelerator) {
    ImportOptions options;
    if (*accelerator != '\0') options.figures = &catalogue().accelerator(accelerator);
    const Topology t = build(read_nvidia_smi(kMatrix, options).spec, catalogue());
    const auto rate = [&](const char* to) {
      return t.link(*t.find_link(device(t, "node0/gpu0"), device(t, to))).line_rate.value() / 1e9;
    };
    return std::pair(rate("node0/nvswitch0"), rate("node0/pcie0"));
  };
  EXPECT_EQ(speed(""), std::pair(12 * 25.0, 64.0));
  EXPECT_EQ(speed("a100-sxm4-80gb"), std::pair(12 * 25.0, 32.0));
  EXPECT_EQ(speed("h100-sxm5"), std::pair(12 * 25.0, 64.0));
  EXPECT_EQ(speed("b200"), std::pair(12 * 50.0, 64.0));
}

// Some versions print wide cells without the tab between: "PXBNODE" is two.
TEST(Import, GluedCellsAreTakenApart) {
  std::string text = kMatrix;
  for (const std::string glued : {"NV12\tSYS", "PXB\tSYS", "SYS\tSYS"}) {
    ASSERT_NE(text.find(glued), std::string::npos);
    text.erase(text.find(glued) + glued.find('\t'), 1);
  }
  EXPECT_EQ(to_json(build(read_nvidia_smi(text, {}).spec, catalogue())),
            to_json(build(read_nvidia_smi(kMatrix, {}).spec, catalogue())));
}

TEST(Import, SamplesOfOthersAreReadOrRefusedWithASentence) {
  const std::filesystem::path samples =
      std::filesystem::path(TOPSIM_SOURCE_DIR) / "../shared/data/topologies";
  // Data of others: read where it lies beside the project, never committed.
  if (!std::filesystem::exists(samples)) GTEST_SKIP() << "no samples beside the project";
  for (const char* name :
       {"ibnetdiscover/own-ibsim-2leaf-1spine.out", "ibnetdiscover/topograph-single-ca.out",
        "nvidia-smi-topo/h100x4-oci-space-aligned.txt"}) {
    std::ifstream file(samples / name);
    std::ostringstream text;
    text << file.rdbuf();
    SCOPED_TRACE(name);
    const std::string format = detect_format(text.str());
    ImportOptions options;
    options.accelerator = "h100-sxm5";
    try {
      const Imported imported =
          format == "smi" ? read_nvidia_smi(text.str(), options) : read_ibnetdiscover(text.str(), options);
      EXPECT_FALSE(build(imported.spec, catalogue()).accelerators().empty());
    } catch (const ConfigError& error) {
      EXPECT_FALSE(error.problems()[0].help.empty());
    }
  }
}

}  // namespace topsim::topology::test::import_test
