// What reduction in the NVSwitch adds to a collective's time.
#pragma once

#include "sim/collective/time_model.hpp"

namespace topsim::collective {

// Adds to `t.latency` and sets `t.cap`. `start`: of a Simple kernel, beyond what the tuner counts;
// `levels`: hops between boxes, up and down the tree.
void sum_in_switches(CollectiveKind kind, const Choice& choice, std::int64_t bytes, const nccl::Tuner& tuner,
                     Microseconds start, double levels, Timing& t);
}  // namespace topsim::collective
