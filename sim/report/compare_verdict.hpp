// The sentences of a comparison: which candidate is faster by how much, what causes the difference, and what
// it costs.
#pragma once

#include "sim/report/compare.hpp"

namespace topsim::report {
// REQUIRES: rows and step_relative of `comparison` are filled.
[[nodiscard]] std::string verdict(const Comparison& comparison, std::span<const Candidate> candidates);
// Adds to the verdict that the candidates are single runs, because a result among them has no samples.
void say_single_runs(Comparison& comparison);
}  // namespace topsim::report
