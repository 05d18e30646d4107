// Settings of a scenario's packet section without effect on its fabric: RoCE keys on InfiniBand, parameters
// of a congestion control that is off, packet sizes that such a network does not have.
#pragma once

#include <vector>

#include "sim/report/result.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/topology.hpp"

namespace topsim::scenario {

[[nodiscard]] std::vector<report::Finding> packet_findings(const Scenario& scenario,
                                                           const topology::Topology& topology);
}  // namespace topsim::scenario
