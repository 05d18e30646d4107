// `faults` of a scenario as changes of capacity and speed that the executor knows.
#pragma once

#include <span>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/executor/options.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/topology.hpp"

namespace topsim::scenario {
// Adds to options.capacity_changes and options.slow_ranks. Throws ConfigError (paths only) for targets that
// do not exist and kinds that cannot be simulated.
void apply_faults(std::span<const FaultSpec> faults, const topology::Topology& topology,
                  executor::RunOptions& options);

// Why a run with these faults came to a stand: the parts that stay down. Empty where none does.
[[nodiscard]] std::vector<Problem> parts_that_stay_down(std::span<const FaultSpec> faults);
}  // namespace topsim::scenario
