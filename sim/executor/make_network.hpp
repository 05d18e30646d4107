// The network of a run by the name of its model: one that needs only links, or packets on a topology's
// routes.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "sim/network/network.hpp"
#include "sim/network/packet/packet_network.hpp"
#include "topology/routes.hpp"

namespace topsim::executor {

struct MadeNetwork {
  std::unique_ptr<network::Network> network;
  network::packet::PacketNetwork* packets = nullptr;  // the same, where packets are the model
};

// `capacities` of its links in bytes/s, `spec` for packets, which find their links themselves. Throws
// ConfigError for an unknown model. REQUIRES: the router outlives it.
[[nodiscard]] MadeNetwork make_network(std::string_view model, std::span<const double> capacities,
                                       const topology::Router& router,
                                       const network::packet::PacketSpec& spec);
}  // namespace topsim::executor
