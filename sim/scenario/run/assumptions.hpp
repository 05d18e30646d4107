// What a scenario leaves open that changes its step by much: said to the reader in one finding.
#pragma once

#include "sim/report/make_result.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/catalogue.hpp"
#include "topology/topology.hpp"
#include "workloads/plan.hpp"

namespace topsim::scenario {

// Defaults that affect the step time, and that other programs or releases set differently. REQUIRES:
// facts.library is known; the workload has its whole model and its MachineFacts.
void say_assumptions(const workloads::WorkloadSpec& workload, const topology::Topology& topology,
                     const topology::Catalogue& catalogue, const workloads::Plan& plan,
                     report::ScenarioFacts& facts);

// A shape with SiLU that says nothing of gates: models with it mostly have SwiGLU's.
void say_gates(const Scenario& scenario, report::ScenarioFacts& facts);

// The assumed size of scale-up domains, if the nodes do not fill whole ones.
void say_domains(const Scenario& scenario, const topology::Catalogue& catalogue,
                 report::ScenarioFacts& facts);

}  // namespace topsim::scenario
