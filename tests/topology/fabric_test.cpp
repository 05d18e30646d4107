#include <gmock/gmock.h>

#include <map>
#include <set>

#include "sim/base/error.hpp"
#include "tests/topology/fixtures.hpp"
#include "topology/build/clos_plan.hpp"
#include "topology/catalogue/fabric_recipe.hpp"

namespace topsim::topology::test::fabric_test {
using namespace topsim::literals;

std::map<int, int> switches_by_tier(const Topology& t) {
  std::map<int, int> count;
  for (const Device& d : t.devices())
    if (d.kind == DeviceKind::fabric_switch) count[d.tier] += d.count;
  return count;
}

TEST(Fabric, SwitchCountsOfADgxSuperpodAreTheOnesNvidiaPublishes) {
  // DGX SuperPOD reference architecture (B200/H100): nodes -> leaf, spine, core switches of 64 ports.
  for (const FabricRecipe::Size& size : catalogue().fabric("dgx-superpod").published) {
    SCOPED_TRACE(size.nodes);
    TopologySpec spec = cluster("dgx-h100", size.nodes, "rail");
    spec.fabric.link.use = "ib-ndr";
    spec.fabric.switch_model.use = "qm9700";
    const auto count = switches_by_tier(build(spec, catalogue()));
    EXPECT_EQ(count.at(1), size.leaf);
    EXPECT_EQ(count.at(2), size.spine);
    EXPECT_EQ(count.contains(3) ? count.at(3) : 0, size.core);
  }
}

TEST(Fabric, OversubscriptionIsTheRatioOfPortsDownToPortsUp) {
  // 16 nodes a leaf at 2:1: 16 cables down, 8 up. 64 nodes take four leaves a rail.
  TopologySpec spec = cluster("hgx-h100", 64, "rail");
  spec.fabric.nodes_per_leaf = 16;
  spec.fabric.oversubscription = {2.0};
  const Topology t = build(spec, catalogue());
  EXPECT_EQ(switches_by_tier(t).at(1), 8 * 4);
  double down = 0, up = 0;
  for (const LinkId l : t.links_from(device(t, "leaf0")))
    (t.device(t.link(l).to).kind == DeviceKind::nic ? down : up) += t.link(l).line_rate.value();
  EXPECT_DOUBLE_EQ(down, 16 * 50e9);
  EXPECT_DOUBLE_EQ(up, 8 * 50e9);
}

TEST(Fabric, TheSpineTierHasItsOwnRatio) {
  ClosDemand demand;
  demand.leaves = 64;
  demand.down_ports = 32;
  demand.radix = 64;
  demand.tiers = 3;
  demand.leaves_per_pod = 16;
  demand.spine_ratio = 4;
  const ClosPlan plan = plan_clos(demand);
  EXPECT_EQ(plan.uplinks(), 32);                                                // 1:1 at the leaf
  EXPECT_EQ(plan.leaves_per_pod * plan.leaf_cables, 4 * plan.spine_uplinks());  // 4:1 at the spine
}

TEST(Fabric, RoutesAsItsLinkDoesWhereNobodySaysHow) {
  // configs/hardware/links.json: EFA sprays packets (SRD), Slingshot is adaptive; else the link's kind
  // decides.
  const auto routing = [](const char* link, std::optional<Routing> asked = std::nullopt) {
    TopologySpec spec = cluster("hgx-h100", 4, "rail");
    spec.fabric.link.use = link;
    spec.fabric.routing = asked;
    return build(spec, catalogue()).routing;
  };
  EXPECT_EQ(routing("efa-400g"), Routing::spray);
  EXPECT_EQ(routing("slingshot-200"), Routing::adaptive);
  EXPECT_EQ(routing("ib-ndr"), Routing::adaptive);
  EXPECT_EQ(routing("roce-400g"), Routing::ecmp);
  EXPECT_EQ(routing("efa-400g", Routing::static_), Routing::static_);
}

TEST(Fabric, ARatioForATierThatIsNotThereIsRefused) {
  const auto built = [](std::vector<double> ratios, std::optional<int> tiers) {
    TopologySpec spec = cluster("hgx-h100", 32, "rail");
    spec.fabric.oversubscription = std::move(ratios);
    spec.fabric.tiers = tiers;
    return build(spec, catalogue());
  };
  // 32 nodes on 8 rails of 64-port switches need two tiers only. A ratio for the spines is kept for more
  // nodes.
  EXPECT_EQ(switches_by_tier(built({2, 7}, std::nullopt)).size(), 2U);
  EXPECT_EQ(switches_by_tier(built({2, 1}, 2)).size(), 2U);
  EXPECT_THROW(static_cast<void>(built({2, 1, 1}, 2)), ConfigError);  // three ratios, two tiers
  EXPECT_THROW(static_cast<void>(built({2, 2}, 2)), ConfigError);     // nothing is above the spines
  EXPECT_THROW(static_cast<void>(built({1, 1, 2}, std::nullopt)), ConfigError);  // nor above cores
}

TEST(Fabric, ARailFabricPutsEveryRailOnItsOwnLeaf) {
  const Topology t = build(cluster("hgx-h100", 8, "rail"), catalogue());
  for (const char* nic : {"node0/nic3", "node5/nic3", "node7/nic3"}) {
    EXPECT_TRUE(t.find_link(device(t, nic), device(t, "leaf3"))) << nic;
  }
}

TEST(Fabric, AFatTreePutsANodeOnOneLeaf) {
  // 32 ports down a leaf / 8 NICs a node = 4 nodes a leaf.
  const Topology t = build(cluster("hgx-h100", 16, "fat-tree"), catalogue());
  std::set<DeviceId> leaves;
  for (const DeviceId nic : t.nics_of_node(5))
    for (const LinkId l : t.links_from(nic))
      if (t.device(t.link(l).to).kind == DeviceKind::fabric_switch) leaves.insert(t.link(l).to);
  EXPECT_EQ(leaves.size(), 1U);
  EXPECT_EQ(t.name(*leaves.begin()), "leaf1");
}

// A SuperPOD's recipe has eight leaves a unit, one a rail. As a fat tree it has no rails.
TEST(Fabric, ARecipeOfRailsAsAFatTreePutsANodeOnOneLeaf) {
  TopologySpec spec = cluster("dgx-h100", 16, "fat-tree");
  spec.fabric.use = "dgx-superpod";
  const Topology t = build(spec, catalogue());
  std::set<DeviceId> leaves;
  for (const DeviceId nic : t.nics_of_node(5))
    for (const LinkId l : t.links_from(nic))
      if (t.device(t.link(l).to).kind == DeviceKind::fabric_switch) leaves.insert(t.link(l).to);
  EXPECT_EQ(leaves.size(), 1U);
}

TEST(Fabric, RailOnlyHasNothingBetweenRails) {
  const Topology t = build(cluster("hgx-h100", 8, "rail-only"), catalogue());
  EXPECT_EQ(switches_by_tier(t).size(), 1U);
  const Router router(t, 1);
  // Sender and receiver are on different rails, so the message goes over NVLink to the sender's neighbour on
  // the receiver's rail first (PXN).
  const Route r = route(router, "node0/gpu0", "node1/gpu3");
  EXPECT_TRUE(r.proxied);
  EXPECT_EQ(r.switches, 1);
}

TEST(Fabric, TooManyNodesForTheSwitchesSayWhatWouldFit) {
  // Three tiers of 64-port switches at 1:1 have 64^3 / 4 = 65,536 ports; 16,384 nodes of 8 NICs need 131,072.
  try {
    const Topology t = build(cluster("hgx-h100", 16384, "rail"), catalogue());
    FAIL() << "built with " << t.devices().size() << " devices";
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.problems().size(), 1U);
    EXPECT_EQ(error.problems()[0].path, "topology.fabric");
    EXPECT_THAT(error.problems()[0].help, testing::HasSubstr("three carry 65536"));
  }
}

