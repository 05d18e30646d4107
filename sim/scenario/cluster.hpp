// Scenarios of which the topology is enough: who looks at a cluster, or sends messages over it, needs no
// workload.
#pragma once

#include "sim/scenario/scenario.hpp"

namespace topsim::scenario {

// read_scenario() and parse_scenario() of files that may lack a workload.
[[nodiscard]] Scenario read_cluster(const std::string& path, std::span<const std::string> assignments,
                                    const config::Library& library);
[[nodiscard]] Scenario parse_cluster(std::string text, const std::string& name,
                                     std::span<const std::string> assignments,
                                     const config::Library& library);

// Throws ConfigError where a scenario that was read so lacks it after all.
void require_workload(const Scenario& scenario);
}  // namespace topsim::scenario
