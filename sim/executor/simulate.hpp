// The library's one verb, below the level of scenarios: a program on a topology, in time.
#pragma once

#include "sim/collective/collective.hpp"
#include "sim/executor/options.hpp"
#include "sim/executor/outcome.hpp"
#include "sim/executor/progress.hpp"
#include "sim/fold/fold.hpp"
#include "sim/program/program.hpp"
#include "topology/routes.hpp"

namespace topsim::executor {

// Folds and runs. Throws ConfigError when ranks cannot reach each other, the workload deadlocks, or the
// network model cannot carry what is asked (it names the feature).
[[nodiscard]] Outcome simulate(const program::Program& program, const topology::Router& router,
                               const collective::NcclModel& nccl, const RunOptions& options,
                               Progress* progress);

// The same in two steps, for runs that differ only in what folding does not see (`congestion_bound`): one
// System serves them all, also at once.
[[nodiscard]] fold::System fold_for(const program::Program& program, const topology::Router& router,
                                    const collective::NcclModel& nccl, const RunOptions& options);
[[nodiscard]] Outcome simulate(const program::Program& program, const fold::System& system,
                               const topology::Router& router, const collective::NcclModel& nccl,
                               const RunOptions& options, Progress* progress);
}  // namespace topsim::executor
