// Adaptive routing where parallel links differ in capacity.
#include "topology/routing/path_capacities.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "tests/topology/fixtures.hpp"

namespace topsim::topology::test::path_capacities_test {
// Leaves, spines and cores where every spine of a pod is joined to cores of its own plane. A cable down from
// a spine at a quarter of its rate: nothing upstream is slow, but all paths of the plane end in it, so the
// plane gets 0.25 of what each of the others gets. Spray does not ask.
TEST(PathCapacities, AdaptiveSharesFollowWhatWholePathsCarry) {
  TopologySpec spec = cluster("hgx-h100", 16, FabricKind::fat_tree);
  spec.fabric.link.use = "ib-ndr";
  spec.fabric.switch_model = {"qm9700", 16, {}};
  spec.fabric.tiers = 3;
  spec.fabric.nodes_per_leaf = 1;
  spec.fabric.leaves_per_pod = 8;
  for (const Routing routing : {Routing::adaptive, Routing::spray}) {
    spec.fabric.routing = routing;
    const Topology t = build(spec, catalogue());
    const DeviceId leaf = device(t, "leaf0"), other = device(t, "leaf8");
    std::optional<LinkId> slow;
    for (const LinkId up : t.links_from(other))
      if (!slow && t.device(t.link(up).to).tier == 2) slow = t.find_link(t.link(up).to, other);
    ASSERT_TRUE(slow);
    const Router whole(t, 1), router(t, 1, {}, 1, std::vector<SlowLink>{{*slow, 0.25}});
    const auto up_and_down = [&](const Router& by) {
      std::vector<double> shares;
      double last = 0;
      for (const LinkShare& use : route(by, "node0/nic0", "node8/nic0").links) {
        if (t.link(use.link).from == leaf && t.device(t.link(use.link).to).tier == 2)
          shares.push_back(use.share);
        if (use.link == *slow) last = use.share;
      }
      std::sort(shares.begin(), shares.end());
      shares.push_back(last);
      return shares;
    };
    const auto before = up_and_down(whole), after = up_and_down(router);
    const double planes = static_cast<double>(before.size() - 1);
    ASSERT_GE(planes, 4);
    for (const double share : before) EXPECT_NEAR(share, 1 / planes, 1e-12);
    const bool follows = routing == Routing::adaptive;
    const double of_the_slow = follows ? 0.25 / (planes - 0.75) : 1 / planes;
    EXPECT_NEAR(after.back(), of_the_slow, 1e-12);
    EXPECT_NEAR(after.front(), of_the_slow, 1e-12);
    EXPECT_NEAR(after[1], (1 - of_the_slow) / (planes - 1), 1e-12);
  }
}
}  // namespace topsim::topology::test::path_capacities_test
