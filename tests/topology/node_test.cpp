#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "tests/topology/fixtures.hpp"
#include "topology/catalogue/node_recipe.hpp"

namespace topsim::topology::test::node_test {

double gigabytes(BytesPerSecond rate) {
  return rate.value() * 1e-9;
}
Link link_between(const Topology& t, std::string_view from, std::string_view to) {
  const auto id = t.find_link(device(t, from), device(t, to));
  EXPECT_TRUE(id) << from << " -> " << to;
  return t.link(id.value_or(LinkId(0)));
}

TEST(Node, NvswitchLinksCarryTheSumOfTheAcceleratorsNvlinks) {
  // H100: 18 NVLink 4 of 25 GB/s = 450 GB/s a direction; A100: 12 x 25 = 300; B200: 18 x 50 = 900 (NVIDIA).
  const Topology h100 = build(cluster("hgx-h100", 1), catalogue());
  EXPECT_DOUBLE_EQ(gigabytes(link_between(h100, "node0/gpu3", "node0/nvswitch0").line_rate), 450);
  EXPECT_EQ(link_between(h100, "node0/gpu3", "node0/nvswitch0").count, 18);
  EXPECT_EQ(h100.device(device(h100, "node0/nvswitch0")).count, 4);  // chips
  const Topology a100 = build(cluster("dgx-a100", 1), catalogue());
  EXPECT_DOUBLE_EQ(gigabytes(link_between(a100, "node0/gpu0", "node0/nvswitch0").line_rate), 300);
  const Topology b200 = build(cluster("hgx-b200", 1), catalogue());
  EXPECT_DOUBLE_EQ(gigabytes(link_between(b200, "node0/gpu0", "node0/nvswitch0").line_rate), 900);
}

// A B200 in an H100's socket has its 18 NVLinks of 50 GB/s, a 2080 Ti on the bridge of a 3090, with its 4
// links, its own two of 25 GB/s, an L40S none; figures that the scenario names stay.
TEST(Node, AnAcceleratorInAnothersPlaceBringsItsOwnNvlinks) {
  TopologySpec spec = cluster("hgx-h100", 1);
  spec.node.accelerator = "b200";
  const Topology b200 = build(spec, catalogue());
  EXPECT_DOUBLE_EQ(gigabytes(link_between(b200, "node0/gpu0", "node0/nvswitch0").line_rate), 900);
  spec.node.accelerator = "l40s";
  const Topology l40s = build(spec, catalogue());
  const Router router(l40s, 1);
  EXPECT_EQ(path_of(l40s, route(router, "node0/gpu0", "node0/gpu1")).find("nvswitch"), std::string::npos);
  spec.node.nvlink = LinkChoice{};
  spec.node.nvlink->use = "nvlink4";
  const Topology named = build(spec, catalogue());
  EXPECT_DOUBLE_EQ(gigabytes(link_between(named, "node0/gpu0", "node0/nvswitch0").line_rate), 450);
  spec.node.nvlink = LinkChoice{};  // other figures, no other link
  spec.node.nvlink->latency = Duration(1'000'000);
  EXPECT_NO_THROW((void)build(spec, catalogue()));
  TopologySpec bridge = cluster("ws-2x3090-nvlink", 1);
  bridge.node.accelerator = "rtx-2080-ti";
  const Topology turing = build(bridge, catalogue());
  EXPECT_DOUBLE_EQ(gigabytes(link_between(turing, "node0/gpu0", "node0/gpu1").line_rate), 50);
}

// A V100's six NVLinks lead to four neighbours in a DGX-1, two each to two of them; a P100 has four.
TEST(Node, AnAcceleratorWithFewerNvlinksSpreadsThemOverTheSameNeighbours) {
  TopologySpec spec = cluster("dgx-1-v100", 1);
  spec.node.accelerator = "p100-sxm2";
  const Topology t = build(spec, catalogue());
  int links = 0;
  for (const Link& link : t.links())
    if (link.from == device(t, "node0/gpu0") && link.kind == LinkKind::nvlink) {
      EXPECT_EQ(link.count, 1);
      links += link.count;
    }
  EXPECT_EQ(links, 4);
}

TEST(Node, AnAcceleratorWithLinksOfAnotherKindIsRefused) {
  TopologySpec spec = cluster("hgx-h100", 1);
  spec.node.accelerator = "mi300x";
  try {
    (void)build(spec, catalogue());
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.problems().front().path, "topology.node.accelerator");
    EXPECT_THAT(error.problems().front().help, ::testing::HasSubstr("mi300x-8"));
  }
}

