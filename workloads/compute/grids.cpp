#include "workloads/compute/grids.hpp"

#include <algorithm>
#include <cmath>

#include "sim/program/program.hpp"
#include "topology/generation.hpp"

namespace topsim::workloads {

static_assert(GridTimes::kSteps == std::tuple_size_v<program::Grids::PerStep>);

GridTimes& GridTimes::operator+=(const GridTimes& other) {
  in_waves += other.in_waves;
  persistent += other.persistent;
  count += other.count;
  traffic += other.traffic;
  for (std::size_t i = 0; i < kSteps; ++i) {
    more_waves[i] += other.more_waves[i];
    left_over[i] += other.left_over[i];
  }
  return *this;
}

GridTimes& GridTimes::operator*=(double k) {
  in_waves *= k, persistent *= k, count *= k, traffic *= k;
  for (std::size_t i = 0; i < kSteps; ++i) more_waves[i] *= k, left_over[i] *= k;
  return *this;
}

TileOrder tile_order(const topology::Accelerator& accelerator, bool fixed_tiles) {
  if (!topology::is_hopper(accelerator)) return TileOrder::in_turn;
  return fixed_tiles ? TileOrder::fixed : TileOrder::two_fixed;
}

GridTimes product_grid(double tiles, double seconds, int units, int margin, TileOrder order) {
  constexpr double kOwnTiles = 2;
  GridTimes times;
  const double own = std::max(1, units - margin);
  const double waves = std::ceil(tiles / own);
  const bool persistent = order != TileOrder::in_turn;
  (persistent ? times.persistent : times.in_waves) = seconds;
  if (persistent) times.count = 1;
  for (std::size_t i = 0; i < GridTimes::kSteps; ++i) {
    const int held = std::min(program::Grids::kStep * static_cast<int>(i + 1), units / 2);
    const double free = std::min(own, static_cast<double>(units - held));
    if (!persistent) {
      times.more_waves[i] = seconds * (std::ceil(tiles / free) / waves - 1);
    } else if (std::min(tiles, own) > free) {
      // The first block without a unit of its own gets every own-th tile from number `free` on, or keeps only
      // its first ones of these, and blocks with units multiply the others meanwhile.
      const double kept = std::ceil((tiles - free) / own);
      const double first = order == TileOrder::fixed ? kept : std::min(kept, kOwnTiles);
      const double meanwhile =
          order == TileOrder::fixed
              ? waves
              : std::max(std::ceil((tiles - (std::min(tiles, own) - free) * first) / free), first);
      times.left_over[i] = seconds * (meanwhile + first - waves) / waves;
    }
  }
  return times;
}
}  // namespace topsim::workloads
