// Scenarios without a workload: showing a cluster, or sending messages over it, needs only the
// topology.
#pragma once

#include "sim/scenario/scenario.hpp"

namespace topsim::scenario {

// read_scenario() and parse_scenario() of files that may lack a workload.
[[nodiscard]] Scenario read_cluster(const std::string& path, std::span<const std::string> assignments,
                                    const config::Library& library);
[[nodiscard]] Scenario parse_cluster(std::string text, const std::string& name,
                                     std::span<const std::string> assignments,
                                     const config::Library& library);

// Throws ConfigError where such a scenario lacks a workload that is needed.
void require_workload(const Scenario& scenario);
}  // namespace topsim::scenario