TEST(Node, AnAcceleratorReachesItsNicUnderItsOwnPcieSwitch) {
  const Topology t = build(cluster("dgx-a100", 1, FabricKind::rail), catalogue());
  const Router router(t, 1);
  // DGX A100: GPUs 2, 3 and NICs 2, 3 share the second PCIe switch.
  EXPECT_EQ(path_of(t, route(router, "node0/gpu2", "node0/nic2")), "gpu2 pcie1 nic2");
  EXPECT_EQ(path_of(t, route(router, "node0/gpu2", "node0/nic3")), "gpu2 pcie1 nic3");
  EXPECT_EQ(path_of(t, route(router, "node0/gpu2", "node0/nic6")), "gpu2 pcie1 cpu0 cpu1 pcie3 nic6");
}

TEST(Node, AcceleratorsOfAnNvswitchBoxNeverUsePcieForEachOther) {
  const Topology t = build(cluster("hgx-h100", 1), catalogue());
  const Router router(t, 1);
  for (const DeviceId a : t.accelerators())
    for (const DeviceId b : t.accelerators()) {
      if (a == b) continue;
      Route r;
      router.route({a, b}, r);
      ASSERT_EQ(r.links.size(), 2U);
      for (const LinkShare& l : r.links) EXPECT_EQ(t.link(l.link).kind, LinkKind::nvlink);
    }
}

TEST(Node, TheCubeMeshOfDgx1NeedsAtMostOneAcceleratorBetween) {
  const Topology t = build(cluster("dgx-1-v100", 1), catalogue());
  const Router router(t, 1);
  EXPECT_EQ(route(router, "node0/gpu0", "node0/gpu3").links.size(), 1U);  // neighbours, 2 links
  EXPECT_DOUBLE_EQ(gigabytes(link_between(t, "node0/gpu0", "node0/gpu3").line_rate), 50);
  EXPECT_EQ(route(router, "node0/gpu0", "node0/gpu5").links.size(), 2U);  // no direct link: NVB
  for (const DeviceId b : t.accelerators()) EXPECT_EQ(router.scale_up_domain(b), 0U);
}

TEST(Node, BridgedPairsUseNvlinkAndOthersPcie) {
  const Topology t = build(cluster("a100-pcie-pairs-8", 1), catalogue());
  const Router router(t, 1);
  EXPECT_EQ(path_of(t, route(router, "node0/gpu0", "node0/gpu1")), "gpu0 gpu1");
  EXPECT_EQ(path_of(t, route(router, "node0/gpu0", "node0/gpu2")), "gpu0 pcie0 gpu2");
  EXPECT_NE(router.scale_up_domain(device(t, "node0/gpu0")), router.scale_up_domain(device(t, "node0/gpu2")));
}

TEST(Node, GeForceCopiesBounceThroughHostMemory) {
  // The GeForce driver switches PCIe peer-to-peer off; NCCL's SHM keeps the buffer at the receiver.
  const Topology t = build(cluster("srv-8x4090-dual", 1), catalogue());
  EXPECT_FALSE(t.peer_to_peer);
  const Router router(t, 1);
  EXPECT_EQ(path_of(t, route(router, "node0/gpu0", "node0/gpu1")), "gpu0 pcie0 cpu0 mem0 cpu0 pcie0 gpu1");
  EXPECT_EQ(path_of(t, route(router, "node0/gpu0", "node0/gpu4")),
            "gpu0 pcie0 cpu0 cpu1 mem1 cpu1 pcie1 gpu4");
}

