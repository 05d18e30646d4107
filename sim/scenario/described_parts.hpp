// What a hand-written topology asks of parts that the catalogue knows, beyond what they do. It is simulated
// as described all the same.
#pragma once

#include <vector>

#include "sim/report/result.hpp"
#include "topology/catalogue.hpp"
#include "topology/topology.hpp"

namespace topsim::scenario {

// Cables faster than a port of their NIC or switch, switches with more cables than ports. Of models with
// other names nothing is known.
[[nodiscard]] std::vector<report::Finding> described_parts(const topology::Topology& topology,
                                                           const topology::Catalogue& catalogue);
// The first link that carries more than its line rate, which topology::check() knows, too.
[[nodiscard]] std::vector<report::Finding> described_rates(const topology::Topology& topology);
}  // namespace topsim::scenario
