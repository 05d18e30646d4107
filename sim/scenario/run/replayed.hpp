// The trace of a scenario as a program.
#pragma once

#include <vector>

#include "sim/program/program.hpp"
#include "sim/report/result.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/catalogue.hpp"

namespace topsim::scenario {

// REQUIRES: scenario.workload.trace. Throws ConfigError where the trace cannot be read, or has another number
// of ranks than `ranks`; mistakes of the trace as a whole are located at workload.trace.
[[nodiscard]] program::Program replayed(const Scenario& scenario, const topology::Accelerator& accelerator,
                                        std::uint32_t ranks);

// Keys of the workload without effect beside a replayed trace, one warning each; none without a trace.
[[nodiscard]] std::vector<report::Finding> idle_beside_trace(const Scenario& scenario);
}  // namespace topsim::scenario
