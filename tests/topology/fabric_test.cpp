#include <gmock/gmock.h>

#include <map>
#include <set>

#include "sim/base/error.hpp"
#include "tests/topology/fixtures.hpp"
#include "topology/build/clos_plan.hpp"
#include "topology/catalogue/fabric_recipe.hpp"

namespace topsim::topology::test::fabric_test {
using namespace topsim::literals;

TEST(Fabric, SwitchCountsOfADgxSuperpodAreTheOnesNvidiaPublishes) {
  // DGX SuperPOD reference architecture (B200/H100): nodes -> leaf, spine, core switches of 64 ports.
  for (const FabricRecipe::Size& size : catalogue().fabric("dgx-superpod").published) {
    SCOPED_TRACE(size.nodes);
    TopologySpec spec = cluster("dgx-h100", size.nodes, FabricKind::rail);
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
  TopologySpec spec = cluster("hgx-h100", 64, FabricKind::rail);
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

// A DGX A100 has ConnectX-6 of 200 Gbit/s: 16 of them send 3,200 Gbit/s up to a leaf of 400 Gbit/s ports. At
// 2:1 that takes 1,600 / 400 = 4 cables up, at 1:1 8.
TEST(Fabric, OversubscriptionCountsWhatSlowerNicsSend) {
  for (const auto& [ratio, cables] : {std::pair{2.0, 4}, {1.0, 8}}) {
    TopologySpec spec = cluster("dgx-a100", 16, FabricKind::rail);
    spec.fabric.link.use = "roce-400g";
    spec.fabric.oversubscription = {ratio};
    const Topology t = build(spec, catalogue());
    double down = 0, up = 0;
    for (const LinkId l : t.links_from(device(t, "leaf0")))
      (t.device(t.link(l).to).kind == DeviceKind::nic ? down : up) += t.link(l).line_rate.value();
    EXPECT_DOUBLE_EQ(down, 16 * 25e9);
    EXPECT_DOUBLE_EQ(up, cables * 50e9);
  }
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
    TopologySpec spec = cluster("hgx-h100", 4, FabricKind::rail);
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
    TopologySpec spec = cluster("hgx-h100", 32, FabricKind::rail);
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
  const Topology t = build(cluster("hgx-h100", 8, FabricKind::rail), catalogue());
  for (const char* nic : {"node0/nic3", "node5/nic3", "node7/nic3"}) {
    EXPECT_TRUE(t.find_link(device(t, nic), device(t, "leaf3"))) << nic;
  }
}

TEST(Fabric, AFatTreePutsANodeOnOneLeaf) {
  // 32 ports down a leaf / 8 NICs a node = 4 nodes a leaf.
  const Topology t = build(cluster("hgx-h100", 16, FabricKind::fat_tree), catalogue());
  std::set<DeviceId> leaves;
  for (const DeviceId nic : t.nics_of_node(5))
    for (const LinkId l : t.links_from(nic))
      if (t.device(t.link(l).to).kind == DeviceKind::fabric_switch) leaves.insert(t.link(l).to);
  EXPECT_EQ(leaves.size(), 1U);
  EXPECT_EQ(t.name(*leaves.begin()), "leaf1");
}

// A SuperPOD's recipe has eight leaves a unit, one a rail. As a fat tree it has no rails.
TEST(Fabric, ARecipeOfRailsAsAFatTreePutsANodeOnOneLeaf) {
  TopologySpec spec = cluster("dgx-h100", 16, FabricKind::fat_tree);
  spec.fabric.use = "dgx-superpod";
  const Topology t = build(spec, catalogue());
  std::set<DeviceId> leaves;
  for (const DeviceId nic : t.nics_of_node(5))
    for (const LinkId l : t.links_from(nic))
      if (t.device(t.link(l).to).kind == DeviceKind::fabric_switch) leaves.insert(t.link(l).to);
  EXPECT_EQ(leaves.size(), 1U);
}

TEST(Fabric, RailOnlyHasNothingBetweenRails) {
  const Topology t = build(cluster("hgx-h100", 8, FabricKind::rail_only), catalogue());
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
    const Topology t = build(cluster("hgx-h100", 16384, FabricKind::rail), catalogue());
    FAIL() << "built with " << t.devices().size() << " devices";
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.problems().size(), 1U);
    EXPECT_EQ(error.problems()[0].path, "topology.fabric");
    EXPECT_THAT(error.problems()[0].help, testing::HasSubstr("three carry 65536"));
  }
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
  spec = cluster("hgx-h100", 2, FabricKind::rail);
  spec.fabric.dimensions = {2, 2};
  EXPECT_EQ(path_of_problem(spec), "topology.fabric.dimensions");
  spec = cluster("tpu-v4-host", 16);
  spec.fabric.use = "tpu-v4-cube";
  spec.fabric.planes = 2;
  EXPECT_EQ(path_of_problem(spec), "topology.fabric.planes");
  spec = cluster("hgx-h100", 2, FabricKind::rail);
  spec.fabric.planes = 3;
  spec.fabric.leaves_per_rail = 4;
  EXPECT_EQ(path_of_problem(spec), "topology.fabric.leaves_per_rail");
  spec = cluster("hgx-h100", 2, FabricKind::rail);
  spec.fabric.leaves_per_rail = 2;
  spec.fabric.leaves_per_pod = 3;
  EXPECT_EQ(path_of_problem(spec), "topology.fabric.leaves_per_pod") << "half a pair";
  spec = cluster("a100-pcie-bridge-2gpu", 2, FabricKind::rail);
  spec.scale_up_domain = 2;
  EXPECT_EQ(path_of_problem(spec), "topology.scale_up_domain");
}

TEST(Fabric, AKindStandsForItself) {
  TopologySpec spec = cluster("hgx-h100", 2);
  spec.fabric.use = "rail";  // "fabric": "rail"
  EXPECT_EQ(build(spec, catalogue()).fabric_kind, FabricKind::rail);
  spec.fabric.use = "none";
  EXPECT_EQ(build(spec, catalogue()).fabric_kind, FabricKind::none);
}

// 64 nodes of 8 NICs on rails, switches of 64 ports. At 2:1 a leaf could take 42 nodes (42 ports down, 21
// up). Nodes are divided evenly instead: two leaves a rail with 32 nodes and 16 cables up each. 16 leaves x
// 16 cables need four spines, 20 switches in all; filled to 42 and 22 nodes, leaves would need 7 spines.
TEST(Fabric, LeavesAreFilledAlikeSoThatOversubscriptionSavesSwitches) {
  std::size_t before = 1000;
  for (const double ratio : {1.0, 2.0, 3.0, 4.0}) {
    TopologySpec spec = cluster("hgx-h100", 64, FabricKind::rail);
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
    if (recipe.node.empty() || recipe.kind == FabricKind::torus) continue;
    TopologySpec spec = cluster(recipe.node, recipe.kind == FabricKind::direct ? 2 : 4);
    spec.fabric.use = entry.id;
    EXPECT_NO_THROW({
      const Topology t = build(spec, catalogue());
      EXPECT_FALSE(t.accelerators().empty());
    });
  }
}

}  // namespace topsim::topology::test::fabric_test
