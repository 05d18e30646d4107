#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/collective/lowering_fixtures.hpp"

namespace topsim::collective::lower_alike_test {

using namespace fixtures;

// Routes counted by standing are those that the router gives pair by pair, each with 1/n of the bytes. Two
// nodes a leaf and two leaves a pod: partners of one leaf, of one pod and beyond; the last leaf has one node.
TEST(Lowering, AnAllToAllTakesTheRouteOfEveryPair) {
  for (const topology::FabricKind kind : {topology::FabricKind::rail, topology::FabricKind::fat_tree})
    for (const int tiers : {2, 3})
      for (const topology::Routing routing :
           {topology::Routing::adaptive, topology::Routing::static_, topology::Routing::ecmp}) {
        topology::TopologySpec spec = boxes("hgx-h100", 9);
        spec.fabric.kind = kind;
        spec.fabric.tiers = tiers;
        spec.fabric.nodes_per_leaf = 2;
        spec.fabric.routing = routing;
        const Cluster cluster(spec);
        const auto gpus = cluster.topology.accelerators();
        const auto n = static_cast<std::uint32_t>(gpus.size());
        std::map<LinkId, double> expected;
        topology::Route route;
        for (std::uint32_t i = 0; i < n; ++i)
          for (std::uint32_t k = 0; k < n; ++k) {
            if (i == k) continue;
            cluster.router.route({.from = gpus[i], .to = gpus[k], .connection = (k + n - i) % n % 64}, route);
            for (const topology::LinkShare& use : route.links) expected[use.link] += use.share / n;
          }
        const Activity all = lowered(cluster, CollectiveKind::all_to_all, n);
        ASSERT_EQ(all.usage.size(), expected.size()) << name_of(kind) << tiers;
        for (const topology::LinkShare& use : all.usage)
          EXPECT_NEAR(use.share, expected[use.link], 1e-9 * expected[use.link]) << name_of(kind) << tiers;
      }
}

// Five groups of eight switches with two NICs and two global cables each. All send to all, so each group's
// cables to another are used by messages between these two alone; those of neighbours in a ring take detours.
TEST(Lowering, OnADragonflyAnAllToAllTakesTheShortestPathsAndARingDetours) {
  topology::TopologySpec spec = boxes("perlmutter-a100", 20, "slingshot-200");
  spec.fabric.kind = topology::FabricKind::dragonfly;
  spec.fabric.dimensions = {5, 8, 2, 2};
  const Cluster cluster(spec);
  const auto gpus = cluster.topology.accelerators();
  const auto n = static_cast<std::uint32_t>(gpus.size());
  std::map<LinkId, double> even, loaded;
  topology::Route route;
  for (std::uint32_t i = 0; i < n; ++i)
    for (std::uint32_t k = 0; k < n; ++k) {
      if (i == k) continue;
      for (const bool is_even : {true, false}) {
        cluster.router.route({.from = gpus[i], .to = gpus[k], .even = is_even}, route);
        for (const topology::LinkShare& use : route.links)
          (is_even ? even : loaded)[use.link] += use.share / n;
      }
    }
  double all = 0, all_even = 0, differs = 0;
  for (const topology::LinkShare& use : lowered(cluster, CollectiveKind::all_to_all, n).usage) {
    EXPECT_NEAR(use.share, even[use.link], 1e-9);
    all += use.share;
  }
  for (const auto& [link, share] : even) all_even += share;
  for (const auto& [link, share] : loaded) differs += std::abs(share - even[link]);
  EXPECT_NEAR(all, all_even, 1e-9 * all);
  EXPECT_GT(differs, 0.01 * all);
  // The same in messages.
  StepMessage message{0, 16, Bytes(1 << 20), 0, 0, 0};
  Activity spread, alike;
  cluster.nccl.lower_step(message, gpus, spread);
  message.even = true;
  cluster.nccl.lower_step(message, gpus, alike);
  EXPECT_GT(spread.usage.size(), alike.usage.size());
  const auto plan = cluster.nccl.steps(CollectiveKind::all_to_all, Bytes(1 << 20), gpus);
  for (const StepMessage& each : plan.messages) EXPECT_TRUE(each.even);
}
}  // namespace topsim::collective::lower_alike_test
