// What the executor derives from a RankProgram once, for all ranks that run it.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/program/program.hpp"

namespace topsim::executor {

inline constexpr std::uint32_t kNoOp = 0xffffffffU;

struct StreamTable {
  std::vector<std::vector<std::uint32_t>> ops;  // by stream, in launch order
  std::vector<std::uint32_t> position;          // of an op in its stream
  std::vector<std::uint32_t> trace_index;       // of an op where those of a stream stand together
  std::vector<std::int64_t> issued_by;          // host picoseconds spent before op i, ops + 1 entries
  std::vector<std::uint32_t> sync_before;       // last host_sync op before op i in launch order, or kNoOp

  explicit StreamTable(const program::RankProgram& program);
};
}  // namespace topsim::executor
