#include "workloads/compute/attention_tiles.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

namespace topsim::workloads {
namespace {

// Whole rounds of tiles before the last are spread evenly; these are played.
constexpr double kPlayedRounds = 32;
// FlashAttention-2 splits where fewer of the compute units than these have a tile.
constexpr double kFull = 0.8;
// 4 heads of 4 k tokens, 8 of 2 k and 2 of 8 k, one tile a unit of an H200, take 0.60 to 0.62 of the time
// that two tiles take which share it (tests/golden/accelerator, FlashAttention-2 forward).
constexpr double kAlone = 0.6;

// With a window a tile also passes over the keys of its own rows.
double longest(const AttentionTiles& tiles, const TileSchedule& schedule) {
  return tiles.window > 0 ? std::min(tiles.keys, tiles.window + schedule.rows) : tiles.keys;
}

// Without a mask half of the window is behind a tile's rows, so that the first tiles see as few keys as the
// last.
double keys_of(const AttentionTiles& tiles, const TileSchedule& schedule, double share_before) {
  const double before = tiles.keys * share_before;
  if (tiles.causal) return std::min(before, longest(tiles, schedule));
  const double ahead = tiles.window / 2, own = tiles.keys / std::ceil(tiles.rows / schedule.rows);
  return std::min({before + ahead, tiles.keys - before + own + ahead, longest(tiles, schedule)});
}

std::vector<double> tiles_of_a_head(const AttentionTiles& tiles, const TileSchedule& schedule) {
  std::vector<double> keys(static_cast<std::size_t>(std::ceil(tiles.rows / schedule.rows)));
  const auto count = static_cast<double>(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i)
    keys[i] = keys_of(tiles, schedule, static_cast<double>(i + 1) / count) + schedule.start;
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
  const double units = std::max(1, compute_units), places = units * schedule.at_once;
  const double of_a_head = std::ceil(tiles.rows / schedule.rows), all = tiles.heads * of_a_head;
  if (schedule.splits && all < kFull * units)
    return longest(tiles, schedule) / std::floor(places / std::max(1.0, all)) + schedule.start;
  const double shared = schedule.at_once > 1 && all <= units ? kAlone : 1;
  const double slack = 1e-9;  // of a quotient that is a whole number
  const bool sees_all = tiles.window <= 0 || tiles.window >= 2 * tiles.keys;
  if (!tiles.causal && sees_all)
    return shared * std::ceil(all / places - slack) * (tiles.keys + schedule.start);
  const std::vector<double> head = tiles_of_a_head(tiles, schedule);
  const double kept = std::min(std::ceil(tiles.heads), std::ceil(kPlayedRounds * places / of_a_head) + 1);
  return shared * (std::max(0.0, tiles.heads - kept) * total(head) / places +
                   played(head, static_cast<int>(kept), static_cast<std::size_t>(places)));
}
}  // namespace topsim::workloads
