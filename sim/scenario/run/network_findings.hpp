// Findings of the network: its remarks; where flows met, what that cost, and the interval.
#pragma once

#include <string>

#include "sim/executor/options.hpp"
#include "sim/executor/outcome.hpp"
#include "sim/report/result.hpp"
#include "sim/scenario/run/folded_scenario.hpp"

namespace topsim::scenario {

// `interval`: also the step at either end of the calibration's interval, two more runs. `progress`, which may
// be null, stops these.
void add_network_findings(const FoldedScenario& runs, const executor::RunOptions& run,
                          const executor::Outcome& outcome, bool interval, executor::Progress* progress,
                          report::Result& result);

// What a crowded port hides from the flow model; empty where it was crowded for less than a hundredth of the
// time.
[[nodiscard]] std::string crowd_text(const executor::Crowd& crowd, Duration whole,
                                     const topology::Topology& topology);
}  // namespace topsim::scenario
