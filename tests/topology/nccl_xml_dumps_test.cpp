// NCCL's topology files as people have them: of virtual machines, of POWER9, with fused NICs, with links
// down.
#include <gmock/gmock.h>

#include "sim/base/error.hpp"
#include "tests/topology/fixtures.hpp"
#include "topology/import/nccl_xml.hpp"
#include "topology/validate/validate.hpp"

namespace topsim::topology::nccl_xml_dumps_test {
using test::device;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kSlot = R"( link_speed="16 GT/s" link_width="16")";

std::string system(const std::string& inside) {
  return R"(<system version="1"><cpu numaid="0" arch="x86_64" vendor="AuthenticAMD">)" + inside +
         "</cpu></system>";
}
std::string gpu(int number, const std::string& links = "", const std::string& slot = kSlot) {
  const std::string dev = std::to_string(number);
  return "<pci busid=\"0000:" + dev + R"(a:00.0" class="0x030200")" + slot + "><gpu dev=\"" + dev +
         R"(" sm="80" gdr="1">)" + links + "</gpu></pci>";
}
std::string nvlink(const std::string& target, int count, const std::string& kind = "0x030200") {
  return "<nvlink target=\"" + target + "\" count=\"" + std::to_string(count) + "\" tclass=\"" + kind +
         "\"/>";
}
std::string net(const std::string& name, int dev, const std::string& more = R"(speed="200000")") {
  return "<net name=\"" + name + "\" dev=\"" + std::to_string(dev) + "\" port=\"1\" guid=\"0x1\" " + more +
         "/>";
}
std::string nic(const std::string& nets, const std::string& kind = R"(class="0x020700")") {
  return R"(<pci busid="0000:f0:00.0" )" + kind + kSlot + "><nic>" + nets + "</nic></pci>";
}

NcclXmlImport read(const std::string& inside, std::uint32_t nodes = 1) {
  NcclXmlOptions options;
  options.accelerator = "a100-sxm4-80gb";
  options.nodes = nodes;
  return read_nccl_xml(system(inside), options);
}
int links(const Topology& t, const char* from, const char* to) {
  int count = 0;
  for (const LinkId id : t.links_from(device(t, from)))
    if (t.link(id).to == device(t, to)) count += t.link(id).count;
  return count;
}
Problem refused(const std::string& inside) {
  try {
    (void)read(inside);
  } catch (const ConfigError& error) {
    return error.problems().front();
  }
  ADD_FAILURE() << "was read: " << inside;
  return {};
}

// Two GPUs and two NICs a box. With an NVLink between them, each GPU hands the other what is for the other's
// NIC: two rails. Without it, gpu0 would never meet gpu1 of the next box, whose NIC is on the other rail: one
// switch.
TEST(NcclDump, BoxesWithoutNvlinkFromRailToRailHaveOneSwitch) {
  const auto half = [](int number, const std::string& links) {
    const std::string up =
        "<pci busid=\"0000:" + std::to_string(number) + R"(0:00.0" class="0x060400")" + kSlot + ">";
    return up + gpu(number, links) + nic(net("mlx5_" + std::to_string(number), number)) + "</pci>";
  };
  const auto switches = [](const Topology& t) {
    return std::count_if(t.devices().begin(), t.devices().end(),
                         [](const Device& d) { return d.kind == DeviceKind::fabric_switch; });
  };
  for (const std::uint32_t nodes : {2U, 3U}) {
    const NcclXmlImport rails =
        read(half(0, nvlink("0000:1a:00.0", 12)) + half(1, nvlink("0000:0a:00.0", 12)), nodes);
    EXPECT_EQ(switches(rails.topology), 2);
    EXPECT_EQ(rails.topology.nodes(), nodes);
    EXPECT_EQ(rails.topology.fabric_kind, FabricKind::rail);
    const NcclXmlImport flat = read(half(0, "") + half(1, ""), nodes);
    EXPECT_EQ(switches(flat.topology), 1);
    EXPECT_EQ(flat.topology.nodes(), nodes);
    EXPECT_EQ(flat.topology.fabric_kind, FabricKind::fat_tree);
    EXPECT_EQ(links(flat.topology, "node1/nic1", "leaf0"), 1);
    EXPECT_THAT(flat.findings, Contains(HasSubstr("all are cabled to one switch")));
    const Router router(flat.topology, 1);
    EXPECT_TRUE(test::route(router, "node0/gpu0", "node1/gpu1").reachable());
  }
  EXPECT_EQ(switches(read(half(0, "") + half(1, "")).topology), 2);  // alone: rails
}

