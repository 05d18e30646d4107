// Small fabrics for experiments: the ones whose closed forms and published results the tests hold the model
// against.
#pragma once

#include <vector>

#include "sim/network/packet/graph.hpp"

namespace topsim::network::packet {

struct LinkFigures {
  BytesPerSecond rate{50e9};
  Duration latency{500'000};  // 500 ns one way, far end included
  FlowControl flow_control = FlowControl::pfc;
};

struct Fabric {
  Graph graph;
  std::vector<DeviceIndex> hosts;
  std::vector<DeviceIndex> switches;
};

// `hosts` around one switch.
[[nodiscard]] Fabric star(std::uint32_t hosts, const LinkFigures& link);
// Two switches and one trunk; hosts 0..left-1 on the first, the others on the second.
[[nodiscard]] Fabric dumbbell(std::uint32_t left, std::uint32_t right, const LinkFigures& link);
// Three tiers of k-port switches, full bisection: k^3/4 hosts, k^2/2 edge, k^2/2 aggregation, k^2/4 core.
[[nodiscard]] Fabric fat_tree(std::uint32_t k, const LinkFigures& link);
// Leaf and spine: `leaves` x `down` hosts, every leaf with one cable to each of `spines`.
[[nodiscard]] Fabric leaf_spine(std::uint32_t leaves, std::uint32_t down, std::uint32_t spines,
                                const LinkFigures& link);
// n switches in a ring with one host each: what deadlocks under PFC when everybody sends the same way round.
[[nodiscard]] Fabric ring(std::uint32_t n, const LinkFigures& link);
}  // namespace topsim::network::packet
