// Nodes and switches that look the same, so that a drawing shows one of them.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/topology.hpp"

namespace topsim::topology {
struct NodeGroup {
  std::vector<std::uint32_t> nodes;  // ascending; the first stands for all
  // Of the first node, by DeviceKind, in order of their index.
  std::vector<std::vector<DeviceId>> device_kinds;
};
// Same devices, and the same links inside and (by kind and speed) outwards. Ordered by first node.
[[nodiscard]] std::vector<NodeGroup> alike_nodes(const Topology& topology);

struct SwitchGroup {
  int tier = 0;
  std::vector<DeviceId> switches;
  std::uint32_t model = 0;
  std::uint64_t physical = 0;  // a merged device counts as many
  // Of one physical switch: cables and their summed line rate.
  double down_cables = 0, up_cables = 0, down = 0, up = 0;
};
// Same tier, model and cables.
[[nodiscard]] std::vector<SwitchGroup> alike_switches(const Topology& topology);
}  // namespace topsim::topology
