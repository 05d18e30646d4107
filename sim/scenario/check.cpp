#include "sim/scenario/check.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "sim/report/bill_of_materials.hpp"
#include "sim/scenario/load_topology.hpp"
#include "sim/scenario/torus_ranks.hpp"
#include "topology/catalogue/node_recipe.hpp"
#include "topology/placement.hpp"
#include "workloads/model.hpp"
#include "workloads/plan.hpp"
#include "workloads/training_step.hpp"

namespace topsim::scenario {
namespace {

class Collected {
 public:
  template <class Check>
  void from(const Check& check) {
    try {
      check();
    } catch (const ConfigError& error) {
      add(error.problems());
    }
  }
  void add(const std::vector<Problem>& more) { problems.insert(problems.end(), more.begin(), more.end()); }
  std::vector<Problem> problems;
};

struct Job {
  std::uint32_t ranks = 0;
  int per_node = 0;
};

// The job that the keys alone describe; none if they do not, or if they name something unknown to the
// catalogue.
std::optional<Job> job_of(const topology::TopologySpec& spec, const topology::Catalogue& catalogue) {
  if (!spec.file.empty() || !spec.devices.empty()) return {};
  Job job;
  try {
    job.per_node = catalogue.node(spec.node.use).accelerators;
    job.per_node = std::min(job.per_node, spec.node.accelerators.value_or(job.per_node));
  } catch (const ConfigError&) {
    return {};
  }
  const bool listed = spec.placement.kind == topology::PlacementKind::list;
  const std::size_t nodes = listed ? spec.placement.nodes.size() : static_cast<std::size_t>(spec.nodes);
  const std::size_t there = nodes * static_cast<std::size_t>(job.per_node);
  const std::size_t wanted = spec.accelerators ? static_cast<std::size_t>(*spec.accelerators) : there;
  if (wanted > there) return {};
  job.ranks = static_cast<std::uint32_t>(wanted);
  return job;
}

std::optional<workloads::Plan> checked_plan(const workloads::WorkloadSpec& asked, const Job& job) {
  if (asked.trace) return std::nullopt;
  workloads::WorkloadSpec workload = asked;
  workload.model = workloads::complete_model(workload);
  workload.host.accelerators = job.per_node;
  return workloads::resolve(workload, job.ranks);
}

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

bool begins_with_one_of(const std::string& path, std::span<const std::string_view> sections) {
  return std::any_of(sections.begin(), sections.end(), [&](std::string_view section) {
    return path.starts_with(section) &&
           (path.size() == section.size() || path[section.size()] == '.' || path[section.size()] == '[');
  });
}
}  // namespace

std::string place_text(const Scenario& scenario, const std::string& path) {
  if (!scenario.document) return {};
  const config::Node node = scenario.document->root().at_path(path);
  if (!node || node.key_place().file != scenario.document->name()) return {};
  return fmt::format(" at {}:{}", node.key_place().line, node.key_place().column);
}

topology::Topology checked_topology(const Scenario& scenario, const topology::Catalogue& catalogue,
                                    const topology::BuildOptions& options) {
  Collected collected;
  std::optional<topology::Topology> built;
  collected.from([&] {
    topology::Topology topology = topology::build(scenario.topology, catalogue, options);
    open_to_flowlets(scenario, topology);
    std::vector<DeviceId> devices = topology::place_ranks(scenario.topology, topology, scenario.run.seed);
    const auto packed = topology.accelerators();
    if (!std::equal(devices.begin(), devices.end(), packed.begin(), packed.end()))
      topology = topology.with_ranks_on(std::move(devices));
    check_accelerators(scenario, topology, catalogue);
    built = std::move(topology);
  });
  collected.from([&] { report::check_quotes(scenario.cost, catalogue); });
  const std::optional<Job> job = built ? Job{static_cast<std::uint32_t>(built->accelerators().size()),
                                             workloads::host_facts(*built).accelerators}
                                       : job_of(scenario.topology, catalogue);
  std::optional<workloads::Plan> plan;
  if (job && job->ranks > 0) collected.from([&] { plan = checked_plan(scenario.workload, *job); });
  if (!collected.problems.empty()) throw ConfigError(std::move(collected.problems));
  if (plan && leaves_ranks_open(scenario))
    if (auto devices = torus_order(*built, *plan)) return built->with_ranks_on(std::move(*devices));
  return std::move(*built);
}

std::vector<Problem> mistakes_beside(const std::vector<Problem>& of_reading, const Scenario& partial,
                                     const topology::Catalogue& catalogue) {
  Collected collected;
  collected.add(topology::unknown_names(partial.topology, catalogue));
  collected.from([&] { report::check_quotes(partial.cost, catalogue); });
  // Mistakes in these sections do not affect the plan or the number of accelerators; an unknown key elsewhere
  // may be a misspelt key of theirs.
  constexpr std::string_view kElsewhere[] = {"topology.fabric", "network",    "run", "faults", "cost",
                                             "reliability",     "description"};
  const bool elsewhere = std::all_of(of_reading.begin(), of_reading.end(), [&](const Problem& problem) {
    return begins_with_one_of(problem.path, kElsewhere);
  });
  const std::optional<Job> job = elsewhere ? job_of(partial.topology, catalogue) : std::nullopt;
  if (job) collected.from([&] { (void)checked_plan(partial.workload, *job); });
  return std::move(collected.problems);
}
}  // namespace topsim::scenario
