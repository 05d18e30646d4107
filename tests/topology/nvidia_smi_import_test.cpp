// The matrix of `nvidia-smi topo -m` as people have it: of old drivers, of machines with a broken link, of
// containers, pasted from elsewhere.
#include <gmock/gmock.h>

#include <string>

#include "sim/base/error.hpp"
#include "tests/topology/fixtures.hpp"
#include "topology/draw/draw.hpp"
#include "topology/import/import.hpp"

namespace topsim::topology::test::nvidia_smi_import_test {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Imported read(const std::string& text, const char* accelerator = "h100-sxm5") {
  ImportOptions options;
  options.name = "topo.txt";
  options.accelerator = accelerator;
  options.figures = &catalogue().accelerator(accelerator);
  return read_nvidia_smi(text, options);
}
Topology built(const Imported& imported) {
  return build(imported.spec, catalogue());
}
Problem refused(const std::string& text) {
  try {
    (void)read(text);
  } catch (const ConfigError& error) {
    return error.problems().front();
  }
  ADD_FAILURE() << "was read:\n" << text;
  return {};
}
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}
int links_up(const Topology& t, const char* gpu) {
  const auto found = t.find_link(device(t, gpu), device(t, "node0/nvswitch0"));
  return found ? t.link(*found).count : 0;
}
std::size_t count(const Topology& t, DeviceKind kind) {
  std::size_t all = 0;
  for (const Device& each : t.devices()) all += each.kind == kind ? 1 : 0;
  return all;
}

constexpr const char* kWeak =
    R"(	GPU0	GPU1	GPU2	GPU3	CPU Affinity	NUMA Affinity	GPU NUMA ID
GPU0	X	NV18	NV16	NV18	0-3	0		N/A
GPU1	NV18	X	NV16	NV18	0-3	0		N/A
GPU2	NV16	NV16	X	NV16	0-3	0		N/A
GPU3	NV18	NV18	NV16	X	0-3	0		N/A
)";

// 18 + 16 + 18 = 52 links of one GPU cannot be cables: it has 18, all to NVSwitches. Of GPU2 two are down.
TEST(NvidiaSmi, AGpuWithTwoLinksDownIsStillOnTheNvswitches) {
  const Imported imported = read(kWeak);
  const Topology t = built(imported);
  EXPECT_THAT((std::vector{links_up(t, "node0/gpu0"), links_up(t, "node0/gpu1"), links_up(t, "node0/gpu2"),
                           links_up(t, "node0/gpu3")}),
              ElementsAre(18, 18, 16, 18));
  EXPECT_FALSE(t.find_link(device(t, "node0/gpu0"), device(t, "node0/gpu1")));
  EXPECT_THAT(imported.findings, Contains(HasSubstr("16 of 18 NVLinks to the NVSwitches: GPU2")));
  EXPECT_THAT(read(replaced(kWeak, "NV16", "NV18")).findings, Not(Contains(HasSubstr("to the NVSwitches"))));
}

TEST(NvidiaSmi, AGpuWithoutAnyLinkIsLeftOffTheNvswitchesAndSaid) {
  const Imported imported = read(replaced(kWeak, "NV16", "NODE"));
  const Topology t = built(imported);
  EXPECT_EQ(links_up(t, "node0/gpu2"), 0);
  EXPECT_EQ(links_up(t, "node0/gpu3"), 18);
  EXPECT_THAT(imported.findings, Contains(HasSubstr("a GPU is without NVLink, which others have: GPU2")));
  EXPECT_THAT(to_tree(t, true, 0), HasSubstr("gpu0..gpu1 gpu3 - nvswitch0"));
}

// Two boards of three GPUs: 12 + 12 links are more than a GPU has, and none lead from board to board.
TEST(NvidiaSmi, GpusThatNvlinksDoNotJoinHaveNvswitchesOfTheirOwn) {
  std::string text = "\tGPU0\tGPU1\tGPU2\tGPU3\tGPU4\tGPU5\n";
  for (int a = 0; a < 6; ++a) {
    text += "GPU" + std::to_string(a);
    for (int b = 0; b < 6; ++b) text += a == b ? "\tX" : a / 3 == b / 3 ? "\tNV12" : "\tSYS";
    text += '\n';
  }
  const Topology t = built(read(text, "a100-sxm4-80gb"));
  EXPECT_EQ(count(t, DeviceKind::nvswitch), 2U);
  EXPECT_EQ(links_up(t, "node0/gpu2"), 12);
  EXPECT_EQ(links_up(t, "node0/gpu3"), 0);
  EXPECT_TRUE(t.find_link(device(t, "node0/gpu3"), device(t, "node0/nvswitch1")));
}

