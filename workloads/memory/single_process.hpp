// Memory of torch.nn.DataParallel. Psi parameters, T tokens of a replica, V vocabulary, n devices; autocast:
//   device 0     weights 4 + 16-bit copies 2, its replica's gradients 4, the sum of all 4 (and 4 more that
//                earlier micro-batches left), moments 8: 22 or 26 Psi; all outputs in 16 bits and, for the
//                loss, in 32: 6 n T V
//   the others   broadcast weights 4 + 2 and gradients 4: 10 Psi
//
// and on each its own activations and output.
#pragma once

#include "workloads/memory/memory.hpp"

namespace topsim::workloads {

// Two entries: device 0 and any other. REQUIRES: plan.single_process.
[[nodiscard]] MemoryUse single_process_memory(const ModelSpec& model, const Plan& plan, Bytes capacity);
}  // namespace topsim::workloads
