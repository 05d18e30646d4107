// What a run would refuse of a scenario's topology, for who looks at it before.
#pragma once

#include <vector>

#include "sim/base/error.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/catalogue.hpp"

namespace topsim::scenario {

// By the checks of a run itself, up to the first message: parts that nobody can compute on, more accelerators
// than there are, groups of the plan that no path joins. With places. None for a scenario without a workload,
// and nothing of what is wrong elsewhere in it: memory, plan, faults.
[[nodiscard]] std::vector<Problem> topology_refusals(const Scenario& scenario,
                                                     const topology::Catalogue& catalogue);
}  // namespace topsim::scenario
