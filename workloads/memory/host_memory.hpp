// What offload keeps in host memory. Of every parameter that a rank updates: fp32 master copy 4, both moments
// 8 and the gradient 4 (ZeRO-Offload: Ren et al. 2021, section 4), 16 bytes; FSDP's master copy is the
// parameters themselves, and all of it may be 16 bits (step/offload.hpp). With NVMe the states are there, and
// what waits for it in host memory is not counted. Neither are pinned buffers, the processes and the
// operating system.
#pragma once

#include <vector>

#include "workloads/memory/memory.hpp"

namespace topsim::workloads {

// Of one rank of a stage, which updates `updates` parameters; `weights`: bytes of those that it keeps between
// passes, wherever they are.
[[nodiscard]] double bytes_on_host(const ModelSpec& model, const Plan& plan, int stage, double updates,
                                   double weights);
// Of the node whose ranks keep most: nodes hold `per_node` consecutive ranks.
[[nodiscard]] double most_on_a_host(const Plan& plan, const std::vector<MemoryParts>& stages, int per_node);
}  // namespace topsim::workloads
