// Schedules with one chunk that postpone weight gradients to times at which the pipeline would be idle.
#include <algorithm>

#include "workloads/schedule/automatic.hpp"
#include "workloads/schedule/families.hpp"

namespace topsim::workloads::schedule {

// Stage r always has r weight gradients outstanding, so every stage holds p micro-batches.
std::vector<StageTask> zb_h1(int stage, int stages, int micro_batches) {
  std::vector<StageTask> order;
  const int warm_up = std::min(stages - 1 - stage, micro_batches);
  for (int i = 0; i < warm_up; ++i) order.push_back({Action::forward, i, 0});
  int weights = 0;
  for (int i = 0; i < micro_batches; ++i) {
    if (warm_up + i < micro_batches) order.push_back({Action::forward, warm_up + i, 0});
    order.push_back({Action::backward_input, i, 0});
    if (i >= stage) order.push_back({Action::backward_weight, weights++, 0});
  }
  while (weights < micro_batches) order.push_back({Action::backward_weight, weights++, 0});
  return order;
}

// With equal times the warm-up has 2 (p-r) - 1 forwards, and stage r always has 2 r weight gradients
// outstanding.
std::vector<StageTask> zb_2p(int stage, int stages, int micro_batches) {
  const PassCosts equal{Duration(1), Duration(1), Duration(1), 1};
  const PipelineCosts costs{std::vector(static_cast<std::size_t>(stages), equal), {}, 2 * stages};
  return automatic(costs, micro_batches)[static_cast<std::size_t>(stage)];
}
}  // namespace topsim::workloads::schedule
