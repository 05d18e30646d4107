// `faults` of a scenario as changes of capacity and speed that the executor knows.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/executor/options.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/routes.hpp"
#include "topology/topology.hpp"

namespace topsim::scenario {
struct AppliedFaults {
  std::vector<LinkId> dead;  // down from the beginning to the end: no route takes them
  // Where routing is adaptive: links between switches that carry less from the beginning on.
  std::vector<topology::SlowLink> slow;
  // From `at` on no route takes these dead ones either, and these are slow instead; the last one holds to the
  // end.
  struct Routes {
    Duration at;
    std::vector<LinkId> dead;
    std::vector<topology::SlowLink> slow;
  };
  std::vector<Routes> routes;
  std::vector<Duration> losses;  // when accelerators are lost, for the goodput
  std::vector<std::string> notes;
};

// Adds to options.capacity_changes, pace_changes and slow_ranks. A part that is down from 0 to the end is
// routed around. One that fails later stalls messages on it until it is back, or until its failover time is
// over and other paths are taken (under SHARP it stops the job). Throws ConfigError (paths only) for targets
// that do not exist and for a lost accelerator without a `reliability` section. `which`: only these
// faults.
[[nodiscard]] AppliedFaults apply_faults(const Scenario& scenario, const topology::Topology& topology,
                                         executor::RunOptions& options,
                                         bool (*which)(const FaultSpec&) = nullptr);

// A fault of a link, NIC or switch from the beginning to the end; a network without a run has only these.
[[nodiscard]] bool holds_throughout(const FaultSpec& fault);

// Why a run with these faults could not continue, where `why` is the message about ranks that are cut off:
// the parts that stay down. Empty where none does.
[[nodiscard]] std::vector<Problem> parts_that_stay_down(std::span<const FaultSpec> faults,
                                                        const std::string& why = {});
}  // namespace topsim::scenario
