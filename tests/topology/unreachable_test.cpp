// What is said of accelerators that no route joins.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/topology/fixtures.hpp"
#include "topology/validate/validate.hpp"

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

// Of a file whose rails do not meet: node0/gpu0 has nic0, node1/gpu1 has nic1. The processors join the NICs
// of a box, but no message goes from NIC to NIC.
TEST(Unreachable, RailsOfAFileThatDoNotMeetAreAFindingOfTheCheck) {
  TopologySpec spec;
  for (int node = 0; node < 2; ++node) {
    const auto name = [&](const char* what, int i) { return fmt::format("node{}/{}{}", node, what, i); };
    const auto add = [&](const char* what, const char* kind, int i) {
      DeviceSpec device;
      device.name = name(what, i), device.kind = kind, device.node = node;
      spec.devices.push_back(device);
    };
    const auto join = [&](const std::string& from, const std::string& to, const char* use) {
      LinkSpec link;
      link.from = from, link.to = to, link.link.use = use;
      spec.links.push_back(link);
    };
    add("cpu", "cpu", 0);
    for (int i = 0; i < 2; ++i) {
      add("gpu", "accelerator", i), add("nic", "nic", i), add("pcie", "pcie-switch", i);
      join(name("gpu", i), name("pcie", i), "pcie5-x16");
      join(name("nic", i), name("pcie", i), "pcie5-x16");
      join(name("pcie", i), name("cpu", 0), "pcie5-x16");
      if (node == 0) {
        DeviceSpec rail;
        rail.name = fmt::format("rail{}", i), rail.kind = "switch";
        spec.devices.push_back(rail);
      }
      join(name("nic", i), fmt::format("rail{}", i), "ib-ndr");
    }
  }
  const auto found = [&] { return check(build(spec, catalogue()), catalogue()); };
  EXPECT_THAT(found(), testing::Contains(testing::Field(
                           &Finding::message,
                           testing::HasSubstr("node0/gpu0 cannot reach node1/gpu1: no working path joins "
                                              "node0/nic0 and node1/nic1 over the fabric"))));
  LinkSpec join;
  join.from = "rail0", join.to = "rail1", join.link.use = "ib-ndr";
  spec.links.push_back(join);
  EXPECT_THAT(found(), testing::Not(testing::Contains(testing::Field(&Finding::severity, Severity::error))));
}
}  // namespace topsim::topology::test::unreachable_test
