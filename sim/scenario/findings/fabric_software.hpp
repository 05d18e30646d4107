// What a fabric's software costs in measurements and no source explains, so that predictions are too fast,
// and what it is not simulated to do.
#pragma once

#include <vector>

#include "sim/report/result.hpp"
#include "topology/catalogue.hpp"
#include "topology/topology.hpp"

namespace topsim::scenario {

// For collectives between nodes; the figures are those of configs/validation/collectives.md.
[[nodiscard]] std::vector<report::Finding> fabric_software_findings(const topology::Topology& topology,
                                                                    const topology::Catalogue& catalogue);
}  // namespace topsim::scenario
