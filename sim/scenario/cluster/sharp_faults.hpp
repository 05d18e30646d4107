// Sums in the fabric's switches (SHARP) while parts of it fail.
//
// A job's aggregation trees are built when it starts, around what is down then. A link of a tree that fails
// later stops the job (NVIDIA SHARP 3.2.0, fixed issue 3236363: "In the event of a link failure, a SHARP job
// utilizing the link has to be stopped"); trees of dynamic allocation, the default since 3.4, belong to one
// job and end with it. NCCL chooses CollNet when a communicator is created, never later. So a run ends at the
// first such failure.
#pragma once

#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/units.hpp"
#include "sim/executor/options.hpp"
#include "sim/fold/fold.hpp"
#include "topology/topology.hpp"

namespace topsim::scenario {

struct SharpStop {
  SimTime at;
  Problem problem;
};

// The first failure of each link that stops a job, in order of time.
[[nodiscard]] std::vector<SharpStop> sharp_stops(const fold::System& system,
                                                 const topology::Topology& topology,
                                                 const std::vector<executor::CapacityChange>& changes);
}  // namespace topsim::scenario
