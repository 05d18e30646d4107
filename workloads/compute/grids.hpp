// How many blocks a matrix product launches and how units are assigned to them, which decides how much it
// slows beside communication that holds some units (sim/executor/compute_state.hpp).
#pragma once

#include <array>
#include <cstdint>

#include "topology/catalogue.hpp"

namespace topsim::workloads {

// Of a run of kernels, in seconds: program::Grids before it is divided by the run's time.
struct GridTimes {
  static constexpr std::size_t kSteps = 4;
  double in_waves = 0;
  std::array<double, kSteps> more_waves{};
  double persistent = 0;
  std::array<double, kSteps> left_over{};
  double count = 0;
  double traffic = 0;  // what their operands and results take of the memory's time
  GridTimes& operator+=(const GridTimes& other);
  GridTimes& operator*=(double k);
};

// Whose tiles a block of a product multiplies.
enum class TileOrder : std::uint8_t {
  // One block per tile, or resident blocks that ask for the next tile as units come free. Chips before
  // Hopper; Blackwell (CUTLASS, blackwell_cluster_launch_control.html, beside a kernel that holds 20 of
  // 100 SMs; that cuBLAS does as CUTLASS there is an assumption).
  in_turn,
  // A persistent grid of at most as many blocks as units, each with a share of its own. cuBLAS on Hopper
  // until 2024 ("all the matmuls look like they are using persistent kernels ... 132", twice as long
  // beside NCCL, pytorch/pytorch issue 143988).
  fixed,
  // Each block of such a grid has two tiles of its own, and asks for the others. nvjet_sm90 of cuBLAS 13,
  // launched as 2 x 66, on an H100 beside kernels that held 4 to 24 SMs: products of W = 1, 2, 3, 4 and 8
  // waves took 1.88, 1.88, 1.56, 1.42 and 1.25 times as long, of 14 and 22 waves 1.15 to 1.25 and 1.1 to
  // 1.2. Expected are 2 for one wave and (W + 2) / W beyond; a slower product draws less power and keeps
  // a clock that is up to 6 % higher (tests/golden/accelerator/h100-sxm5.json).
  two_fixed,
};

// `fixed_tiles`: of a library until 2024, where that matters.
[[nodiscard]] TileOrder tile_order(const topology::Accelerator& accelerator, bool fixed_tiles);

// A product of `tiles` that takes `seconds` alone on `units`, of which it leaves `margin` free.
[[nodiscard]] GridTimes product_grid(double tiles, double seconds, int units, int margin, TileOrder order);
}  // namespace topsim::workloads
