#include "sim/scenario/cluster/checked_topology.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/report/bill_of_materials.hpp"
#include "sim/scenario/cluster/load_topology.hpp"
#include "sim/scenario/cluster/torus_ranks.hpp"
#include "sim/scenario/read/mistakes.hpp"
#include "topology/placement.hpp"
#include "workloads/training_step.hpp"

namespace topsim::scenario {
namespace {

// Places a problem with a device at its position in the file that lists the devices.
Problem of_device(const Scenario& scenario, const topology::Topology& topology, std::size_t device,
                  Problem problem) {
  if (scenario.topology.file.empty()) {
    problem.path = "topology.devices[" + std::to_string(device) + "].model";
  } else {
    problem.path = "topology.file";
    problem.message += ", which is " + topology.name(DeviceId(device)) + " of " + scenario.topology.file;
  }
  return problem;
}

// Checks devices one by one: a topology may be inspected with unknown accelerators, but not computed on, and
// a plan needs accelerators of one kind.
void check_accelerators(const Scenario& scenario, const topology::Topology& topology,
                        const topology::Catalogue& catalogue) {
  if (!scenario.topology.node.use.empty()) return;
  std::vector<bool> seen(topology.models().size());
  std::vector<Problem> problems;
  std::optional<std::string> first;
  for (const DeviceId id : topology.accelerators()) {
    const std::uint32_t model = topology.device(id).model;
    if (seen[model]) continue;
    seen[model] = true;
    try {
      (void)catalogue.accelerator(topology.models()[model]);
      const std::string& name = topology.models()[model];
      if (first && *first != name && !scenario.workload.trace)
        problems.push_back(of_device(
            scenario, topology, id.index(),
            {{},
             {},
             fmt::format("the job mixes {} and {}", *first, name),
             {},
             "a plan runs on accelerators of one kind: topology.accelerators takes so many of the first ones",
             {}}));
      first = first.value_or(name);
    } catch (const ConfigError& error) {
      problems.push_back(of_device(scenario, topology, id.index(), error.problems().front()));
    }
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}
}  // namespace

topology::Topology checked_topology(const Scenario& scenario, const topology::Catalogue& catalogue,
                                    const topology::BuildOptions& options) {
  Mistakes mistakes;
  std::optional<topology::Topology> built;
  mistakes.from([&] {
    topology::Topology topology = topology::build(scenario.topology, catalogue, options);
    as_packets_choose(scenario, topology);
    std::vector<DeviceId> devices = topology::place_ranks(scenario.topology, topology, scenario.run.seed);
    const auto packed = topology.accelerators();
    if (!std::equal(devices.begin(), devices.end(), packed.begin(), packed.end()))
      topology = topology.with_ranks_on(std::move(devices));
    check_accelerators(scenario, topology, catalogue);
    built = std::move(topology);
  });
  mistakes.from([&] { report::check_quotes(scenario.cost, catalogue); });
  const std::optional<Job> job = built ? Job{static_cast<std::uint32_t>(built->accelerators().size()),
                                             workloads::host_facts(*built, catalogue)}
                                       : job_of(scenario.topology, catalogue);
  std::optional<workloads::Plan> plan;
  if (job && job->ranks > 0) mistakes.from([&] { plan = checked_plan(scenario.workload, *job); });
  if (!mistakes.problems.empty()) throw ConfigError(std::move(mistakes.problems));
  if (plan && leaves_ranks_open(scenario))
    if (auto devices = torus_order(*built, *plan)) return built->with_ranks_on(std::move(*devices));
  return std::move(*built);
}
}  // namespace topsim::scenario