TEST(Fabric, EqualSwitchesMergeUnderAdaptiveRoutingAndKeepTheirCapacity) {
  TopologySpec spec = cluster("hgx-h100", 512, "rail");
  const Topology merged = build(spec, catalogue());
  BuildOptions apart;
  apart.merge_switches_above = 1 << 20;
  const Topology full = build(spec, catalogue(), apart);
  const auto up_of_leaf0 = [](const Topology& t) {
    double up = 0;
    for (const LinkId l : t.links_from(device(t, "leaf0")))
      if (t.device(t.link(l).to).tier == 2) up += t.link(l).capacity.value();
    return up;
  };
  EXPECT_NEAR(up_of_leaf0(merged), up_of_leaf0(full), 1);
  EXPECT_EQ(switches_by_tier(merged), switches_by_tier(full));
  EXPECT_LT(merged.links().size(), full.links().size());
}

// A leaf has 32 cables up to four spines, eight to each: one link of eight cables, or eight links of one.
TEST(Fabric, NoMoreSwitchesAreMergedThanTheirCablesCanBeCounted) {
  // 512 ports: 256 nodes of eight NICs under eight leaves of 256 cables up each, 32 such groups in a pod.
  // Each of its 256 spines has one cable to each of 256 leaves, and 256 up: 65,536 from a pod to the cores.
  TopologySpec spec = cluster("hgx-h100", 16384, "rail");
  spec.fabric.link.use = "ib-ndr";
  spec.fabric.switch_model = {"qm9700", 512, {}};
  spec.fabric.tiers = 3;
  spec.fabric.nodes_per_pod = 8192;
  spec.fabric.routing = Routing::adaptive;
  const Topology t = build(spec, catalogue());
  int up = 0;
  for (const Link& link : t.links()) {
    ASSERT_GT(link.count, 0);
    if (t.device(link.from).tier == 2 && t.device(link.to).tier == 3) up += link.count;
  }
  EXPECT_EQ(up, 2 * 65536);
}

