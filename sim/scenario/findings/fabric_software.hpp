// What a fabric's software costs in measurements and no source explains, so that predictions are too fast.
#pragma once

#include <vector>

#include "sim/report/result.hpp"
#include "topology/topology.hpp"

namespace topsim::scenario {

// For collectives between nodes; the figures are those of configs/validation/collectives.md.
[[nodiscard]] std::vector<report::Finding> fabric_software_findings(const topology::Topology& topology);
}  // namespace topsim::scenario
