// How a matrix product is cut: into tiles of its result, and its inner dimension into parts where tiles leave
// units idle (compute_model.hpp).
#pragma once

#include "sim/base/units.hpp"
#include "topology/catalogue.hpp"

namespace topsim::workloads {
struct GemmShape;

// The fastest cut: its time, and its number of blocks.
struct Tiling {
  double seconds = 0, tiles = 0;
};

// The tile model alone: no operands to stream, no fixed time, no ceiling. `peak_rate` in FLOP/s, `margin`:
// units that the product leaves free, `fixed`: of the kernel that adds up parts.
[[nodiscard]] Tiling tiling_of(const GemmShape& shape, const topology::Accelerator& accelerator,
                               double peak_rate, const topology::GemmConstants& constants, int margin,
                               Duration fixed);
// Share of the peak that a product of the largest tiles reaches.
[[nodiscard]] double largest_tile_efficiency(const topology::GemmConstants& constants);
}  // namespace topsim::workloads
