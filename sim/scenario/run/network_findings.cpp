#include "sim/scenario/run/network_findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "sim/base/parallel.hpp"
#include "sim/metrics/accounting.hpp"
#include "sim/report/text.hpp"

namespace topsim::scenario {
namespace {
// The first step's time if all steps of the run agree to a thousandth, which is finer than the printed
// figures; none for other runs, or if something changes during the run.
std::optional<Duration> like_the_first(const executor::RunOptions& run, const executor::Outcome& outcome) {
  if (run.warmup > 1 || !run.capacity_changes.empty() || !run.pace_changes.empty() ||
      !run.route_changes.empty())
    return std::nullopt;
  const Duration first =
      run.warmup == 0 ? outcome.step_times.front() : outcome.measured_begin.time_since_epoch();
  constexpr double kAlike = 1e-3;
  const auto differs = [&](Duration step) {
    return std::abs(seconds(step - first)) > kAlike * seconds(first);
  };
  if (std::any_of(outcome.step_times.begin(), outcome.step_times.end(), differs)) return std::nullopt;
  return first;
}

// Connections of two accelerators that go by different switches.
bool choose_by_hash(const topology::Router& router, DeviceId from, DeviceId to) {
  topology::Route first, other;
  router.route({.from = from, .to = to}, first);
  constexpr std::uint64_t kEnough = 16;
  for (std::uint64_t connection = 1; connection < kEnough && first.switches > 1; ++connection) {
    router.route({.from = from, .to = to, .connection = connection}, other);
    if (other.links != first.links) return true;
  }
  return false;
}

// Some rank that stands for others sends to all of a group over hashed paths.
bool all_to_alls_are_hashed(const program::Program& program, const topology::Router& router) {
  const topology::Topology& topology = router.topology();
  if (topology.routing != topology::Routing::ecmp) return false;
  const auto gpus = topology.accelerators();
  std::set<std::uint32_t> classes;
  for (std::uint32_t rank = 0; rank < program.ranks; ++rank) {
    if (!classes.insert(program.class_of_rank[rank]).second) continue;
    std::set<std::uint16_t> slots;
    for (const program::Op& op : program.classes[program.class_of_rank[rank]].ops)
      if (op.kind == program::OpKind::collective && op.collective == program::CollectiveKind::all_to_all)
        slots.insert(op.slot);
    for (const std::uint16_t slot : slots) {
      const CommunicatorId group = program.communicator_slots[slot][rank];
      if (!group.valid()) continue;
      const auto members = program.members_of(group);
      if (std::any_of(members.begin(), members.end(),
                      [&](RankId other) { return choose_by_hash(router, gpus[rank], gpus[other.index()]); }))
        return true;
    }
  }
  return false;
}

// How far packets are from the flow model there: configs/calibration/README.md, "What no row has".
report::Finding of_hashed_all_to_alls() {
  return {report::Severity::note,
          "all-to-alls cross hashed paths, on which messages of one NIC wait for each other's: packets took "
          "up to 1.4 times as long as the flow model says (RoCE under DCQCN, eight boxes)",
          "network.model", "--network packet simulates every packet"};
}
}  // namespace

std::string crowd_text(const executor::Crowd& crowd, Duration whole, const topology::Topology& topology) {
  const double share = seconds(crowd.time) / std::max(seconds(whole), 1e-12);
  constexpr double kWorthAWord = 0.01;
  if (share < kWorthAWord) return {};
  const bool infiniband = topology.link(crowd.port).kind == topology::LinkKind::infiniband;
  return fmt::format(
      "for {} of the run there is {:.3g} times as much for {} as it carries, and {} without congestion "
      "control slows no sender: whatever shares a queue with those packets waits behind them, which the flow "
      "model does not show",
      report::percent_text(share), crowd.load, topology.name(crowd.port), infiniband ? "InfiniBand" : "PFC");
}

void add_network_findings(const FoldedScenario& runs, const executor::RunOptions& run,
                          const executor::Outcome& outcome, bool interval, executor::Progress* progress,
                          report::Result& result) {
  const network::Model& model = network::find_model(run.network);
  for (const std::string& remark : outcome.network_remarks)
    result.findings.push_back(
        {report::Severity::warning, remark, model.packets ? "network.packet" : "network.model", {}});
  if (outcome.crowd) {
    std::string message =
        crowd_text(*outcome.crowd, outcome.end.time_since_epoch(), runs.router().topology());
    if (!message.empty())
      result.findings.push_back(
          {report::Severity::warning, std::move(message), "network.model",
           "--network packet shows it; congestion control or virtual lanes of their own "
           "keep others out of those queues"});
  }
  if (model.kind == network::ModelKind::flow && all_to_alls_are_hashed(runs.program(), runs.router()))
    result.findings.push_back(of_hashed_all_to_alls());
  if (outcome.least_efficiency >= 1 || !outcome.complete) return;
  report::Finding met;
  met.message = fmt::format(
      "ports where flows meet carry as little as {:.1f} % of their capacity, as packets do (topsim "
      "calibrate)",
      100 * outcome.least_efficiency);
  // Two more runs, left out where one already takes many seconds.
  constexpr std::uint64_t kMostEvents = 2'000'000;
  // Events of a run without a timeline, which has fewer: the result must not depend on what else was asked
  // for.
  const auto events = [&] {
    if (!run.timeline || outcome.events <= kMostEvents) return outcome.events;
    executor::RunOptions other = run;
    other.timeline = false;
    executor::Progress own;
    if (progress != nullptr) own.stop_all = &progress->stop;
    return runs.run(other, &own).events;
  };
  if (interval && events() > kMostEvents) {
    met.message += "; the interval of the calibration is left out of runs of more than 2 million events";
  } else if (interval) {
    // Their first steps suffice if they are representative.
    const std::optional<Duration> first = like_the_first(run, outcome);
    const double scale = first ? seconds(result.step) / seconds(*first) : 1;
    const auto step_at = [&](network::Bound bound) {
      executor::RunOptions other = run;
      other.congestion_bound = bound;
      other.timeline = other.explained = false;
      if (first) other.warmup = 0, other.steps = 1;
      executor::Progress own;
      if (progress != nullptr) own.stop_all = &progress->stop;
      return scale * seconds(metrics::mean_step(runs.run(other, &own).step_times));
    };
    std::array<double, 2> steps{};
    parallel::in_order(steps.size(), 0, [&](std::size_t i) {
      steps[i] = step_at(i == 0 ? network::Bound::high : network::Bound::low);
    });
    const std::string low = report::duration_text(from_seconds(steps[0]));
    const std::string high = report::duration_text(from_seconds(steps[1]));
    met.message += progress != nullptr && progress->stop
                       ? "; the interval of the calibration was interrupted"
                       : "; over the interval of the calibration the step takes " +
                             (low == high ? low : low + " to " + high);
  }
  met.path = "network.contention";
  met.remedy = "--network packet simulates every packet; network.contention=ideal leaves it out";
  result.findings.push_back(std::move(met));
}
}  // namespace topsim::scenario
