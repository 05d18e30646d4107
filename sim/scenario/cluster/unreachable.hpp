// Why ranks of a topology do not reach each other, and what a user can do about it.
#pragma once

#include <optional>
#include <string>

#include "sim/base/error.hpp"
#include "topology/routes.hpp"

namespace topsim::scenario {
// The first rank that rank 0 does not reach; none: it reaches all. Threads lower collectives in parallel and
// any of them may fail first; this makes the message the same every time. `faulty`: the scenario has faults.
// `link`: of the catalogue, which the node's NICs usually speak; may be empty.
[[nodiscard]] std::optional<Problem> unreachable_rank(const topology::Router& router, bool faulty,
                                                      const std::string& link = {});
}  // namespace topsim::scenario
