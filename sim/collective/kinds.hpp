// What kinds of collectives have in common. The tuner's tables alone follow the order of the enumerators, and
// check it (nccl/tuner.hpp).
#pragma once

#include "sim/program/program.hpp"

namespace topsim::collective {

using program::CollectiveKind;

// A share moves to or from each rank.
[[nodiscard]] constexpr bool gathers(CollectiveKind kind) {
  return kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
}
// All bytes move from one rank, or to one. On a ring they follow one another in pieces; of the other kinds
// every rank begins with a chunk of its own, and the chunks go round in loops.
[[nodiscard]] constexpr bool rooted(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
}
// NCCL's tuner chooses for it; for the others there is nothing to choose.
[[nodiscard]] constexpr bool tuned(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || gathers(kind) || rooted(kind);
}
}  // namespace topsim::collective
