// Whatever a file holds, reading it gives a topology or a ConfigError with a message. It never crashes.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>

#include "sim/base/error.hpp"
#include "tests/topology/fixtures.hpp"
#include "topology/export/export.hpp"
#include "topology/import/import.hpp"
#include "topology/import/nccl_xml.hpp"

namespace topsim::topology::test::import_fuzz_test {

constexpr const char* kHwloc = R"(<?xml version="1.0"?>
<topology version="2.0"><object type="Machine"><object type="Package"><info name="CPUVendor" value="AuthenticAMD"/>
<object type="Bridge" bridge_type="0-1"><object type="Bridge" bridge_type="1-1" pci_link_speed="31.5">
<object type="PCIDev" gp_index="7" pci_type="0302 [10de:20b0]" pci_link_speed="31.5">
<object type="OSDev" gp_index="8" name="nvml0" osdev_type="5"><info name="GPUModel" value="A100"/></object></object>
<object type="PCIDev" gp_index="9" pci_type="0302 [10de:20b0]" pci_link_speed="31.5">
<object type="OSDev" gp_index="10" name="nvml1" osdev_type="5"/></object>
<object type="PCIDev" gp_index="11" pci_type="0207 [15b3:101b]" pci_link_speed="31.5"/>
</object></object></object></object>
<distances2hetero nbobjs="2" kind="25" name="NVLinkBandwidth"><indexes>OSDev:8 OSDev:10</indexes>
<u64values>0 100000 100000 0</u64values></distances2hetero></topology>
)";

constexpr const char* kMatrix =
    "\tGPU0\tGPU1\tNIC0\tCPU Affinity\nGPU0\t X \tNV4\tPXB\t0-31\nGPU1\tNV4\t X \tSYS\t32-63\n"
    "NIC0\tPXB\tSYS\t X \n\nLegend:\n";

constexpr const char* kFabric = R"(switchguid=0x1(1)
Switch	8 "S-1"		# "leaf" base port 0 lid 1 lmc 0
[1]	"H-a"[1](b) 		# "host0 mlx5_0" lid 3 4xNDR
[2]	"H-c"[1](d) 		# "host1 mlx5_0" lid 4 4xNDR

Ca	1 "H-a"		# "host0 mlx5_0"
[1](b) 	"S-1"[1]		# lid 3 lmc 0 "leaf" lid 1 4xNDR
Ca	1 "H-c"		# "host1 mlx5_0"
[1](d) 	"S-1"[2]		# lid 4 lmc 0 "leaf" lid 1 4xNDR
)";

using Reader = std::function<Topology(const std::string&)>;

Reader by_spec(Imported (*read)(std::string_view, const ImportOptions&)) {
  return [read](const std::string& text) {
    ImportOptions options;
    options.name = "input";
    options.accelerator = "a100-sxm4-80gb";
    options.nic_link = "ib-hdr";
    return build(read(text, options).spec, catalogue());
  };
}

Topology from_nccl(const std::string& text) {
  NcclXmlOptions options;
  options.name = "input";
  return read_nccl_xml(text, options).topology;
}

Topology from_native(const std::string& text) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "topsim-fuzz.json";
  std::ofstream(path, std::ios::binary) << text;
  return build_file(path.string(), catalogue());
}

// The text cut off, with bytes changed, a piece repeated, or a piece replaced by a hostile one.
std::string mutated(const std::string& seed, std::mt19937_64& dice) {
  std::string text = seed;
  const auto below = [&](std::size_t n) {
    return static_cast<std::size_t>(dice() % std::max<std::size_t>(n, 1));
  };
  static const char* const kHostile[] = {
      "-1", "999999999999999999999", "nan", "1e308", "\"", "<", "\xff\xfe", "[", "0x", "NV99999999999"};
  switch (below(4)) {
    case 0:
      text.resize(below(text.size()));
      break;
    case 1:
      for (std::size_t i = below(8) + 1; i > 0; --i) text[below(text.size())] = static_cast<char>(dice());
      break;
    case 2: {
      const std::size_t from = below(text.size()), length = below(60);
      text.insert(below(text.size()), seed.substr(from, length));
      break;
    }
    default:
      text.replace(below(text.size()), below(12), kHostile[below(std::size(kHostile))]);
  }
  return text;
}

