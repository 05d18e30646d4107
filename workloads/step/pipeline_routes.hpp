// The stages between which a pipeline's messages go, and the tasks after which they are exchanged.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "workloads/plan.hpp"
#include "workloads/schedule/tasks.hpp"
#include "workloads/step/stage_emitter.hpp"

namespace topsim::workloads {

struct Route {
  std::uint8_t slot;
  std::string_view stream;
  bool wraps;  // between the last stage and the first
};

// Of one stage. REQUIRES: plan and slots outlive it.
class PipelineRoutes {
 public:
  PipelineRoutes(const Plan& plan, const Slots& slots, int stage)
      : plan_(plan), slots_(slots), stage_(stage) {}

  // The source of the task's input; none when it is computed here.
  [[nodiscard]] std::optional<Route> input_of(const StageTask& task) const;
  [[nodiscard]] std::optional<Route> output_of(const StageTask& task) const;
  // The tasks between two exchanges with the neighbours, as [first, last] of the order.
  [[nodiscard]] std::vector<std::pair<std::size_t, std::size_t>> exchanges(
      const std::vector<StageTask>& order) const;

 private:
  [[nodiscard]] bool turned(int chunk) const { return slots_.turned_next != Slots::kNoSlot && chunk == 1; }
  [[nodiscard]] std::optional<Route> route(int chunk, bool forward_task, bool receive, int other) const;

  const Plan& plan_;
  const Slots& slots_;
  int stage_;
};
}  // namespace topsim::workloads
