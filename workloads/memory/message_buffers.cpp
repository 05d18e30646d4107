#include "workloads/memory/message_buffers.hpp"

#include <algorithm>

#include "workloads/compute/compute_model.hpp"
#include "workloads/schedule/tasks.hpp"

namespace topsim::workloads {
namespace {
// The largest number of micro-batches of a chunk between their forward and their backward pass.
int most_in_flight(const Plan& plan, int stage, int chunk) {
  int held = 0, most = 0;
  for (const StageTask& task : tasks_of(plan, stage)) {
    if (task.chunk != chunk) continue;
    if (task.action == Action::forward) most = std::max(most, ++held);
    if (task.action == Action::backward || task.action == Action::backward_input) --held;
  }
  return most;
}
}  // namespace

double message_buffers(const ModelSpec& model, const Plan& plan, int stage) {
  if (!plan.message_buffers || plan.pp == 1) return 0;
  const double element = bytes_of(plan.activations), m = plan.micro_batches;
  const double rows = plan.sequence_parallel ? plan.tokens() / plan.tp : plan.tokens();
  const double message = element * rows * model.hidden;
  double bytes = 0;
  for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
    const int global = plan.global_stage(stage, chunk);
    if (global > 0) bytes += 2 * (m - most_in_flight(plan, stage, chunk)) * message;
    bytes += global + 1 < plan.global_stages() ? 2 * m * message
                                               : (m - 1) * element * plan.predicted() * model.vocab / plan.tp;
  }
  return bytes;
}
}  // namespace topsim::workloads
