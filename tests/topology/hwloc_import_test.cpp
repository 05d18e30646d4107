// What hwloc lists beside accelerators and their NICs: displays of management chips, NICs without RDMA,
// NVLinks to processors; and the links among accelerators, which it asks their drivers for.
#include <gmock/gmock.h>

#include <string>

#include "sim/base/error.hpp"
#include "tests/topology/fixtures.hpp"
#include "topology/import/import.hpp"

namespace topsim::topology::test::hwloc_import_test {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

std::string box(const std::string& devices, const std::string& behind = "", const char* socket = "Package") {
  return std::string(R"(<topology version="2.0"><object type="Machine"><object type=")") + socket +
         R"(" gp_index="3"><object type="Bridge" bridge_type="0-1">)" + devices +
         "</object></object></object>" + behind + "</topology>";
}
std::string pci(int index, const std::string& kind, const std::string& speed,
                const std::string& inside = "") {
  const std::string number = std::to_string(index);
  return R"(<object type="PCIDev" gp_index=")" + number + R"(" pci_busid="0000:0)" + number +
         R"(:00.0" pci_type=")" + kind + R"(" pci_link_speed=")" + speed + R"(">)" + inside + "</object>";
}
std::string os_device(const char* kind) {
  return std::string(R"(<object type="OSDev" gp_index="20" osdev_type=")") + kind + R"("/>)";
}
const std::string kTesla = pci(1, "0302 [10de:20b0]", "31.5");

Imported read(const std::string& text) {
  ImportOptions options;
  options.accelerator = "a100-sxm4-80gb";
  options.nic_link = "ib-hdr";
  return read_hwloc_xml(text, options);
}
Topology built(const Imported& imported) {
  return build(imported.spec, catalogue());
}

// ES1000 on a slot of no speed, Aspeed's, Matrox', QEMU's and Amazon's.
TEST(Hwloc, TheDisplayOfAManagementChipIsNoAccelerator) {
  for (const char* kind :
       {"0300 [1002:515e]", "0300 [1a03:2000]", "0300 [102b:0536]", "0300 [1234:1111]", "0300 [1d0f:1111]"}) {
    const Imported imported = read(box(kTesla + pci(2, kind, "0.25", os_device("1"))));
    EXPECT_EQ(built(imported).accelerators().size(), 1U) << kind;
    EXPECT_THAT(imported.findings, Contains("0000:02:00.0 (" + std::string(kind) +
                                            ") is a display and no accelerator: left out"));
  }
  try {
    (void)read(box(pci(2, "0300 [1002:515e]", "0.25", R"(<info name="PCIDevice" value="ES1000"/>)")));
    ADD_FAILURE() << "a display is an accelerator";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.problems().front().message, HasSubstr("describes no accelerator"));
    EXPECT_THAT(error.problems().front().help, HasSubstr("(ES1000) is a display"));
  }
}

// Of a workstation: NVIDIA's without a speed in a virtual machine, AMD's on a slot, one that computes.
TEST(Hwloc, AGpuWithADisplayIsAnAccelerator) {
  for (const std::string& gpu : {pci(2, "0300 [10de:2230]", "0.0"), pci(2, "0300 [1002:73bf]", "31.5"),
                                 pci(2, "0300 [8086:56c0]", "0.0", os_device("5"))})
    EXPECT_EQ(built(read(box(kTesla + gpu))).accelerators().size(), 2U) << gpu;
}

TEST(Hwloc, ANicWithoutRdmaHasNoCableWhereOthersHaveIt) {
  const std::string ena = pci(2, "0200 [1d0f:ec20]", "31.5", os_device("2"));
  for (const char* openfabrics : {"3", "32", "48"}) {  // format 2, format 3: alone and with "network"
    const Imported imported =
        read(box(kTesla + ena + pci(3, "0200 [1d0f:efa3]", "31.5", os_device(openfabrics))));
    const Topology t = built(imported);
    EXPECT_TRUE(t.find_link(device(t, "node0/nic1"), device(t, "rail0")));
    EXPECT_FALSE(t.find_device("rail1"));
    EXPECT_THAT(imported.findings,
                Contains(HasSubstr("no RDMA device (OpenFabrics) on nic0 (0200 [1d0f:ec20])")));
  }
  // None has: all are cabled, and that is said.
  const Imported all = read(box(kTesla + ena));
  EXPECT_TRUE(built(all).find_device("rail0"));
  EXPECT_THAT(all.findings,
              Contains("no NIC names an RDMA device (OpenFabrics): ib-hdr on each of 1, whatever it "
                       "speaks"));
}

