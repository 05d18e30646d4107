// What a stage of a plan does in one step, in order: the schedule's list, and
// where experts overlap its steady state in pairs. There a backward and the
// forward after it are independent; both start together, the forward first
// (Megatron: combined_1f1b.py), so that one more micro-batch is held.
#pragma once

#include <vector>

#include "workloads/plan.hpp"
#include "workloads/schedule/schedule.hpp"

namespace topsim::workloads {

[[nodiscard]] std::vector<StageTask> tasks_of(const Plan& plan, int stage);
}  // namespace topsim::workloads
