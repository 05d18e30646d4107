// The devices on which the connectivity of a topology depends.
#pragma once

#include <vector>

#include "topology/topology.hpp"

namespace topsim::topology {
// Fabric switches whose loss leaves some node without a path to another. A node with several NICs survives
// the loss of one leaf, so nodes count as one vertex. A device that stands for several switches is none.
[[nodiscard]] std::vector<DeviceId> single_points_of_failure(const Topology& topology);
}  // namespace topsim::topology
