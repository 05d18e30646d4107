// Findings about the scenario's faults.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/executor/outcome.hpp"
#include "sim/report/result.hpp"
#include "sim/scenario/scenario.hpp"

namespace topsim::scenario {

// A warning for each that affects no measured step, which is more likely a mistake than intended; none for an
// interrupted run, which may not have reached them. `notes`: those of apply_faults.
[[nodiscard]] std::vector<report::Finding> fault_findings(const Scenario& scenario,
                                                          const executor::Outcome& outcome,
                                                          std::span<const std::string> notes);
}  // namespace topsim::scenario
