// Devices and links given one by one, checked.
#pragma once

#include "topology/build/hardware.hpp"

namespace topsim::topology {
[[nodiscard]] Topology build_explicit(const TopologySpec& spec, const Hardware& hardware);
}  // namespace topsim::topology
