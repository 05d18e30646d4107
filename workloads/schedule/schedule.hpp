// The order in which a pipeline stage works on its micro-batches: plain lists, one per stage.
//
// p stages, m micro-batches, v chunks of the model on a stage, r the stage; F forward, B = I + W backward,
// its input and weight gradients; equal stages, transfers free. Bubble:
// idle time of a stage between the step's first and last task of any stage.
//   gpipe        (p-1)(F+B)            m micro-batches held         Huang et al. 2019
//   1f1b         (p-1)(F+B)            p-r                          Narayanan et al., SOSP'19
//   interleaved  (p-1)(F+B)/v          p (1 + (p-1)/(p v)) at r=0   Narayanan et al., SC'21
//   zb-h1        (p-1)(F+B-2W)         p                            Qi et al., Zero Bubble, 2023
//   zb-1p        (p-1)(F+I-W)          p on every stage             the same
//   zb-2p        0 (see below)         2p                           the same
//   zb-v         (p-1) F/2             p                            Qi et al., Controllable Memory, 2024
//   dualpipe     (p/2-1)(F+B-3W + B)   p+1, parameters twice        DeepSeek-V3 report, 2024
// zb-1p, zb-2p: between a stage's own first and last task (zb-2p for m >= 2p); their orders are made for a
// plan's times and memory (automatic.hpp). zb-v: for I = W = F, F of a whole stage.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/spec.hpp"

namespace topsim::workloads {

enum class Action : std::uint8_t { forward, backward, backward_input, backward_weight };

struct StageTask {
  Action action = Action::forward;
  int micro_batch = 0;
  int chunk =
      0;  // zb-v: 0 on the way down, 1 on the way back; dualpipe: 0 from the first stage, 1 from the last
  // Runs together with the task after it: the kernels of one hide the communication of the other (dualpipe).
  bool with_next = false;
  bool operator==(const StageTask&) const = default;
};

// zb-1p, zb-2p: the orders for equal times. REQUIRES: 0 <= stage < stages; interleaved: micro_batches a
// multiple of stages; dualpipe: stages even, micro_batches even and at least 2 x stages.
[[nodiscard]] std::vector<StageTask> order_of(Schedule schedule, int stage, int stages, int micro_batches,
                                              int chunks);
}  // namespace topsim::workloads
