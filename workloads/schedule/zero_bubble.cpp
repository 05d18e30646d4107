// Schedules with one chunk that put weight gradients off to where the pipeline would idle.
#include <algorithm>

#include "workloads/schedule/families.hpp"

namespace topsim::workloads::schedule {

// Stage r owes r weight gradients throughout, so that every stage holds p micro-batches.
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

// Warm-up 2 (p-r) - 1 forwards, just as many as fit before the first gradient returns: no stage waits for it.
// Stage r owes 2 r weight gradients throughout, which fill the end.
std::vector<StageTask> zb_2p(int stage, int stages, int micro_batches) {
  std::vector<StageTask> order;
  const int warm_up = std::min(2 * (stages - stage) - 1, micro_batches);
  for (int i = 0; i < warm_up; ++i) order.push_back({Action::forward, i, 0});
  int weights = 0;
  for (int i = 0; i < micro_batches; ++i) {
    order.push_back({Action::backward_input, i, 0});
    if (i >= 2 * stage) order.push_back({Action::backward_weight, weights++, 0});
    if (warm_up + i < micro_batches) order.push_back({Action::forward, warm_up + i, 0});
  }
  while (weights < micro_batches) order.push_back({Action::backward_weight, weights++, 0});
  return order;
}
}  // namespace topsim::workloads::schedule
