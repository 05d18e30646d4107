#include "sim/scenario/findings/fault_findings.hpp"

#include <fmt/format.h>

namespace topsim::scenario {

namespace {
// A lost accelerator counts from the beginning of the run of `reliability`; every other fault acts on the
// measured steps. Empty: it does.
std::string outside(const Scenario& scenario, const FaultSpec& fault, Duration begin, Duration end) {
  if (fault.kind == FaultKind::gpu_down) {
    const double days = scenario.reliability ? scenario.reliability->days : 0;
    return days == 0 || seconds(fault.at) < days * kSecondsPerDay
               ? ""
               : fmt::format("the run (reliability.days: {:.6g})", days);
  }
  const bool over = fault.lasts && *fault.lasts <= begin - fault.at;
  return fault.at < end && !over
             ? ""
             : fmt::format("the measured steps, {:.6g} s to {:.6g} s", seconds(begin), seconds(end));
}
}  // namespace

std::vector<report::Finding> fault_findings(const Scenario& scenario, const executor::Outcome& outcome,
                                            std::span<const std::string> notes) {
  std::vector<report::Finding> out;
  const Duration begin = outcome.measured_begin.time_since_epoch(), end = outcome.end.time_since_epoch();
  for (std::size_t i = 0; i < scenario.faults.size() && outcome.complete; ++i) {
    const FaultSpec& fault = scenario.faults[i];
    const std::string of = outside(scenario, fault, begin, end);
    if (of.empty()) continue;
    const bool lost = fault.kind == FaultKind::gpu_down;
    out.push_back({report::Severity::warning,
                   fmt::format("the fault of {} falls outside {}", fault.target, of),
                   fmt::format("faults[{}]", i),
                   lost ? "an earlier \"at\", or more days" : "another \"at\", or more steps: run.steps"});
  }
  for (const std::string& note : notes)
    out.push_back({report::Severity::note, note, "faults", "repair it, or compare with a run without it"});
  return out;
}
}  // namespace topsim::scenario
