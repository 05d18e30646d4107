// Which idle reason a wait is charged to.
#pragma once

#include "sim/executor/outcome.hpp"

namespace topsim::executor {

// What the different programs of a run are to each other.
enum class Relation : std::uint8_t {
  strangers,  // a replayed trace: whoever is late is a straggler
  stages,     // of a pipeline: they wait for each other by schedule
  replicas    // of which one works for all (torch.nn.DataParallel)
};
[[nodiscard]] Relation relation_of(const program::Program& program);

// Waiting for what the host does: its part of the optimiser, or messages of stages whose times are given.
[[nodiscard]] Reason beside_computing(program::Phase phase);
// Waiting while the communication itself runs.
[[nodiscard]] Reason while_running(program::Dimension dimension, bool point_to_point);
// Waiting for the other side to arrive: pipeline stages wait for work of the schedule, replicas for the
// slowest of them.
[[nodiscard]] Reason before_running(program::Dimension dimension, bool spans_programs, Relation relation);
// A rank that is through, until the last one is.
[[nodiscard]] Reason reason_at_end(const program::Program& program);
}  // namespace topsim::executor
