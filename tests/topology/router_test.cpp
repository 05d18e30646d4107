#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/topology/fixtures.hpp"

namespace topsim::topology::test::router_test {
using namespace std::string_literals;

TopologySpec rails(int nodes, Routing routing) {
  TopologySpec spec = cluster("hgx-h100", nodes, FabricKind::rail);
  spec.fabric.routing = routing;
  return spec;
}

double share_into(const Topology& t, const Route& r, int tier) {
  double total = 0;
  for (const LinkShare& l : r.links) {
    const Device &from = t.device(t.link(l.link).from), &to = t.device(t.link(l.link).to);
    if (to.kind == DeviceKind::fabric_switch && to.tier == tier && from.tier < tier) total += l.share;
  }
  return total;
}

TEST(Router, ARailAlignedMessageTouchesOneLeaf) {
  const Topology t = build(rails(8, Routing::adaptive), catalogue());
  const Router router(t, 1);
  const Route r = route(router, "node0/gpu2", "node7/gpu2");
  EXPECT_TRUE(r.crosses_fabric);
  EXPECT_FALSE(r.proxied);
  EXPECT_EQ(r.switches, 1);
  EXPECT_EQ(path_of(t, r), "gpu2 pcie2 nic2 leaf2 node7/nic2 node7/pcie2 node7/gpu2");
}

TEST(Router, PxnHandsAMessageToTheAcceleratorOfTheDestinationsRail) {
  const Topology t = build(rails(8, Routing::adaptive), catalogue());
  const Router router(t, 1);
  const Route r = route(router, "node0/gpu2", "node7/gpu5");
  EXPECT_TRUE(r.proxied);
  EXPECT_EQ(r.switches, 1);
  EXPECT_EQ(path_of(t, r), "gpu2 nvswitch0 gpu5 pcie5 nic5 leaf5 node7/nic5 node7/pcie5 node7/gpu5");
  EXPECT_EQ(t.name(router.nic_for(device(t, "node0/gpu2"), device(t, "node7/gpu5"))), "node0/nic5");
}

TEST(Router, WithoutPxnTheMessageCrossesASpine) {
  const Topology t = build(rails(8, Routing::adaptive), catalogue());
  const Router router(t, 1);
  RouteQuery q;
  q.from = device(t, "node0/gpu2");
  q.to = device(t, "node7/gpu5");
  q.allow_pxn = false;
  Route r;
  router.route(q, r);
  EXPECT_FALSE(r.proxied);
  EXPECT_EQ(r.switches, 3);
  EXPECT_DOUBLE_EQ(share_into(t, r, 2), 1);
}

TEST(Router, ForcedNicsAreUsed) {
  const Topology t = build(rails(2, Routing::adaptive), catalogue());
  const Router router(t, 1);
  const Route r = route_by(router, {"node0/gpu0", "node1/gpu0"}, {"node0/nic3", "node1/nic3"});
  // The sender's NIC is GPU 3's, reached over NVLink (PXN). The receiver's NIC must write over PCIe.
  EXPECT_EQ(path_of(t, r),
            "gpu0 nvswitch0 gpu3 pcie3 nic3 leaf3 node1/nic3 node1/pcie3 node1/cpu0 node1/pcie0 node1/gpu0");
}

TEST(Router, LatencyIsNicBasePlusTheMeasuredFigureForEverySwitch) {
  // DeepSeek, ISCA 2025, table 5, one way. InfiniBand: 2.8 us within a leaf and 3.7 us across leaves, two
  // switches more, so 0.45 us a switch and 2.35 us for NICs and hosts. RoCE: 3.6 and 5.6 us, so 1.0 and
  // 2.6 us.
  const auto nic_to_nic = [](const std::string& link, const char* to) {
    TopologySpec spec = cluster("hgx-h100", 8, FabricKind::rail);
    spec.fabric.link.use = link;
    const Topology t = build(spec, catalogue());
    return microseconds(route(Router(t, 1), "node0/nic0", to).latency);
  };
  EXPECT_NEAR(nic_to_nic("ib-ndr", "node1/nic0"), 2.8, 1e-6);
  EXPECT_NEAR(nic_to_nic("ib-ndr", "node1/nic1"), 3.7, 1e-6);
  EXPECT_NEAR(nic_to_nic("roce-400g", "node1/nic0"), 3.6, 1e-6);
  EXPECT_NEAR(nic_to_nic("roce-400g", "node1/nic1"), 5.6, 1e-6);
}

TEST(Router, CableLengthsReplaceTheMeasuredFigureByPortToPortFecAndFibre) {
  TopologySpec spec = cluster("hgx-h100", 8, FabricKind::rail);
  spec.fabric.switch_model.use = "qm9700";
  spec.fabric.switch_model.latency = std::chrono::duration_cast<Duration>(std::chrono::nanoseconds(200));
  spec.fabric.length = {Metres(10)};
  const Topology short_cables = build(spec, catalogue());
  spec.fabric.length = {Metres(30)};
  const Topology long_cables = build(spec, catalogue());
  const auto latency = [](const Topology& t) {
    return route(Router(t, 1), "node0/nic0", "node1/nic0").latency;
  };
  // Two cables, 20 m longer each, 5 ns a metre.
  EXPECT_EQ(latency(long_cables) - latency(short_cables), Duration(2 * 20 * 5000));
}

TEST(Router, EcmpTakesOneWholePathAndIsAFunctionOfTheSeed) {
  TopologySpec spec = rails(64, Routing::ecmp);
  const Topology t = build(spec, catalogue());
  const Router one(t, 1), again(t, 1), other(t, 2);
  int differ = 0;
  for (std::uint64_t connection = 0; connection < 32; ++connection) {
    const Route a = route(one, "node0/nic0", "node40/nic0", connection);
    const Route b = route(again, "node0/nic0", "node40/nic0", connection);
    const Route c = route(other, "node0/nic0", "node40/nic0", connection);
    ASSERT_EQ(a.links.size(), 4U);
    for (const LinkShare& l : a.links) EXPECT_DOUBLE_EQ(l.share, 1);
    EXPECT_EQ(path_of(t, a), path_of(t, b));
    if (path_of(t, a) != path_of(t, c) || a.links[1].link != c.links[1].link) ++differ;
  }
  EXPECT_GT(differ, 16);
}

TEST(Router, EcmpSpreadsConnectionsOverAllUplinks) {
  const Topology t = build(rails(64, Routing::ecmp), catalogue());
  const Router router(t, 1);
  std::map<LinkId, int> uses;
  for (std::uint64_t connection = 0; connection < 3200; ++connection)
    ++uses[route(router, "node0/nic0", "node40/nic0", connection).links[1].link];
  // 3,200 connections over 32 uplinks: 100 each with a standard deviation of 10; five deviations are allowed.
  EXPECT_EQ(uses.size(), 32U);
  for (const auto& [link, count] : uses) {
    EXPECT_GT(count, 50);
    EXPECT_LT(count, 150);
  }
}

// Four queue pairs take 32 x (1 - (31/32)^4) = 3.817 different uplinks of 32 on average, with a standard
// deviation of 0.42 for one connection and 0.007 for the mean of 3,200. A message uses the NICs' cables with
// share 1, each uplink with a quarter per queue pair, and passes the tier above once.
TEST(Router, EcmpDividesAConnectionOverTheWaysOfItsQueuePairs) {
  const Topology t = build(rails(64, Routing::ecmp), catalogue());
  const Router single(t, 1), router(t, 1, {}, 4);
  std::size_t different = 0;
  for (std::uint64_t connection = 0; connection < 3200; ++connection) {
    const Route all = route(router, "node0/nic0", "node40/nic0", connection);
    std::map<LinkId, double> carried;
    for (const LinkShare& use : all.links) EXPECT_TRUE(carried.emplace(use.link, use.share).second);
    EXPECT_EQ(carried[all.links.front().link], 1);
    EXPECT_EQ(carried[all.links.back().link], 1);
    EXPECT_EQ(share_into(t, all, 2), 1);
    different +=
        static_cast<std::size_t>(std::count_if(all.links.begin(), all.links.end(), [&](const LinkShare& use) {
          return t.device(t.link(use.link).to).tier == 2;
        }));
    for (std::uint32_t pair = 0; pair < 4; ++pair) {
      Route one;
      router.route({.from = device(t, "node0/nic0"),
                    .to = device(t, "node40/nic0"),
                    .connection = connection,
                    .one_port = true,
                    .queue_pair = pair},
                   one);
      ASSERT_EQ(one.links.size(), 4U);
      EXPECT_EQ(one.latency, all.latency);
      EXPECT_EQ(one.switches, all.switches);
      for (const LinkShare& use : one.links) carried[use.link] -= 0.25;
      EXPECT_EQ(one.links, route(single, "node0/nic0", "node40/nic0", 4 * connection + pair).links);
    }
    for (const auto& [link, left] : carried) EXPECT_EQ(left, 0);
  }
  EXPECT_NEAR(static_cast<double>(different) / 3200, 3.817, 0.03);
}

TEST(Router, AdaptiveSharesSumToOneOnEveryTier) {
  BuildOptions apart;
  apart.merge_switches_above = 1 << 20;
  TopologySpec spec = rails(128, Routing::adaptive);
  spec.fabric.tiers = 3;
  spec.fabric.leaves_per_pod = 2;
  const Topology t = build(spec, catalogue(), apart);
  const Router router(t, 1);
  const Route r = route(router, "node0/nic0", "node100/nic0");
  EXPECT_EQ(r.switches, 5);
  EXPECT_NEAR(share_into(t, r, 2), 1, 1e-12);
  EXPECT_NEAR(share_into(t, r, 3), 1, 1e-12);
  std::map<DeviceId, double> in, out;
  for (const LinkShare& l : r.links) {
    out[t.link(l.link).from] += l.share;
    in[t.link(l.link).to] += l.share;
  }
  // What enters a switch leaves it.
  for (const auto& [d, share] : in) {
    if (t.device(d).kind == DeviceKind::fabric_switch) {
      EXPECT_NEAR(share, out[d], 1e-12) << t.name(d);
    }
  }
}

TEST(Router, StaticRoutingIsDestinationModuloUplinks) {
  const Topology t = build(rails(64, Routing::static_), catalogue());
  const Router router(t, 1);
  // 32 nodes a leaf, 32 uplinks: the 32 destinations on the far leaf of a rail use 32 different uplinks, from
  // every source the same.
  std::set<LinkId> used;
  for (int node = 32; node < 64; ++node) {
    const std::string to = "node" + std::to_string(node) + "/nic0";
    const Route a = route(router, "node0/nic0", to, 7), b = route(router, "node1/nic0", to, 8);
    EXPECT_EQ(a.links[1].link, b.links[1].link);
    used.insert(a.links[1].link);
  }
  EXPECT_EQ(used.size(), 32U);
}

TEST(Router, EveryPairOfRanksIsConnected) {
  const Topology t = build(rails(4, Routing::adaptive), catalogue());
  const Router router(t, 1);
  Route r;
  for (const DeviceId a : t.accelerators())
    for (const DeviceId b : t.accelerators()) {
      if (a == b) continue;
      router.route({a, b}, r);
      ASSERT_TRUE(r.reachable()) << router.why_unreachable({.from = a, .to = b});
    }
}

TEST(Router, StructuralAndSearchedRoutesAgree) {
  // A dead link anywhere makes the router search instead of computing paths from the structure. Paths that do
  // not meet that link must stay the same.
  for (const Routing routing : {Routing::adaptive, Routing::ecmp}) {
    const Topology t = build(rails(64, routing), catalogue());
    const Router structural(t, 1);
    const LinkId far = *t.find_link(device(t, "leaf15"), device(t, "spine0"));
    const Router searched(t, 1, std::vector{far});
    const Route a = route(structural, "node0/nic0", "node40/nic0"),
                b = route(searched, "node0/nic0", "node40/nic0");
    EXPECT_EQ(a.latency, b.latency);
    EXPECT_EQ(a.switches, b.switches);
    if (routing != Routing::adaptive) continue;
    std::map<LinkId, double> x, y;
    for (const LinkShare& l : a.links) x[l.link] += l.share;
    for (const LinkShare& l : b.links) y[l.link] += l.share;
    ASSERT_EQ(x.size(), y.size());
    for (const auto& [link, share] : x) EXPECT_NEAR(share, y[link], 1e-12);
  }
}

TEST(Router, DeadLinksAreAvoidedAndADeadNicFailsOverToItsNeighbour) {
  const Topology t = build(rails(4, Routing::ecmp), catalogue());
  const LinkId up = *t.find_link(device(t, "node0/nic2"), device(t, "leaf2"));
  const LinkId down = *t.find_link(device(t, "leaf2"), device(t, "node0/nic2"));
  const Router router(t, 1, std::vector{up, down});
  const Route r = route(router, "node0/gpu2", "node1/gpu2");
  ASSERT_TRUE(r.reachable());
  for (const LinkShare& l : r.links) EXPECT_NE(l.link, up);
}

std::vector<LinkId> links_of(const Topology& t, const std::string& nic) {
  std::vector<LinkId> all;
  const DeviceId lost = device(t, nic);
  for (std::size_t i = 0; i < t.links().size(); ++i)
    if (t.link(LinkId(i)).from == lost || t.link(LinkId(i)).to == lost) all.push_back(LinkId(i));
  return all;
}
std::string nic_at(const Topology& t, const Route& r, bool sender) {
  for (const LinkShare& use : r.links) {
    const Link& l = t.link(use.link);
    const DeviceId near = sender ? l.from : l.to, far = sender ? l.to : l.from;
    if (t.device(near).kind == DeviceKind::nic && t.device(far).kind == DeviceKind::fabric_switch)
      return t.name(near);
  }
  return {};
}

// Any NIC of a box is within reach over NVLink, so the eight accelerators are divided over the NICs that are
// left: with five at most two each. The same holds for channels that ask for a lost NIC, whoever sends.
TEST(Router, WhatLostNicsCarriedIsDealtOverThoseLeft) {
  const Topology t = build(rails(2, Routing::adaptive), catalogue());
  std::vector<LinkId> dead;
  for (int lost = 1; lost < 8; ++lost) {
    for (const LinkId link : links_of(t, "node0/nic" + std::to_string(lost - 1))) dead.push_back(link);
    const Router router(t, 1, dead);
    std::map<std::string, int> out, in, asked;
    for (int i = 0; i < 8; ++i) {
      const std::string gpu = "/gpu" + std::to_string(i), nic = "node0/nic" + std::to_string(i);
      ++out[nic_at(t, route(router, "node0" + gpu, "node1" + gpu), true)];
      ++in[nic_at(t, route(router, "node1" + gpu, "node0" + gpu), false)];
      RouteQuery q;
      q.from = device(t, "node0/gpu7");
      q.to = device(t, "node1" + gpu);
      q.from_nic = device(t, nic);
      Route r;
      router.route(q, r);
      ++asked[nic_at(t, r, true)];
    }
    const int left = 8 - lost;
    for (const auto& uses : {out, in, asked}) {
      EXPECT_EQ(uses.size(), static_cast<std::size_t>(left)) << lost;
      for (const auto& [nic, count] : uses) EXPECT_LE(count, (8 + left - 1) / left) << lost << ' ' << nic;
    }
  }
}

// Each PCIe switch has two accelerators and two NICs. If one NIC is lost the other takes over; if both are
// lost, the accelerators take two NICs of other switches.
TEST(Router, ANicAsNearTakesOverBeforeOthers) {
  const Topology t = build(cluster("dgx-a100", 2, FabricKind::rail), catalogue());
  std::vector<LinkId> dead = links_of(t, "node0/nic0");
  const auto taken = [&] {
    const Router router(t, 1, dead);
    return std::pair(nic_at(t, route(router, "node0/gpu0", "node1/gpu0"), true),
                     nic_at(t, route(router, "node0/gpu1", "node1/gpu1"), true));
  };
  EXPECT_EQ(taken(), std::pair("node0/nic1"s, "node0/nic1"s));
  for (const LinkId link : links_of(t, "node0/nic1")) dead.push_back(link);
  const auto [first, second] = taken();
  EXPECT_NE(first, second);
  EXPECT_FALSE(first.empty() || second.empty());
}

// Two leaves with one node of eight NICs each, several cables to each spine. Static routing gives each of a
// leaf's eight destinations a cable of its own up and down: 16.
TEST(Router, StaticRoutingGivesEveryPortOfALeafACableDownOfItsOwn) {
  TopologySpec spec = cluster("hgx-h100", 2, FabricKind::fat_tree);
  spec.fabric.nodes_per_leaf = 1;
  spec.fabric.routing = Routing::static_;
  const Topology t = build(spec, catalogue());
  const Router router(t, 1);
  std::set<LinkId> between;
  for (int g = 0; g < 8; ++g)
    for (const LinkShare& l :
         route(router, fmt::format("node0/gpu{}", g), fmt::format("node1/gpu{}", g)).links)
      if (t.device(t.link(l.link).from).kind == DeviceKind::fabric_switch &&
          t.device(t.link(l.link).to).kind == DeviceKind::fabric_switch)
        between.insert(l.link);
  EXPECT_EQ(between.size(), 16U);
}

// A leaf has four nodes of eight NICs and eight cables to each of four spines. One cable between leaf 0 and
// spine 0 is dead. Eight of leaf 0's 32 ports are reached through each spine: over eight cables at three of
// them, over seven at spine 0, where two ports share one. That is 31 cables, the same from every leaf.
TEST(Router, StaticRoutingWithADeadCableStillUsesAllOthersDownToTheLeaf) {
  TopologySpec spec = cluster("hgx-h100", 32, FabricKind::fat_tree);
  spec.fabric.routing = Routing::static_;
  const Topology t = build(spec, catalogue());
  const DeviceId leaf = device(t, "leaf0"), spine = device(t, "spine0");
  const Router router(t, 1, std::vector{*t.find_link(leaf, spine), *t.find_link(spine, leaf)});
  std::map<LinkId, int> down[2];
  for (int port = 0; port < 32; ++port) {
    for (int from = 0; from < 2; ++from) {
      const Route r = route(router, from == 0 ? "node4/nic0" : "node31/nic5",
                            fmt::format("node{}/nic{}", port / 8, port % 8));
      ASSERT_EQ(r.switches, 3);
      ++down[from][r.links[r.links.size() - 2].link];
    }
  }
  EXPECT_EQ(down[0], down[1]);
  EXPECT_EQ(down[0].size(), 31U);
  for (const auto& [cable, ports] : down[0]) EXPECT_LE(ports, 2);
}

// Recipes make node after node, but a file need not: here the links of node 1 come before those of node 0.
TEST(Router, LinksOfNodesMayComeInAnyOrder) {
  using namespace topsim::literals;
  TopologyBuilder builder;
  builder.set_nodes(2);
  const auto pcie = builder.link_type({"pcie", "PCIe", "test"}), ib = builder.link_type({"ib", "IB", "test"});
  const auto part = [&](DeviceKind kind, std::uint32_t node) {
    return builder.device({kind, 0, 1, node, 0, builder.model("part")});
  };
  const DeviceId gpus[] = {part(DeviceKind::accelerator, 0), part(DeviceKind::accelerator, 1)};
  const DeviceId nics[] = {part(DeviceKind::nic, 0), part(DeviceKind::nic, 1)};
  const DeviceId leaf =
      builder.device({DeviceKind::fabric_switch, 1, 1, DeviceId::kNone, 0, builder.model("switch")});
  for (const std::size_t node : {1U, 0U}) {
    builder.cable({gpus[node], nics[node], LinkKind::pcie, 1, pcie, {}, 50_GBps, 50_GBps, 0_ns});
    builder.cable({nics[node], leaf, LinkKind::infiniband, 1, ib, {}, 50_GBps, 50_GBps, 0_ns});
  }
  const Topology t = std::move(builder).finish();
  const Router router(t, 1);
  EXPECT_EQ(path_of(t, route(router, "node0/gpu0", "node1/gpu0")), "gpu0 nic0 leaf0 node1/nic0 node1/gpu0");
  EXPECT_EQ(path_of(t, route(router, "node1/gpu0", "node0/gpu0")), "node1/gpu0 node1/nic0 leaf0 nic0 gpu0");
  EXPECT_EQ(router.link_at(0, 0), *t.find_link(gpus[0], nics[0]));
  EXPECT_EQ(router.link_at(1, 0), *t.find_link(gpus[1], nics[1]));
  EXPECT_NE(router.scale_up_domain(gpus[0]), router.scale_up_domain(gpus[1]));
}
}  // namespace topsim::topology::test::router_test
