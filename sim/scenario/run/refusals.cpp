#include "sim/scenario/run/refusals.hpp"

#include <algorithm>
#include <iterator>

#include "sim/scenario/run/folded_scenario.hpp"

namespace topsim::scenario {
std::vector<Problem> topology_refusals(const Scenario& scenario, const topology::Catalogue& catalogue) {
  if (!scenario.document) return {};  // a file of devices, or a node
  Scenario whole = scenario;
  whole.faults.clear();
  std::vector<Problem> refused;
  try {
    SimulateOptions options;
    options.allow_oom = true;
    const Prepared prepared = prepare(whole, catalogue, options);
    const topology::Router router(prepared.topology, whole.run.seed, {}, whole.network.packet.queue_pairs());
    (void)FoldedScenario(whole, prepared, router, {}, {});
  } catch (const ConfigError& error) {
    const ConfigError placed = located(error, scenario);
    std::copy_if(placed.problems().begin(), placed.problems().end(), std::back_inserter(refused),
                 [](const Problem& problem) { return problem.path.starts_with("topology"); });
  }
  return refused;
}
}  // namespace topsim::scenario