void survive(const std::string& seed, const Reader& read, int rounds) {
  ASSERT_NO_THROW({ EXPECT_FALSE(read(seed).accelerators().empty()); });
  std::mt19937_64 dice(20240607);
  int refused = 0;
  for (int i = 0; i < rounds; ++i) {
    const std::string text = mutated(seed, dice);
    try {
      const Topology t = read(text);
      EXPECT_FALSE(to_json(t).empty());
    } catch (const ConfigError& error) {
      ++refused;
      ASSERT_FALSE(error.problems().empty());
      EXPECT_FALSE(error.problems().front().message.empty());
    } catch (const std::exception& error) {
      ADD_FAILURE() << "round " << i << ": " << error.what() << "\n" << text;
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, rounds);
}

TEST(ImportFuzz, HwlocXml) {
  survive(kHwloc, by_spec(read_hwloc_xml), 400);
}
TEST(ImportFuzz, NvidiaSmi) {
  survive(kMatrix, by_spec(read_nvidia_smi), 400);
}
TEST(ImportFuzz, Ibnetdiscover) {
  survive(kFabric, by_spec(read_ibnetdiscover), 400);
}
TEST(ImportFuzz, NcclXml) {
  survive(to_nccl_xml(build(cluster("dgx-h100", 1, FabricKind::rail), catalogue()), 0), from_nccl, 400);
}
TEST(ImportFuzz, OwnTopologyFiles) {
  survive(to_json(build(cluster("a100-pcie-bridge-2gpu", 1), catalogue())), from_native, 400);
}

TEST(ImportFuzz, EndlessNestingIsASentence) {
  std::string text = "<topology>";
  for (int i = 0; i < 1000000; ++i) text += "<object>";
  EXPECT_THROW((void)by_spec(read_hwloc_xml)(text), ConfigError);
  EXPECT_THROW((void)from_nccl(text), ConfigError);
}

TEST(ImportFuzz, DevicesNumberedBelowZeroOrBeyondAllAreASentence) {
  const std::string good = to_nccl_xml(build(cluster("dgx-h100", 1, FabricKind::rail), catalogue()), 0);
  const std::size_t net = good.find("dev=\"", good.find("<net "));
  ASSERT_NE(net, std::string::npos);
  for (const char* const number : {"-1", "4e9", "nan"}) {
    std::string text = good;
    text.replace(net, good.find('"', net + 5) - net, std::string("dev=\"") + number);
    EXPECT_THROW((void)from_nccl(text), ConfigError) << number;
  }
}

TEST(ImportFuzz, AnEndlessLineIsASentence) {
  EXPECT_THROW((void)by_spec(read_nvidia_smi)("GPU0 X " + std::string(1000000, 'X')), ConfigError);
}

TEST(Import, HwlocTellsSocketsSlotsAndNvlinks) {
  const Topology t = by_spec(read_hwloc_xml)(kHwloc);
  const Router router(t, 1);
  EXPECT_EQ(path_of(t, route(router, "node0/gpu0", "node0/nic0")), "gpu0 pcie0 nic0");
  // 100,000 MB/s is four NVLinks of 25 GB/s.
  const LinkId nvlink = *t.find_link(device(t, "node0/gpu0"), device(t, "node0/gpu1"));
  EXPECT_EQ(t.link(nvlink).kind, LinkKind::nvlink);
  EXPECT_EQ(t.link(nvlink).count, 4);
  EXPECT_DOUBLE_EQ(t.link(nvlink).line_rate.value(), 100e9);
  // The switch's own link has 31.5 GB/s after coding: 16 lanes of 16 GT/s.
  const LinkId up = *t.find_link(device(t, "node0/pcie0"), device(t, "node0/cpu0"));
  EXPECT_DOUBLE_EQ(t.link(up).line_rate.value(), 32e9);
}

TEST(Import, TheDgx2OfHwlocsSamplesHasSixteenAcceleratorsOnOneNvswitch) {
  const std::filesystem::path sample =
      std::filesystem::path(TOPSIM_SOURCE_DIR) / "../shared/data/topologies/hwloc-xml/nvidiaDGX2.xml";
  // Data of others: read where it lies beside the project, never committed.
  if (!std::filesystem::exists(sample)) GTEST_SKIP() << "no samples beside the project";
  std::ifstream file(sample);
  std::ostringstream text;
  text << file.rdbuf();
  ImportOptions options;
  options.accelerator = "v100-sxm2-32gb";
  const Imported read = read_hwloc_xml(text.str(), options);
  const Topology t = build(read.spec, catalogue());
  EXPECT_EQ(t.accelerators().size(), 16U);
  const LinkId up = *t.find_link(device(t, "node0/gpu0"), device(t, "node0/nvswitch0"));
  EXPECT_DOUBLE_EQ(t.link(up).line_rate.value(), 150e9);  // six NVLinks
  EXPECT_EQ(text.str().find("NVIDIASerial") == std::string::npos, false);
  EXPECT_EQ(to_json(t).find("0321019030775"), std::string::npos) << "serial numbers stay out";
  EXPECT_THAT(read.findings, testing::Contains(testing::HasSubstr("Tesla V100-SXM3-32GB")));
}

}  // namespace topsim::topology::test::import_fuzz_test
