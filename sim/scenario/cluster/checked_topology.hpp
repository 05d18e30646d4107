// The topology of a run, with what is wrong with it and with the plan on it.
#pragma once

#include "sim/scenario/scenario.hpp"
#include "topology/build.hpp"
#include "topology/catalogue.hpp"

namespace topsim::scenario {

// The topology with the job's ranks on it. Throws ConfigError with the mistakes of topology, quotes and
// plan.
[[nodiscard]] topology::Topology checked_topology(const Scenario& scenario,
                                                  const topology::Catalogue& catalogue,
                                                  const topology::BuildOptions& options);
}  // namespace topsim::scenario
