// The native topology file (topsim topo export, import): devices and links one by one, or a recipe.
#pragma once

#include "sim/config/document.hpp"
#include "topology/spec.hpp"

namespace topsim::topology {
// All mistakes at once, with their places.
[[nodiscard]] TopologySpec read_topology(const config::Document& document);
}  // namespace topsim::topology