// MLOPart shows one chip as two accelerators on a PCI device: one of them is not silently the machine.
TEST(NcclDump, SeveralAcceleratorsOfAPciDeviceAreRefusedByItsBusId) {
  std::string both = gpu(0);
  both.insert(both.find("</pci>"), R"(<gpu dev="1" sm="80"/>)");
  const Problem problem = refused(both);
  EXPECT_THAT(problem.message, HasSubstr("PCI device 0000:0a:00.0 has 2 <gpu>"));
  EXPECT_THAT(problem.help, HasSubstr("give each a <pci>"));
}

TEST(NcclDump, NvlinksThatLeadToTheirOwnGpuAreLeftOutAndSaid) {
  const NcclXmlImport import = read(gpu(0, nvlink("0000:0a:00.0", 12)) + gpu(1, nvlink("0000:1a:00.0", 12)));
  EXPECT_THAT(import.findings, Contains(HasSubstr("0000:0a:00.0 and 1 more lead to where they begin")));
  EXPECT_EQ(links(import.topology, "node0/gpu0", "node0/gpu1"), 0);
}

// Whichever of the two lists it; if they differ, the larger number.
TEST(NcclDump, ALinkThatOneGpuListsIsTakenAndSaid) {
  for (const std::string& inside :
       {gpu(0) + gpu(1, nvlink("0000:0a:00.0", 4)), gpu(0, nvlink("0000:1a:00.0", 4)) + gpu(1),
        gpu(0, nvlink("0000:1a:00.0", 4)) + gpu(1, nvlink("0000:0a:00.0", 3))}) {
    const NcclXmlImport import = read(inside);
    EXPECT_EQ(links(import.topology, "node0/gpu0", "node0/gpu1"), 4) << inside;
    EXPECT_THAT(import.findings, Contains(HasSubstr("back: 4 taken"))) << inside;
  }
  EXPECT_THAT(read(gpu(0, nvlink("0000:1a:00.0", 4)) + gpu(1, nvlink("0000:0a:00.0", 4))).findings,
              Not(Contains(HasSubstr("taken"))));
}

TEST(NcclDump, NvlinksToAPower9ProcessorAreNoNvswitch) {
  const std::string to_cpu = nvlink("0006:00:00.0", 3, "0x068001");
  const NcclXmlImport import =
      read(gpu(0, nvlink("0000:1a:00.0", 3) + to_cpu) + gpu(1, nvlink("0000:0a:00.0", 3) + to_cpu));
  EXPECT_FALSE(import.topology.find_device("node0/nvswitch0"));
  EXPECT_EQ(links(import.topology, "node0/gpu0", "node0/gpu1"), 3);
  EXPECT_THAT(import.findings,
              Contains(HasSubstr("0000:0a:00.0 and 1 more to their processor are left out")));
}

TEST(NcclDump, AGpuWithoutTheNvlinksOfOthersIsSaid) {
  const std::string up = nvlink("fffffff:ff:ff.0", 12, "0x068000");
  EXPECT_THAT(read(gpu(0, up) + gpu(1) + gpu(2, up)).findings,
              Contains(HasSubstr("no NVLink leads to 0000:1a:00.0")));
  EXPECT_THAT(read(gpu(0, up) + gpu(1, up)).findings, Not(Contains(HasSubstr("no NVLink leads"))));
}

TEST(NcclDump, BusIdsAreComparedWhateverTheirCase) {
  EXPECT_EQ(links(read(gpu(0, nvlink("0000:1A:00.0", 2)) + gpu(1, nvlink("0000:0A:00.0", 2))).topology,
                  "node0/gpu0", "node0/gpu1"),
            2);
}

// NCCL numbers a fused NIC after those that it fuses, so the first number of a file may be 2.
TEST(NcclDump, RailsAreTheNumbersThatOccur) {
  const Topology t =
      read(gpu(0) + nic(net("mlx5_4", 4)) + "<nic>" + net("mlx5_0+mlx5_1", 2) + "</nic>", 2).topology;
  EXPECT_EQ(links(t, "node0/nic1", "leaf0"), 1);
  EXPECT_EQ(links(t, "node1/nic0", "leaf1"), 1);
  EXPECT_FALSE(t.find_device("leaf2"));
  for (const Finding& each : check(t, test::catalogue()))
    EXPECT_NE(each.severity, Severity::error) << each.message;
}

