// A finished search as people and programs read it.
#pragma once

#include <string>

#include "sim/study/plan_search.hpp"

namespace topsim::study {
// "tp 8 pp 8 dp 16 micro-batch 1 ..."
[[nodiscard]] std::string plan_words(const PlanRow& row);
// What `row` loses to `best`: the largest parts of the difference, with their seconds.
[[nodiscard]] std::string why_slower(const PlanRow& row, const PlanRow& best);

[[nodiscard]] std::string plan_table(const PlanReport& report, std::size_t columns);
[[nodiscard]] std::string plan_json(const PlanReport& report);  // "topsim.plan/1"
// The scenario with the best plan; it describes itself, because the cluster may have another size than the
// one that its file describes. REQUIRES: report.complete.
[[nodiscard]] std::string best_plan_json(const PlanReport& report);
}  // namespace topsim::study