// tinygrad/open-gpu-kernel-modules: a driver patched for it lets 4090s write to each other over PCIe. A100
// PCIe cards may, unless NCCL_P2P_DISABLE or the like forbids it.
TEST(Node, WhetherCopiesPassOverPcieCanBeSaidOfAScenariosNode) {
  TopologySpec patched = cluster("srv-8x4090-dual", 1);
  patched.node.peer_to_peer = true;
  const Topology t = build(patched, catalogue());
  EXPECT_TRUE(t.peer_to_peer);
  const Router router(t, 1);
  EXPECT_EQ(path_of(t, route(router, "node0/gpu0", "node0/gpu1")), "gpu0 pcie0 gpu1");
  TopologySpec forbidden = cluster("a100-pcie-pairs-8", 1);
  forbidden.node.peer_to_peer = false;
  const Topology staged = build(forbidden, catalogue());
  EXPECT_FALSE(staged.peer_to_peer);
  const Router through(staged, 1);
  EXPECT_EQ(path_of(staged, route(through, "node0/gpu0", "node0/gpu2")),
            "gpu0 pcie0 cpu0 mem0 cpu0 pcie0 gpu2");
  EXPECT_EQ(path_of(staged, route(through, "node0/gpu0", "node0/gpu1")), "gpu0 gpu1");  // the bridge stays
}

// NVIDIA/nccl issue 1127: no pair of eight reaches another; two on an NVLink bridge do.
TEST(Node, ThreeThousandNinetiesReachEachOtherOverTheirBridgeAlone) {
  const Topology apart = build(cluster("srv-8x3090-dual", 1), catalogue());
  const Router between(apart, 1);
  EXPECT_EQ(path_of(apart, route(between, "node0/gpu0", "node0/gpu1")),
            "gpu0 pcie0 cpu0 mem0 cpu0 pcie0 gpu1");
  const Topology bridged = build(cluster("ws-2x3090-nvlink", 1), catalogue());
  const Router router(bridged, 1);
  EXPECT_FALSE(bridged.peer_to_peer);
  EXPECT_EQ(path_of(bridged, route(router, "node0/gpu0", "node0/gpu1")), "gpu0 gpu1");
}

TEST(Node, TraysOfAnNvl72ShareOneScaleUpDomain) {
  const Topology t = build(cluster("gb200-nvl72", 18, FabricKind::rail), catalogue());
  EXPECT_EQ(t.accelerators().size(), 72U);
  const Router router(t, 1);
  const Route r = route(router, "node0/gpu0", "node17/gpu3");
  EXPECT_EQ(r.links.size(), 2U);
  EXPECT_FALSE(r.crosses_fabric);
  EXPECT_EQ(router.scale_up_domain(device(t, "node0/gpu0")),
            router.scale_up_domain(device(t, "node17/gpu3")));
}

TEST(Node, GpusOfOneTrayReachEachOtherOverTheRacksSwitchesNotThroughTheirHost) {
  const Topology t = build(cluster("gb200-nvl72", 2, FabricKind::rail), catalogue());
  const Router router(t, 1);
  EXPECT_EQ(path_of(t, route(router, "node0/gpu0", "node0/gpu3")), "gpu0 nvswitch0 gpu3");
  // The receiver's rail is that of the other board, so the message first goes to the GPU beside that NIC
  // (PXN), over NVLink too.
  const Topology racks = build(cluster("gb200-nvl72", 36, FabricKind::rail), catalogue());
  const Router between(racks, 1);
  Route out;
  between.route({.from = device(racks, "node0/gpu0"), .to = device(racks, "node18/gpu3"), .allow_pxn = true},
                out);
  EXPECT_TRUE(out.proxied);
  EXPECT_EQ(racks.device(racks.link(out.links[0].link).to).kind, DeviceKind::nvswitch);
}

