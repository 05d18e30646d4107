// The page of a comparison.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/report/compare.hpp"
#include "sim/report/html/page.hpp"

namespace topsim::report {

// What the page shows: JSON texts, so that Python can keep them and write the page later.
struct ComparePage {
  std::vector<std::string> names;
  std::string comparison;            // compare_json()
  std::vector<std::string> results;  // by candidate, to_json()
  std::vector<std::string> bills;    // by candidate, bom_json(), or null
};
[[nodiscard]] ComparePage compare_page(const Comparison& comparison, std::span<const Candidate> candidates);
[[nodiscard]] std::string compare_html(const ComparePage& page);
}  // namespace topsim::report
