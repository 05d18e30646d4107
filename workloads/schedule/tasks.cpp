#include "workloads/schedule/tasks.hpp"

#include <utility>

namespace topsim::workloads {

std::vector<StageTask> tasks_of(const Plan& plan, int stage) {
  if (plan.inference()) {
    std::vector<StageTask> order;
    for (int m = 0; m < plan.micro_batches; ++m)
      order.push_back({Action::forward, m, 0, plan.experts.overlap && m % 2 == 0});
    return order;
  }
  if (!plan.orders.empty()) return plan.orders[static_cast<std::size_t>(stage)];
  std::vector<StageTask> order = order_of(plan.schedule, stage, plan.pp, plan.micro_batches, plan.chunks());
  if (!plan.experts.overlap || plan.mirrored()) return order;
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    if (order[i].action != Action::backward || order[i + 1].action != Action::forward) continue;
    std::swap(order[i], order[i + 1]);
    order[i].with_next = true;
    ++i;
  }
  return order;
}
}  // namespace topsim::workloads
