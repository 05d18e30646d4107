// Where a hand-written topology exceeds what parts of the catalogue can do. It is simulated as described
// nevertheless.
#pragma once

#include <vector>

#include "sim/report/result.hpp"
#include "topology/catalogue.hpp"
#include "topology/topology.hpp"

namespace topsim::scenario {

// Cables faster than a port of their NIC or switch, switches with more cables than ports. Nothing is known of
// models with other names.
[[nodiscard]] std::vector<report::Finding> described_parts(const topology::Topology& topology,
                                                           const topology::Catalogue& catalogue);
// The first link that carries more than its line rate, which topology::check() also reports.
[[nodiscard]] std::vector<report::Finding> described_rates(const topology::Topology& topology);
}  // namespace topsim::scenario
