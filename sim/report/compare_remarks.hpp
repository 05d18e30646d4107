// How a comparison was computed, and what it leaves out: what readers of its verdict have to know.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/report/compare.hpp"

namespace topsim::report {
// REQUIRES: step_relative of `comparison` is filled.
[[nodiscard]] std::vector<std::string> remarks(const Comparison& comparison,
                                               std::span<const Candidate> candidates);
}  // namespace topsim::report
