// Where an accelerator's host keeps offloaded data.
#pragma once

#include <optional>

#include "topology/topology.hpp"

namespace topsim::topology {

// The memory fewest links away through PCIe switches and processors: that of the accelerator's own socket, as
// launchers bind ranks; the first of several alike. None where the node describes no host memory.
[[nodiscard]] std::optional<DeviceId> nearest_host_memory(const Topology& topology, DeviceId accelerator);
}  // namespace topsim::topology
