// Settings of network.nccl, or abilities of the fabric, that no collective of the run used.
#pragma once

#include <vector>

#include "sim/report/result.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/topology.hpp"

namespace topsim::scenario {

[[nodiscard]] std::vector<report::Finding> forced_findings(const Scenario& scenario,
                                                           const topology::Topology& topology,
                                                           const report::Result& result);
}  // namespace topsim::scenario
