// What can be said against a scenario before anything is simulated: everything at once, and nothing that
// only follows from another mistake.
#pragma once

#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/build.hpp"

namespace topsim::scenario {

// The topology with the job's ranks on it. Throws ConfigError with what is wrong with it, with the quotes and
// with the plan.
[[nodiscard]] topology::Topology checked_topology(const Scenario& scenario,
                                                  const topology::Catalogue& catalogue,
                                                  const topology::BuildOptions& options);

// Beside the mistakes of reading, of which `partial` is what was left: unknown names of hardware, and a plan
// that does not match the accelerators, where all that says how many there are was read.
[[nodiscard]] std::vector<Problem> mistakes_beside(const std::vector<Problem>& of_reading,
                                                   const Scenario& partial,
                                                   const topology::Catalogue& catalogue);

// " at 14:9", where the scenario's own file says what stands there; else empty.
[[nodiscard]] std::string place_text(const Scenario& scenario, const std::string& path);
}  // namespace topsim::scenario
