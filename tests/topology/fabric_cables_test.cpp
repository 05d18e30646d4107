// Cables of fabrics: what is merged, counted, planes, times and payload.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "sim/base/error.hpp"
#include "tests/topology/fixtures.hpp"

namespace topsim::topology::test::fabric_cables_test {
using namespace topsim::literals;

TEST(FabricCables, EqualSwitchesMergeUnderAdaptiveRoutingAndKeepTheirCapacity) {
  TopologySpec spec = cluster("hgx-h100", 512, FabricKind::rail);
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

TEST(FabricCables, NoMoreSwitchesAreMergedThanTheirCablesCanBeCounted) {
  // 512 ports: 256 nodes of eight NICs under eight leaves of 256 cables up each, 32 such groups in a pod.
  // Each of its 256 spines has one cable to each of 256 leaves, and 256 up: 65,536 from a pod to the cores.
  TopologySpec spec = cluster("hgx-h100", 16384, FabricKind::rail);
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

TEST(FabricCables, NoSwitchHasTheUplinksOfATinyRatio) {
  TopologySpec spec = cluster("hgx-h100", 2, FabricKind::rail);
  spec.fabric.oversubscription = {1e-12};
  EXPECT_THROW((void)build(spec, catalogue()), ConfigError);
}

// A leaf has 32 cables up to four spines, eight to each: one link of eight cables, or eight links of one.
TEST(FabricCables, ParallelCablesAreOneLinkUnlessTheyAreToBeApart) {
  const TopologySpec spec = cluster("hgx-h100", 32, FabricKind::fat_tree);
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

TEST(FabricCables, EcmpKeepsEveryCableApart) {
  TopologySpec spec = cluster("hgx-h100", 32, FabricKind::rail);
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

TEST(FabricCables, DualToRsInTwoPlanesShareNothingAboveTheNic) {
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

TEST(FabricCables, BothLeavesOfADualToRFitThePortsOfThreeTiers) {
  // 64 nodes and two leaves a rail, one plane: 32 nodes under a pair of leaves. A NIC's 400 Gbit/s are split
  // over the pair, so each leaf has 32 cables of 200 down and 16 of 400 up. A spine has 32 ports down and 32
  // up; 8 of them lead to each of four leaves: a pod is every leaf of a rail.
  TopologySpec spec = cluster("hgx-h100", 64, FabricKind::rail);
  spec.fabric.switch_model = {"qm9700", 64, {}};
  spec.fabric.leaves_per_rail = 2;
  spec.fabric.tiers = 3;
  const Topology t = build(spec, catalogue());
  for (std::size_t i = 0; i < t.devices().size(); ++i) {
    const Device d = t.device(DeviceId(i));
    if (d.kind != DeviceKind::fabric_switch) continue;
    int cables = 0;
    double down = 0, up = 0;
    for (const LinkId l : t.links_from(DeviceId(i))) {
      const Device other = t.device(t.link(l).to);
      (other.kind == DeviceKind::fabric_switch && other.tier > d.tier ? up : down) +=
          t.link(l).line_rate.value();
      cables += t.link(l).count;
    }
    EXPECT_LE(cables, 64 * d.count) << t.name(DeviceId(i));
    if (d.tier < 3) {
      EXPECT_DOUBLE_EQ(down, up) << t.name(DeviceId(i)) << " is not 1:1";
    }
  }
}

// A measured hop of 1 us is of switches with a single chip. A chassis with deep buffers takes 3.8 us by
// itself, and 5 ns a metre of cable: 4.05 us with 50 m to a CTSW, 4.3 us with 100 m to an ATSW.
TEST(FabricCables, ASwitchSlowerThanAMeasuredHopTakesItsOwnTime) {
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
TEST(FabricCables, CablesCarryWhatPacketsOfASizeLeaveOfThem) {
  const auto capacity = [](const char* link, const BuildOptions& options) {
    TopologySpec spec = cluster("hgx-h100", 2, FabricKind::rail);
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

TEST(FabricCables, UplinksMayBeFasterThanNodePorts) {
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
}  // namespace topsim::topology::test::fabric_cables_test
