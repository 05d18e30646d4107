// Settings of network.nccl, or abilities of the fabric, that do nothing.
#pragma once

#include <vector>

#include "sim/report/result.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/topology.hpp"

namespace topsim::scenario {

// Those for which the topology has no part, whatever runs.
[[nodiscard]] std::vector<report::Finding> unmet_settings(const collective::Overrides& asked,
                                                          const topology::Topology& topology);
// These, and those that no collective of the run used.
[[nodiscard]] std::vector<report::Finding> forced_findings(const Scenario& scenario,
                                                           const topology::Topology& topology,
                                                           const report::Result& result);
}  // namespace topsim::scenario
