// Every path of a scenario that --set and --vary accept, from the schema itself: for shell completion.
#pragma once

#include <string>
#include <vector>

namespace topsim::cli {
// "topology.nodes", "workload.plan.tp", ...; sorted, elements of lists left out.
[[nodiscard]] std::vector<std::string> scenario_paths();
}  // namespace topsim::cli
