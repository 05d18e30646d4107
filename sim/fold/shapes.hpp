// The distinct calls that a program makes: communication is lowered once per call, not once per op.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "sim/program/program.hpp"

namespace topsim::fold {

struct CallShape {
  program::CollectiveKind kind;
  std::int64_t bytes;
  Duration own_kernels{};  // of a collective (program::Op::duration)
  auto operator<=>(const CallShape&) const = default;
};

// The distinct calls each program class makes in each slot, and which of them each op is.
struct Shapes {
  std::vector<std::vector<std::vector<CallShape>>> collectives;  // [class][slot]
  std::vector<std::vector<std::vector<CallShape>>> sends;        // [class][peer slot]
  std::vector<std::vector<std::vector<CallShape>>> host;         // [class][direction]
  std::vector<std::vector<std::uint32_t>> op_shape;
};

[[nodiscard]] Shapes collect_shapes(const program::Program& program);
}  // namespace topsim::fold
