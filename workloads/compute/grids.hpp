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
  GridTimes& operator+=(const GridTimes& other);
  GridTimes& operator*=(double k);
};

// Whether products of 16 and 8 bits are grids of at most as many blocks as units, each with a fixed share of
// the tiles. cuBLAS' on Hopper are ("all the matmuls look like they are using persistent kernels ... 132",
// pytorch/pytorch issue 143988; nvjet_sm90 launched as 2 x 66, NVIDIA/Fuser pull request 5742). Earlier ones
// launch one block per tile; on Blackwell resident blocks ask for the next tile as units come free (CUTLASS,
// blackwell_cluster_launch_control.html, which shows both beside a kernel that holds 20 of 100 SMs; that
// cuBLAS does as CUTLASS there is an assumption).
[[nodiscard]] bool has_persistent_products(const topology::Accelerator& accelerator);

// A product of `tiles` that takes `seconds` alone on `units`, of which it leaves `margin` free.
[[nodiscard]] GridTimes product_grid(double tiles, double seconds, int units, int margin, bool persistent);
}  // namespace topsim::workloads
