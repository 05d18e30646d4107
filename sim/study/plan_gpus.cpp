#include "sim/study/plan_gpus.hpp"

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "topology/build.hpp"
#include "topology/spec_reader.hpp"

namespace topsim::study {

void use_accelerators(scenario::Scenario& scenario, const topology::Catalogue& catalogue, int accelerators) {
  topology::TopologySpec one = scenario.topology;
  one.accelerators.reset();
  scenario.topology.accelerators.reset();
  const bool recipe = !one.node.use.empty();
  if (recipe) {
    // One node shows how many accelerators it has; its fabric does not matter.
    one.nodes = 1;
    one.fabric = {};
    one.scale_up_domain.reset();
    one.placement = {};
  }
  const auto there = static_cast<int>(topology::build(one, catalogue).accelerators().size());
  if (there < 1) throw ConfigError("the topology has no accelerators", "add devices of kind accelerator");
  if (recipe) {
    const int nodes = (accelerators - 1) / there + 1;
    if (nodes > topology::kMostNodes)
      throw ConfigError(fmt::format("--gpus {}: {} nodes of {}, and a topology has at most {}", accelerators,
                                    nodes, there, topology::kMostNodes),
                        fmt::format("at most --gpus {}", std::int64_t{topology::kMostNodes} * there));
    scenario.topology.nodes = nodes;
  }
  const int all = recipe ? scenario.topology.nodes * there : there;
  if (accelerators > all)
    throw ConfigError("--gpus " + std::to_string(accelerators) + ": the topology has " + std::to_string(all),
                      "describe a larger one, or use a node recipe");
  if (accelerators < all) scenario.topology.accelerators = accelerators;
}
}  // namespace topsim::study
