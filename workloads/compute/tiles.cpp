#include "workloads/compute/tiles.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "topology/generation.hpp"
#include "workloads/compute/compute_model.hpp"

namespace topsim::workloads {
namespace {
// The last two are for the few rows of generated tokens: cuBLAS' cutlass_80_wmma_tensorop_..._16x16_128x2 and
// 32x32_128x2 on Ampere, as named in traces.
constexpr std::array<std::pair<double, double>, 8> kTiles{
    {{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}, {32, 64}, {16, 64}}};
// Products of Hopper and of data-center Blackwell take tiles of any multiple of 8 rows up to 256 (PTX ISA,
// wgmma and tcgen05: N), with operands swapped; cuBLAS there launches nvjet_..._64x8, 128x16, 256x96,
// 168x128.
constexpr double kRowStep = 8, kMostRows = 256;
constexpr std::array<double, 2> kSteppedColumns{64, 128};
// The tile of kernels that expand narrow weights as they read them: 16 rows (IST-DASLab/marlin).
constexpr std::pair<double, double> kNarrowTile{16, 256};
// Bytes of one partial sum over K, in fp32, written and read again where K is split over units that tiles
// alone would leave idle (cuBLAS: splitKreduce_kernel, frequent in traces of generation; Marlin adds the
// parts in the same kernel).
constexpr double kPartialSum = 8;

// Of K, what a tile of a grouped kernel takes before and after its products: its blocks learn whose tile
// comes next when one is done, and hide nothing of it. torch._grouped_mm on an H100 (CUTLASS' kernels for
// pointers), 4 to 128 experts of equal size, forward and both gradients: 473 to 537 TFLOP/s at a depth of 512
// to 768, 578 to 724 at 2,048 and deeper (tests/golden/accelerator/h100-sxm5.json). Without this depth they
// are predicted 16 % too short, with it 2 %. No chip but a Hopper was seen.
constexpr double kGroupedDepth = 300;

double tile_efficiency(const std::pair<double, double>& tile, const topology::GemmConstants& constants) {
  return constants.peak_fraction / (1 + constants.tile_penalty * (1 / tile.first + 1 / tile.second));
}

bool has_stepped_tiles(const topology::Accelerator& accelerator) {
  return topology::is_hopper(accelerator) || topology::is_data_center_blackwell(accelerator);
}
}  // namespace

double largest_tile_efficiency(const topology::GemmConstants& constants) {
  return tile_efficiency(kTiles.front(), constants);
}

Tiling tiling_of(const GemmShape& shape, const topology::Accelerator& accelerator, double peak_rate,
                 const topology::GemmConstants& constants, int margin, Duration fixed) {
  const double units = std::max(1, accelerator.compute_units);
  const double used = std::max(1.0, units - margin);
  Tiling best{std::numeric_limits<double>::infinity(), 0};
  const double bandwidth = accelerator.memory_bandwidth.value() * constants.memory_fraction;
  const double partial = kPartialSum * shape.batch * shape.m * shape.n / bandwidth;
  const double apart = shape.weight_bytes > 0 ? 0 : seconds(fixed);
  const bool starts = shape.grouped && topology::is_hopper(accelerator);
  const double offset = constants.k_offset + (starts ? kGroupedDepth : 0);
  const auto consider = [&](double tm, double tn) {
    const double tiles = shape.batch * std::ceil(shape.m / tm) * std::ceil(shape.n / tn);
    const double deep = units * tm * tn * 2 / (peak_rate * tile_efficiency({tm, tn}, constants));
    const auto divided = [&](double parts) {
      const double waves = std::ceil(parts * tiles / used);
      const double sums = parts > 1 ? parts * partial + apart : 0;
      const double time = waves * deep * (shape.k / parts + offset) + sums;
      if (time < best.seconds) best = {time, parts * tiles};
    };
    divided(1);
    // One wave of `parts` takes deep k / parts + parts x partial, which is least at the square root of their
    // ratio.
    const double most = std::floor(used / tiles), least = std::floor(std::sqrt(deep * shape.k / partial));
    for (const double parts : {least, least + 1})
      if (parts > 1 && parts <= most) divided(parts);
    if (most > 1 && most < least) divided(most);
  };
  for (const auto& [tm, tn] : kTiles) consider(tm, tn);
  if (has_stepped_tiles(accelerator)) {
    const double rows = std::ceil(shape.m / std::ceil(shape.m / kMostRows) / kRowStep) * kRowStep;
    for (const double columns : kSteppedColumns) consider(rows, columns);
  }
  if (shape.weight_bytes > 0) consider(kNarrowTile.first, kNarrowTile.second);
  return best;
}
}  // namespace topsim::workloads
