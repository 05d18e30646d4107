// Topologies whose devices and links the user lists: what a hop takes.
#include <gtest/gtest.h>

#include "tests/topology/fixtures.hpp"

namespace topsim::topology::test::explicit_test {
using namespace topsim::literals;

// Two hosts of one NIC on one switch.
TopologySpec two_hosts(const char* use, const char* switch_model) {
  TopologySpec spec;
  const auto add = [&](const std::string& name, const char* kind, const char* model,
                       std::optional<int> node) {
    DeviceSpec device;
    device.name = name, device.kind = kind, device.model = model, device.node = node;
    spec.devices.push_back(device);
  };
  const auto join = [&](const std::string& from, const std::string& to, const char* link) {
    LinkSpec cable;
    cable.from = from, cable.to = to, cable.link.use = link;
    spec.links.push_back(cable);
  };
  add("leaf", "switch", switch_model, std::nullopt);
  for (const int node : {0, 1}) {
    const std::string gpu = "g" + std::to_string(node), nic = "n" + std::to_string(node);
    add(gpu, "accelerator", "h100-sxm5", node);
    add(nic, "nic", "connectx-7", node);
    join(gpu, nic, "pcie5-x16");
    join(nic, "leaf", use);
  }
  return spec;
}

double nic_to_nic(const TopologySpec& spec) {
  return microseconds(route(Router(build(spec, catalogue()), 1), "n0", "n1").latency);
}

TopologySpec with_latency(TopologySpec spec, Duration latency) {
  for (LinkSpec& link : spec.links)
    if (link.to == "leaf") link.link.latency = latency;
  return spec;
}

// 2.35 us of NICs and hosts and 0.45 us of the switch. A latency that a link states is that of the link, each
// way, and the NICs' remains: 2.35 + 2 x 0.45.
TEST(Explicit, ALatencyOfTheLinkLeavesThatOfNicsAndHosts) {
  const TopologySpec plain = two_hosts("ib-ndr", "qm9700");
  EXPECT_NEAR(nic_to_nic(plain), 2.8, 1e-6);
  EXPECT_NEAR(nic_to_nic(with_latency(plain, 450_ns)), 3.25, 1e-6);
  EXPECT_NEAR(nic_to_nic(with_latency(plain, 1_us)), 4.35, 1e-6);
  TopologySpec none = with_latency(plain, 450_ns);
  none.fabric.nic_latency = Duration{};
  EXPECT_NEAR(nic_to_nic(none), 0.9, 1e-6);
}

// A length replaces the measured hop by the switch's own time and two cables of 25 ns, as in a recipe: an
// SN5600 takes 600 ns from port to port, beside 2.6 us of NICs and hosts.
TEST(Explicit, ACableWithALengthStillEndsAtASwitch) {
  TopologySpec spec = two_hosts("roce-400g", "sn5600");
  EXPECT_NEAR(nic_to_nic(spec), 3.6, 1e-6);
  for (LinkSpec& link : spec.links)
    if (link.to == "leaf") link.length = Metres(5);
  EXPECT_NEAR(nic_to_nic(spec), 2.6 + 0.6 + 2 * 0.025, 1e-6);
  TopologySpec recipe = cluster("h100x1", 2, FabricKind::fat_tree);
  recipe.fabric.link.use = "roce-400g";
  recipe.fabric.switch_model.use = "sn5600";
  recipe.fabric.length = {Metres(5)};
  const Topology t = build(recipe, catalogue());
  EXPECT_NEAR(microseconds(route(Router(t, 1), "node0/nic0", "node1/nic0").latency), nic_to_nic(spec), 1e-6);
}
}  // namespace topsim::topology::test::explicit_test