TEST(Node, TwoRacksAreTwoScaleUpDomains) {
  const Topology t = build(cluster("gb200-nvl72", 36, FabricKind::rail), catalogue());
  const Router router(t, 1);
  EXPECT_NE(router.scale_up_domain(device(t, "node0/gpu0")),
            router.scale_up_domain(device(t, "node18/gpu0")));
  EXPECT_TRUE(route(router, "node0/gpu0", "node18/gpu0").crosses_fabric);
}

TEST(Node, RacksAreFilledEvenlyWhereTheirTraysDoNotDivideTheNodes) {
  // Trays per rack are the largest number from 9 to 18 that divides the nodes: 64 are four racks of 16, 20
  // two of 10, 36 two of 18. 38 = 2 x 19 has no such divisor, and 12 fit in one rack: 18.
  EXPECT_EQ(even_domain(64, 18), 16);
  EXPECT_EQ(even_domain(20, 18), 10);
  EXPECT_EQ(even_domain(36, 18), 18);
  EXPECT_EQ(even_domain(38, 18), 18);
  EXPECT_EQ(even_domain(12, 18), 18);
  const Topology t = build(cluster("gb200-nvl72", 32, FabricKind::rail), catalogue());
  const Router router(t, 1);
  EXPECT_EQ(router.scale_up_domain(device(t, "node0/gpu0")),
            router.scale_up_domain(device(t, "node15/gpu3")));
  EXPECT_NE(router.scale_up_domain(device(t, "node15/gpu0")),
            router.scale_up_domain(device(t, "node16/gpu0")));
}

TEST(Node, EveryRecipeBuildsAndConnectsEveryPairOfRanks) {
  for (const CatalogueEntry& entry : catalogue().entries()) {
    if (entry.category != "node") continue;
    SCOPED_TRACE(entry.id);
    const Topology one = build(cluster(entry.id, 1), catalogue());
    const Router router(one, 1);
    Route r;
    for (const DeviceId a : one.accelerators())
      for (const DeviceId b : one.accelerators()) {
        if (a == b) continue;
        router.route({a, b}, r);
        ASSERT_TRUE(r.reachable()) << router.why_unreachable({.from = a, .to = b});
      }
  }
}

TEST(Node, OfWhichAJobHasAPartKeepsItsSwitches) {
  TopologySpec spec = cluster("hgx-h100", 2, FabricKind::rail);
  spec.node.accelerators = 4;
  const Topology t = build(spec, catalogue());
  EXPECT_EQ(t.accelerators().size(), 8U);
  EXPECT_EQ(t.device(t.accelerators()[4]).node, 1U);
  EXPECT_EQ(t.nics_of_node(0).size(), 8U);
  const Router router(t, 1);
  EXPECT_EQ(path_of(t, route(router, "node0/gpu0", "node0/gpu3")), "gpu0 nvswitch0 gpu3");
  EXPECT_FALSE(t.find_device("node0/gpu4"));
}

TEST(Node, WithFewerNicsSharesThem) {
  TopologySpec spec = cluster("hgx-h100", 2, FabricKind::rail);
  spec.node.nics = 2;
  const Topology t = build(spec, catalogue());
  EXPECT_EQ(t.accelerators().size(), 16U);
  EXPECT_EQ(t.nics_of_node(1).size(), 2U);
  const Router router(t, 1);
  EXPECT_TRUE(route(router, "node0/gpu7", "node1/gpu7").crosses_fabric);
}

// Four of a DGX H100's eight: NICs 0, 2, 4 and 6 of the recipe, two on each socket.
TEST(Node, FewerNicsAreSpreadOverTheSockets) {
  TopologySpec spec = cluster("dgx-h100", 1);
  spec.node.nics = 4;
  const Topology t = build(spec, catalogue());
  const Router router(t, 1);
  std::map<std::string, int> of_socket;
  for (const DeviceId nic : t.nics_of_node(0))
    for (const char* socket : {"node0/cpu0", "node0/cpu1"}) {
      const std::string path = path_of(t, route(router, t.name(nic), socket));
      if (std::count(path.begin(), path.end(), ' ') == 2) ++of_socket[socket];  // NIC, PCIe switch, socket
    }
  EXPECT_EQ(of_socket["node0/cpu0"], 2);
  EXPECT_EQ(of_socket["node0/cpu1"], 2);
}