TEST(Fabric, NoSwitchHasTheUplinksOfATinyRatio) {
  TopologySpec spec = cluster("hgx-h100", 2, "rail");
  spec.fabric.oversubscription = {1e-12};
  EXPECT_THROW((void)build(spec, catalogue()), ConfigError);
}

TEST(Fabric, ParallelCablesAreOneLinkUnlessTheyAreToBeApart) {
  const TopologySpec spec = cluster("hgx-h100", 32, "fat-tree");
  BuildOptions apart;
  apart.cables_apart = true;
  const auto to_spine0 = [](const Topology& t) {
    std::vector<int> cables;
    for (const LinkId l : t.links_from(device(t, "leaf0")))
      if (t.link(l).to == device(t, "spine0")) cables.push_back(t.link(l).count);
    return cables;
  };
  EXPECT_EQ(to_spine0(build(spec, catalogue())), std::vector<int>{8});
  EXPECT_EQ(to_spine0(build(spec, catalogue(), apart)), std::vector<int>(8, 1));
}

TEST(Fabric, EcmpKeepsEveryCableApart) {
  TopologySpec spec = cluster("hgx-h100", 32, "rail");
  spec.fabric.routing = Routing::ecmp;
  const Topology t = build(spec, catalogue());
  int up = 0;
  for (const LinkId l : t.links_from(device(t, "leaf0")))
    if (t.device(t.link(l).to).tier == 2) {
      EXPECT_EQ(t.link(l).count, 1);
      ++up;
    }
  EXPECT_EQ(up, 32);
}

