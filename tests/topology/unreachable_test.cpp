// What is said of accelerators that no route joins.
#include <gtest/gtest.h>

#include "tests/topology/fixtures.hpp"

namespace topsim::topology::test::unreachable_test {

TEST(Unreachable, AnIsolatedNodeIsToldWhy) {
  const Topology t = build(cluster("hgx-h100", 2), catalogue());
  const Router router(t, 1);
  EXPECT_FALSE(route(router, "node0/gpu0", "node1/gpu0").reachable());
  EXPECT_EQ(router.why_unreachable({.from = device(t, "node0/gpu0"), .to = device(t, "node1/gpu0")}),
            "node0/gpu0 cannot reach node1/gpu0: the topology has no fabric between nodes (topology.fabric)");
}

// Nothing joins the rails. A channel of node0/gpu0 that leaves by nic1 meets no nic0, and the accelerators'
// own NICs, which are on one rail, are not what it would use.
TEST(Unreachable, WhyNamesTheNicsOfTheRoute) {
  const Topology t = build(cluster("hgx-h100", 2, FabricKind::rail_only), catalogue());
  const Router router(t, 1);
  RouteQuery query{.from = device(t, "node0/gpu0"), .to = device(t, "node1/gpu0")};
  Route found;
  router.route(query, found);
  EXPECT_TRUE(found.reachable());
  query.from_nic = device(t, "node0/nic1"), query.to_nic = device(t, "node1/nic0");
  router.route(query, found);
  EXPECT_FALSE(found.reachable());
  EXPECT_EQ(
      router.why_unreachable(query),
      "node0/gpu0 cannot reach node1/gpu0: no working path joins node0/nic1 and node1/nic0 over the fabric");
}
}  // namespace topsim::topology::test::unreachable_test
