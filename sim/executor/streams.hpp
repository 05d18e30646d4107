// What the executor derives from a RankProgram once, for all ranks that run it.
#pragma once

#include <cstdint>
#include <span>
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
  // What every look at an op reads, in half a cache line: programs have thousands, and there are many.
  struct Place {
    std::int64_t issued_by = 0;         // host picoseconds spent before it
    StreamSet frees = 0;                // streams whose head may start once it is done
    std::uint32_t sync_before = kNoOp;  // last host_sync op before it in launch order
    std::uint32_t position = 0;         // in its stream
    std::uint32_t needs_begin = 0;      // into needs
    std::uint16_t stream = 0;
  };
  // A dependency: done once its stream is past the position.
  struct Need {
    std::uint32_t position;
    std::uint16_t stream;
  };
  std::vector<std::vector<std::uint32_t>> ops;  // by stream, in launch order
  std::vector<Place> places;                    // by op, and one that ends them
  std::vector<Need> needs;
  // Ops of all streams, each stream's followed by kNoOp, and where each begins.
  std::vector<std::uint32_t> heads, heads_begin;
  StreamSet all = 0;  // that the program has

  explicit StreamTable(const program::RankProgram& program);
  [[nodiscard]] std::span<const Need> needs_of(std::uint32_t op) const {
    return std::span(needs).subspan(places[op].needs_begin,
                                    places[op + 1U].needs_begin - places[op].needs_begin);
  }
};
}  // namespace topsim::executor
