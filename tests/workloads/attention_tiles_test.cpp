// When the last tile of an attention kernel is done, in keys.
#include "workloads/compute/attention_tiles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <random>
#include <vector>

namespace topsim::workloads::attention_tiles_test {

constexpr TileSchedule kPlain{.start = 10};
constexpr double kRows = 128;

// 5 tiles of 1,000 keys and a start on 2 units: three rounds.
TEST(AttentionTiles, WithoutAMaskEveryRoundTakesAsLong) {
  const AttentionTiles tiles{.heads = 5, .rows = 128, .keys = 1000, .causal = false};
  EXPECT_DOUBLE_EQ(keys_until_done(tiles, kPlain, 2), 3 * 1010);
  EXPECT_DOUBLE_EQ(keys_until_done(tiles, kPlain, 5), 1010);
  EXPECT_DOUBLE_EQ(keys_until_done(tiles, kPlain, 500), 1010);
}

// 4 tiles that see 128, 256, 384 and 512 keys, on one unit 1,280 and four starts. On two, the shortest first:
// 1 and 3 blocks on one, 2 and 4 on the other; the longest first: 4 and 1, 3 and 2.
TEST(AttentionTiles, UnitsTakeTheNextTileWhenTheyAreFree) {
  const AttentionTiles tiles{.heads = 1, .rows = 512, .keys = 512};
  EXPECT_DOUBLE_EQ(keys_until_done(tiles, kPlain, 1), 1280 + 4 * 10);
  EXPECT_DOUBLE_EQ(keys_until_done(tiles, kPlain, 2), 6 * 128 + 2 * 10);
  EXPECT_DOUBLE_EQ(keys_until_done(tiles, {.start = 10, .longest_first = true}, 2), 5 * 128 + 2 * 10);
  // Two tiles that share a unit are two places.
  EXPECT_DOUBLE_EQ(keys_until_done(tiles, {.start = 10, .at_once = 2}, 1), 6 * 128 + 2 * 10);
}

// A window of 128 ends within the block before: 128, 256, 256 and 256 keys.
TEST(AttentionTiles, AWindowCostsTheBlockInWhichItEnds) {
  const AttentionTiles tiles{.heads = 1, .rows = 512, .keys = 512, .window = 128};
  EXPECT_DOUBLE_EQ(keys_until_done(tiles, kPlain, 1), 896 + 4 * 10);
}

// Without a mask 64 keys before and 64 behind the 128 of a tile: 192, 256, 256 and 192. A window as wide as
// the keys leaves some out for the first and the last tile, 384, 512, 512 and 384; twice as wide, none.
TEST(AttentionTiles, AWindowWithoutAMaskIsHalfOnEachSide) {
  AttentionTiles tiles{.heads = 1, .rows = 512, .keys = 512, .causal = false, .window = 128};
  EXPECT_DOUBLE_EQ(keys_until_done(tiles, kPlain, 1), 896 + 4 * 10);
  EXPECT_DOUBLE_EQ(keys_until_done(tiles, kPlain, 4), 256 + 10);
  tiles.window = 512;
  EXPECT_DOUBLE_EQ(keys_until_done(tiles, kPlain, 1), 2 * (384 + 512) + 4 * 10);
  tiles.window = 1024;
  EXPECT_DOUBLE_EQ(keys_until_done(tiles, kPlain, 1), 4 * (512 + 10));
}

// 2 heads of 4 tiles on 32 units are below 0.8 of them: each is split in four, or in eight where two share a
// unit. 7 heads are 28 tiles: not split.
TEST(AttentionTiles, FewTilesAreSplitWhereTheLibraryDoes) {
  const TileSchedule splits{.start = 10, .splits = true};
  EXPECT_DOUBLE_EQ(keys_until_done({.heads = 2, .rows = 512, .keys = 512}, splits, 32), 512 / 4 + 10);
  EXPECT_DOUBLE_EQ(keys_until_done({.heads = 7, .rows = 512, .keys = 512}, splits, 32), 522);
  const TileSchedule two{.start = 10, .at_once = 2, .splits = true};
  EXPECT_DOUBLE_EQ(keys_until_done({.heads = 2, .rows = 512, .keys = 512}, two, 32), 512 / 8 + 10);
}

// 4 tiles on 4 units, of which each could have two: 0.6 of 522. On 3 units two of them share one.
TEST(AttentionTiles, ATileAloneOnItsUnitIsFaster) {
  const TileSchedule two{.start = 10, .at_once = 2};
  EXPECT_DOUBLE_EQ(keys_until_done({.heads = 1, .rows = 512, .keys = 512}, two, 4), 0.6 * 522);
  EXPECT_DOUBLE_EQ(keys_until_done({.heads = 1, .rows = 512, .keys = 512}, two, 3), 522);
}

// One core takes all tiles, one after the other: 1,280 keys and four starts, of half a head as of a whole
// one; 3.5 heads on it are 3.5 times as long. 300 rows are three tiles.
TEST(AttentionTiles, WithoutUnitsNothingWaits) {
  EXPECT_DOUBLE_EQ(keys_until_done({.heads = 1, .rows = 512, .keys = 512}, kPlain, 0), 1280 + 4 * 10);
  EXPECT_NEAR(keys_until_done({.heads = 100.5, .rows = 512, .keys = 512}, kPlain, 0), 100.5 * 1320, 1320);
  EXPECT_DOUBLE_EQ(keys_until_done({.heads = 1, .rows = 300, .keys = 300}, kPlain, 0), 600 + 3 * 10);
}

// 3,000 heads of 4 tiles on 2 units are far more than what is played. Each head has 10 blocks and 4 starts,
// so an even share is 3,000 x 1,320 / 2; the end is later by less than the longest tile.
TEST(AttentionTiles, ManyHeadsAreAnEvenShareAndATail) {
  const AttentionTiles tiles{.heads = 3000, .rows = 512, .keys = 512};
  const double even = 3000 * 1320 / 2.0;
  EXPECT_GE(keys_until_done(tiles, kPlain, 2), even);
  EXPECT_LT(keys_until_done(tiles, kPlain, 2), even + 522);
  EXPECT_LT(keys_until_done(tiles, {.start = 10, .longest_first = true}, 2), even + 522);
}

// Every tile played, in order.
double played(const AttentionTiles& tiles, const TileSchedule& schedule, int units) {
  std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
  for (int i = 0; i < units; ++i) free_at.push(0);
  const int count = static_cast<int>(tiles.rows / kRows);
  double last = 0;
  for (int head = 0; head < tiles.heads; ++head) {
    for (int i = 0; i < count; ++i) {
      const int tile = schedule.longest_first ? count - 1 - i : i;
      const double end = free_at.top() + (tile + 1) * kRows + schedule.start;
      free_at.pop();
      free_at.push(end);
      last = std::max(last, end);
    }
  }
  return last;
}

// No unit is idle while a tile waits, so the end lies between an even share (or the longest tile) and an even
// share and the longest tile. Of many heads only the last are played, which changes less than 2 %.
TEST(AttentionTiles, TheEndIsThatOfThePlayedScheduleOnSeededShapes) {
  std::mt19937_64 random(7);
  const auto pick = [&](int from, int to) { return std::uniform_int_distribution<>(from, to)(random); };
  for (int i = 0; i < 200; ++i) {
    const int count = pick(1, 64), units = pick(1, 160);
    const AttentionTiles tiles{
        .heads = static_cast<double>(pick(1, 256)), .rows = count * kRows, .keys = count * kRows};
    const TileSchedule schedule{.start = static_cast<double>(pick(0, 600)), .longest_first = pick(0, 1) == 1};
    const double end = keys_until_done(tiles, schedule, units);
    const double even = tiles.heads * count * ((count + 1) * kRows / 2 + schedule.start) / units;
    const double longest = tiles.keys + schedule.start;
    EXPECT_GE(end, std::max(even, longest) * (1 - 1e-9)) << i;
    EXPECT_LE(end, even + longest) << i;
    EXPECT_NEAR(end, played(tiles, schedule, units), 0.02 * end) << i;
  }
}
}  // namespace topsim::workloads::attention_tiles_test
