// Boxes and the channels that were searched for them.
#include "sim/collective/placement.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "tests/collective/lowering_fixtures.hpp"

namespace topsim::collective::placement_test {

using namespace fixtures;

// The channels of the box that holds all accelerators.
const nccl::Box* graphs(const topology::TopologySpec& spec, const std::shared_ptr<Searches>& searches) {
  const Cluster cluster(spec);
  return Placer(cluster.router, {}, searches).place(cluster.topology.accelerators()).boxes.front().graphs;
}

// Two nodes of two GPUs that are linked within each node and, along `cables`, between the nodes.
topology::TopologySpec two_nodes(const std::vector<std::pair<const char*, const char*>>& cables) {
  topology::TopologySpec spec;
  for (const char* name : {"a0", "a1", "b0", "b1"}) {
    topology::DeviceSpec gpu;
    gpu.name = name;
    gpu.kind = "accelerator";
    gpu.node = name[0] == 'a' ? 0 : 1;
    spec.devices.push_back(gpu);
  }
  const auto join = [&](const char* from, const char* to) {
    topology::LinkSpec link;
    link.from = from;
    link.to = to;
    link.link.use = "nvlink4";
    spec.links.push_back(link);
  };
  join("a0", "a1");
  join("b0", "b1");
  for (const auto& [from, to] : cables) join(from, to);
  return spec;
}

TEST(Placement, ClustersOfTheSameBoxesShareOneSearch) {
  const auto searches = no_searches_yet();
  EXPECT_EQ(graphs(boxes("dgx-h100", 2), searches), graphs(boxes("dgx-h100", 16), searches));
  EXPECT_NE(graphs(boxes("dgx-h100", 2), searches), graphs(boxes("dgx-h100", 2, "ib-hdr"), searches));
  EXPECT_NE(graphs(boxes("dgx-h100", 2), searches), graphs(boxes("dgx-h100", 2), no_searches_yet()));
}

// The nodes are alike in both: each of their GPUs has one cable to a GPU elsewhere.
TEST(Placement, BoxesThatAreCabledOtherwiseBetweenTheirNodesShareNone) {
  const auto searches = no_searches_yet();
  const auto straight = two_nodes({{"a0", "b0"}, {"a1", "b1"}});
  const auto crossed = two_nodes({{"a0", "b1"}, {"a1", "b0"}});
  EXPECT_EQ(graphs(straight, searches), graphs(straight, searches));
  EXPECT_NE(graphs(straight, searches), graphs(crossed, searches));
}

// One GPU of each box sends over the NIC below its own PCIe switch: the other seven change nothing.
TEST(Placement, NicsOfGpusThatTheJobDoesNotHaveChangeNothing) {
  const auto time = [](std::optional<int> nics) {
    scenario::Scenario scenario;
    scenario.topology = boxes("hgx-h100", 10);
    scenario.topology.node.accelerators = 1;
    scenario.topology.node.nics = nics;
    scenario.network.model = "flow";
    return scenario::bench(scenario, topology::test::catalogue(), CollectiveKind::all_to_all,
                           {Bytes(1 << 30), Bytes(1 << 30), 2})
        .rows.front()
        .time;
  };
  EXPECT_EQ(time({}), time(1));
}
}  // namespace topsim::collective::placement_test
