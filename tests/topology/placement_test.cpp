#include "topology/placement.hpp"

#include "tests/topology/fixtures.hpp"

namespace topsim::topology::test::placement_test {

std::vector<std::uint32_t> nodes_of(const Topology& topology, const std::vector<DeviceId>& ranks) {
  std::vector<std::uint32_t> nodes;
  for (const DeviceId rank : ranks)
    if (nodes.empty() || nodes.back() != topology.device(rank).node)
      nodes.push_back(topology.device(rank).node);
  return nodes;
}

// 24 of 64 GPUs fill three nodes: numbers 0 x 8/3, 1 x 8/3 and 2 x 8/3, rounded down.
TEST(Placement, SpreadsNodesEvenly) {
  TopologySpec spec = cluster("hgx-h100", 8, FabricKind::rail);
  spec.accelerators = 24;
  spec.placement.kind = PlacementKind::spread;
  const Topology topology = build(spec, catalogue());
  const std::vector<DeviceId> ranks = place_ranks(spec, topology, 0);
  EXPECT_EQ(ranks.size(), 24U);
  EXPECT_EQ(nodes_of(topology, ranks), (std::vector<std::uint32_t>{0, 2, 5}));
  spec.accelerators = 20;  // the last is filled by half
  EXPECT_EQ(place_ranks(spec, topology, 0).size(), 20U);
  EXPECT_EQ(nodes_of(topology, place_ranks(spec, topology, 0)), (std::vector<std::uint32_t>{0, 2, 5}));
  spec.accelerators = 64;
  EXPECT_EQ(nodes_of(topology, place_ranks(spec, topology, 0)),
            (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}
}  // namespace topsim::topology::test::placement_test
