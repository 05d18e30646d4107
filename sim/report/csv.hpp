// Tidy tables, one per topic, SI units; the first column names the scenario so that files concatenate.
#pragma once

#include <string>
#include <string_view>

#include "sim/report/result.hpp"
#include "sim/report/timeline.hpp"

namespace topsim::report {
// RFC 4180: quoted only where necessary.
[[nodiscard]] std::string csv_field(std::string_view text);

// scenario,metric,value; "complete" is 1, or 0 of a run that was stopped, whose figures of a step are empty
// where none ended.
[[nodiscard]] std::string summary_csv(const Result& result);
[[nodiscard]] std::string links_csv(const Result& result);
[[nodiscard]] std::string ranks_csv(const Result& result);
[[nodiscard]] std::string collectives_csv(const Result& result);
[[nodiscard]] std::string timeline_csv(const std::string& scenario, const Timeline& timeline);
}  // namespace topsim::report
