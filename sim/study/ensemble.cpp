#include "sim/study/ensemble.hpp"

#include <fmt/core.h>
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

// The same of what lies before the first link and behind the last: both NICs, hosts, their software.
report::Interval base_range(const Scenario& scenario, const topology::Topology& topology,
                            const topology::Catalogue& catalogue) {
  const topology::FabricSpec& fabric = scenario.topology.fabric;
  if (fabric.nic_latency || fabric.link.latency || scenario.topology.node.use.empty()) return {};
  for (const topology::Link& link : topology.links()) {
    if (link.kind != topology::LinkKind::infiniband && link.kind != topology::LinkKind::ethernet) continue;
    const topology::LinkEntry& entry = catalogue.link(topology.link_types()[link.type].id);
    const double usual = seconds(entry.nic_base);
    return {seconds(entry.nic_base_low) - usual, 0, seconds(entry.nic_base_high) - usual};
  }
  return {};
}

// How long kernels take, beside the usual: the catalogue has two rates of the accelerator's best matrix
// product, a short sweep's and a long run's at the power limit; as far apart as they are, either way. The
// same draw for everybody who has it.
struct KernelRange {
  report::Interval factor{1, 1, 1};
  std::string id;
};

KernelRange kernel_range(const topology::Topology& topology, const topology::Catalogue& catalogue) {
  KernelRange range;
  for (const DeviceId id : topology.accelerators()) {
    const std::string& model = topology.models()[topology.device(id).model];
    if (model == range.id) break;
    range.id = model;
    const topology::Accelerator& entry = catalogue.accelerator(model);
    for (const auto& [precision, sustained] : entry.sustained_flops) {
      const auto best = entry.achievable_flops.find(precision);
      if (best == entry.achievable_flops.end() || best->second <= 0 || sustained <= 0) continue;
      const double apart = std::max(best->second / sustained, sustained / best->second);
      range.factor = {1 / apart, 1, apart};
      if (precision == "bf16") break;
    }
  }
  return range;
}

// What the catalogue leaves open about a candidate.
struct Ranges {
  HopRange hop;
  report::Interval base;
  KernelRange kernels;
  [[nodiscard]] bool vary() const {
    return hop.varies() || base.low < base.high || kernels.factor.low < kernels.factor.high;
  }
};

Ranges ranges_of(const Scenario& scenario, const topology::Topology& topology,
                 const topology::Catalogue& catalogue) {
  return {hop_range(scenario, topology, catalogue), base_range(scenario, topology, catalogue),
          kernel_range(topology, catalogue)};
}

// One phrase a range, for the remarks of a comparison.
std::vector<std::string> in_words(const Scenario& scenario, const Ranges& ranges, bool hashes) {
  std::vector<std::string> list;
  const auto add = [&](const std::string& what, const report::Interval& range, double unit,
                       const char* name) {
    if (range.low < range.high)
      list.push_back(
          fmt::format("{} over {:+.3g} to {:+.3g} {}", what, range.low / unit, range.high / unit, name));
  };
  if (hashes) list.emplace_back("ECMP seeds");
  if (scenario.topology.placement.kind == topology::PlacementKind::random) list.emplace_back("placements");
  add("the latency of a hop through " + ranges.hop.id, ranges.hop.seconds, 1e-9, "ns");
  add("the latency of NICs and hosts of " + scenario.topology.fabric.link.use, ranges.base, 1e-6, "us");
  const report::Interval& kernels = ranges.kernels.factor;
  add("the time of matrix products on " + ranges.kernels.id, {kernels.low - 1, 0, kernels.high - 1}, 1e-2,
      "%");
  if (scenario.network.contention == scenario::ContentionForm::calibrated && hashes)
    list.emplace_back("the calibrated loss where flows meet over its spread");
  return list;
}

// The cluster and its program with what this sample draws. Both candidates draw the same position in their
// ranges (common random numbers), so that the spread of their difference is the difference's own.
void draw(const Ranges& ranges, std::size_t sample, scenario::Prepared& prepared) {
  const report::Draws draws(sample);
  const topology::Topology& usual = prepared.topology;
  const Duration more = from_seconds(ranges.hop.seconds.at(draws(ranges.hop.id)));
  topology::Topology own = usual.with_links([&](topology::Link& link) {
    if (usual.device(link.to).kind == topology::DeviceKind::fabric_switch)
      link.latency = std::max(Duration{}, link.latency + more);
  });
  own.nic_latency = std::max(Duration{}, own.nic_latency + from_seconds(ranges.base.at(draws("nic base"))));
  prepared.topology = std::move(own);
  const double factor = ranges.kernels.factor.at(draws("kernels of " + ranges.kernels.id));
  for (program::RankProgram& ranks : prepared.program.classes) {
    for (program::Op& op : ranks.ops) {
      if (op.kind != program::OpKind::compute) continue;
      // Memory-bound time does not follow the rate of matrix products.
      const double moved =
          static_cast<double>(op.memory_bound) + factor * (1 - static_cast<double>(op.memory_bound));
      op.duration = from_seconds(seconds(op.duration) * moved);
    }
  }
}

// The calibrated loss where flows meet: its spread's ends stand for a quarter of the samples each.
network::Bound drawn_contention(std::size_t sample) {
  if (sample == 0) return network::Bound::middle;
  const double u = report::Draws(sample)("contention");
  return u < 0.25 ? network::Bound::low : u < 0.75 ? network::Bound::middle : network::Bound::high;
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
         ranges_of(scenario, topology, catalogue).vary() || hashes_paths(topology, usual);
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
          scenario::SimulateOptions own_how = how;
          own_how.contention = drawn_contention(task.sample);
          if (task.sample == 0) {
            slot.result = scenario::simulate(each, catalogue, usual, how, progress).result;
            return;
          }
          const bool placed_anew = each.topology.placement.kind == topology::PlacementKind::random;
          scenario::Prepared own = placed_anew ? scenario::prepare(each, catalogue, how) : usual;
          draw(ranges_of(each, own.topology, catalogue), task.sample, own);
          slot.result = scenario::simulate(each, catalogue, own, own_how, progress).result;
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
    if (done > 1)
      candidate.drawn = in_words(scenarios[c], ranges_of(scenarios[c], prepared[c].topology, catalogue),
                                 hashes_paths(prepared[c].topology, candidate.result));
    candidate.cost = cost_model(scenarios[c], prepared[c].topology, catalogue);
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}
}  // namespace topsim::study
