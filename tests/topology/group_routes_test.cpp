// Routes between groups of a dragonfly (topology/routing/group_routes.hpp). In all of these a group's NICs
// and its global cables have the same rate, so that 1 is what one NIC sends.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "tests/topology/fixtures.hpp"
#include "topology/export/export.hpp"

namespace topsim::topology::test::group_routes_test {

// Nodes of four NICs, one a switch in turn.
Topology dragonfly(std::vector<int> dimensions, int nodes) {
  TopologySpec spec = cluster("perlmutter-a100", nodes, FabricKind::dragonfly);
  spec.fabric.link.use = "slingshot-200";
  spec.fabric.dimensions = std::move(dimensions);
  return build(spec, catalogue());
}

class Fabric {
 public:
  explicit Fabric(Topology topology, std::vector<SlowLink> slow = {})
      : t(std::move(topology)), router(t, 1, {}, 1, slow) {}

  [[nodiscard]] std::uint32_t group(DeviceId at) const {
    return t.device(at).local / static_cast<std::uint32_t>(t.dragonfly_dimensions[1]);
  }
  [[nodiscard]] bool is_switch(DeviceId at) const { return t.device(at).kind == DeviceKind::fabric_switch; }
  // Of the switch that it is connected to.
  [[nodiscard]] std::uint32_t group_of_nic(DeviceId nic) const {
    for (const LinkId l : t.links_from(nic))
      if (is_switch(t.link(l).to)) return group(t.link(l).to);
    return DeviceId::kNone;
  }
  [[nodiscard]] std::vector<DeviceId> nics() const {
    std::vector<DeviceId> all;
    for (std::uint32_t n = 0; n < t.nodes(); ++n)
      for (const DeviceId nic : t.nics_of_node(n)) all.push_back(nic);
    return all;
  }
  [[nodiscard]] Route between(DeviceId from, DeviceId to, bool even = false) const {
    Route r;
    router.route({.from = from, .to = to, .from_nic = from, .to_nic = to, .even = even}, r);
    return r;
  }
  // NICs send to those of the group that is `groups` further on, in the same order.
  [[nodiscard]] std::map<LinkId, double> loads(std::size_t senders, std::size_t further) const {
    const std::vector<DeviceId> all = nics();
    std::map<LinkId, double> load;
    for (std::size_t i = 0; i < senders; ++i)
      for (const LinkShare& use : between(all[i], all[(i + further) % all.size()]).links)
        load[use.link] += use.share;
    return load;
  }
  // The largest over links between switches.
  [[nodiscard]] double most(const std::map<LinkId, double>& load) const {
    double worst = 0;
    for (const auto& [link, sum] : load)
      if (is_switch(t.link(link).from) && is_switch(t.link(link).to))
        worst = std::max(worst, sum / t.link(link).count);
    return worst;
  }

  const Topology t;
  const Router router;
};

// By the two groups.
std::map<std::pair<std::uint32_t, std::uint32_t>, double> global_shares(const Fabric& f, const Route& r) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> sum;
  for (const LinkShare& use : r.links) {
    const Link l = f.t.link(use.link);
    if (f.is_switch(l.from) && f.is_switch(l.to) && f.group(l.from) != f.group(l.to))
      sum[{f.group(l.from), f.group(l.to)}] += use.share;
  }
  return sum;
}

// Five groups of four switches, each with four NICs and a cable to each other group: 16 NICs, 16 cables, of
// which four lead to each group. Four of 16 NICs' bytes fit on the direct cables: 1/4. The rest divides over
// three third groups: 1/4 each.
TEST(GroupRoutes, AMessageBetweenGroupsTakesTheDirectCablesAndEveryThirdGroup) {
  const Fabric f(dragonfly({5, 4, 4, 4}, 20));
  const std::vector<DeviceId> nics = f.nics();
  const Route r = f.between(nics.front(), nics[16]);
  const auto shares = global_shares(f, r);
  ASSERT_EQ(shares.size(), 7U);
  for (const auto& [groups, share] : shares) EXPECT_NEAR(share, 0.25, 1e-12) << groups.first << groups.second;
  for (const std::uint32_t third : {2U, 3U, 4U}) {
    EXPECT_TRUE(shares.contains({0, third}));
    EXPECT_TRUE(shares.contains({third, 1}));
  }
}

