#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads {

HostFacts host_facts(const topology::Topology& topology) {
  HostFacts facts;
  if (topology.accelerators().empty()) return facts;
  const std::uint32_t node = topology.device(topology.accelerators().front()).node;
  facts.accelerators = 0;
  for (const DeviceId id : topology.accelerators())
    facts.accelerators += topology.device(id).node == node ? 1 : 0;
  double bandwidth = 0;
  for (const topology::Link& link : topology.links())
    if (topology.device(link.to).kind == topology::DeviceKind::host_memory &&
        topology.device(link.to).node == node)
      bandwidth += link.capacity.value();
  if (bandwidth > 0) facts.memory_bandwidth = BytesPerSecond(bandwidth);
  return facts;
}

program::Program training_step(const WorkloadSpec& workload, const topology::Topology& topology,
                               const topology::Catalogue& catalogue) {
  const auto accelerators = topology.accelerators();
  if (accelerators.empty())
    throw ConfigError("the topology has no accelerators",
                      "add devices of kind accelerator, or choose a node recipe");
  const std::string& first = topology.model_of(accelerators.front());
  for (const DeviceId id : accelerators)
    if (topology.model_of(id) != first)
      throw ConfigError(fmt::format("the job mixes {} and {}", first, topology.model_of(id)),
                        "a plan runs on accelerators of one kind; choose them with topology.accelerators");
  if (framework(workload.framework).family == FrameworkFamily::dataparallel && topology.nodes() > 1) {
    Problem problem;
    problem.path = "workload.framework";
    problem.message =
        fmt::format("framework dataparallel is one process, the job has {} nodes", topology.nodes());
    problem.help = "use framework ddp, or one node";
    throw ConfigError({problem});
  }
  WorkloadSpec placed = workload;
  placed.host = host_facts(topology);
  return training_step(placed, catalogue.accelerator(first), static_cast<std::uint32_t>(accelerators.size()));
}
}  // namespace topsim::workloads
