#include "sim/scenario/fault_findings.hpp"

#include <fmt/format.h>

namespace topsim::scenario {

std::vector<report::Finding> fault_findings(const Scenario& scenario, const executor::Outcome& outcome,
                                            std::span<const std::string> notes) {
  std::vector<report::Finding> out;
  const Duration begin = outcome.measured_begin.time_since_epoch(), end = outcome.end.time_since_epoch();
  for (std::size_t i = 0; i < scenario.faults.size() && outcome.complete; ++i) {
    const FaultSpec& fault = scenario.faults[i];
    const bool over = fault.lasts && *fault.lasts <= begin - fault.at;
    if (fault.kind == FaultKind::gpu_down || (fault.at < end && !over)) continue;
    out.push_back({report::Severity::warning,
                   fmt::format("the fault of {} falls outside the measured steps, {:.6g} s to {:.6g} s",
                               fault.target, seconds(begin), seconds(end)),
                   fmt::format("faults[{}]", i), "another \"at\", or more steps: run.steps"});
  }
  for (const std::string& note : notes)
    out.push_back({report::Severity::note, note, "faults", "repair it, or compare with a run without it"});
  return out;
}
}  // namespace topsim::scenario
