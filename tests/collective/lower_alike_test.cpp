#include <gtest/gtest.h>

#include <map>

#include "tests/collective/lowering_fixtures.hpp"

namespace topsim::collective::lower_alike_test {

using namespace fixtures;

// Routes counted by standing are those that the router gives pair by pair, each with 1/n of the bytes. Two
// nodes a leaf and two leaves a pod: partners of one leaf, of one pod and beyond; the last leaf has one node.
TEST(Lowering, AnAllToAllTakesTheRouteOfEveryPair) {
  for (const char* kind : {"rail", "fat-tree"})
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
        ASSERT_EQ(all.usage.size(), expected.size()) << kind << tiers;
        for (const topology::LinkShare& use : all.usage)
          EXPECT_NEAR(use.share, expected[use.link], 1e-9 * expected[use.link]) << kind << tiers;
      }
}
}  // namespace topsim::collective::lower_alike_test
