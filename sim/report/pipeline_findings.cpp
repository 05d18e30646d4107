#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/report/findings.hpp"
#include "sim/report/text.hpp"

namespace topsim::report {
namespace {
using executor::Reason;

// What keeps stages waiting beyond their schedule.
struct Cause {
  double share = 0;  // of the step
  std::string what, path, remedy;
};

// Part of the critical path, which covers all measured steps.
template <class Of>
double share_of_path(const FindingContext& context, const Of& of) {
  Duration all{}, part{};
  for (const executor::PathLeg& leg : context.outcome.critical_path) {
    all += leg.share;
    if (of(leg)) part += leg.share;
  }
  return all > Duration{} ? seconds(part) / seconds(all) : 0;
}

// A stage whose kernels are launched late is late for all that wait for what it sends.
Cause late_host(const FindingContext& context) {
  const double share =
      share_of_path(context, [](const executor::PathLeg& leg) { return leg.reason == Reason::host; });
  return {share, fmt::format("the host's launches are {} of the critical path", percent_text(share)),
          context.facts.trace ? "workload.trace" : "workload.compute.cuda_graph",
          "stages wait for one that launches late: CUDA graphs, fused kernels or a larger micro_batch"};
}

// Without virtual stages each stage gathers its parameters when its first micro-batch arrives
// (workloads/step/buckets.cpp), so that the gathers of all stages add up.
Cause gathers_in_turn(const FindingContext& context) {
  const double share = share_of_path(context, [&](const executor::PathLeg& leg) {
    const program::Op* op = metrics::op_of(leg, context.outcome, context.program);
    return op != nullptr && op->phase == program::Phase::parameter_sync;
  });
  return {share,
          fmt::format("gathers of parameters, which begin stage after stage, are {} of the critical path",
                      percent_text(share)),
          "workload.plan.overlap_param_gather",
          "overlap_param_gather false gathers on all stages at once; with virtual_stages they gather ahead"};
}

Cause unequal_stages(const FindingContext& context) {
  const auto& ranks = context.result.ranks;
  const auto busier = [](const RankRow& a, const RankRow& b) { return a.account.busy < b.account.busy; };
  const auto slowest = std::max_element(ranks.begin(), ranks.end(), busier);
  if (slowest == ranks.end()) return {};
  const double mean = seconds(context.result.account.busy), most = seconds(slowest->account.busy);
  if (mean <= 0) return {};
  return {(most - mean) / seconds(context.result.step),
          fmt::format("{} computes {} longer than the mean", slowest->program, percent_text(most / mean - 1)),
          "workload.plan.stage_layers",
          "balance the stages: the first and the last carry the embedding and the LM head"};
}

// A token of each request passes all stages, however many requests there are.
std::string fewer_bubbles(const ScenarioFacts& facts) {
  if (facts.inference) return "fewer stages, with tp in their place";
  return facts.takes_virtual_stages ? "more micro-batches a step, virtual_stages, or fewer stages"
                                    : "more micro-batches a step, or fewer stages";
}

// The largest cause, where one is large enough to be named.
Cause cause_of(const FindingContext& context) {
  Cause causes[] = {late_host(context), gathers_in_turn(context), unequal_stages(context)};
  Cause& largest = *std::max_element(std::begin(causes), std::end(causes),
                                     [](const Cause& a, const Cause& b) { return a.share < b.share; });
  constexpr double kWorthNaming = 0.02;
  if (largest.share >= kWorthNaming) return std::move(largest);
  return {0, "", "critical_path",
          "messages between stages and collectives inside them make up the rest: topsim explain says what "
          "faster links would buy"};
}
}  // namespace

double closed_form_bubble(const ScenarioFacts& facts) {
  if (!facts.equal_bubble_known || facts.pipeline_stages < 2 || facts.micro_batches == 0) return -1;
  const double p = facts.pipeline_stages;
  const double m = facts.micro_batches;
  const double v = facts.virtual_stages;
  return (p - 1) / (v * m + p - 1);
}

void find_bubble(const FindingContext& context, Findings& out) {
  const double share = share_of_step(context.result, Reason::pipeline_bubble);
  if (share < 0.05) return;
  const double ideal = closed_form_bubble(context.facts);
  std::string message = fmt::format("the pipeline bubble takes {} of the step", percent_text(share));
  if (ideal >= 0) {
    message += fmt::format(
        "; equal stages without transfer time would lose {} ({} stages, {} micro-batches{})",
        percent_text(ideal), context.facts.pipeline_stages, context.facts.micro_batches,
        context.facts.virtual_stages > 1 ? fmt::format(", {} virtual stages", context.facts.virtual_stages)
                                         : "");
  }
  Cause cause{0, "", "workload.plan.global_batch", fewer_bubbles(context.facts)};
  if (ideal >= 0 && share > ideal + 0.05) cause = cause_of(context);
  if (!cause.what.empty()) message += "; " + cause.what;
  constexpr double kMostOfTheStep = 0.5;  // hardly ever intended
  out.push_back({share >= kMostOfTheStep ? Severity::warning : Severity::note, std::move(message),
                 std::move(cause.path), std::move(cause.remedy), share, "pipeline_bubble"});
}
}  // namespace topsim::report
