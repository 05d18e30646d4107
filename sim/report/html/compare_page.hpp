// The page of a comparison.
#pragma once

#include <span>
#include <string>

#include "sim/report/compare.hpp"
#include "sim/report/html/page.hpp"

namespace topsim::report {
[[nodiscard]] std::string compare_html(const Comparison& comparison, std::span<const Candidate> candidates);
}  // namespace topsim::report
