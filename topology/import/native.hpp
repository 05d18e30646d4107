// The native topology file (topsim topo export, import): devices and links one by one.
#pragma once

#include <string>

#include "topology/spec.hpp"

namespace topsim::topology {
// All mistakes of the file at once, with their places.
[[nodiscard]] TopologySpec read_topology_file(const std::string& path);
}  // namespace topsim::topology
