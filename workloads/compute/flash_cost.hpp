// The time of one attention kernel that never stores its scores: its tiles at its rate (flash.hpp), or its
// queries, keys, values and answer through the memory, whichever takes longer.
#pragma once

#include <cstdint>

#include "workloads/compute/compute_model.hpp"
#include "workloads/compute/flash.hpp"

namespace topsim::workloads {

enum class FlashDirection : std::uint8_t { forward, backward };

// `element`: bytes of a number. No FLOPs and no launches are set; nothing for an empty shape.
[[nodiscard]] KernelCost flash_cost(const topology::Accelerator& accelerator, const AttentionShape& shape,
                                    const FlashPass& pass, FlashDirection direction, double element);
}  // namespace topsim::workloads