// Links of pairs: a V100 has six, and no row of a cube mesh has more.
TEST(NvidiaSmi, DifferentNumbersOfLinksThatAGpuHasAreCables) {
  const std::string mesh = replaced(replaced(kWeak, "NV18", "NV2"), "NV16", "NV1");
  const Topology t = built(read(mesh, "v100-sxm2-32gb"));
  EXPECT_EQ(count(t, DeviceKind::nvswitch), 0U);
  EXPECT_EQ(t.link(*t.find_link(device(t, "node0/gpu0"), device(t, "node0/gpu1"))).count, 2);
  EXPECT_EQ(t.link(*t.find_link(device(t, "node0/gpu0"), device(t, "node0/gpu2"))).count, 1);
}

// Nobody names the GPUs. Rows of 3 x 6 = 18 cables are Hopper's 18 links, as GH200s of a node of four have
// them; 3 x 4 = 12 are an A100's, 3 x 2 = 6 a V100's. 3 x 12 = 36 is more than any GPU has: 12 links to
// NVSwitches.
TEST(NvidiaSmi, CablesOfARowAreTheLinksOfItsGpu) {
  const std::string all = replaced(kWeak, "NV16", "NV18");
  for (const auto& [cell, link] : {std::pair("NV6", "nvlink4"), {"NV4", "nvlink3"}, {"NV2", "nvlink2"}}) {
    const Imported imported = read_nvidia_smi(replaced(all, "NV18", cell), {});
    const Topology t = built(imported);
    const auto found = t.find_link(device(t, "node0/gpu0"), device(t, "node0/gpu3"));
    ASSERT_TRUE(found) << cell;
    EXPECT_EQ(t.link(*found).count, cell[2] - '0');
    EXPECT_EQ(t.type_of(*found).id, link) << cell;
    EXPECT_EQ(count(t, DeviceKind::nvswitch), 0U);
    const auto asks = Contains(HasSubstr("V100s on NVSwitches look the same: --gpu says which"));
    if (std::string_view(cell) == "NV6")
      EXPECT_THAT(imported.findings, asks);
    else
      EXPECT_THAT(imported.findings, Not(asks));
  }
  EXPECT_EQ(links_up(built(read_nvidia_smi(replaced(all, "NV18", "NV12"), {})), "node0/gpu0"), 12);
  // Four of a DGX-2, named.
  EXPECT_EQ(links_up(built(read(replaced(all, "NV18", "NV6"), "v100-sxm3-32gb")), "node0/gpu0"), 6);
}

// Four PCIe GPUs in pairs under a switch each, as drivers of 2017 print them, and later ones.
constexpr const char* kOld = R"(	GPU0	GPU1	GPU2	GPU3	mlx5_0	CPU Affinity
GPU0	X	PIX	SOC	SOC	SOC	0-7
GPU1	PIX	X	SOC	SOC	SOC	0-7
GPU2	SOC	SOC	X	PIX	PHB	8-15
GPU3	SOC	SOC	PIX	X	PHB	8-15
mlx5_0	SOC	SOC	PHB	PHB	X
)";

TEST(NvidiaSmi, SocIsTheOlderNameOfSys) {
  const auto drawn = [](const std::string& text) { return to_tree(built(read(text)), true, 0); };
  EXPECT_EQ(drawn(kOld), drawn(replaced(kOld, "SOC", "SYS")));
  const Topology t = built(read(kOld));
  EXPECT_TRUE(t.find_link(device(t, "node0/nic0"), device(t, "node0/cpu1")));  // PHB to GPU2
  EXPECT_EQ(detect_format(kOld), "smi");
}

