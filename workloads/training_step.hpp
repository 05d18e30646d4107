// From a workload and a cluster to what every rank does in one training step.
#pragma once

#include "sim/program/program.hpp"
#include "topology/catalogue.hpp"
#include "topology/topology.hpp"
#include "workloads/plan.hpp"
#include "workloads/spec.hpp"

namespace topsim::workloads {

// All accelerators of the topology take part. Throws ConfigError for what does not fit together or is not
// supported.
[[nodiscard]] program::Program training_step(const WorkloadSpec& workload, const topology::Topology& topology,
                                             const topology::Catalogue& catalogue);

// resolve() on accelerators of one kind, with the orders that are made for the plan's times on them (zb-2p).
[[nodiscard]] Plan resolve_on(const topology::Accelerator& accelerator, const WorkloadSpec& workload,
                              std::uint32_t accelerators);

// What a plan depends on of the nodes of this topology. Called by who reads the memory of a scenario;
// training_step() above does by itself.
[[nodiscard]] HostFacts host_facts(const topology::Topology& topology);

// The same on `accelerators` of one kind, whatever connects them; `domain_ranks` neighbours share NVLink (0:
// all).
[[nodiscard]] program::Program training_step(const WorkloadSpec& workload,
                                             const topology::Accelerator& accelerator,
                                             std::uint32_t accelerators, int domain_ranks = 0);
}  // namespace topsim::workloads
