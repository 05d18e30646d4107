// The graph on which packets travel: devices and directed ports. Built by hand for experiments (fabrics.hpp)
// or from a Topology (packet_network.cpp). A port is the sending side of one directed link; ports come in
// pairs, one per direction.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/network/packet/spec.hpp"

namespace topsim::network::packet {

using DeviceIndex = std::uint32_t;
using PortIndex = std::uint32_t;
inline constexpr std::uint32_t kNone = ~std::uint32_t{0};

struct PortSpec {
  DeviceIndex from = 0, to = 0;
  PortIndex reverse = kNone;
  BytesPerSecond rate{};  // on the wire
  Duration latency{};     // propagation plus what the far end adds
  FlowControl flow_control = FlowControl::pfc;
  int cables = 1;      // parallel ones that every packet may take: one fast port, with the buffers of all
  bool framed = true;  // false: `rate` is for payload alone (NVLink, PCIe: their headers are in the rate)
  bool marks = true;   // ECN or FECN is marked here, and loss can strike
};

struct Graph {
  std::uint32_t devices = 0;
  std::vector<PortSpec> ports;
  // Whose framing and congestion control are the usual ones; unset: InfiniBand's where framed ports have
  // credits.
  std::optional<bool> infiniband;
  std::vector<Bytes> buffers;  // that ports of a device share, by device; 0, or shorter: not known

  DeviceIndex device() { return devices++; }
  // The specification's, else the device's own, else SwitchBuffer::kUsual.
  [[nodiscard]] Bytes buffer_of(DeviceIndex device, const SwitchBuffer& spec) const;
  // Both directions of one cable; returns the port from a to b, the one from b to a is its `reverse`.
  PortIndex cable(DeviceIndex a, DeviceIndex b, BytesPerSecond rate, Duration latency,
                  FlowControl flow_control = FlowControl::pfc);
};

// The specification's, else that of the ports' fabric.
[[nodiscard]] Framing framing_of(const Graph& graph, const PacketSpec& spec);
}  // namespace topsim::network::packet
