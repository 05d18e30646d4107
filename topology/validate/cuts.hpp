// Connectivity of a topology, and what it hangs on.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/topology.hpp"

namespace topsim::topology {
struct Cuts {
  std::vector<std::uint32_t> part;  // connected part of each device
  std::uint32_t parts = 0;          // that hold accelerators
  // Fabric switches whose loss leaves some node without a path to another. A node with several NICs survives
  // the loss of one leaf, so nodes count as one vertex. A device that stands for several switches is none.
  std::vector<DeviceId> switches;
};
[[nodiscard]] Cuts find_cuts(const Topology& topology);
}  // namespace topsim::topology
