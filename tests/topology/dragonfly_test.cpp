#include <fmt/format.h>
#include <gmock/gmock.h>

#include <vector>

#include "sim/base/error.hpp"
#include "tests/topology/fixtures.hpp"
#include "topology/draw/draw.hpp"

namespace topsim::topology::test::dragonfly_test {

TEST(Dragonfly, ADragonflyReachesEveryGroupOverOneGlobalCable) {
  TopologySpec spec = cluster("mi250x-4", 64, FabricKind::dragonfly);
  spec.fabric.dimensions = {8, 8, 4, 2};
  const Topology t = build(spec, catalogue());
  const Router router(t, 1);
  Route r;
  router.route({t.accelerators().front(), t.accelerators().back()}, r);
  EXPECT_TRUE(r.reachable());
  EXPECT_LE(r.switches, 4);  // at most a local, a global and a local hop between four switches
}

// Four routers, joined all to all. Adaptive routing sends a third of a message over the direct cable and a
// third by way of each of the other two routers. The latency is that of the direct path.
TEST(Dragonfly, AdaptiveRoutersOfADragonflyTakeDetoursOverTheirNeighbours) {
  TopologySpec spec = cluster("mi250x-4", 2, FabricKind::dragonfly);
  spec.fabric.dimensions = {1, 4, 16, 1};
  const auto shares = [&](Routing routing, Duration& latency) {
    spec.fabric.routing = routing;
    const Topology t = build(spec, catalogue());
    Route r;
    Router(t, 1).route({.from = t.nics_of_node(0)[0], .to = t.nics_of_node(1)[1]}, r);
    latency = r.latency;
    std::vector<double> between;
    for (const LinkShare& use : r.links)
      if (t.device(t.link(use.link).from).kind == DeviceKind::fabric_switch &&
          t.device(t.link(use.link).to).kind == DeviceKind::fabric_switch)
        between.push_back(use.share);
    return between;
  };
  Duration adaptive{}, fixed{};
  const std::vector<double> parts = shares(Routing::adaptive, adaptive);
  ASSERT_EQ(parts.size(), 5U);
  for (const double part : parts) EXPECT_NEAR(part, 1.0 / 3, 1e-9);
  EXPECT_EQ(shares(Routing::static_, fixed), std::vector<double>{1});
  EXPECT_EQ(adaptive, fixed);
}

// Perlmutter: a group has 16 switches of 64 ports, 16 of them for NICs and 17 global, so 31 are left for 15
// neighbours: two each. A chassis is 16 nodes of four NICs on four switches, where NIC i of every node is on
// the same switch.
TEST(Dragonfly, ADragonflyDealsTheNicsOfANodeOverTheSwitchesOfItsChassis) {
  TopologySpec spec = cluster("perlmutter-a100", 32);
  spec.fabric.use = "perlmutter";
  const Topology t = build(spec, catalogue());
  const auto leaf_of = [&](int node, int nic) {
    const DeviceId at = device(t, fmt::format("node{}/nic{}", node, nic));
    for (const LinkId l : t.links_from(at))
      if (t.device(t.link(l).to).kind == DeviceKind::fabric_switch) return t.link(l).to;
    return DeviceId{};
  };
  for (int nic = 0; nic < 4; ++nic) {
    for (int node = 1; node < 16; ++node) EXPECT_EQ(leaf_of(node, nic), leaf_of(0, nic)) << node;
    EXPECT_NE(leaf_of(0, nic), leaf_of(0, (nic + 1) % 4));
    EXPECT_NE(leaf_of(16, nic), leaf_of(0, nic));
    const auto between = t.find_link(leaf_of(0, nic), leaf_of(16, nic));
    ASSERT_TRUE(between);
    EXPECT_EQ(t.link(*between).count, 2);
  }
}

// Four groups of eight switches, each with eight NICs, seven neighbours and three cables to other groups, as
// the scenario says: 256 NICs, 4 x 8 x 7 / 2 = 112 local cables and 4 x 8 x 3 / 2 = 48 global ones, 416 in
// all. The 52 free ports of each switch stay free. A fifth dimension of 2 doubles the local ones.
TEST(Dragonfly, HasTheCablesThatItsDimensionsSay) {
  const auto cables = [](std::vector<int> dimensions, const char* use, int nodes) {
    TopologySpec spec =
        cluster("perlmutter-a100", nodes, *use == 0 ? FabricKind::dragonfly : FabricKind::none);
    spec.fabric.use = use;
    if (*use == 0) spec.fabric.link.use = "slingshot-200";
    spec.fabric.dimensions = std::move(dimensions);
    const Topology t = build(spec, catalogue());
    int nics = 0, local = 0, global = 0;
    for (const LinkId id : t.cables()) {
      const Link l = t.link(id);
      const Device from = t.device(l.from), to = t.device(l.to);
      if (from.kind == DeviceKind::fabric_switch && to.kind == DeviceKind::fabric_switch)
        (from.local / static_cast<unsigned>(t.dragonfly_dimensions[1]) ==
                 to.local / static_cast<unsigned>(t.dragonfly_dimensions[1])
             ? local
             : global) += l.count;
      else if (from.kind == DeviceKind::fabric_switch || to.kind == DeviceKind::fabric_switch)
        nics += l.count;
    }
    EXPECT_EQ(t.dragonfly_dimensions.size(), 4U);
    return std::vector{nics / 2, local / 2, global / 2};  // of two directions each
  };
  EXPECT_EQ(cables({4, 8, 8, 3}, "", 64), (std::vector{256, 112, 48}));
  EXPECT_EQ(cables({4, 8, 8, 3, 2}, "", 64), (std::vector{256, 224, 48}));
  // Groups as Perlmutter's, of 16, have its two cables to each neighbour: 2 x 16 x 15 / 2 x 2; others do not.
  EXPECT_EQ(cables({2, 16, 8, 17}, "perlmutter", 64), (std::vector{256, 480, 272}));
  EXPECT_EQ(cables({2, 16, 8, 17, 1}, "perlmutter", 64), (std::vector{256, 240, 272}));
  EXPECT_EQ(cables({4, 8, 8, 3}, "perlmutter", 64), (std::vector{256, 112, 48}));
}

// 16 + 3 x 15 + 17 = 78 of 64 ports.
TEST(Dragonfly, CablesThatASwitchHasNoPortsForAreRefused) {
  TopologySpec spec = cluster("perlmutter-a100", 4, FabricKind::dragonfly);
  spec.fabric.link.use = "slingshot-200";
  spec.fabric.dimensions = {2, 16, 16, 17, 3};
  try {
    (void)build(spec, catalogue());
    ADD_FAILURE() << "was built";
  } catch (const ConfigError& error) {
    EXPECT_EQ(
        error.problems().front().message,
        "16 NIC ports, 3 cables to each of 15 neighbours and 17 global cables need more than the switch's "
        "64 ports");
  }
}

TEST(Dragonfly, ItsTreeTellsHowItsGroupsAreWired) {
  TopologySpec spec = cluster("perlmutter-a100", 64, FabricKind::dragonfly);
  spec.fabric.link.use = "slingshot-200";
  spec.fabric.dimensions = {4, 8, 8, 3};
  const std::string tree = to_tree(build(spec, catalogue()), true, 0);
  EXPECT_THAT(
      tree, testing::HasSubstr("4 groups of 8: a switch has 1 cable to each other one of its group, 3 cables "
                               "to other groups"));
  EXPECT_THAT(tree, testing::HasSubstr("8 cables down, 10 up"));
}

}  // namespace topsim::topology::test::dragonfly_test
