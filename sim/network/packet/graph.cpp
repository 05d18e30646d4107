#include "sim/network/packet/graph.hpp"

namespace topsim::network::packet {

PortIndex Graph::cable(DeviceIndex a, DeviceIndex b, BytesPerSecond rate, Duration latency,
                       FlowControl flow_control) {
  const auto first = static_cast<PortIndex>(ports.size());
  ports.push_back({a, b, first + 1, rate, latency, flow_control});
  ports.push_back({b, a, first, rate, latency, flow_control});
  return first;
}
}  // namespace topsim::network::packet
