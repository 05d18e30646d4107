#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/topology/fixtures.hpp"

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

}  // namespace topsim::topology::test::dragonfly_test
