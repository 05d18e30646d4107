// The settings that a scenario leaves to its framework's release, with the values used by the run.
#pragma once

#include <string>

#include "workloads/plan.hpp"
#include "workloads/spec.hpp"

namespace topsim::scenario {
// JSON text of an object with the keys that the workload does not give, and their values, as a scenario would
// write them: with these in its workload the scenario runs the same under any other default set. Keys without
// a meaning for the plan (a schedule without a pipeline) are left out. REQUIRES: the model is complete(),
// plan resolved for it.
[[nodiscard]] std::string left_open_json(const workloads::WorkloadSpec& workload,
                                         const workloads::Plan& plan);
}  // namespace topsim::scenario
