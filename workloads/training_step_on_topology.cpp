#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "topology/routes.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads {

namespace {

// The number of ranks in the NVLink domain of the first one.
int domain_ranks(const topology::Topology& topology) {
  const topology::Router router(topology, 0);
  const auto accelerators = topology.accelerators();
  const std::uint32_t first = router.scale_up_domain(accelerators.front());
  return static_cast<int>(std::count_if(accelerators.begin(), accelerators.end(),
                                        [&](DeviceId id) { return router.scale_up_domain(id) == first; }));
}
}  // namespace

HostFacts host_facts(const topology::Topology& topology) {
  HostFacts facts;
  if (topology.accelerators().empty()) return facts;
  const std::uint32_t node = topology.device(topology.accelerators().front()).node;
  facts.accelerators = 0;
  for (const DeviceId id : topology.accelerators())
    facts.accelerators += topology.device(id).node == node ? 1 : 0;
  double bandwidth = 0;
  for (const DeviceId device : topology.devices_of_node(node)) {
    for (const LinkId id : topology.links_from(device)) {
      const topology::Link& link = topology.link(id);
      const topology::Device& to = topology.device(link.to);
      if (to.kind == topology::DeviceKind::host_memory && to.node == node) bandwidth += link.capacity.value();
    }
  }
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
    if (topology.device(id).model != topology.device(accelerators.front()).model)
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
  return training_step(placed, catalogue.accelerator(first), static_cast<std::uint32_t>(accelerators.size()),
                       // Only dispatchers that know nodes ask.
                       sends_one_copy(workload.plan.token_dispatcher) ? domain_ranks(topology) : 0);
}
}  // namespace topsim::workloads
