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
DeviceSpec named(const char* name, const char* kind, const char* model, int node = 0) {
  DeviceSpec device;
  device.name = name, device.kind = kind, device.model = model, device.node = node;
  return device;
}
LinkSpec joined(const char* from, const char* to, const char* use) {
  LinkSpec link;
  link.from = from, link.to = to, link.link.use = use;
  return link;
}
TopologySpec gpu_on_a_socket(const char* gpu, const char* cpu) {
  TopologySpec spec;
  spec.devices = {named("g", "accelerator", gpu), named("c", "cpu", cpu)};
  spec.links = {joined("g", "c", "pcie5-x16")};
  return spec;
}

// As in a recipe. Sapphire Rapids cuts packets of 256 bytes to 64, each with 26 of header: 90 / 64 over
// 282 / 256 = 22.5 / 17.625 times the time. GeForce drivers allow no reads of other cards' memory.
TEST(Explicit, AModelOfTheCatalogueIsWhatTheCatalogueSays) {
  const Topology h100 = build(gpu_on_a_socket("h100-sxm5", "intel-spr"), catalogue());
  EXPECT_EQ(h100.facts_of(device(h100, "g")).compute_capability, 90);
  EXPECT_EQ(h100.facts_of(device(h100, "c")).cpu_family, "intel-spr");
  EXPECT_DOUBLE_EQ(h100.facts_of(device(h100, "c")).peer_overhead, 22.5 / 17.625);
  EXPECT_TRUE(h100.facts_of(device(h100, "g")).gpu_direct);
  EXPECT_TRUE(h100.peer_to_peer);
  const Topology geforce = build(gpu_on_a_socket("rtx-4090", "amd"), catalogue());
  EXPECT_EQ(geforce.facts_of(device(geforce, "g")).compute_capability, 89);
  EXPECT_FALSE(geforce.facts_of(device(geforce, "g")).gpu_direct);
  EXPECT_FALSE(geforce.peer_to_peer);
  const Topology own = build(gpu_on_a_socket("mine", "xeon"), catalogue());
  EXPECT_EQ(own.facts_of(device(own, "g")).compute_capability, 0);
  EXPECT_EQ(own.facts_of(device(own, "c")).cpu_family, "");
  EXPECT_TRUE(own.peer_to_peer);
}

TEST(Explicit, WhatTheFileSaysOfAModelOverridesTheCatalogue) {
  TopologySpec spec = gpu_on_a_socket("rtx-4090", "intel-spr");
  spec.models = {{.id = "rtx-4090", .compute_capability = 90, .gpu_direct = true, .cpu_family = {}},
                 {.id = "intel-spr", .compute_capability = 0, .gpu_direct = true, .cpu_family = "amd"}};
  spec.peer_to_peer = true;
  const Topology t = build(spec, catalogue());
  EXPECT_EQ(t.facts_of(device(t, "g")).compute_capability, 90);
  EXPECT_TRUE(t.facts_of(device(t, "g")).gpu_direct);
  EXPECT_EQ(t.facts_of(device(t, "c")).cpu_family, "amd");
  EXPECT_TRUE(t.peer_to_peer);
}

// Those of HGX H100 reduce, those of A100 do not; of unnamed ones nothing is known.
TEST(Explicit, NvswitchesReduceWhereTheirModelDoes) {
  for (const auto& [model, reduces] : {std::pair("nvswitch3", true), {"nvswitch2", false}, {"", false}}) {
    TopologySpec spec;
    spec.devices = {named("g", "accelerator", "h100-sxm5"), named("s", "nvswitch", model)};
    spec.links = {joined("g", "s", "nvlink4")};
    EXPECT_EQ(build(spec, catalogue()).nvlink_sharp, reduces) << model;
    spec.nvlink_sharp = !reduces;
    EXPECT_EQ(build(spec, catalogue()).nvlink_sharp, !reduces) << model;
  }
}

// EDR has no measured hop. An SB7800 takes 90 ns from port to port, and each of two cables is taken for 20 m
// of 5 ns, as in a recipe: 2.35 us + 90 ns + 2 x 100 ns. A switch that the file does not name is the usual
// one.
TEST(Explicit, ASwitchOfNoModelTakesWhatTheLinksUsualOneDoes) {
  TopologySpec recipe = cluster("h100x1", 2, FabricKind::fat_tree);
  recipe.fabric.link.use = "ib-edr";
  const Topology t = build(recipe, catalogue());
  const double built = microseconds(route(Router(t, 1), "node0/nic0", "node1/nic0").latency);
  EXPECT_NEAR(built, 2.35 + 0.09 + 0.2, 1e-6);
  EXPECT_NEAR(nic_to_nic(two_hosts("ib-edr", "sb7800")), built, 1e-6);
  EXPECT_NEAR(nic_to_nic(two_hosts("ib-edr", "")), built, 1e-6);
  EXPECT_NEAR(nic_to_nic(two_hosts("ib-ndr", "")), 2.8, 1e-6);  // measured, all inclusive
  // Nothing speaks FDR: it is taken for the next faster, EDR's.
  EXPECT_NEAR(nic_to_nic(two_hosts("ib-fdr", "")), built, 1e-6);
}

// EDR: 12.5 GB/s x 4096 / 4122 of which hosts leave 0.972; between switches they are not in the way.
TEST(Explicit, ACableAtANicCarriesWhatHostsLeave) {
  TopologySpec spec = two_hosts("ib-edr", "sb7800");
  spec.devices.push_back(named("spine", "switch", "sb7800"));
  spec.devices.back().node.reset();
  spec.links.push_back(joined("leaf", "spine", "ib-edr"));
  const Topology t = build(spec, catalogue());
  const auto carries = [&](const char* from, const char* to) {
    return t.link(*t.find_link(device(t, from), device(t, to))).capacity.value();
  };
  const double payload = 12.5e9 * 4096 / 4122;
  EXPECT_NEAR(carries("leaf", "spine"), payload, 1);
  EXPECT_NEAR(carries("n0", "leaf"), 0.972 * payload, 1);
  EXPECT_NEAR(carries("leaf", "n0"), 0.972 * payload, 1);
}
}  // namespace topsim::topology::test::explicit_test
