// A scenario's network that has carried nothing, for benches that send over it without an executor: every
// link is its own class.
#pragma once

#include <span>

#include "sim/executor/make_network.hpp"
#include "sim/executor/options.hpp"
#include "sim/scenario/scenario.hpp"

namespace topsim::scenario {

// On the router's topology; `slower`: capacities that hold throughout. REQUIRES: the router outlives it.
[[nodiscard]] executor::MadeNetwork idle_network(const Scenario& scenario, const topology::Router& router,
                                                 std::span<const executor::CapacityChange> slower);

// Throws executor::Blocked, with the network's findings, where messages never arrive.
void require_all_arrived(const executor::MadeNetwork& network, std::size_t arrived, std::size_t sent);
}  // namespace topsim::scenario
