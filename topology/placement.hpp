// Which accelerator each rank of the job runs on.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/spec.hpp"
#include "topology/topology.hpp"

namespace topsim::topology {
// Rank r runs on element r. Nodes are filled one after another in the order of the placement, with
// `spec.accelerators` in all; unset: all there are. `seed` draws the order of placement "random". ConfigError
// (topology.accelerators, topology.placement) when there are fewer than asked for.
[[nodiscard]] std::vector<DeviceId> place_ranks(const TopologySpec& spec, const Topology& topology,
                                                std::uint64_t seed);
}  // namespace topsim::topology
