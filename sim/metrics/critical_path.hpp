// The critical path of the last measured step, summed by what was done and by what limited it. The executor
// finds the path; its legs cover that step without gaps, so the sums here do too. A step's time in a result
// is the mean of all measured steps: other steps may have taken longer or shorter.
#pragma once

#include <string>
#include <vector>

#include "sim/executor/outcome.hpp"
#include "topology/topology.hpp"

namespace topsim::metrics {

struct PathShare {
  std::string what;
  Duration time{};
  double share = 0;  // of the whole path
};

// What runs on a leg; null: nothing does.
[[nodiscard]] const program::Op* op_of(const executor::PathLeg& leg, const executor::Outcome& outcome,
                                       const program::Program& program);

// Longest first; equal times in order of name. A leg of computation is charged to its op's label, one of
// communication to its op's label too ("data all_reduce"), a wait of the host to its reason.
[[nodiscard]] std::vector<PathShare> path_by_op(const executor::Outcome& outcome,
                                                const program::Program& program);

// The same time by what limited each leg: the type of a full link ("NDR 400 Gbit/s"), a link that the
// channels and the protocol of `library` do not fill ("NVLink 4 x18, 450 GB/s, as NCCL drives it"), "latency
// ..." for what does not depend on the bytes, "computation" (the time of kernels alone), what
// communication beside them adds to it and what collectives wait until kernels leave them units, "host".
[[nodiscard]] std::vector<PathShare> path_by_link(const executor::Outcome& outcome,
                                                  const program::Program& program,
                                                  const topology::Topology& topology,
                                                  const std::string& library);
// ", as NCCL drives it": of `links` ", as NCCL drives them". An empty library is not known.
[[nodiscard]] std::string as_driven(const std::string& library, bool links = false);
}  // namespace topsim::metrics