TEST(Fabric, DualToRsInTwoPlanesShareNothingAboveTheNic) {
  TopologySpec spec = cluster("hgx-h800", 32);
  spec.fabric.use = "alibaba-hpn7";
  spec.fabric.nodes_per_leaf = 16;
  const Topology t = build(spec, catalogue());
  // A NIC's port of 400 Gbit/s is split into 200 for each plane. Leaves of a rail alternate between planes.
  std::vector<DeviceId> leaves;
  for (const LinkId l : t.links_from(device(t, "node0/nic3")))
    if (t.device(t.link(l).to).kind == DeviceKind::fabric_switch) {
      leaves.push_back(t.link(l).to);
      EXPECT_DOUBLE_EQ(t.link(l).line_rate.value(), 25e9);
    }
  ASSERT_EQ(leaves.size(), 2U);
  EXPECT_EQ(t.name(leaves[0]), "leaf6");
  EXPECT_EQ(t.name(leaves[1]), "leaf7");
  std::set<DeviceId> above[2];
  for (const int plane : {0, 1})
    for (const LinkId l : t.links_from(leaves[static_cast<std::size_t>(plane)]))
      if (t.device(t.link(l).to).tier == 2) above[plane].insert(t.link(l).to);
  for (const DeviceId spine : above[0]) EXPECT_FALSE(above[1].contains(spine));
  // A queue pair keeps to one port of the NIC. Two queue pairs of a connection use both ports, half each.
  const auto ports_of = [&](std::uint32_t queue_pairs, std::uint64_t connection) {
    const Router by(t, 1, {}, queue_pairs);
    std::map<DeviceId, double> shares;
    for (const LinkShare& share : route(by, "node0/gpu3", "node31/gpu3", connection).links)
      if (t.link(share.link).from == device(t, "node0/nic3")) shares[t.link(share.link).to] += share.share;
    return shares;
  };
  EXPECT_EQ(ports_of(1, 0), (std::map<DeviceId, double>{{leaves[0], 1}}));
  EXPECT_EQ(ports_of(1, 1), (std::map<DeviceId, double>{{leaves[1], 1}}));
  // Rings use a NIC with every eighth channel only (connections 8, 16, 24 ...). These must use both ports
  // too.
  EXPECT_EQ(ports_of(1, 8), (std::map<DeviceId, double>{{leaves[1], 1}}));
  EXPECT_EQ(ports_of(1, 16), (std::map<DeviceId, double>{{leaves[1], 1}}));
  EXPECT_EQ(ports_of(1, 24), (std::map<DeviceId, double>{{leaves[0], 1}}));
  const Router router(t, 1, {}, 2);
  const Route r = route(router, "node0/gpu3", "node31/gpu3");
  double out = 0;
  for (const LinkShare& share : r.links)
    if (t.link(share.link).from == device(t, "node0/nic3")) {
      EXPECT_DOUBLE_EQ(share.share, 0.5);
      out += share.share;
    }
  EXPECT_DOUBLE_EQ(out, 1);
  // Without the cable to one ToR everything goes over the other plane.
  const LinkId cut[] = {*t.find_link(device(t, "node0/nic3"), leaves[0]),
                        *t.find_link(leaves[0], device(t, "node0/nic3"))};
  const Router after(t, 1, cut, 2);
  const Route left = route(after, "node0/gpu3", "node31/gpu3");
  ASSERT_TRUE(left.reachable());
  for (const LinkShare& share : left.links) EXPECT_NE(t.link(share.link).to, leaves[0]);
}

TEST(Fabric, BothLeavesOfADualToRFitThePortsOfThreeTiers) {
  // 64 nodes and two leaves a rail, one plane: 32 nodes under a pair of leaves, each with 32 cables down and
  // 32 up. A spine has 32 ports down and 32 up, so 32 leaves at one cable each: a pod is every leaf of a
  // rail.
  TopologySpec spec = cluster("hgx-h100", 64, "rail");
  spec.fabric.switch_model = {"qm9700", 64, {}};
  spec.fabric.leaves_per_rail = 2;
  spec.fabric.tiers = 3;
  const Topology t = build(spec, catalogue());
  for (std::size_t i = 0; i < t.devices().size(); ++i) {
    const Device d = t.device(DeviceId(i));
    if (d.kind != DeviceKind::fabric_switch) continue;
    int down = 0, up = 0;
    for (const LinkId l : t.links_from(DeviceId(i))) {
      const Device other = t.device(t.link(l).to);
      (other.kind == DeviceKind::fabric_switch && other.tier > d.tier ? up : down) += t.link(l).count;
    }
    EXPECT_LE(down + up, 64 * d.count) << t.name(DeviceId(i));
    if (d.tier < 3) EXPECT_LE(down, up) << t.name(DeviceId(i)) << " is oversubscribed";
  }
}

