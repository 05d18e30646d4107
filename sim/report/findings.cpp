#include "sim/report/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "sim/network/factory.hpp"
#include "sim/report/text.hpp"

namespace topsim::report {

double share_of_step(const Result& result, executor::Reason reason) {
  if (result.step <= Duration{}) return 0;
  return seconds(result.account.idle[static_cast<std::size_t>(reason)]) / seconds(result.step);
}

namespace {
using executor::Reason;
using topology::LinkKind;

void find_partial(const FindingContext& context, Findings& out) {
  if (context.result.complete) return;
  out.push_back({Severity::warning,
                 fmt::format("the run was stopped early: {} of the measured steps ended",
                             context.result.step_times.size()),
                 "run.steps", "run it again to the end before comparing it"});
}

std::string largest_part(const Memory& memory) {
  const auto largest = std::max_element(memory.parts.begin(), memory.parts.end(),
                                        [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  return largest == memory.parts.end() ? "" : largest->name;
}

// A server has no gradients, states and recompute to save.
std::string served_remedy(const Memory& memory) {
  const std::string part = largest_part(memory);
  if (part == "kv_cache") return "fewer requests (global_batch), precision.kv_cache fp8, or more tp or pp";
  if (part == "activations") return "a smaller micro_batch or more tp";
  return "more tp or pp, or precision.weights of fewer bits";
}

// The advice that reduces the largest part of the memory.
std::string remedy_of(const Memory& memory, const ScenarioFacts& facts) {
  const std::string part = largest_part(memory), &library = facts.library;
  const std::string rest = fmt::format("{}, {} buffers and fragmentation",
                                       library == "NCCL" ? "the CUDA context" : "the driver's context",
                                       library.empty() ? "the collective library's" : library + "'s");
  if (facts.inference) return served_remedy(memory) + " leaves room for " + rest;
  if (part == "activations" || part == "recompute" || part == "working")
    return "a smaller micro_batch, recompute \"full\" or more tp leaves room for " + rest;
  return "more tp or pp, or a higher zero stage leaves room for " + rest;
}

void find_memory(const FindingContext& context, Findings& out) {
  const Memory& memory = context.result.memory;
  if (memory.capacity <= Bytes{}) return;
  const double used = memory.per_accelerator / memory.capacity;
  const std::string figures = fmt::format("{} of {} ({})", memory_text(memory.per_accelerator),
                                          capacity_text(memory), percent_text(used));
  if (!memory.fits) {
    out.push_back({Severity::warning, "the workload does not fit the accelerator's memory: " + figures,
                   "workload.plan",
                   context.facts.inference
                       ? served_remedy(memory)
                       : "more tp or pp, a higher zero stage, recompute, or a smaller micro_batch"});
  } else if (used >= kNearlyFull) {
    out.push_back({Severity::warning, "memory is nearly full: " + figures, "workload.plan",
                   remedy_of(memory, context.facts)});
  }
}

// What offload keeps on the host.
void find_host_memory(const FindingContext& context, Findings& out) {
  const Memory& memory = context.result.memory;
  if (memory.host <= Bytes{}) return;
  const std::string need =
      fmt::format("what is offloaded needs {} of host memory per node", memory_text(memory.host));
  const char* path = "workload.plan.offload";
  if (memory.host_capacity <= Bytes{}) {
    out.push_back({Severity::note, need + "; the hardware does not say how much a node has", path,
                   "check it, or offload to nvme"});
  } else if (memory.host / memory.host_capacity >= kNearlyFull) {
    out.push_back({Severity::warning,
                   fmt::format("{}, which has {}", need, memory_text(memory.host_capacity)), path,
                   "offload to nvme, a higher zero stage, or more nodes"});
  }
}

constexpr double kLaunchBound = 0.05;  // of the step

void find_launch_bound(const FindingContext& context, Findings& out) {
  const double share = share_of_step(context.result, Reason::host);
  if (share < kLaunchBound) return;
  out.push_back({Severity::warning,
                 fmt::format("launch-bound: accelerators wait {} of the step for the host to launch kernels",
                             percent_text(share)),
                 context.facts.trace ? "workload.trace" : "workload.compute.cuda_graph",
                 "CUDA graphs, fused kernels or a larger micro_batch", share});
}

// The compute units that data-parallel collectives occupy when one of each kind runs.
int units_held(const executor::Outcome& outcome) {
  std::map<program::CollectiveKind, int> most;
  for (const executor::CollectiveRecord& each : outcome.collectives)
    if (each.dimension == program::Dimension::data && each.seconds > 0.01 * seconds(outcome.step_times[0]))
      most[each.kind] = std::max<int>(most[each.kind], each.choice.channels);
  int held = 0;
  for (const auto& [kind, channels] : most) held += channels;
  constexpr int kStep = program::Grids::kStep;  // the resolution of products beside communication
  return (held + kStep - 1) / kStep * kStep;
}

// Kernels that share compute units or memory bandwidth: busy, but slower than alone.
void find_slowed(const FindingContext& context, Findings& out) {
  const Result& result = context.result;
  if (result.step <= Duration{} || context.outcome.step_times.empty()) return;
  const double step = seconds(result.step), slowed = seconds(result.account.slowed);
  constexpr double kWorthSaying = 0.03, kWarning = 0.1;  // of the step
  if (slowed < kWorthSaying * step) return;
  std::vector<std::string> remedies;
  // A link between nodes that is busy for so long keeps communication beside the kernels.
  constexpr double kLong = 0.2;
  const LinkRow* fabric = nullptr;
  for (const LinkRow& row : result.links)
    if ((row.kind == LinkKind::infiniband || row.kind == LinkKind::ethernet) && row.utilization >= kLong &&
        (fabric == nullptr || row.utilization > fabric->utilization))
      fabric = &row;
  if (fabric != nullptr)
    remedies.push_back(
        fmt::format("more network bandwidth ({}, links faster than {}) ends the communication sooner",
                    pcie_hardly_wider(context.topology) ? "NICs in wider PCIe slots" : "NICs", fabric->type));
  // Products on fewer units always lose the rate of the units left free: worthwhile only if that is less than
  // what they lose by waiting, and if the communication runs beside them for much of the step.
  constexpr double kMuch = 0.4;
  const auto persists = [](const program::RankProgram& cls) {
    return std::any_of(cls.grids.begin(), cls.grids.end(),
                       [](const program::Grids& each) { return each.persistent > 0; });
  };
  const auto& classes = context.program.classes;
  const bool persistent = std::any_of(classes.begin(), classes.end(), persists);
  const int held = units_held(context.outcome), units = context.facts.compute_units;
  if (persistent && context.facts.sm_margin == 0 && held > 0 && held < units && fabric != nullptr &&
      fabric->utilization >= kMuch && slowed * (units - held) > held * seconds(result.account.busy))
    remedies.push_back(fmt::format("compute.sm_margin {} leaves the collectives' channels room", held));
  // With a pipeline, fewer micro-batches would mean a longer bubble.
  if (!context.facts.trace && result.throughput.tokens_per_second > 0 && context.facts.pipeline_stages == 1)
    remedies.push_back("more tokens a micro-batch (micro_batch) where memory allows");
  if (remedies.empty()) remedies.emplace_back("topsim explain says what faster links would buy");
  const bool much = slowed >= kWarning * step;
  out.push_back(
      {much ? Severity::warning : Severity::note,
       fmt::format("kernels run slower beside communication, which takes {} and memory bandwidth "
                   "from them: {} of the step, counted as busy",
                   context.facts.library == "NCCL" ? "SMs" : "compute units", percent_text(slowed / step)),
       "accelerators.slowed_seconds", fmt::format("{}", fmt::join(remedies, "; ")), slowed / step});
}

void find_straggler(const FindingContext& context, Findings& out) {
  const double share = share_of_step(context.result, Reason::straggler);
  constexpr double kWorthSaying = 0.02;  // of the step
  constexpr double kSameWork = 1.005;    // times the mean: as busy as the others
  if (share < kWorthSaying || context.result.ranks.empty()) return;
  const auto& ranks = context.result.ranks;
  const auto busier = [](const RankRow& a, const RankRow& b) { return a.account.busy < b.account.busy; };
  const RankRow& slowest = *std::max_element(ranks.begin(), ranks.end(), busier);
  const double mean = seconds(context.result.account.busy);
  const bool trace = context.facts.trace;
  std::string message =
      fmt::format("accelerators wait {} of the step for {}", percent_text(share),
                  trace ? "other ranks' part of the trace" : "the slowest member of a collective");
  if (trace) {
    std::uint32_t without = 0;
    for (const RankRow& each : ranks)
      if (each.account.idle[static_cast<std::size_t>(Reason::straggler)] == each.account.total())
        without += each.count;
    if (without > 0)
      message += fmt::format("; {} of {} have no part in it", without, context.result.accelerators);
  }
  if (mean > 0 && seconds(slowest.account.busy) > mean * kSameWork) {
    message += fmt::format("; the busiest is rank {} ({}), {} above the mean", slowest.rank, slowest.device,
                           percent_text(seconds(slowest.account.busy) / mean - 1));
  }
  out.push_back({Severity::note, std::move(message), trace ? "workload.trace" : "ranks",
                 trace ? "the trace holds the order of its work; topsim run --html shows who waits"
                       : "look for slow accelerators (faults, workload.compute.slow_ranks) and unequal work",
                 share});
}

// Workstation cards run at clocks above those for which their data sheets state the peak. Times that the
// scenario gives may be of anything.
void find_peak(const FindingContext& context, Findings& out) {
  const double mfu = context.result.throughput.mfu;
  if (mfu <= 1) return;
  if (context.facts.stage_times)
    out.push_back({Severity::warning,
                   fmt::format("{} of the peak: no accelerator computes this model in the times given",
                               percent_text(mfu)),
                   "workload.compute.stage_times",
                   "they are of one stage and one micro-batch; check their unit, the model and micro_batch"});
  else
    out.push_back(
        {Severity::note,
         fmt::format("{} of the peak: data sheets count it at a clock that some accelerators exceed",
                     percent_text(mfu)),
         "throughput.mfu", "compare tokens per second instead"});
}

// NVLS within one box, PAT and a serving engine's kernels have no message form (collective/steps_*).
void find_stand_ins(const FindingContext& context, Findings& out) {
  std::map<std::pair<std::string_view, std::string_view>, double> seconds_of;  // chosen, sent
  double all = 0;
  for (const executor::CollectiveRecord& each : context.outcome.collectives) {
    all += each.seconds;
    if (each.chosen != each.choice.algorithm)
      seconds_of[{name_of(each.chosen), name_of(each.choice.algorithm)}] += each.seconds;
  }
  constexpr double kTrifle = 0.01;
  for (const auto& [names, taken] : seconds_of)
    if (taken > kTrifle * all)
      out.push_back({Severity::note,
                     fmt::format("{} has no message form here: {} stands in for it, in {} of the time of all "
                                 "collectives",
                                 names.first, names.second, percent_text(taken / all)),
                     "network.collectives",
                     fmt::format("the flow model with network.collectives=pipelined times {}", names.first)});
}

// The demand on a link where messages do not share links.
void find_unshared(const FindingContext& context, Findings& out) {
  const std::vector<LinkRow>& links = context.result.links;
  const auto most = std::max_element(links.begin(), links.end(), [](const LinkRow& a, const LinkRow& b) {
    return a.peak_utilization < b.peak_utilization;
  });
  constexpr double kRounding = 0.001;
  const network::Model& model = network::find_model(context.result.network_model);
  if (model.shares_links || most == links.end() || most->peak_utilization <= 1 + kRounding) return;
  out.push_back({Severity::note,
                 fmt::format("messages share no link in the {} model: at its peak {} is asked for {} of "
                             "what it carries",
                             model.name, most->id, percent_text(most->peak_utilization)),
                 "network.model", "--network flow divides a link among those that meet there"});
}

// Assumptions on which the step depends. The result's left_open contains all of them.
void find_assumed(const FindingContext& context, Findings& out) {
  std::vector<std::string> parts, paths;
  for (const ScenarioFacts::Assumption& each : context.facts.assumed) {
    parts.push_back(each.phrase);
    if (!each.path.empty()) paths.push_back(each.path);
  }
  const bool launch_bound = share_of_step(context.result, Reason::host) >= kLaunchBound;
  for (const ScenarioFacts::Open& open : context.facts.open) {
    if (share_of_step(context.result, open.reason) < open.from || (open.more_launches && launch_bound))
      continue;
    parts.push_back(open.phrase);
    paths.push_back(open.path);
  }
  if (parts.empty()) return;
  out.push_back({Severity::note,
                 fmt::format("not stated, so assumed: {}", fmt::join(parts, "; ")),
                 "workload.plan",
                 "set the values that differ from your job; topsim list frameworks NAME shows a release's "
                 "defaults, left_open in result.json all values that were assumed",
                 0,
                 {},
                 std::move(paths)});
}

using Finder = void (*)(const FindingContext&, Findings&);
constexpr Finder kOnTheWhole[] = {find_partial, find_memory, find_host_memory, find_unused_fabric,
                                  find_narrow_pcie};
constexpr Finder kOnAShareOfTheStep[] = {find_oversubscription, find_launch_bound, find_bubble,
                                         find_limiting_link,    find_slowed,       find_straggler};
constexpr Finder kOnTheModel[] = {find_peak, find_stand_ins, find_assumed, find_unshared};
}  // namespace

Findings findings(const FindingContext& context) {
  Findings found;
  for (Finder finder : kOnTheWhole) finder(context, found);
  const auto whole = static_cast<std::ptrdiff_t>(found.size());
  for (Finder finder : kOnAShareOfTheStep) finder(context, found);
  std::stable_sort(found.begin() + whole, found.end(),
                   [](const Finding& a, const Finding& b) { return a.share > b.share; });
  for (Finder finder : kOnTheModel) finder(context, found);
  warnings_first(found);
  return found;
}

std::optional<Finding> far_from_optimum(const ReliabilitySpec& spec, const Goodput& goodput) {
  constexpr double kMuch = 0.02;  // of the run's time
  if (goodput.optimum || !(goodput.interruptions_per_day.usual > 0)) return {};
  const double checkpoint = seconds(spec.checkpoint_time), restart = seconds(spec.restart);
  const double between = kSecondsPerDay / goodput.interruptions_per_day.usual;
  const double optimum = daly_interval(checkpoint, between);
  if (!(optimum > 0)) return {};
  const double chosen = goodput_share(goodput.checkpoint_interval, checkpoint, restart, between);
  const double best = goodput_share(optimum, checkpoint, restart, between);
  if (best - chosen < kMuch) return {};
  return Finding{
      .severity = Severity::warning,
      .message = fmt::format("the job stops every {}, and checkpoints every {} leave {} of the time "
                             "to training; every {} would leave {}",
                             days_text(between), days_text(goodput.checkpoint_interval), percent_text(chosen),
                             days_text(optimum), percent_text(best)),
      .path = "reliability.checkpoint_interval",
      .remedy = "leave checkpoint_interval out for Daly's optimum"};
}

void warnings_first(Findings& findings) {
  std::stable_partition(findings.begin(), findings.end(),
                        [](const Finding& each) { return each.severity == Severity::warning; });
}
}  // namespace topsim::report
