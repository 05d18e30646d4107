#include "sim/study/ensemble.hpp"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <exception>

#include "sim/report/interval.hpp"
#include "sim/scenario/simulate.hpp"
#include "topology/catalogue/device_entries.hpp"

namespace topsim::study {
namespace {
using scenario::Scenario;

// What the latency of a switch hop may be: the catalogue's range of the switch's port-to-port time, around
// the usual one, whether hops are added up from parts or measured as a whole. Zero width where the user gave
// it.
struct HopRange {
  report::Interval seconds;  // beside the usual hop
  std::string id;            // of the switch: the same draw for everybody who has it
  [[nodiscard]] bool varies() const { return seconds.low < seconds.high; }
};

HopRange hop_range(const Scenario& scenario, const topology::Topology& topology,
                   const topology::Catalogue& catalogue) {
  const topology::FabricSpec& fabric = scenario.topology.fabric;
  if (fabric.switch_model.latency || fabric.link.latency || scenario.topology.node.use.empty()) return {};
  const auto devices = topology.devices();
  const auto leaf = std::find_if(devices.begin(), devices.end(), [](const topology::Device& device) {
    return device.kind == topology::DeviceKind::fabric_switch;
  });
  if (leaf == devices.end()) return {};
  const topology::SwitchEntry& entry = catalogue.network_switch(topology.models()[leaf->model]);
  const double usual = seconds(entry.port_to_port);
  return {{seconds(entry.port_to_port_low) - usual, 0, seconds(entry.port_to_port_high) - usual}, entry.id};
}

// The cluster with every hop longer or shorter by what this sample draws.
topology::Topology drawn_topology(const topology::Topology& usual, const HopRange& hop, std::size_t sample) {
  const Duration more = from_seconds(hop.seconds.at(report::Draws(sample)(hop.id)));
  return usual.with_links([&](topology::Link& link) {
    if (usual.device(link.to).kind == topology::DeviceKind::fabric_switch)
      link.latency = std::max(Duration{}, link.latency + more);
  });
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

struct Task {
  std::size_t candidate, sample;
};

// One simulation's slot: written by its own task only.
struct Slot {
  std::optional<report::Result> result;
  std::exception_ptr error;
};
}  // namespace

Scenario drawn(const Scenario& scenario, std::size_t sample) {
  Scenario each = scenario;
  each.run.seed = scenario.run.seed + sample;
  return each;
}

bool varies(const Scenario& scenario, const topology::Topology& topology, const report::Result& usual,
            const topology::Catalogue& catalogue) {
  return scenario.network.model == "packet" ||
         scenario.topology.placement.kind == topology::PlacementKind::random ||
         hop_range(scenario, topology, catalogue).varies() || hashes_paths(topology, usual);
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
    if (progress != nullptr) progress->runs_total += tasks.size();
    arena.execute([&] {
      tbb::parallel_for(std::size_t{0}, tasks.size(), [&](std::size_t i) {
        const Task task = tasks[i];
        Slot& slot = slots[task.candidate][task.sample];
        if (task.sample > 0 && progress != nullptr && progress->stop) return;
        try {
          const Scenario each = drawn(scenarios[task.candidate], task.sample);
          const scenario::Prepared& usual = prepared[task.candidate];
          const HopRange hop = hop_range(each, usual.topology, catalogue);
          if (task.sample > 0 && each.topology.placement.kind == topology::PlacementKind::random) {
            slot.result = scenario::simulate(each, catalogue, how, progress).result;
          } else if (task.sample > 0 && hop.varies()) {
            scenario::Prepared own = usual;
            own.topology = drawn_topology(usual.topology, hop, task.sample);
            slot.result = scenario::simulate(each, catalogue, own, how, progress).result;
          } else {
            slot.result = scenario::simulate(each, catalogue, usual, how, progress).result;
          }
        } catch (...) {
          slot.error = std::current_exception();
        }
        if (progress != nullptr) ++progress->runs_done;
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