// Accelerators that a job leaves out take their NVLinks and NICs with them. GPU 0 of a DGX-1 keeps its links
// to 1, 2 and 3.
TEST(Node, OfAMeshKeepsTheLinksAmongItsPart) {
  TopologySpec spec = cluster("dgx-1-v100", 1);
  spec.node.accelerators = 4;
  const Topology t = build(spec, catalogue());
  std::size_t bricks = 0;
  for (const LinkId link : t.links_from(device(t, "node0/gpu0")))
    bricks += t.link(link).kind == LinkKind::nvlink;
  EXPECT_EQ(bricks, 3U);
}

// An Intel root complex splits what one GPU writes to another into packets of 64 bytes. With 26 bytes of
// header each that is (64 + 26) / 64 on the link instead of (256 + 26) / 256. AMD's passes packets on as they
// are. What goes through host memory or stays below a PCIe switch is not split.
TEST(Node, PeersBehindAnIntelRootComplexTakeMoreOfItsLinks) {
  const auto shares = [](const char* node, const char* cpu, const char* to) {
    TopologySpec spec = cluster(node, 1);
    if (*cpu != 0) spec.node.cpu = cpu;
    const Topology t = build(spec, catalogue());
    const Router router(t, 1);
    std::vector<double> out;
    for (const LinkShare& use : route(router, "node0/gpu0", to).links) out.push_back(use.share);
    return out;
  };
  const double cut = (90.0 / 64) / (282.0 / 256);
  using testing::DoubleEq, testing::Each, testing::ElementsAre;
  EXPECT_THAT(shares("rtx-pro-6000-8gpu", "", "node0/gpu2"), ElementsAre(1, 1, DoubleEq(cut), DoubleEq(cut)));
  EXPECT_THAT(shares("rtx-pro-6000-8gpu", "amd", "node0/gpu2"), Each(1));
  EXPECT_THAT(shares("rtx-pro-6000-8gpu", "", "node0/gpu1"), Each(1));
  EXPECT_THAT(shares("rtx-pro-6000-8gpu", "", "node0/gpu4"), Each(1));
  EXPECT_THAT(shares("rtx-pro-6000-8gpu", "", "node0/nic1"), Each(1));
  EXPECT_THAT(shares("srv-8x4090-dual", "intel-spr", "node0/gpu1"), Each(1));
}

// Of equal nodes the topology stores one. A copy whose links may change (with_links) stores all.
TEST(Node, NodesKeptOnceAreThoseThatAreSpelledOut) {
  const Topology once = build(cluster("hgx-h100", 3, FabricKind::fat_tree), catalogue());
  const Topology all = once.with_links([](Link&) {});
  ASSERT_EQ(once.copies().nodes, 3U);
  ASSERT_EQ(all.copies().nodes, 0U);
  const auto same_device = [](const Device& a, const Device& b) {
    return std::tuple(a.kind, a.tier, a.count, a.node, a.local, a.model) ==
           std::tuple(b.kind, b.tier, b.count, b.node, b.local, b.model);
  };
  const auto same_link = [](const Link& a, const Link& b) {
    return std::tuple(a.from, a.to, a.kind, a.count, a.type, a.capacity, a.line_rate, a.latency) ==
           std::tuple(b.from, b.to, b.kind, b.count, b.type, b.capacity, b.line_rate, b.latency);
  };
  ASSERT_EQ(once.devices().size(), all.devices().size());
  ASSERT_EQ(once.links().size(), all.links().size());
  EXPECT_TRUE(std::equal(once.devices().begin(), once.devices().end(), all.devices().begin(), same_device));
  EXPECT_TRUE(std::equal(once.links().begin(), once.links().end(), all.links().begin(), same_link));
  for (std::size_t l = 0; l < all.links().size(); ++l)
    EXPECT_TRUE(same_link(once.link(LinkId(l)), all.link(LinkId(l)))) << l;
  for (std::size_t d = 0; d < all.devices().size(); ++d) {
    EXPECT_TRUE(same_device(once.device(DeviceId(d)), all.device(DeviceId(d)))) << d;
    const LinksFrom here = once.links_from(DeviceId(d)), there = all.links_from(DeviceId(d));
    ASSERT_EQ(here.size(), there.size());
    EXPECT_TRUE(std::equal(here.begin(), here.end(), there.begin()));
    for (std::size_t i = 0; i < here.size(); ++i) EXPECT_EQ(here[i], there[i]);
  }
  for (std::uint32_t n = 0; n < 3; ++n) EXPECT_EQ(once.devices_of_node(n), all.devices_of_node(n)) << n;
}

