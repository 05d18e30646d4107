// What a run says of the scenario's faults.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/executor/outcome.hpp"
#include "sim/report/result.hpp"
#include "sim/scenario/scenario.hpp"

namespace topsim::scenario {

// A warning for each that no measured step sees, which is more likely a slip than a wish; of a run that was
// interrupted none, since they may have been on their way there. `notes`: what apply_faults has to say.
[[nodiscard]] std::vector<report::Finding> fault_findings(const Scenario& scenario,
                                                          const executor::Outcome& outcome,
                                                          std::span<const std::string> notes);
}  // namespace topsim::scenario