// A measured hop of 1 us is of switches with a single chip. A chassis with deep buffers takes 3.8 us by
// itself, and 5 ns a metre of cable: 4.05 us with 50 m to a CTSW, 4.3 us with 100 m to an ATSW.
TEST(Fabric, ASwitchSlowerThanAMeasuredHopTakesItsOwnTime) {
  TopologySpec spec = cluster("hgx-h100-4switch", 36);
  spec.fabric.use = "llama3-roce";
  spec.fabric.nodes_per_pod = 12;
  const Topology t = build(spec, catalogue());
  std::map<std::pair<int, int>, std::set<Duration>> latencies;  // by the tiers of both ends
  for (const Link& link : t.links()) {
    const Device &from = t.device(link.from), &to = t.device(link.to);
    if (to.kind == DeviceKind::fabric_switch)
      latencies[{from.kind == DeviceKind::fabric_switch ? from.tier : 0, to.tier}].insert(link.latency);
  }
  EXPECT_EQ((latencies[{0, 1}]), std::set<Duration>{1'000_ns});
  EXPECT_EQ((latencies[{1, 2}]), std::set<Duration>{4'050_ns});
  EXPECT_EQ((latencies[{2, 3}]), std::set<Duration>{4'300_ns});
  EXPECT_EQ((latencies[{3, 2}]), std::set<Duration>{4'300_ns});  // the same cable down
  EXPECT_EQ((latencies[{2, 1}]), std::set<Duration>{1'000_ns});
  // A latency that the scenario gives holds.
  spec.fabric.link.use = "roce-400g";
  spec.fabric.link.latency = 700_ns;
  const Topology said = build(spec, catalogue());
  for (const Link& link : said.links()) {
    if (said.device(link.to).tier == 2) {
      EXPECT_EQ(link.latency, 700_ns);
    }
  }
}

// Of 50 GB/s packets leave 4096 / (4096 + 82) for payload on RoCE and 4096 / (4096 + 26) on InfiniBand;
// packets of 1 KiB 1024 / 1106 and 1024 / 1050.
TEST(Fabric, CablesCarryWhatPacketsOfASizeLeaveOfThem) {
  const auto capacity = [](const char* link, const BuildOptions& options) {
    TopologySpec spec = cluster("hgx-h100", 2, "rail");
    spec.fabric.link.use = link;
    const Topology t = build(spec, catalogue(), options);
    return t.link(*t.find_link(device(t, "node0/nic0"), device(t, "leaf0"))).capacity.value() / 1e9;
  };
  BuildOptions small;
  small.ethernet = PacketBytes{1_KiB, 82_B}, small.infiniband = PacketBytes{1_KiB, 26_B};
  EXPECT_NEAR(capacity("roce-400g", {}), 49.02, 0.005);
  EXPECT_NEAR(capacity("roce-400g", small), 46.29, 0.005);
  EXPECT_NEAR(capacity("ib-ndr", {}), 49.68, 0.005);
  EXPECT_NEAR(capacity("ib-ndr", small), 48.76, 0.005);
}

TEST(Fabric, UplinksMayBeFasterThanNodePorts) {
  // MegaScale: 64 ports of 200 Gbit/s down take half of a switch of 64 x 400 Gbit/s; 64 x 200 / 400 = 32
  // cables go up.
  TopologySpec spec = cluster("hgx-a100", 128);
  spec.fabric.use = "megascale";
  const Topology t = build(spec, catalogue());
  int down = 0, up = 0;
  for (const LinkId l : t.links_from(device(t, "leaf0"))) {
    const bool to_nic = t.device(t.link(l).to).kind == DeviceKind::nic;
    (to_nic ? down : up) += t.link(l).count;
    EXPECT_DOUBLE_EQ(t.link(l).line_rate.value(), (to_nic ? 25e9 : 50e9) * t.link(l).count);
  }
  EXPECT_EQ(down, 64);
  EXPECT_EQ(up, 32);
}

TEST(Fabric, PortPOfEveryGaudiGoesToPlaneP) {
  TopologySpec spec = cluster("gaudi2-8", 16);
  spec.fabric.use = "gaudi2-cluster";
  const Topology t = build(spec, catalogue());
  EXPECT_EQ(switches_by_tier(t), (std::map<int, int>{{1, 3}}));
  for (const char* nic : {"node0/nic1", "node7/nic4", "node15/nic22"})
    EXPECT_TRUE(t.find_link(device(t, nic), device(t, "leaf1"))) << nic;
}

TEST(Fabric, TwoNodesMayDoWithoutASwitch) {
  TopologySpec spec = cluster("dgx-h100", 2);
  spec.fabric.use = "direct-2node";
  const Topology t = build(spec, catalogue());
  EXPECT_TRUE(t.find_link(device(t, "node0/nic5"), device(t, "node1/nic5")));
  EXPECT_TRUE(switches_by_tier(t).empty());
  EXPECT_TRUE(route(Router(t, 1), "node0/gpu5", "node1/gpu5").reachable());
}

TEST(Fabric, AKeyWithoutUseForTheKindIsRefused) {
  const auto path_of_problem = [](TopologySpec spec) {
    try {
      return std::to_string(build(spec, catalogue()).devices().size());
    } catch (const ConfigError& error) {
      return error.problems().at(0).path;
    }
  };
  TopologySpec spec = cluster("hgx-h100", 2);
  spec.fabric.link.use = "ib-ndr";
  EXPECT_EQ(path_of_problem(spec), "topology.fabric.link") << "no kind";
  spec = cluster("hgx-h100", 2, "rail");
  spec.fabric.dimensions = {2, 2};
  EXPECT_EQ(path_of_problem(spec), "topology.fabric.dimensions");
  spec = cluster("tpu-v4-host", 16);
  spec.fabric.use = "tpu-v4-cube";
  spec.fabric.planes = 2;
  EXPECT_EQ(path_of_problem(spec), "topology.fabric.planes");
  spec = cluster("hgx-h100", 2, "rail");
  spec.fabric.planes = 3;
  spec.fabric.leaves_per_rail = 4;
  EXPECT_EQ(path_of_problem(spec), "topology.fabric.leaves_per_rail");
  spec = cluster("hgx-h100", 2, "rail");
  spec.fabric.leaves_per_rail = 2;
  spec.fabric.leaves_per_pod = 3;
  EXPECT_EQ(path_of_problem(spec), "topology.fabric.leaves_per_pod") << "half a pair";
  spec = cluster("a100-pcie-bridge-2gpu", 2, "rail");
  spec.scale_up_domain = 2;
  EXPECT_EQ(path_of_problem(spec), "topology.scale_up_domain");
}

TEST(Fabric, AKindStandsForItself) {
  TopologySpec spec = cluster("hgx-h100", 2);
  spec.fabric.use = "rail";  // "fabric": "rail"
  EXPECT_EQ(build(spec, catalogue()).fabric_kind, "rail");
  spec.fabric.use = "none";
  EXPECT_EQ(build(spec, catalogue()).fabric_kind, "none");
}

// 64 nodes of 8 NICs on rails, switches of 64 ports. At 2:1 a leaf could take 42 nodes (42 ports down, 21
// up). Nodes are divided evenly instead: two leaves a rail with 32 nodes and 16 cables up each. 16 leaves x
// 16 cables need four spines, 20 switches in all; filled to 42 and 22 nodes, leaves would need 7 spines.
TEST(Fabric, LeavesAreFilledAlikeSoThatOversubscriptionSavesSwitches) {
  std::size_t before = 1000;
  for (const double ratio : {1.0, 2.0, 3.0, 4.0}) {
    TopologySpec spec = cluster("hgx-h100", 64, "rail");
    spec.fabric.switch_model.use = "qm9700";
    spec.fabric.oversubscription = {ratio};
    const Topology t = build(spec, catalogue());
    const auto switches =
        static_cast<std::size_t>(std::count_if(t.devices().begin(), t.devices().end(), [](const Device& d) {
          return d.kind == DeviceKind::fabric_switch;
        }));
    EXPECT_LT(switches, before) << ratio;
    if (ratio == 2.0) {
      EXPECT_EQ(switches, 20U);
    }
    before = switches;
  }
}

TEST(Fabric, EveryCatalogueFabricBuildsAtAFewNodes) {
  for (const CatalogueEntry& entry : catalogue().entries()) {
    if (entry.category != "fabric") continue;
    SCOPED_TRACE(entry.id);
    const FabricRecipe& recipe = catalogue().fabric(entry.id);
    if (recipe.node.empty() || recipe.kind == "torus") continue;
    TopologySpec spec = cluster(recipe.node, recipe.kind == "direct" ? 2 : 4);
    spec.fabric.use = entry.id;
    EXPECT_NO_THROW({
      const Topology t = build(spec, catalogue());
      EXPECT_FALSE(t.accelerators().empty());
    });
  }
}

}  // namespace topsim::topology::test::fabric_test