// Nothing is lost or doubled, nor goes round a group.
TEST(GroupRoutes, AllBytesLeaveTheFirstGroupAndReachTheLast) {
  for (const std::vector<int>& dimensions : {std::vector{5, 4, 4, 4}, {9, 16, 4, 8}}) {
    const Fabric f(dragonfly(dimensions, dimensions[0] * dimensions[1]));
    const std::vector<DeviceId> nics = f.nics();
    const auto of_group = static_cast<std::size_t>(dimensions[1] * 4);
    for (const std::size_t from : {std::size_t{0}, std::size_t{7}})
      for (const std::size_t to : {of_group, of_group + 5, 3 * of_group + 9}) {
        const Route r = f.between(nics[from], nics[to]);
        std::set<LinkId> seen;
        for (const LinkShare& use : r.links) {
          EXPECT_TRUE(seen.insert(use.link).second);
          EXPECT_GT(use.share, 0);
        }
        std::map<std::uint32_t, double> leaves, enters;
        for (const auto& [groups, share] : global_shares(f, r)) {
          leaves[groups.first] += share;
          enters[groups.second] += share;
        }
        const std::uint32_t first = f.group_of_nic(nics[from]), last = f.group_of_nic(nics[to]);
        EXPECT_NEAR(leaves[first], 1, 1e-9);
        EXPECT_NEAR(enters[last], 1, 1e-9);
        EXPECT_EQ(enters[first] + leaves[last], 0);
        for (const auto& [third, share] : leaves)
          if (third != first && third != last) {
            EXPECT_NEAR(enters[third], share, 1e-9) << third;
          }
      }
  }
}

// The 16 NICs of a group send over all of its 16 cables evenly: one NIC's bytes each, so all send at full
// rate. The direct cables alone would carry a quarter.
TEST(GroupRoutes, APermutationBetweenTwoGroupsHasTheRateOfTheNics) {
  const Fabric f(dragonfly({5, 4, 4, 4}, 20));
  EXPECT_NEAR(f.most(f.loads(16, 16)), 1, 1e-9);
}

// Nine groups of 16 switches with eight cables, one a group: 16 cables between two groups, whose 64 NICs send
// 16/64 directly, which fills them. The other 48 NICs' bytes take the 7 x 16 cables to third groups, and
// those that third groups send by here as many again: 2 x 48/112 = 0.86. Another order in the groups changes
// nothing.
TEST(GroupRoutes, IfEveryGroupSendsToItsNextOneCablesShareEvenly) {
  const Fabric f(dragonfly({9, 16, 4, 8}, 144));
  for (const std::size_t shift : {0U, 5U, 16U}) {
    const std::vector<DeviceId> nics = f.nics();
    std::map<LinkId, double> load;
    for (std::size_t i = 0; i < nics.size(); ++i) {
      const std::size_t next = (i / 64 + 1) % 9 * 64 + (i + shift) % 64;
      for (const LinkShare& use : f.between(nics[i], nics[next]).links) load[use.link] += use.share;
    }
    for (const auto& [link, sum] : load) {
      const Link l = f.t.link(link);
      if (!f.is_switch(l.from) || !f.is_switch(l.to) || f.group(l.from) == f.group(l.to)) continue;
      const bool direct = f.group(l.to) == (f.group(l.from) + 1) % 9;
      EXPECT_NEAR(sum, direct ? 1 : 96.0 / 112, 1e-9) << f.t.name(link);
    }
    EXPECT_NEAR(f.most(load), 1, 1e-9);
  }
}

// Alps: groups of 32 switches with 16 NICs each; 23 cables join two groups, 529 leave one. Directly goes
// 23/512, which fills the direct cables; 489 NICs' bytes take the 506 others. As cables are dealt whole, 16
// or 17 to a switch of which one or none is direct, one carries at most 16 x (1 - 23/512) / 15 = 1.019.
TEST(GroupRoutes, APermutationBetweenTwoGroupsOfAlpsHasNearlyTheRateOfTheNics) {
  TopologySpec spec = cluster("gh200x4-slingshot", 256);
  spec.fabric.use = "alps";
  const Fabric f(build(spec, catalogue()));
  const double most = f.most(f.loads(512, 512));
  EXPECT_GE(most, 1 - 1e-9);
  EXPECT_LE(most, 16 * (1 - 23.0 / 512) / 15 + 1e-9);
}