// What Linux says of a link that it cannot read: all bits of the field, or of the byte.
TEST(NcclDump, AWidthThatLinuxDoesNotKnowIsSixteenLanesAndSaid) {
  for (const char* width : {"63", "255"}) {
    const NcclXmlImport import =
        read(gpu(0, "", std::string(R"( link_speed="16 GT/s" link_width=")") + width + '"'));
    EXPECT_THAT(import.findings, Contains(HasSubstr("0000:0a:00.0 gives \"" + std::string(width))));
    const Topology& t = import.topology;
    // 16 GT/s x 16 x 128/130 / 8
    EXPECT_NEAR(t.link(*t.find_link(device(t, "node0/gpu0"), device(t, "node0/cpu0"))).line_rate.value(),
                31.5e9, 1e8);
  }
  EXPECT_EQ(refused(gpu(0, "", R"( link_speed="16 GT/s" link_width="64")")).message,
            "0000:0a:00.0: link_width=\"64\" counts nothing");
}

TEST(NcclDump, AnInterfaceUnderEveryProcessorIsOne) {
  const std::string eth0 = "<nic>" + net("eth0", 0) + "</nic>";
  const NcclXmlImport import = read(gpu(0) + eth0 + R"(</cpu><cpu numaid="1" arch="x86_64">)" + eth0);
  EXPECT_TRUE(import.topology.find_device("node0/nic0"));
  EXPECT_FALSE(import.topology.find_device("node0/nic1"));
  EXPECT_THAT(import.findings, Contains(HasSubstr("eth0 stands under several processors")));
}

TEST(NcclDump, OfFusedNicsOnlyTheWholeIsCabled) {
  const std::string part = R"(speed="100000" net="0")";
  const std::string parts = net("mlx5_0", 0, part) + net("mlx5_1", 1, part);
  const NcclXmlImport import =
      read(gpu(0) + nic(parts + net("mlx5_0+mlx5_1", 2, R"(speed="200000" net="1")")));
  EXPECT_EQ(links(import.topology, "node0/nic0", "leaf0"), 1);
  EXPECT_FALSE(import.topology.find_device("leaf1"));
  EXPECT_THAT(import.findings, Contains(HasSubstr("mlx5_0 and 1 more give net=\"0\"")));
  // Where all are marked, they are what there is.
  EXPECT_TRUE(read(gpu(0) + nic(parts)).topology.find_device("leaf1"));
}

TEST(NcclDump, OnlyInfinibandIsInfiniband) {
  const auto infiniband = [](const std::string& kind, const char* name = "mlx5_0") {
    return read(gpu(0) + nic(net(name, 0), kind)).topology.fabric_is_infiniband;
  };
  EXPECT_TRUE(infiniband(R"(class="0x020700" vendor="0x15b3")"));
  EXPECT_TRUE(infiniband(R"(class="0x028000" vendor="0x15b3")"));
  EXPECT_FALSE(infiniband(R"(class="0x028000" vendor="0x14c3")"));  // Wi-Fi
  EXPECT_FALSE(infiniband(R"(class="0x020000" vendor="0x15b3")"));
  EXPECT_FALSE(infiniband("", "rocep1s0f0"));
  EXPECT_THAT(read(gpu(0) + "<nic>" + net("mlx5_0+mlx5_1", 0) + "</nic>").findings,
              Contains(HasSubstr("mlx5_0+mlx5_1 is several NICs fused")));
}

// 200000000 is kbit/s where Mbit/s are meant: 200 Gbit/s would be 200000.
TEST(NcclDump, ASpeedThatNoPortHasIsSaid) {
  EXPECT_THAT(read(gpu(0) + nic(net("cxi0", 0, R"(speed="200000000")"))).findings,
              Contains("cxi0 gives speed=\"200000000\", which is 200000 Gbit/s; the attribute is in Mbit/s"));
}

TEST(NcclDump, AFileOfBusIdsAloneNamesTheFullDump) {
  const Problem problem = refused(R"(<pci busid="0000:00:16.0"/><pci busid="0000:00:17.0"/>)");
  EXPECT_THAT(problem.message, HasSubstr("describes no accelerator"));
  EXPECT_THAT(problem.help, HasSubstr("NCCL_TOPO_DUMP_FILE=topo.xml"));
}

}  // namespace topsim::topology::nccl_xml_dumps_test
