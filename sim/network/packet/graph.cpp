#include "sim/network/packet/graph.hpp"

namespace topsim::network::packet {

PortIndex Graph::cable(DeviceIndex a, DeviceIndex b, BytesPerSecond rate, Duration latency,
                       FlowControl flow_control) {
  const auto first = static_cast<PortIndex>(ports.size());
  ports.push_back({a, b, first + 1, rate, latency, flow_control});
  ports.push_back({b, a, first, rate, latency, flow_control});
  return first;
}

Bytes Graph::buffer_of(DeviceIndex device, const SwitchBuffer& spec) const {
  const bool known = device < buffers.size() && buffers[device].value() > 0;
  return spec.total.value_or(known ? buffers[device] : SwitchBuffer::kUsual);
}
}  // namespace topsim::network::packet