TEST(GroupRoutes, TrafficToAllAlikeStaysOnTheDirectCables) {
  const Fabric f(dragonfly({5, 4, 4, 4}, 20));
  const std::vector<DeviceId> nics = f.nics();
  for (std::size_t i = 1; i < nics.size(); ++i) {
    const Route r = f.between(nics.front(), nics[i], /*even=*/true);
    const auto shares = global_shares(f, r);
    const auto own = f.group_of_nic(nics[i]);
    const Route loaded = f.between(nics.front(), nics[i]);
    EXPECT_EQ(r.latency, loaded.latency);  // idle routers take the shortest paths
    EXPECT_EQ(r.switches, loaded.switches);
    if (r.switches <= 2) continue;  // neighbours, by whom all traffic takes detours
    for (const auto& [groups, share] : shares) {
      EXPECT_EQ(groups.second, own);
      EXPECT_NEAR(share, 1, 1e-9);
    }
  }
}

TEST(GroupRoutes, OfTwoGroupsNoneIsAThird) {
  const Fabric f(dragonfly({2, 4, 4, 4}, 8));
  const std::vector<DeviceId> nics = f.nics();
  for (std::size_t i = 1; i < nics.size(); ++i)
    EXPECT_EQ(f.between(nics[0], nics[i]).links, f.between(nics[0], nics[i], /*even=*/true).links);
}

// One node of the second group has four NICs, as many as direct cables.
TEST(GroupRoutes, WhatTheDirectCablesCarryTakesNoDetour) {
  const Fabric f(dragonfly({5, 4, 4, 4}, 5));
  const std::vector<DeviceId> nics = f.nics();
  const auto shares = global_shares(f, f.between(nics[0], nics[16]));
  ASSERT_EQ(shares.size(), 1U);
  EXPECT_NEAR(shares.at({0, 1}), 1, 1e-9);
}

// A cable between the groups 0 and 2 carries half. What the direct cables take is the same; the others carry
// 12 - 0.5, of which this one is 0.5.
TEST(GroupRoutes, ASlowCableTakesLess) {
  const Topology t = dragonfly({5, 4, 4, 4}, 20);
  const Fabric whole(t);
  LinkId slow;
  for (const LinkId l : t.cables())
    if (!slow.valid() && whole.is_switch(t.link(l).from) && whole.is_switch(t.link(l).to) &&
        whole.group(t.link(l).from) == 0 && whole.group(t.link(l).to) == 2)
      slow = l;
  const Fabric f(t, {{slow, 0.5}});
  const std::vector<DeviceId> nics = f.nics();
  double share = 0;
  for (const LinkShare& use : f.between(nics[0], nics[16]).links) share += use.link == slow ? use.share : 0;
  EXPECT_NEAR(share, 0.75 * 0.5 / 11.5, 1e-9);
}

// Two switches a group, joined by 14 cables, which have the rate of 14 of 48 NICs. They
// can be full, so what other switches' cables carry is counted on them: half of the bytes at either end.
TEST(GroupRoutes, LinksInsideAGroupCountIfTheyCarryLessThanTheNics) {
  const Fabric f(dragonfly({3, 2, 48, 2, 14}, 72));
  const std::vector<DeviceId> nics = f.nics();
  std::map<std::uint32_t, double> inside;
  for (const LinkShare& use : f.between(nics[0], nics[96]).links) {
    const Link l = f.t.link(use.link);
    if (f.is_switch(l.from) && f.is_switch(l.to) && f.group(l.from) == f.group(l.to))
      inside[f.group(l.from)] += use.share;
  }
  ASSERT_EQ(inside.size(), 2U);
  EXPECT_NEAR(inside[0], 0.5, 1e-9);
  EXPECT_NEAR(inside[1], 0.5, 1e-9);
}

TEST(GroupRoutes, ATopologyThatIsReadAgainKnowsItsGroups) {
  const Topology built = dragonfly({5, 4, 4, 4}, 20);
  const std::string path = testing::TempDir() + "group_routes_test.json";
  FILE* file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  const std::string text = to_json(built);
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
  const Topology read = build_file(path, catalogue());
  EXPECT_EQ(read.dragonfly_dimensions, built.dragonfly_dimensions);
  EXPECT_EQ(to_json(read), text);
}

}  // namespace topsim::topology::test::group_routes_test
