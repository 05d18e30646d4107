// What postponed weight gradients still need (memory.hpp, StageActivations).
#pragma once

#include "workloads/model.hpp"
#include "workloads/plan.hpp"

namespace topsim::workloads {

// Bytes of one micro-batch on a part of the model. REQUIRES: stage in [0, plan.global_stages()).
[[nodiscard]] double bytes_until_weight(const ModelSpec& model, const Plan& plan, int stage);
}  // namespace topsim::workloads
