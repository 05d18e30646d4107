// In which order a pipeline stage works on its micro-batches: plain lists, one a stage.
//
// p stages, m micro-batches, v chunks of the model on a stage; F forward, B backward = I (input gradient) + W
// (weight gradient); times without transfer, equal stages. training-and-collectives.md 4.8:
//   GPipe        bubble (p-1)(F+B)        Huang et al. 2019
//   1F1B         bubble (p-1)(F+B)        Narayanan et al. 2019; at most p-r micro-batches held
//   interleaved  bubble (p-1)(F+B)/v      Narayanan et al. SC'21; F, B of all the stage's chunks together
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/spec.hpp"

namespace topsim::workloads {

enum class Action : std::uint8_t { forward, backward, backward_input, backward_weight };

struct StageTask {
  Action action = Action::forward;
  int micro_batch = 0;
  int chunk = 0;
  bool operator==(const StageTask&) const = default;
};

// REQUIRES: 0 <= stage < stages; interleaved: micro_batches a multiple of stages.
[[nodiscard]] std::vector<StageTask> order_of(Schedule schedule, int stage, int stages, int micro_batches,
                                         int chunks);
}  // namespace topsim::workloads
