// How a run understands a plan where its settings are incomplete or mean something else.
#pragma once

#include <vector>

#include "sim/report/result.hpp"
#include "workloads/spec.hpp"

namespace topsim::scenario {

// Years of a framework that stand for an older set, vocabularies that do not divide over tensor ranks,
// key-value heads that ranks of Ulysses repeat, experts out of balance, 1F1B with virtual stages.
[[nodiscard]] std::vector<report::Finding> plan_findings(const workloads::WorkloadSpec& workload);
}  // namespace topsim::scenario
