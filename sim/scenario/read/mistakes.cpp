#include "sim/scenario/read/mistakes.hpp"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "sim/report/bill_of_materials.hpp"
#include "topology/build.hpp"
#include "topology/catalogue/node_recipe.hpp"
#include "workloads/model.hpp"
#include "workloads/training_step.hpp"

namespace topsim::scenario {
namespace {

bool begins_with_one_of(const std::string& path, std::span<const std::string_view> sections) {
  return std::any_of(sections.begin(), sections.end(), [&](std::string_view section) {
    return path.starts_with(section) &&
           (path.size() == section.size() || path[section.size()] == '.' || path[section.size()] == '[');
  });
}
}  // namespace

bool has_workload(const config::Document& document) {
  const config::Node node = document.root().find("workload");
  return node && !node.is(config::Kind::null);
}

std::optional<Job> job_of(const topology::TopologySpec& spec, const topology::Catalogue& catalogue) {
  if (!spec.file.empty() || !spec.devices.empty()) return {};
  Job job;
  try {
    const topology::NodeRecipe& recipe = catalogue.node(spec.node.use);
    job.host =
        workloads::host_facts(catalogue.accelerator(spec.node.accelerator.value_or(recipe.accelerator)));
    job.host.accelerators =
        std::min(recipe.accelerators, spec.node.accelerators.value_or(recipe.accelerators));
  } catch (const ConfigError&) {
    return {};
  }
  const bool listed = spec.placement.kind == topology::PlacementKind::list;
  const std::size_t nodes = listed ? spec.placement.nodes.size() : static_cast<std::size_t>(spec.nodes);
  const std::size_t there = nodes * static_cast<std::size_t>(job.host.accelerators);
  const std::size_t wanted = spec.accelerators ? static_cast<std::size_t>(*spec.accelerators) : there;
  if (wanted > there) return {};
  job.ranks = static_cast<std::uint32_t>(wanted);
  return job;
}

std::optional<workloads::Plan> checked_plan(const workloads::WorkloadSpec& asked, const Job& job) {
  if (asked.trace) return std::nullopt;
  workloads::WorkloadSpec workload = asked;
  workload.model = workloads::complete_model(workload);
  workload.host = job.host;
  return workloads::resolve(workload, job.ranks);
}

std::vector<Problem> mistakes_beside(const std::vector<Problem>& of_reading, const Scenario& partial,
                                     const topology::Catalogue& catalogue) {
  Mistakes mistakes;
  mistakes.add(topology::unknown_names(partial.topology, catalogue));
  mistakes.from([&] { report::check_quotes(partial.cost, catalogue); });
  // Mistakes in these sections do not affect the plan or the number of accelerators; an unknown key elsewhere
  // may be a misspelt key of theirs.
  constexpr std::string_view kElsewhere[] = {"topology.fabric", "network",    "run", "faults", "cost",
                                             "reliability",     "description"};
  const bool elsewhere = std::all_of(of_reading.begin(), of_reading.end(), [&](const Problem& problem) {
    return begins_with_one_of(problem.path, kElsewhere);
  });
  const bool planned = partial.document != nullptr && has_workload(*partial.document);
  const std::optional<Job> job = elsewhere && planned ? job_of(partial.topology, catalogue) : std::nullopt;
  if (job) mistakes.from([&] { (void)checked_plan(partial.workload, *job); });
  return std::move(mistakes.problems);
}
}  // namespace topsim::scenario