// Before it was a network: class 0c06.
TEST(Hwloc, AnInfinibandAdapterOfTheOldClassIsANic) {
  EXPECT_TRUE(
      built(read(box(kTesla + pci(2, "0c06 [15b3:6746]", "2.0", os_device("3"))))).find_device("rail0"));
}

// POWER8 and 9: two NVLink 1 from each GPU to its socket, 40,000 MB/s.
TEST(Hwloc, NvlinksToTheProcessorAreLeftOutAndSaid) {
  const Imported imported = read(box(kTesla, R"(<distances2hetero name="NVLinkBandwidth">
    <indexes>PCIDev:1 Package:3</indexes><u64values>1000000 40000 40000 1000000</u64values></distances2hetero>)"));
  EXPECT_THAT(imported.findings,
              Contains(HasSubstr("between GPUs and processors are left out (1 GPU has them)")));
  EXPECT_THAT(read(box(kTesla)).findings, IsEmpty());
}

// GPUs of one kind, as the driver's devices 101, 102, ...
std::string gpus(int count, const std::string& kind) {
  std::string all;
  for (int i = 1; i <= count; ++i)
    all += pci(i, kind, "31.5", R"(<object type="OSDev" gp_index="10)" + std::to_string(i) + R"("/>)");
  return all;
}
std::string matrix(const std::string& name, const std::string& indexes, const std::string& values,
                   const std::string& tag = "distances2 type=\"OSDev\" indexing=\"gp\"") {
  const std::string end = tag.substr(0, tag.find(' '));
  return "<" + tag + " name=\"" + name + "\"><indexes>" + indexes + "</indexes><u64values>" + values +
         "</u64values></" + end + ">";
}
Imported read_as(const char* accelerator, const std::string& text) {
  ImportOptions options;
  options.accelerator = accelerator;
  options.figures = &catalogue().accelerator(accelerator);
  return read_hwloc_xml(text, options);
}
int links(const Topology& t, const char* from, const char* to) {
  const auto found = t.find_link(device(t, from), device(t, to));
  return found ? t.link(*found).count : 0;
}

// 50,000 MB/s are two NVLinks of 25.
TEST(Hwloc, ObjectsOfOneTypeAreNumberedWithoutIt) {
  const std::string two = gpus(2, "0302 [10de:1db1]"), values = "0 50000 50000 0";
  for (const std::string& links_of :
       {matrix("NVLinkBandwidth", "101 102", values),
        matrix("NVLinkBandwidth", "OSDev:101 OSDev:102", values, "distances2hetero")}) {
    const Topology t = built(read_as("v100-sxm2-32gb", box(two, links_of)));
    EXPECT_EQ(links(t, "node0/gpu0", "node0/gpu1"), 2) << links_of;
  }
}

// Three MI300X, one link of 64 GB/s a pair whatever the driver's nominal figure. Four dies of MI250X: four
// links in a package and one or two between packages, and none where the driver counts two hops.
TEST(Hwloc, InfinityFabricIsReadFromTheDriversMatrix) {
  for (const char* nominal : {"50000", "64000", "100000"}) {
    std::string values;
    for (int i = 0; i < 9; ++i) values += i % 4 == 0 ? "1000000 " : std::string(nominal) + " ";
    const Imported imported =
        read_as("mi300x", box(gpus(3, "1200 [1002:74a1]"), matrix("XGMIBandwidth", "101 102 103", values)));
    const Topology t = built(imported);
    const Link link = t.link(*t.find_link(device(t, "node0/gpu0"), device(t, "node0/gpu2")));
    EXPECT_EQ(link.count, 1);
    EXPECT_DOUBLE_EQ(link.line_rate.value(), 64e9);
    EXPECT_EQ(link.kind, LinkKind::infinity_fabric);
    EXPECT_THAT(imported.findings,
                Contains(HasSubstr(std::string(nominal) + " MB/s is taken for one link xgmi-mi300x")));
  }
  const Topology t = built(read_as(
      "mi250x-gcd",
      box(gpus(4, "0380 [1002:7408]"),
          matrix("XGMIBandwidth", "101 102 103 104",
                 "0 200000 50000 50000  200000 0 50000 100000  50000 50000 0 200000  50000 100000 200000 0") +
              matrix("XGMIHops", "101 102 103 104", "0 1 1 2  1 0 2 1  1 2 0 1  2 1 1 0"))));
  EXPECT_EQ(links(t, "node0/gpu0", "node0/gpu1"), 4);
  EXPECT_EQ(links(t, "node0/gpu0", "node0/gpu2"), 1);
  EXPECT_EQ(links(t, "node0/gpu1", "node0/gpu3"), 2);
  EXPECT_EQ(links(t, "node0/gpu0", "node0/gpu3"), 0);
  EXPECT_EQ(links(t, "node0/gpu1", "node0/gpu2"), 0);
}

// hwloc without NVML. A V100 has six links, which lead to the NVSwitches where there are some (DGX-2); on
// boards of eight since Ampere they do, too: 12 of an A100.
TEST(Hwloc, NvlinksThatTheFileDoesNotTellAreAssumedOrSaid) {
  const Imported dgx2 =
      read_as("v100-sxm3-32gb", box(gpus(2, "0302 [10de:1db8]") + pci(3, "0680 [10de:1ac2]", "0.0") +
                                    pci(4, "0680 [10de:1ac2]", "0.0")));
  const Topology t = built(dgx2);
  EXPECT_EQ(links(t, "node0/gpu1", "node0/nvswitch0"), 6);
  EXPECT_EQ(t.device(device(t, "node0/nvswitch0")).count, 2);
  EXPECT_THAT(dgx2.findings, Contains(HasSubstr("6 to NVSwitches are assumed from every GPU, as the file")));

  const Imported board = read_as("a100-sxm4-80gb", box(gpus(8, "0302 [10de:20b2]")));
  EXPECT_EQ(links(built(board), "node0/gpu7", "node0/nvswitch0"), 12);
  EXPECT_THAT(board.findings, Contains(HasSubstr("as on every board of eight")));

  for (const auto& [accelerator, what] :
       {std::pair("v100-sxm2-32gb", "tells no NVLink though v100-sxm2-32gb has 6 (hwloc asks NVML for them)"),
        {"mi300x", "tells no xgmi-mi300x though mi300x has 7 (hwloc asks ROCm SMI for them)"}}) {
    const Imported unknown = read_as(accelerator, box(gpus(8, "0302 [10de:1db1]")));
    EXPECT_FALSE(built(unknown).find_device("node0/nvswitch0"));
    EXPECT_THAT(unknown.findings, Contains(HasSubstr(what)));
  }
  EXPECT_THAT(read(box(gpus(2, "0302 [10de:1db8]") + pci(3, "0680 [10de:1ac2]", "0.0"))).findings,
              Contains(HasSubstr("the file has NVSwitches and tells no NVLinks")));
  EXPECT_THAT(read_as("a100-sxm4-80gb", box(kTesla)).findings, IsEmpty());  // alone
}

// 16 lanes at rest: Gen1 carries 16 x 0.25 GB/s, Gen2 16 x 0.5. An A100's own slot is Gen4 x16: 16 lanes of
// 16 GT/s at 128 bits in 130, 31.5 GB/s. A slot of Gen3 x4 (3.94 GB/s) is what it says.
TEST(Hwloc, AGpuThatWasAsleepHasItsOwnSlot) {
  const auto rate = [](const Imported& imported) {
    const Topology t = built(imported);
    return t.link(*t.find_link(device(t, "node0/gpu0"), device(t, "node0/cpu0"))).line_rate.value();
  };
  for (const char* speed : {"4.000000", "8.000000", "0.250000"}) {
    const std::string two = pci(1, "0302 [10de:20b0]", speed) + pci(2, "0302 [10de:20b0]", speed);
    const Imported named = read_as("a100-pcie-80gb", box(two));
    EXPECT_NEAR(rate(named), 32e9 * 128 / 130, 0.5e9) << speed;
    EXPECT_THAT(named.findings, Contains(HasSubstr("node0/gpu0 and 1 more run at")));
    EXPECT_THAT(named.findings, Contains(HasSubstr("pcie4-x16 of a100-pcie-80gb is taken")));
    EXPECT_THAT(read_hwloc_xml(box(two), {}).findings, Contains(HasSubstr("dump again under load")));
  }
  const Imported narrow = read_as("a100-pcie-80gb", box(pci(1, "0302 [10de:20b0]", "3.938462")));
  EXPECT_NEAR(rate(narrow), 3.94e9, 0.07e9);
  EXPECT_THAT(narrow.findings, IsEmpty());
}

TEST(Hwloc, ASocketIsThePackageOfHwloc1) {
  const std::string gpu = box(kTesla, "", "Socket");
  std::string two = gpu;
  const std::size_t begin = two.find(R"(<object type="Socket")"), end = two.rfind("</object></topology>");
  two.insert(end, two.substr(begin, end - begin));
  const Topology t = built(read(two));
  EXPECT_TRUE(t.find_link(device(t, "node0/gpu0"), device(t, "node0/cpu0")));
  EXPECT_TRUE(t.find_link(device(t, "node0/gpu1"), device(t, "node0/cpu1")));
}

}  // namespace topsim::topology::test::hwloc_import_test
