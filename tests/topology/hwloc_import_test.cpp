// What hwloc lists beside accelerators and their NICs: displays of management chips, NICs without RDMA,
// NVLinks to processors.
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
