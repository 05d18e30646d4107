// Every recipe of the catalogue builds, with the numbers of switches that its source prints.
#include "topology/build.hpp"

#include <gtest/gtest.h>

#include "tests/catalogue/world.hpp"

namespace topsim::topology::build_test {

TEST(Recipes, EveryNodeBuilds) {
  for (const std::string& id : ids_of("node")) {
    TopologySpec spec;
    spec.node.use = id;
    const Topology box = build(spec, shipped());
    EXPECT_EQ(static_cast<int>(box.accelerators().size()), shipped().node(id).accelerators) << id;
  }
}

TEST(Recipes, EveryFabricBuildsWithTheNodesItWasPublishedWith) {
  constexpr int kMostNodes = 20000;  // two are larger and take seconds under the sanitizers
  for (const std::string& id : ids_of("fabric")) {
    const FabricRecipe& fabric = shipped().fabric(id);
    if (fabric.nodes > kMostNodes) continue;
    TopologySpec spec;
    spec.node.use = fabric.node;
    spec.nodes = std::max(1, fabric.nodes);
    spec.fabric.use = id;
    const Topology cluster = build(spec, shipped());
    EXPECT_EQ(cluster.nodes(), static_cast<std::uint32_t>(spec.nodes)) << id;
  }
}

// Switches of a tier; a merged device counts as all its switches.
int switches(const Topology& topology, int tier) {
  int count = 0;
  for (const Device& device : topology.devices()) {
    if (device.kind == DeviceKind::fabric_switch && device.tier == tier)
      count += static_cast<int>(device.count);
  }
  return count;
}

TEST(Recipes, AUnitHasTheLeavesThatItsSourcePrints) {
  for (const std::string& id : ids_of("fabric")) {
    const FabricRecipe& fabric = shipped().fabric(id);
    if (fabric.tiers.empty() || fabric.tiers.front().switches_per_unit == 0) continue;
    TopologySpec spec;
    spec.node.use = fabric.node;
    spec.nodes = fabric.unit_nodes > 0 ? fabric.unit_nodes : fabric.nodes;
    spec.fabric.use = id;
    // A unit by itself would be built without spines. Two tiers give it the leaves that it has within the
    // whole.
    if (fabric.tiers.size() > 1) spec.fabric.tiers = 2;
    EXPECT_EQ(switches(build(spec, shipped()), 1), fabric.tiers.front().switches_per_unit) << id;
  }
}

// Alibaba HPN, SIGCOMM 2024: a pod of 15 segments of 128 hosts, 16 ToRs a segment, 60 aggregation switches in
// each of two planes.
TEST(Recipes, APodOfHpn7HasTheSwitchesOfThePaper) {
  TopologySpec spec;
  spec.node.use = "hgx-h800";
  spec.nodes = 1920;
  spec.fabric.use = "alibaba-hpn7";
  const Topology pod = build(spec, shipped());
  EXPECT_EQ(switches(pod, 1), 15 * 16);
  EXPECT_EQ(switches(pod, 2), 2 * 60);
  EXPECT_EQ(switches(pod, 3), 0);
}

TEST(Recipes, SuperPodsHaveTheSwitchesThatTheirReferenceArchitecturePrints) {
  const FabricRecipe& fabric = shipped().fabric("dgx-superpod");
  for (const FabricRecipe::Size& size : fabric.published) {
    TopologySpec spec;
    spec.node.use = fabric.node;
    spec.nodes = size.nodes;
    spec.fabric.use = fabric.id;
    const Topology cluster = build(spec, shipped());
    EXPECT_EQ(switches(cluster, 1), size.leaf) << size.nodes;
    EXPECT_EQ(switches(cluster, 2), size.spine) << size.nodes;
    EXPECT_EQ(switches(cluster, 3), size.core) << size.nodes;
  }
}
}  // namespace topsim::topology::build_test
