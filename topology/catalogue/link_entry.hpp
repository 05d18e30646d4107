// The catalogue's figures for a kind of link, and the only place where a wire's rate becomes payload rate.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "topology/topology.hpp"

namespace topsim::topology {

// The transports of messages over Ethernet.
[[nodiscard]] const std::vector<std::string>& transports();

// configs/hardware/links.json. All rates are per direction of ONE link ("nvlink4" is one NVLink, "pcie5-x16"
// is one slot, "ib-ndr" is one port); bundles multiply them.
struct LinkEntry {
  std::string id;     // "ib-ndr"
  std::string label;  // "InfiniBand NDR 400 Gbit/s", for people
  std::string source;
  LinkKind kind = LinkKind::other;
  std::string transport;  // Ethernet: one of transports(); empty: not known

  BytesPerSecond line_rate;  // signalling rate after forward error correction, before `encoding`
  double encoding = 1;       // line coding: 128/130 for PCIe 3-5; 1 where the name already counts data bits
  Bytes header{};            // bytes on the wire that travel with every `mtu` bytes of payload
  Bytes mtu{};               // payload of a full packet; 0: no packets known, header is ignored
  double efficiency = 1;     // measured share of what encoding and headers leave (PCIe DMA, NVLink protocol)
  // A second such share that only the cable at a NIC pays (host effects: EDR 0.972).
  double nic_efficiency = 1;

  // Latency, by one rule. A message between two NICs takes
  //   nic_base + switches x hop                              where `hop` is known (measured, all inclusive),
  //   else nic_base + sum over switches of (port_to_port + fec) + 5 ns/m x length.
  // Never both. Inside a node a crossing of this link costs `latency`.
  Duration latency{};       // links inside a node: per crossing, the chip at the far end included
  Duration host_latency{};  // PCIe: the same when the far end is a root complex instead of a switch
  Duration nic_base{};      // fabric links: both NICs and hosts, one way, of a small message
  Duration nic_base_low{}, nic_base_high{};  // what its sources range over
  std::optional<Duration> hop;               // per switch passed: contains the switch, FEC and its fibre
  Duration fec{};                            // per switch passed when `hop` is absent
  std::optional<Routing> routing;            // of fabrics of this link that name none

  // Torus: which axes have links that join their ends. Those whose length is a multiple of `ring_axis`; or,
  // where switches join whole cubes, all axes if every one is a multiple of `ring_cube`. Both 0: every axis.
  int ring_axis = 0, ring_cube = 0;

  // Measured times other than a crossing: a kernel that copies to its own memory (p2pBandwidthLatencyTest's
  // diagonal); for NVLink, what a library adds to a small message; for PCIe, a device's round trip to read
  // host memory, and between accelerators that cannot write to each other what a copy staged in host memory
  // takes beyond the crossings, and the rate of large ones. 0: not known.
  Duration copy_kernel{}, library{}, read_round_trip{}, staged_copy{};
  BytesPerSecond staged_rate{};

  [[nodiscard]] bool is_fabric() const {
    return kind == LinkKind::infiniband || kind == LinkKind::ethernet || nic_base.count() > 0;
  }
};

// Payload rate of a link, host effects at the NIC excluded:
//   C = line_rate x encoding x mtu / (mtu + header) x efficiency
// RoCEv2, 400 Gbit/s, 4096 B: 50 GB/s x 4096 / (4096 + 82) = 49.02 GB/s; InfiniBand: 50 x 4096 / (4096 + 26)
// = 49.68. `mtu` 0: the entry's own.
[[nodiscard]] BytesPerSecond payload_capacity(const LinkEntry& link, Bytes mtu = Bytes{});

// The same times nic_efficiency: for the cable between a NIC and its switch.
[[nodiscard]] BytesPerSecond payload_capacity_at_nic(const LinkEntry& link, Bytes mtu = Bytes{});

// Fibre and copper alike, rounded as the field does (4.3 to 5 ns/m); one metre of cable.
inline constexpr Duration kPropagationPerMetre = std::chrono::nanoseconds(5);
}  // namespace topsim::topology
