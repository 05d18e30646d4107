// What faults that come and go cost: the same steps without each of them.
#pragma once

#include <vector>

#include "sim/executor/outcome.hpp"
#include "sim/executor/progress.hpp"
#include "sim/report/result.hpp"
#include "sim/scenario/run/simulate.hpp"

namespace topsim::scenario {

// One finding for each fault that holds during a part of the measured steps: how long, and with `measured`
// what a step takes without it, which is simulated. `prepared` and `options` are those of the run with
// `outcome`. None for an interrupted run.
[[nodiscard]] std::vector<report::Finding> fault_costs(const Scenario& scenario,
                                                       const topology::Catalogue& catalogue,
                                                       const Prepared& prepared,
                                                       const SimulateOptions& options,
                                                       const executor::Outcome& outcome, Duration step,
                                                       bool measured, executor::Progress* progress);
}  // namespace topsim::scenario
