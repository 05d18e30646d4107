// The chain of ops that made the last measured step as long as it was: from the op that ended last, back
// along what each waited for, to the step's begin. Legs cover the step without gaps.
#pragma once

#include <vector>

#include "sim/executor/communication.hpp"
#include "sim/executor/outcome.hpp"
#include "sim/executor/rank_state.hpp"

namespace topsim::executor {

// REQUIRES: traces hold the last step. `charge_of`: by rank class, its row of `charges`. `last_rank` is the
// rank class whose last_op ended it; legs before `begin` are cut. `even_pace`: no rank's pace changed during
// the run, and what kernels lost beside communication is known.
[[nodiscard]] std::vector<PathLeg> critical_path(const std::vector<RankState>& ranks,
                                                 const std::vector<std::vector<OpCharge>>& charges,
                                                 const std::vector<std::uint32_t>& charge_of,
                                                 const Calls& calls, const fold::System& system,
                                                 std::uint32_t last_rank, SimTime begin, bool even_pace);
}  // namespace topsim::executor
