// The tiles of an attention kernel, and when the last of them is done.
//
// A tile holds some queries of one head (forward) or keys (backward) and passes over the keys, or queries,
// that its rows see. With a causal mask those are few for the first tiles and all for the last. The time of a
// tile is that of its keys and of a start, worth so many keys. Compute units take tiles in order, head by
// head, each the next one when it is free:
//
//   neither mask nor window  ceil(tiles / units) x (keys + start)
//   with one                 the schedule is played, until about  sum / units + 0.5 x longest
//
// It ends later where few tiles come, the shortest of a head first, and earlier where the longest come first.
// So a head more costs nothing where units were idle, and few heads wait for their longest tile.
//
// A library of which two tiles share a unit: one that has a unit to itself takes 0.6 of the time. Where fewer
// than 0.8 of the units have a tile the library splits the keys of each, and every part passes over its share
// (FlashAttention's num_splits_heuristic; recalled); adding up the parts is not counted.
#pragma once

namespace topsim::workloads {

struct TileSchedule {
  double start = 0;  // keys
  double rows = 128;
  int at_once = 1;             // tiles that share one unit
  bool longest_first = false;  // of a head
  bool splits = false;
};

struct AttentionTiles {
  double heads = 1;           // of all sequences
  double rows = 0, keys = 0;  // of a head: those that tiles hold, and those that they pass over
  bool causal = true;
  double window = 0;  // keys that a row sees at most, without a mask half on each side; 0: all
};

// The keys that one tile after another would pass over in that time. Without compute units (0: unknown, or
// one core that takes all tiles) no tile waits for another. REQUIRES: heads, rows, keys > 0.
[[nodiscard]] double keys_until_done(const AttentionTiles& tiles, const TileSchedule& schedule,
                                     int compute_units);
}  // namespace topsim::workloads
