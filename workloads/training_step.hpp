// From a workload and a cluster to what every rank does in one training step.
#pragma once

#include "sim/program/program.hpp"
#include "topology/catalogue.hpp"
#include "topology/topology.hpp"
#include "workloads/plan.hpp"
#include "workloads/spec.hpp"

namespace topsim::workloads {

// Throws ConfigError if the topology has none: a fabric alone can be drawn and checked, and runs nothing.
void require_accelerators(const topology::Topology& topology);

// All accelerators of the topology take part. Throws ConfigError for what does not fit together or is not
// supported.
[[nodiscard]] program::Program training_step(const WorkloadSpec& workload, const topology::Topology& topology,
                                             const topology::Catalogue& catalogue);

// resolve() on accelerators of one kind, with the orders that are built for the plan's times on them (zb-1p,
// zb-2p).
[[nodiscard]] Plan resolve_on(const topology::Accelerator& accelerator, const WorkloadSpec& workload,
                              std::uint32_t accelerators);

// The facts of this topology's nodes that a plan depends on. For code that computes the memory of a scenario;
// training_step() above does this itself.
[[nodiscard]] MachineFacts host_facts(const topology::Topology& topology,
                                      const topology::Catalogue& catalogue);
// ... as far as the accelerator alone tells them.
[[nodiscard]] MachineFacts host_facts(const topology::Accelerator& accelerator);

// The same on `accelerators` of one kind, whatever connects them; `domain_ranks` neighbours share NVLink (0:
// all).
[[nodiscard]] program::Program training_step(const WorkloadSpec& workload,
                                             const topology::Accelerator& accelerator,
                                             std::uint32_t accelerators, int domain_ranks = 0);

// Two micro-batches of `plan`, which is resolve()d, through every chunk of the model: one chunk a stage, in
// the order of `schedule`, on the fewest replicas that hold experts and shards as the plan's do. Kernels,
// casts and copies are those of the plan, because they depend on its batches, replicas and chips. REQUIRES:
// no schedule with two directions.
[[nodiscard]] program::Program passes_of(const WorkloadSpec& workload, Plan plan,
                                         const topology::Accelerator& accelerator, Schedule schedule);
}  // namespace topsim::workloads
