// What a scenario's packet section says in vain on its fabric: keys of RoCE on InfiniBand, parameters of
// congestion control that does not run, packets that no such network has.
#pragma once

#include <vector>

#include "sim/report/result.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/topology.hpp"

namespace topsim::scenario {

[[nodiscard]] std::vector<report::Finding> packet_findings(const Scenario& scenario,
                                                           const topology::Topology& topology);
}  // namespace topsim::scenario
