// What network.nccl forces, or the fabric could do, and no collective of the run did.
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
