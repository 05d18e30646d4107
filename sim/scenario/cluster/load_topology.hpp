// A topology from the name or file that users give.
#pragma once

#include <functional>
#include <string>

#include "sim/scenario/scenario.hpp"
#include "topology/build.hpp"
#include "topology/catalogue.hpp"
#include "topology/topology.hpp"

namespace topsim::scenario {

// Which devices and cables the scenario's network model needs separate, and the payload share of its packets.
[[nodiscard]] topology::BuildOptions build_options(const Scenario& scenario);

// Changes routes to those of the packet model's packets. Switches that hash flowlets, not flows, send each by
// any of the equal paths. In a dragonfly packets take no detours through third groups.
void as_packets_choose(const Scenario& scenario, topology::Topology& topology);

// The topology section of a scenario; mistakes come with the places of its file.
[[nodiscard]] topology::Topology build_topology(const Scenario& scenario,
                                                const topology::Catalogue& catalogue);

// A topology file (the section's keys at its top), a node of the catalogue ("dgx-h100"), or else the scenario
// that `read_scenario` reads.
[[nodiscard]] topology::Topology load_topology(const std::string& what, const topology::Catalogue& catalogue,
                                               const std::function<Scenario()>& read_scenario);
}  // namespace topsim::scenario
