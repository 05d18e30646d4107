// What the executor derives from a RankProgram once, for all ranks that run it.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/program/program.hpp"

namespace topsim::executor {

inline constexpr std::uint32_t kNoOp = 0xffffffffU;

// A set of streams; the last of its bits stands for all streams from there on.
using StreamSet = std::uint64_t;
inline constexpr unsigned kLastStreamBit = 63;
[[nodiscard]] constexpr StreamSet only(std::uint16_t stream) {
  return StreamSet{1} << (stream < kLastStreamBit ? stream : kLastStreamBit);
}

struct StreamTable {
  std::vector<std::vector<std::uint32_t>> ops;  // by stream, in launch order
  std::vector<std::uint32_t> position;          // of an op in its stream
  std::vector<std::uint16_t> stream;            // of an op
  std::vector<std::int64_t> issued_by;          // host picoseconds spent before op i, ops + 1 entries
  std::vector<std::uint32_t> sync_before;       // last host_sync op before op i in launch order, or kNoOp
  std::vector<StreamSet> frees;                 // by op: streams whose head may start once it is done
  StreamSet all = 0;                            // that the program has

  explicit StreamTable(const program::RankProgram& program);
};
}  // namespace topsim::executor
