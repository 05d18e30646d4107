// Small fabrics for experiments: those whose closed forms and published results the tests compare the model
// with.
#pragma once

#include <vector>

#include "sim/network/packet/graph.hpp"

namespace topsim::network::packet {

struct LinkFigures {
  BytesPerSecond rate{50e9};
  Duration latency = std::chrono::nanoseconds(500);  // one way, far end included
  FlowControl flow_control = FlowControl::pfc;
  std::optional<bool> infiniband{};  // as Graph::infiniband
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
// Leaf and spine: `leaves` x `down` hosts, every leaf with `cables` to each of `spines`, as one port.
[[nodiscard]] Fabric leaf_spine(std::uint32_t leaves, std::uint32_t down, std::uint32_t spines,
                                const LinkFigures& link, int cables = 1);
}  // namespace topsim::network::packet