// The builder derives lists from the first of equal nodes. They must equal lists made by visiting every
// device and link.
TEST(Node, ListsOfCopiesAreThoseOfEveryDeviceAndLink) {
  for (const char* recipe : {"hgx-h100", "dgx-a100", "gb200-nvl72", "hgx-a100-4nic"}) {
    SCOPED_TRACE(recipe);
    const Topology t = build(cluster(recipe, 3, FabricKind::fat_tree), catalogue());
    std::vector<std::vector<LinkId>> from(t.devices().size());
    std::vector<LinkId> cables;
    std::vector<DeviceId> accelerators;
    std::vector<std::vector<DeviceId>> nics(t.nodes());
    for (std::size_t l = 0; l < t.links().size(); ++l) {
      const Link& link = t.links()[l];
      from[link.from.index()].push_back(LinkId(l));
      if (t.device(link.from).node != t.device(link.to).node ||
          t.device(link.from).kind == DeviceKind::fabric_switch)
        cables.push_back(LinkId(l));
    }
    for (std::size_t d = 0; d < t.devices().size(); ++d) {
      EXPECT_THAT(t.links_from(DeviceId(d)), testing::ElementsAreArray(from[d])) << t.name(DeviceId(d));
      if (t.devices()[d].kind == DeviceKind::accelerator) accelerators.push_back(DeviceId(d));
      if (t.devices()[d].kind == DeviceKind::nic) nics[t.devices()[d].node].push_back(DeviceId(d));
    }
    EXPECT_THAT(t.cables(), testing::ElementsAreArray(cables));
    EXPECT_THAT(t.accelerators(), testing::ElementsAreArray(accelerators));
    for (std::uint32_t n = 0; n < t.nodes(); ++n)
      EXPECT_THAT(t.nics_of_node(n), testing::ElementsAreArray(nics[n])) << "node " << n;
    const Topology::Copies& copies = t.copies();  // trays of a rack share NVSwitches, so they are no copies
    EXPECT_EQ(copies.nodes, std::string(recipe) == "gb200-nvl72" ? 0U : 3U);
    for (std::uint32_t l = 0; l < copies.nodes * copies.links; ++l) {
      const Link &first = t.links()[l % copies.links], &link = t.links()[l];
      EXPECT_EQ(link.from.value - first.from.value, l / copies.links * copies.devices);
      EXPECT_EQ(link.to.value - first.to.value, l / copies.links * copies.devices);
    }
  }
}

TEST(Node, EveryRecipeWithNicsJoinsAFatTree) {
  for (const CatalogueEntry& entry : catalogue().entries()) {
    if (entry.category != "node" || catalogue().node(entry.id).compute_nics() == 0) continue;
    SCOPED_TRACE(entry.id);
    TopologySpec spec = cluster(entry.id, 2, FabricKind::fat_tree);
    // 1.6 Tbit/s and on-die ports: no switch of theirs is published.
    if (entry.id == "vr-nvl72" || entry.id.starts_with("gaudi")) spec.fabric.link.use = "roce-800g";
    const Topology two = build(spec, catalogue());
    const Router router(two, 1);
    Route r;
    const auto gpus = two.accelerators();
    router.route({gpus.front(), gpus.back()}, r);
    EXPECT_TRUE(r.reachable()) << router.why_unreachable({.from = gpus.front(), .to = gpus.back()});
  }
}

}  // namespace topsim::topology::test::node_test
