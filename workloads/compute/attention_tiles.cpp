#include "workloads/compute/attention_tiles.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace topsim::workloads {
namespace {

// Whole rounds of tiles before the last are spread evenly; these are played.
constexpr double kPlayedRounds = 32;
// FlashAttention-2 splits where fewer of the places than these have a tile.
constexpr double kFull = 0.8;

double longest(const AttentionTiles& tiles, const TileSchedule& schedule) {
  return tiles.causal && tiles.window > 0 ? std::min(tiles.keys, tiles.window + schedule.window_block)
                                          : tiles.keys;
}

std::vector<double> tiles_of_a_head(const AttentionTiles& tiles, const TileSchedule& schedule) {
  std::vector<double> keys(static_cast<std::size_t>(std::ceil(tiles.rows / kTileRows)));
  const auto count = static_cast<double>(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i)
    keys[i] =
        std::min(tiles.keys * static_cast<double>(i + 1) / count, longest(tiles, schedule)) + schedule.start;
  if (schedule.longest_first) std::reverse(keys.begin(), keys.end());
  return keys;
}

double played(const std::vector<double>& head, int heads, std::size_t places) {
  std::vector<double> free_at(places, 0);  // a heap, the earliest in front
  for (int h = 0; h < heads; ++h) {
    for (const double keys : head) {
      std::pop_heap(free_at.begin(), free_at.end(), std::greater<>());
      free_at.back() += keys;
      std::push_heap(free_at.begin(), free_at.end(), std::greater<>());
    }
  }
  return *std::max_element(free_at.begin(), free_at.end());
}

double total(const std::vector<double>& keys) {
  double sum = 0;
  for (const double each : keys) sum += each;
  return sum;
}
}  // namespace

double keys_until_done(const AttentionTiles& tiles, const TileSchedule& schedule, int compute_units) {
  const double places = std::max(1, compute_units) * schedule.at_once;
  const double of_a_head = std::ceil(tiles.rows / kTileRows), all = tiles.heads * of_a_head;
  if (schedule.splits && all < kFull * places) {
    const double parts = std::floor(places / std::max(1.0, all));
    return longest(tiles, schedule) / parts + schedule.start;
  }
  if (!tiles.causal) return std::ceil(all / places - 1e-9) * (tiles.keys + schedule.start);
  const std::vector<double> head = tiles_of_a_head(tiles, schedule);
  const double kept = std::min(std::ceil(tiles.heads), std::ceil(kPlayedRounds * places / of_a_head) + 1);
  return std::max(0.0, tiles.heads - kept) * total(head) / places +
         played(head, static_cast<int>(kept), static_cast<std::size_t>(places));
}
}  // namespace topsim::workloads
