// A result's totals cover all measured steps; people compare them with the step time, so screens show them
// per step.
#pragma once

#include <algorithm>

#include "sim/report/result.hpp"

namespace topsim::report {

[[nodiscard]] inline double measured_steps(const Result& result) {
  return static_cast<double>(std::max<std::size_t>(result.step_times.size(), 1));
}

[[nodiscard]] inline double bytes_per_step(const Result& result, const LinkRow& row) {
  return static_cast<double>(row.bytes.value()) / measured_steps(result);
}

// Calls in which a rank takes part, mean over all ranks: `calls` counts those of every communicator, and each
// has group_size ranks. Times `each` it is what a rank spends in them per step, hidden or not.
[[nodiscard]] inline double calls_of_a_rank_per_step(const Result& result, const CollectiveRow& row) {
  const double ranks = std::max<double>(result.accelerators, 1);
  return static_cast<double>(row.calls) * row.group_size / ranks / measured_steps(result);
}
}  // namespace topsim::report
