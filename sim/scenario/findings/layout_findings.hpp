// Findings on a plan and the places of its ranks. The scenario runs nevertheless.
#pragma once

#include <vector>

#include "sim/report/result.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/catalogue.hpp"
#include "topology/topology.hpp"
#include "workloads/plan.hpp"

namespace topsim::scenario {
// Whether Transformer Engine's user buffers (tp_overlap) run here: on these accelerators, with every tensor
// group in one scale-up domain. REQUIRES: at least one accelerator.
[[nodiscard]] bool could_use_user_buffers(const topology::Topology& topology,
                                          const topology::Catalogue& catalogue, const workloads::Plan& plan);
// User buffers where no links for them join a tensor group; axes of the plan on parts of axes of a torus.
[[nodiscard]] std::vector<report::Finding> layout_findings(const Scenario& scenario,
                                                           const topology::Topology& topology,
                                                           const topology::Catalogue& catalogue);
}  // namespace topsim::scenario
