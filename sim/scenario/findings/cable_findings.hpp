// Findings on links that the parts at their ends do not support. The scenario runs nevertheless.
#pragma once

#include <string_view>
#include <vector>

#include "sim/report/result.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/catalogue.hpp"
#include "topology/topology.hpp"

namespace topsim::scenario {

// In the words of the finding on parts that lack the ports for a link.
inline constexpr std::string_view kNoPorts = " has no ports for ";

// What the fabric's NICs and switches cannot do of its links; holds without a workload too.
[[nodiscard]] std::vector<report::Finding> cable_findings(const Scenario& scenario,
                                                          const topology::Topology& topology,
                                                          const topology::Catalogue& catalogue);
}  // namespace topsim::scenario
