#include "workloads/step/pipeline_routes.hpp"

#include <algorithm>

namespace topsim::workloads {

std::optional<Route> PipelineRoutes::input_of(const StageTask& task) const {
  const int global = plan_.global_stage(stage_, task.chunk);
  const bool forward_task = task.action == Action::forward;
  if (task.action == Action::backward_weight) return {};
  const int from = forward_task ? global - 1 : global + 1;
  if (from < 0 || from >= plan_.global_stages()) return {};
  return route(task.chunk, forward_task, true, from);
}

std::optional<Route> PipelineRoutes::output_of(const StageTask& task) const {
  const int global = plan_.global_stage(stage_, task.chunk);
  const bool forward_task = task.action == Action::forward;
  if (task.action == Action::backward_weight) return {};
  const int to = forward_task ? global + 1 : global - 1;
  if (to < 0 || to >= plan_.global_stages()) return {};
  return route(task.chunk, forward_task, false, to);
}

std::optional<Route> PipelineRoutes::route(int chunk, bool forward_task, bool receive, int other) const {
  if (slots_.turned_next != Slots::kNoSlot && !plan_.mirrored()) {
    const int other_stage = other < plan_.pp ? other : 2 * plan_.pp - 1 - other;
    if (other_stage == stage_) return {};  // the turn of the V
  }
  const bool towards_next = forward_task != receive;  // activations leave to `next`, gradients arrive from it
  if (turned(chunk))
    return towards_next
               ? Route{slots_.turned_next,
                       receive ? "receive gradients, second chunk" : "send activations, second chunk", false}
               : Route{slots_.turned_previous,
                       receive ? "receive activations, second chunk" : "send gradients, second chunk", false};
  const bool wraps = towards_next ? stage_ == plan_.pp - 1 : stage_ == 0;
  return towards_next ? Route{slots_.next, receive ? "receive gradients" : "send activations", wraps}
                      : Route{slots_.previous, receive ? "receive activations" : "send gradients", wraps};
}

// Megatron's interleaved schedule without overlap exchanges once per forward and the backward after it
// (send_forward_backward_recv_forward_backward in schedules.py); all other schedules exchange after every
// task.
std::vector<std::pair<std::size_t, std::size_t>> PipelineRoutes::exchanges(
    const std::vector<StageTask>& order) const {
  const auto is_forward = [](const StageTask& task) { return task.action == Action::forward; };
  const auto leading =
      static_cast<std::size_t>(std::find_if_not(order.begin(), order.end(), is_forward) - order.begin());
  const auto forwards = static_cast<std::size_t>(std::count_if(order.begin(), order.end(), is_forward));
  // The last leading forward already belongs to the steady state, unless all forwards are warm-up.
  const bool in_pairs = plan_.schedule == Schedule::interleaved && !plan_.overlap_p2p && leading < forwards;
  std::vector<std::pair<std::size_t, std::size_t>> result;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool pair =
        order[i].with_next || (in_pairs && i + 1 >= leading && i + 1 < order.size() && is_forward(order[i]));
    result.emplace_back(i, pair ? i + 1 : i);
    if (pair) ++i;
  }
  return result;
}
}  // namespace topsim::workloads
