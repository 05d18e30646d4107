#include "sim/scenario/run/simulate.hpp"

#include <charconv>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/collective/searches.hpp"
#include "sim/metrics/accounting.hpp"
#include "sim/report/findings.hpp"
#include "sim/report/make_result.hpp"
#include "sim/scenario/cluster/calibration.hpp"
#include "sim/scenario/cluster/checked_topology.hpp"
#include "sim/scenario/cluster/faults.hpp"
#include "sim/scenario/cluster/load_topology.hpp"
#include "sim/scenario/findings/described_parts.hpp"
#include "sim/scenario/findings/fault_findings.hpp"
#include "sim/scenario/findings/forced_findings.hpp"
#include "sim/scenario/findings/hardware_findings.hpp"
#include "sim/scenario/read/read.hpp"
#include "sim/scenario/run/facts.hpp"
#include "sim/scenario/run/fault_costs.hpp"
#include "sim/scenario/run/folded_scenario.hpp"
#include "sim/scenario/run/network_findings.hpp"
#include "sim/scenario/run/replayed.hpp"
#include "topology/routes.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/training_step.hpp"

namespace topsim::scenario {
namespace {

ConfigError no_such_rank(const std::string& rank, const topology::Topology& topology) {
  std::vector<Problem> problems(1);
  problems[0].path = "workload.compute.slow_ranks[\"" + rank + "\"]";
  problems[0].message = "the job has no rank " + rank;
  problems[0].help = "its ranks are 0 to " + std::to_string(topology.accelerators().size() - 1);
  return ConfigError(std::move(problems));
}

executor::RunOptions run_options(const Scenario& scenario, const SimulateOptions& options,
                                 const topology::Topology& topology, const topology::Catalogue& catalogue,
                                 AppliedFaults& faults) {
  executor::RunOptions run;
  run.network = scenario.network.model;
  run.packet = scenario.network.packet.resolved(topology.fabric_is_infiniband);
  run.collectives = scenario.network.collectives.value_or(run.collectives);
  if (scenario.network.contention == ContentionForm::calibrated) run.congestion = shipped_congestion();
  run.warmup = scenario.run.warmup;
  run.steps = scenario.run.steps;
  run.seed = scenario.run.seed;
  run.congestion_bound = options.contention;
  run.fold = options.fold;
  run.timeline = options.timeline;
  for (const auto& [rank, factor] : scenario.workload.compute.slow_ranks) {
    std::size_t number = topology.accelerators().size();
    std::from_chars(rank.data(), rank.data() + rank.size(), number);
    if (number >= topology.accelerators().size()) throw no_such_rank(rank, topology);
    run.slow_ranks.emplace_back(RankId(number), factor);
  }
  faults = apply_faults(scenario, topology, run);
  run.accelerators.resize(topology.models().size());
  for (const DeviceId device : topology.accelerators()) {
    executor::AcceleratorFacts& facts = run.accelerators[topology.device(device).model];
    if (facts.compute_units != 0) continue;
    const topology::Accelerator& accelerator = catalogue.accelerator(topology.model_of(device));
    facts = {accelerator.compute_units, accelerator.memory_bandwidth};
  }
  return run;
}

// Seconds since a fixed origin, for the run's own record.
double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

report::Memory memory_of(const workloads::WorkloadSpec& workload, const topology::Accelerator& accelerator,
                         std::uint32_t ranks) {
  const workloads::MemoryUse use = workloads::memory_use(workload, accelerator, ranks);
  const auto bytes = [](double value) { return Bytes(std::llround(value)); };
  const workloads::MemoryParts& peak = use.peak();
  report::Memory memory;
  memory.fits = use.fits_accelerator();
  memory.capacity = bytes(use.capacity);
  if (use.share < 1) memory.usable = bytes(use.room());
  memory.host = bytes(use.host), memory.host_capacity = bytes(use.host_capacity);
  memory.parts = {{"weights", bytes(peak.weights)},
                  {"gradients", bytes(peak.gradients)},
                  {"optimizer", bytes(peak.optimizer)},
                  {"activations", bytes(peak.activations)},
                  {"recompute", bytes(peak.recompute)}};
  if (peak.working > 0) memory.parts.push_back({"working", bytes(peak.working)});
  if (peak.kv_cache > 0) memory.parts.push_back({"kv_cache", bytes(peak.kv_cache)});
  if (peak.update > 0) memory.parts.push_back({"update", bytes(peak.update)});
  for (const report::MemoryPart& part : memory.parts) memory.per_accelerator += part.bytes;
  return memory;
}

Prepared prepare_unlocated(const Scenario& scenario, const topology::Catalogue& catalogue,
                           const SimulateOptions& options) {
  require_workload(scenario);
  Prepared prepared;
  prepared.searches = options.searches ? options.searches : collective::no_searches_yet();
  prepared.topology = checked_topology(scenario, catalogue, build_options(scenario));
  workloads::require_accelerators(prepared.topology);
  const auto ranks = static_cast<std::uint32_t>(prepared.topology.accelerators().size());
  const topology::Accelerator& accelerator =
      catalogue.accelerator(prepared.topology.model_of(prepared.topology.accelerators().front()));
  if (scenario.workload.trace) {
    prepared.program = replayed(scenario, accelerator, ranks);
    return prepared;
  }
  workloads::WorkloadSpec workload = scenario.workload;
  workload.host = workloads::host_facts(prepared.topology, catalogue);
  if (!options.allow_oom) workloads::require_fit(workload, accelerator, ranks);
  prepared.memory = memory_of(workload, accelerator, ranks);
  prepared.program = workloads::training_step(scenario.workload, prepared.topology, catalogue);
  return prepared;
}

// For every set of links that fails or is slower during the run: a router that knows, and what is built on
// it.
void add_detours(const Scenario& scenario, const Prepared& prepared, const AppliedFaults& faults,
                 executor::RunOptions& run) {
  using State = std::pair<std::vector<LinkId>, std::vector<topology::SlowLink>>;
  std::map<State, std::uint32_t> known{{{{}, faults.slow}, executor::RouteChange::kFirst}};
  std::uint32_t before = executor::RouteChange::kFirst;
  for (const AppliedFaults::Routes& routes : faults.routes) {
    const auto number = static_cast<std::uint32_t>(run.detours.size());
    const State state{routes.dead, routes.slow};
    const auto [detour, fresh] = known.try_emplace(state, number);
    if (fresh) {
      std::vector<LinkId> dead = faults.dead;
      dead.insert(dead.end(), routes.dead.begin(), routes.dead.end());
      executor::Detour made;
      made.router = std::make_shared<const topology::Router>(
          prepared.topology, scenario.run.seed, dead, scenario.network.packet.queue_pairs(), state.second);
      made.nccl = std::make_shared<const collective::NcclModel>(
          *made.router, library_choices(scenario), collective::TimeOptions{},
          collective::searches_without(prepared.searches, faults.dead));
      run.detours.push_back(std::move(made));
    }
    if (std::exchange(before, detour->second) == detour->second) continue;
    executor::RouteChange change;
    change.at = SimTime(routes.at);
    change.detour = detour->second;
    run.route_changes.push_back(change);
  }
  if (!run.route_changes.empty()) run.route_changes.back().last = true;
}

Simulated simulate_unlocated(const Scenario& scenario, const topology::Catalogue& catalogue,
                             const Prepared& prepared, const SimulateOptions& options,
                             executor::Progress* progress) {
  const double begin = wall_seconds();
  AppliedFaults faults;
  executor::RunOptions run = run_options(scenario, options, prepared.topology, catalogue, faults);
  if (progress != nullptr) run.poll = [progress] { progress->end_if_stopped(); };
  add_detours(scenario, prepared, faults, run);
  const topology::Router router(prepared.topology, scenario.run.seed, faults.dead,
                                scenario.network.packet.queue_pairs(), faults.slow);
  const FoldedScenario runs(scenario, prepared, router, faults.dead, run);
  if (progress != nullptr) progress->end_if_stopped();
  Simulated simulated;
  if (run.timeline && runs.ops(run.steps) > options.most_slices) {
    run.timeline = false;
    simulated.slices_left_out = runs.ops(run.steps);
  }
  const executor::Outcome outcome = runs.run(run, progress);
  simulated.flows_met = outcome.least_efficiency < 1;
  simulated.result = report::make_result(facts_of(scenario, prepared.topology, catalogue), prepared.topology,
                                         prepared.program, prepared.memory, outcome);
  add_network_findings(runs, run, outcome, options.further_runs, progress, simulated.result);
  for (report::Finding& finding : hardware_findings(scenario, prepared.topology, catalogue))
    simulated.result.findings.push_back(std::move(finding));
  if (scenario.topology.node.use.empty())
    for (report::Finding& finding : described_rates(prepared.topology))
      simulated.result.findings.push_back(std::move(finding));
  for (report::Finding& finding : forced_findings(scenario, prepared.topology, simulated.result))
    simulated.result.findings.push_back(std::move(finding));
  for (report::Finding& finding : idle_beside_trace(scenario))
    simulated.result.findings.push_back(std::move(finding));
  for (report::Finding& finding : fault_findings(scenario, outcome, faults.notes))
    simulated.result.findings.push_back(std::move(finding));
  // Where the run itself took less than some seconds, whatever it printed or folded.
  constexpr std::uint64_t kMostEvents = 4'000'000;
  const bool quick = network::find_model(run.network).quick && outcome.events <= kMostEvents;
  for (report::Finding& finding : fault_costs(scenario, catalogue, prepared, options, outcome,
                                              simulated.result.step, options.further_runs && quick, progress))
    simulated.result.findings.push_back(std::move(finding));
  if (scenario.reliability) {
    simulated.result.goodput =
        report::goodput(report::failure_sources(prepared.topology, catalogue, *scenario.reliability),
                        *scenario.reliability, faults.losses);
    if (auto finding = report::far_from_optimum(*scenario.reliability, *simulated.result.goodput))
      simulated.result.findings.push_back(*std::move(finding));
  }
  if (scenario.cost.tokens && options.further_runs)
    simulated.result.findings.push_back(
        {report::Severity::note, "what a training run of cost.tokens costs is a figure of topsim compare",
         "cost.tokens", "compare it with another scenario that has cost.tokens"});
  report::warnings_first(simulated.result.findings);
  if (run.timeline) simulated.timeline = report::make_timeline(prepared.topology, prepared.program, outcome);
  if (options.timeline) simulated.picture = report::make_picture(prepared.topology, outcome);
  simulated.record = report::make_run_record(outcome, wall_seconds() - begin);
  return simulated;
}
}  // namespace

std::optional<Duration> step_of(const Scenario& scenario, const topology::Catalogue& catalogue,
                                const Prepared& prepared, const SimulateOptions& options,
                                executor::Progress* progress,
                                std::vector<executor::CollectiveRecord>* collectives) {
  return with_places(scenario, [&]() -> std::optional<Duration> {
    AppliedFaults faults;
    executor::RunOptions run = run_options(scenario, options, prepared.topology, catalogue, faults);
    run.timeline = false;
    run.explained = collectives != nullptr;
    add_detours(scenario, prepared, faults, run);
    const topology::Router router(prepared.topology, scenario.run.seed, faults.dead,
                                  scenario.network.packet.queue_pairs(), faults.slow);
    executor::Outcome outcome =
        FoldedScenario(scenario, prepared, router, faults.dead, run).run(run, progress);
    if (!outcome.complete) return {};
    if (collectives != nullptr) *collectives = std::move(outcome.collectives);
    return metrics::mean_step(outcome.step_times);
  });
}

Prepared prepare(const Scenario& scenario, const topology::Catalogue& catalogue,
                 const SimulateOptions& options) {
  return with_places(scenario, [&] { return prepare_unlocated(scenario, catalogue, options); });
}

Simulated simulate(const Scenario& scenario, const topology::Catalogue& catalogue, const Prepared& prepared,
                   const SimulateOptions& options, executor::Progress* progress) {
  return with_places(scenario,
                     [&] { return simulate_unlocated(scenario, catalogue, prepared, options, progress); });
}

Simulated simulate(const Scenario& scenario, const topology::Catalogue& catalogue,
                   const SimulateOptions& options, executor::Progress* progress) {
  const double begin = wall_seconds();
  Simulated simulated =
      simulate(scenario, catalogue, prepare(scenario, catalogue, options), options, progress);
  simulated.record.wall_seconds = wall_seconds() - begin;
  return simulated;
}
}  // namespace topsim::scenario
