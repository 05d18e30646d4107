#include "topology/host_memory.hpp"

#include <algorithm>
#include <vector>

namespace topsim::topology {

std::optional<DeviceId> nearest_host_memory(const Topology& topology, DeviceId accelerator) {
  const std::uint32_t node = topology.device(accelerator).node;
  std::vector<DeviceId> reached{accelerator};
  for (std::size_t begin = 0, end = 1; begin < end; begin = end, end = reached.size()) {
    std::optional<DeviceId> nearest;
    for (std::size_t i = begin; i < end; ++i) {
      for (const LinkId link : topology.links_from(reached[i])) {
        const DeviceId to = topology.link(link).to;
        const Device& device = topology.device(to);
        if (device.node != node) continue;
        if (device.kind == DeviceKind::host_memory && (!nearest || to < *nearest)) nearest = to;
        const bool passes = device.kind == DeviceKind::pcie_switch || device.kind == DeviceKind::cpu;
        if (passes && std::find(reached.begin(), reached.end(), to) == reached.end()) reached.push_back(to);
      }
    }
    if (nearest) return nearest;
  }
  return {};
}
}  // namespace topsim::topology
