#include "sim/scenario/run/fault_costs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/report/text.hpp"
#include "sim/scenario/cluster/faults.hpp"

namespace topsim::scenario {
namespace {

// How often a fault holds between two instants, and for how long in all.
struct Spells {
  std::size_t count = 0;
  Duration whole{};
  void add(Duration from, Duration to) {
    if (from >= to) return;
    ++count;
    whole += to - from;
  }
};

Spells spells_of(const FaultSpec& fault, Duration begin, Duration end) {
  Spells spells;
  const Duration over = fault.lasts && *fault.lasts < end - fault.at ? fault.at + *fault.lasts : end;
  if (fault.kind != FaultKind::link_flapping) {
    spells.add(std::max(fault.at, begin), over);
    return spells;
  }
  for (Duration outage = fault.at; outage < over; outage += *fault.period) {
    const Duration left = over - outage;  // compared first: a sum might exceed the clock
    spells.add(std::max(outage, begin), outage + std::min(*fault.down, left));
    if (*fault.period >= left) break;
  }
  return spells;
}

constexpr std::size_t kMostRuns = 8;  // each takes as long as the run itself

std::string what_happened(const FaultSpec& fault, const Spells& spells) {
  const std::string whole = report::duration_text(spells.whole);
  switch (fault.kind) {
    case FaultKind::link_flapping:
      return fmt::format("{} flaps: down {} in the measured steps, {} in all", fault.target,
                         spells.count == 1 ? "once" : fmt::format("{} times", spells.count), whole);
    case FaultKind::link_degraded:
    case FaultKind::gpu_slow:
      return fmt::format("{} is at {} of its speed for {} of the measured steps", fault.target,
                         report::percent_text(fault.left()), whole);
    case FaultKind::link_down:
    case FaultKind::nic_down:
    case FaultKind::switch_down:
    case FaultKind::gpu_down:
      break;
  }
  return fmt::format("{} is down for {} of the measured steps", fault.target, whole);
}

std::string remedy(const FaultSpec& fault) {
  switch (fault.kind) {
    case FaultKind::link_flapping:
    case FaultKind::link_degraded:
      return "replace the cable or its transceivers";
    case FaultKind::gpu_slow:
      return "cool or replace it";
    case FaultKind::link_down:
    case FaultKind::nic_down:
    case FaultKind::switch_down:
    case FaultKind::gpu_down:
      break;
  }
  return "a second path, or a shorter \"failover\" where one is left";
}
}  // namespace

std::vector<report::Finding> fault_costs(const Scenario& scenario, const topology::Catalogue& catalogue,
                                         const Prepared& prepared, const SimulateOptions& options,
                                         const executor::Outcome& outcome, Duration step, bool measured,
                                         executor::Progress* progress) {
  std::vector<report::Finding> found;
  if (!outcome.complete) return found;
  const Duration begin = outcome.measured_begin.time_since_epoch(), end = outcome.end.time_since_epoch();
  for (std::size_t i = 0; i < scenario.faults.size(); ++i) {
    const FaultSpec& fault = scenario.faults[i];
    const Spells spells = spells_of(fault, begin, end);
    const bool always = fault.at == Duration{} && !fault.lasts;
    if (fault.kind == FaultKind::gpu_down || always || spells.count == 0) continue;
    report::Finding finding{.severity = report::Severity::note,
                            .message = what_happened(fault, spells),
                            .path = fmt::format("faults[{}]", i),
                            .remedy = remedy(fault)};
    const bool stopped = progress != nullptr && progress->stopped();
    if (measured && !stopped && found.size() < kMostRuns) {
      Scenario without = scenario;
      without.faults.erase(without.faults.begin() + static_cast<std::ptrdiff_t>(i));
      executor::Progress own;
      if (progress != nullptr) own.stop_all = &progress->stop;
      SimulateOptions same = options;
      same.timeline = false;
      same.fold = true;  // the same step, sooner
      if (const auto sound = step_of(without, catalogue, prepared, same, &own)) {
        constexpr double kVisible = 5e-4, kWorthAWarning = 0.01;  // of the step
        finding.share = 1 - seconds(*sound) / seconds(step);
        const bool alone = scenario.faults.size() == 1;
        finding.message +=
            finding.share < kVisible
                ? fmt::format("; without that{} a step takes as long", alone ? "" : " alone")
                : fmt::format("; without that a step takes {}, {} less", report::duration_text(*sound),
                              report::percent_text(finding.share));
        if (finding.share >= kWorthAWarning) finding.severity = report::Severity::warning;
        if (finding.share < kVisible && alone) finding.remedy = "nothing to do for the step time";
      }
    }
    found.push_back(std::move(finding));
  }
  return found;
}
}  // namespace topsim::scenario
