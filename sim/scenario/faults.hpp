// `faults` of a scenario as changes of capacity and speed that the executor knows.
#pragma once

#include <span>

#include "sim/executor/options.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/topology.hpp"

namespace topsim::scenario {
// Adds to options.capacity_changes and options.slow_ranks. Throws ConfigError (paths only) for targets that
// do not exist and kinds that cannot be simulated.
void apply_faults(std::span<const FaultSpec> faults, const topology::Topology& topology,
                  executor::RunOptions& options);
}  // namespace topsim::scenario
