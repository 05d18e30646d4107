#include "sim/study/ensemble.hpp"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <exception>

#include "sim/report/interval.hpp"
#include "sim/scenario/simulate.hpp"
#include "topology/catalogue/device_entries.hpp"
#include "topology/catalogue/link_entry.hpp"

namespace topsim::study {
namespace {
using scenario::Scenario;

// The fabric's switch, when its latency is a range of the catalogue that this scenario's hops are made of:
// neither replaced by the user nor contained in a measured figure per hop (topology/build.hpp).
const topology::SwitchEntry* uncertain_switch(const Scenario& scenario,
                                              const topology::Catalogue& catalogue) {
  const topology::FabricSpec& fabric = scenario.topology.fabric;
  if (fabric.switch_model.use.empty() || fabric.switch_model.latency || fabric.link.latency) return nullptr;
  if (fabric.link.use.empty() || catalogue.link(fabric.link.use).hop) return nullptr;
  const topology::SwitchEntry& entry = catalogue.network_switch(fabric.switch_model.use);
  return entry.port_to_port_low < entry.port_to_port_high ? &entry : nullptr;
}

// Whether a hash could have sent this run's traffic another way: it crossed more than one tier. Under one
// leaf there is one path.
bool hashes_paths(const topology::Topology& topology, const report::Result& result) {
  if (topology.routing != topology::Routing::ecmp) return false;
  const auto is_switch = [&](const std::string& name) {
    const auto device = topology.find_device(name);
    return device && topology.device(*device).kind == topology::DeviceKind::fabric_switch;
  };
  return std::any_of(result.links.begin(), result.links.end(),
                     [&](const report::LinkRow& link) { return is_switch(link.from) && is_switch(link.to); });
}

// The topology itself differs from sample to sample.
bool machine_varies(const Scenario& scenario, const topology::Catalogue& catalogue) {
  return scenario.topology.placement.kind == topology::PlacementKind::random ||
         uncertain_switch(scenario, catalogue) != nullptr;
}

struct Task {
  std::size_t candidate, sample;
};

// One simulation's slot: written by its own task only.
struct Slot {
  std::optional<report::Result> result;
  std::exception_ptr error;
};
}  // namespace

Scenario drawn(const Scenario& scenario, const topology::Catalogue& catalogue, std::size_t sample) {
  Scenario each = scenario;
  if (sample == 0) return each;
  each.run.seed = scenario.run.seed + sample;
  if (const topology::SwitchEntry* entry = uncertain_switch(scenario, catalogue)) {
    const report::Interval latency{seconds(entry->port_to_port_low), seconds(entry->port_to_port),
                                   seconds(entry->port_to_port_high)};
    each.topology.fabric.switch_model.latency = from_seconds(latency.at(report::Draws(sample)(entry->id)));
  }
  return each;
}

bool varies(const Scenario& scenario, const topology::Topology& topology, const report::Result& usual,
            const topology::Catalogue& catalogue) {
  return scenario.network.model == "packet" || machine_varies(scenario, catalogue) ||
         hashes_paths(topology, usual);
}

report::CostModel cost_model(const Scenario& scenario, const topology::Topology& topology,
                             const topology::Catalogue& catalogue) {
  return report::make_cost_model(
      report::bill_of_materials(topology, scenario.topology, catalogue, scenario.cost), catalogue,
      scenario.cost);
}

std::vector<report::Candidate> run_ensembles(std::span<const Scenario> scenarios,
                                             const topology::Catalogue& catalogue,
                                             const EnsembleOptions& options, executor::Progress* progress) {
  scenario::SimulateOptions how;
  how.fold = options.fold;
  how.allow_oom = options.allow_oom;
  std::vector<scenario::Prepared> prepared;
  for (const Scenario& each : scenarios) prepared.push_back(scenario::prepare(each, catalogue, how));
  std::vector<std::vector<Slot>> slots(scenarios.size());
  const int cores = tbb::this_task_arena::max_concurrency();
  tbb::task_arena arena(options.jobs > 0 ? std::min(options.jobs, cores) : cores);
  const auto run_all = [&](const std::vector<Task>& tasks) {
    for (const Task& task : tasks) slots[task.candidate].resize(task.sample + 1);
    arena.execute([&] {
      tbb::parallel_for(std::size_t{0}, tasks.size(), [&](std::size_t i) {
        const Task task = tasks[i];
        Slot& slot = slots[task.candidate][task.sample];
        if (task.sample > 0 && progress != nullptr && progress->stop) return;
        try {
          const Scenario& given = scenarios[task.candidate];
          const Scenario each = drawn(given, catalogue, task.sample);
          slot.result =
              task.sample > 0 && machine_varies(given, catalogue)
                  ? scenario::simulate(each, catalogue, how, progress).result
                  : scenario::simulate(each, catalogue, prepared[task.candidate], how, progress).result;
        } catch (...) {
          slot.error = std::current_exception();
        }
      });
    });
    for (const auto& of_candidate : slots) {
      for (const Slot& slot : of_candidate) {
        if (slot.error) std::rethrow_exception(slot.error);
      }
    }
  };
  // Sample 0 of everybody first: it is the result proper, and it tells who can vary at all.
  std::vector<Task> tasks;
  for (std::size_t c = 0; c < scenarios.size(); ++c) tasks.push_back({c, 0});
  run_all(tasks);
  tasks.clear();
  std::vector<std::size_t> samples(scenarios.size(), 1);
  for (std::size_t c = 0; c < scenarios.size(); ++c) {
    if (options.samples < 2 || !varies(scenarios[c], prepared[c].topology, *slots[c][0].result, catalogue))
      continue;
    samples[c] = options.samples;
    for (std::size_t s = 1; s < options.samples; ++s) tasks.push_back({c, s});
  }
  run_all(tasks);
  const std::size_t most = *std::max_element(samples.begin(), samples.end());

  std::size_t done = most;
  for (const auto& of_candidate : slots) {
    if (of_candidate.size() == 1) continue;
    const auto missing = std::find_if(of_candidate.begin(), of_candidate.end(), [](const Slot& slot) {
      return !slot.result || !slot.result->complete;
    });
    done = std::min(done, static_cast<std::size_t>(missing - of_candidate.begin()));
  }
  std::vector<report::Candidate> candidates;
  for (std::size_t c = 0; c < scenarios.size(); ++c) {
    report::Candidate candidate;
    candidate.result = std::move(*slots[c][0].result);
    candidate.steps.push_back(candidate.result.step);
    for (std::size_t s = 1; s < done; ++s) {
      candidate.steps.push_back(samples[c] > 1 ? slots[c][s].result->step : candidate.result.step);
    }
    candidate.cost = cost_model(scenarios[c], prepared[c].topology, catalogue);
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}
}  // namespace topsim::study
