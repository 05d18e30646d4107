// Findings on hardware that cannot do what the scenario asks of it. The scenario runs nevertheless.
#pragma once

#include <optional>
#include <vector>

#include "sim/report/result.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/catalogue.hpp"
#include "topology/topology.hpp"

namespace topsim::scenario {

// Formats that the accelerator has no units for; NICs and switches at the end of a link type they do not
// support. For a hand-written topology see described_parts.hpp.
[[nodiscard]] std::vector<report::Finding> hardware_findings(const Scenario& scenario,
                                                             const topology::Topology& topology,
                                                             const topology::Catalogue& catalogue);
// Ranks fill node after node: a job with fewer accelerators than there are may leave nodes, or nodes that its
// placement lists, without any. For recipes only.
[[nodiscard]] std::optional<report::Finding> empty_nodes(const topology::TopologySpec& spec,
                                                         const topology::Catalogue& catalogue);
}  // namespace topsim::scenario
