#include "sim/scenario/network_findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

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

}  // namespace

void add_network_findings(const Runs& runs, const executor::RunOptions& run, const executor::Outcome& outcome,
                          bool interval, executor::Progress* progress, report::Result& result) {
  for (const std::string& remark : outcome.network_remarks)
    result.findings.push_back({report::Severity::warning,
                               remark,
                               run.network == "packet" ? "network.packet" : "network.model",
                               {}});
  if (outcome.least_efficiency >= 1 || !outcome.complete) return;
  report::Finding met;
  met.message = fmt::format(
      "ports where flows meet carry as little as {:.1f} % of their capacity, as packets do (topsim "
      "calibrate)",
      100 * outcome.least_efficiency);
  // Two more runs, left out where one already takes many seconds.
  constexpr std::uint64_t kMostEvents = 2'000'000;
  if (interval && outcome.events > kMostEvents) {
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
