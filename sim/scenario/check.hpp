// The mistakes of a scenario that can be found before anything is simulated: all at once, without those that
// only follow from another.
#pragma once

#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/build.hpp"

namespace topsim::scenario {

// The topology with the job's ranks on it. Throws ConfigError with the mistakes of topology, quotes and
// plan.
[[nodiscard]] topology::Topology checked_topology(const Scenario& scenario,
                                                  const topology::Catalogue& catalogue,
                                                  const topology::BuildOptions& options);

// Mistakes in addition to those of reading, which left `partial`: unknown names of hardware, and a plan that
// does not match the accelerators, where everything that determines their number was read.
[[nodiscard]] std::vector<Problem> mistakes_beside(const std::vector<Problem>& of_reading,
                                                   const Scenario& partial,
                                                   const topology::Catalogue& catalogue);

// " at 14:9" where the scenario's own file has this path; else empty.
[[nodiscard]] std::string place_text(const Scenario& scenario, const std::string& path);
}  // namespace topsim::scenario