TEST(NvidiaSmi, AWordThatIsNoCellIsRefusedAtItsPlace) {
  const Problem problem = refused(replaced(kOld, "GPU1\tPIX", "GPU1\tPIY"));
  EXPECT_EQ(problem.message, "\"PIY\" is no cell of the matrix");
  EXPECT_EQ(problem.place.line, 3);
  EXPECT_EQ(problem.place.column, 6);
  EXPECT_EQ(problem.source_line, "GPU1\tPIY\tX\tSOC\tSOC\tSOC\t0-7");
}

TEST(NvidiaSmi, ARowHasACellForEveryDeviceOfTheHeading) {
  const Problem problem = refused(replaced(kOld, "GPU2\tSOC\tSOC", "GPU2\tSOC"));
  EXPECT_EQ(problem.message, "the row of GPU2 has 4 cells, and the heading names 5 devices");
  EXPECT_EQ(problem.place.line, 4);
  EXPECT_EQ(refused(replaced(kOld, "GPU1\tPIX\tX", "GPU1\tX\tPIX")).message,
            "the row of GPU1 has X where the column of GPU0 is");
}

// Names that the system gives: mlx5_ib0 and mlx5_an0 of Azure, rocep23s0.
TEST(NvidiaSmi, ARowIsWhateverTheHeadingNames) {
  for (const char* name : {"mlx5_ib0", "rocep23s0", "NIC0", "ens"}) {
    const Topology t = built(read(replaced(kOld, "mlx5_0", name)));
    EXPECT_EQ(count(t, DeviceKind::nic), 1U) << name;
  }
}

// A container of GPUs of both sockets that may use the CPUs of one.
TEST(NvidiaSmi, CellsCountMoreThanTheCpusOfAContainer) {
  const Imported imported = read(replaced(kOld, "8-15", "0-7"));
  EXPECT_EQ(count(built(imported), DeviceKind::cpu), 2U);
  EXPECT_THAT(imported.findings, Contains(HasSubstr("GPU0 and GPU2 are near the same CPUs (0-7) and SYS")));
}

TEST(NvidiaSmi, SocketsAreLinkedEachToEach) {
  const Topology t =
      built(read("\tGPU0\tGPU1\tGPU2\nGPU0\tX\tSYS\tSYS\nGPU1\tSYS\tX\tSYS\nGPU2\tSYS\tSYS\tX\n"));
  EXPECT_TRUE(t.find_link(device(t, "node0/cpu1"), device(t, "node0/cpu2")));
}

TEST(NvidiaSmi, ANicThatIsFarFromAllIsOnASocketOfItsOwnAndSaid) {
  const Imported imported = read(replaced(kOld, "PHB", "SYS"));
  EXPECT_EQ(count(built(imported), DeviceKind::cpu), 3U);
  EXPECT_THAT(imported.findings, Contains("mlx5_0 is SYS from every GPU: it gets a socket of its own, cpu2"));
}

TEST(NvidiaSmi, PastedMatricesAreTheMatrix) {
  const auto drawn = [](const std::string& text) { return to_tree(built(read(text)), true, 0); };
  const std::string text = kOld;
  EXPECT_EQ(drawn(replaced(text, "\n", "\r\n")), drawn(text));
  EXPECT_EQ(drawn("> " + replaced(text, "\n", "\n> ")), drawn(text));
  EXPECT_EQ(drawn("| " + replaced(text, "\n", "\n| ")), drawn(text));
  EXPECT_EQ(drawn("$ nvidia-smi topo -m\n" + replaced(text, "GPU1\tGPU2", "\x1b[4mGPU1\x1b[0m\tGPU2")),
            drawn(text));
}

TEST(NvidiaSmi, Utf16IsNamedWithItsRemedy) {
  std::string wide = "\xff\xfe";
  for (const char c : std::string(kOld)) wide += c, wide += '\0';
  EXPECT_EQ(detect_format(wide), "smi");
  for (const std::string& text : {wide, wide.substr(2)}) {
    const Problem problem = refused(text);
    EXPECT_THAT(problem.message, HasSubstr("UTF-16"));
    EXPECT_THAT(problem.help, HasSubstr("iconv -f UTF-16"));
    EXPECT_EQ(problem.place.file, "topo.txt");
  }
  EXPECT_THROW((void)read_hwloc_xml(wide, {}), ConfigError);
}

}  // namespace topsim::topology::test::nvidia_smi_import_test
