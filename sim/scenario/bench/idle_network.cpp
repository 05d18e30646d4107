#include "sim/scenario/bench/idle_network.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "sim/executor/executor.hpp"

namespace topsim::scenario {

executor::MadeNetwork idle_network(const Scenario& scenario, const topology::Router& router,
                                   std::span<const executor::CapacityChange> slower) {
  const topology::Topology& topology = router.topology();
  std::vector<double> capacities;
  for (const topology::Link& link : topology.links()) capacities.push_back(link.capacity.value());
  executor::MadeNetwork made = executor::make_network(scenario.network.model, capacities, router,
                                                      packet_spec(scenario, topology.fabric_is_infiniband));
  for (const executor::CapacityChange& change : slower)
    made.network->set_capacity(change.link.value, capacities[change.link.index()] * change.factor, SimTime{});
  return made;
}

void require_all_arrived(const executor::MadeNetwork& network, std::size_t arrived, std::size_t sent) {
  if (arrived >= sent) return;
  std::string found;
  if (network.packets != nullptr) {
    for (const std::string& finding : network.packets->findings())
      found += (found.empty() ? "" : "; ") + finding;
  }
  throw executor::Blocked(
      fmt::format("the traffic cannot finish: {} of {} messages never arrive", sent - arrived, sent), found);
}
}  // namespace topsim::scenario
