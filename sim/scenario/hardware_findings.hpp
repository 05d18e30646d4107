// What a run says of hardware that cannot do what the scenario asks of it. It runs all the same.
#pragma once

#include <optional>
#include <vector>

#include "sim/report/result.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/catalogue.hpp"
#include "topology/topology.hpp"

namespace topsim::scenario {

// Formats that the accelerator has no units for; NICs and switches at the end of a link they do not speak.
// Of a hand-written topology what described_parts.hpp finds.
[[nodiscard]] std::vector<report::Finding> hardware_findings(const Scenario& scenario,
                                                             const topology::Topology& topology,
                                                             const topology::Catalogue& catalogue);
// Ranks fill node after node: a job of fewer accelerators than there are may leave nodes, or nodes that its
// placement lists, without any. Of nodes of a recipe.
[[nodiscard]] std::optional<report::Finding> empty_nodes(const topology::TopologySpec& spec,
                                                         const topology::Catalogue& catalogue);
}  // namespace topsim::scenario
