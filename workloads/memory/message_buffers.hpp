// What torch.distributed.pipelining keeps beside activations (stage.py). Every stage of the model has, until
// the step ends, for each of its m micro-batches of messages of S bytes, f of them in flight:
//   what it receives forward (S: of those in flight the first layer's input) and their gradients   2 (m - f)
//   S what it receives backward, and what it answered                                                2 m S
// The first receives nothing forward, the last nothing backward; its answers are logits, of which the loss
// counts those of one micro-batch.
#pragma once

#include "workloads/model.hpp"
#include "workloads/plan.hpp"

namespace topsim::workloads {

// Bytes of pipeline stage `stage`, all its parts of the model together.
[[nodiscard]] double message_buffers(const ModelSpec& model, const Plan& plan, int stage);
}  // namespace topsim::workloads
