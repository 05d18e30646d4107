// The buffers of the switches of a RoCE fabric, and what waits in them when PFC stops the senders below.
// Where packets do not choose their path some ports are full and others idle, and nobody knows what waits for
// one.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/network/packet/pfc_queue.hpp"
#include "topology/topology.hpp"

namespace topsim::executor {

// Of the ends of a cable between switches, the one that is nearer to the hosts.
[[nodiscard]] DeviceId lower_of(const topology::Topology& topology, const topology::Link& link);
// Whether that one has several above it: then packets that choose a path meet those of other switches on the
// way down. With one above there is no choice, whatever the routing. Between switches of one tier: whether
// another way leads from the one to the other.
[[nodiscard]] bool several_above(const topology::Topology& topology, const topology::Link& link);

// Of one switch.
struct SwitchBuffer {
  network::packet::PfcQueue ports;
  Bytes total{};
  // Bytes that wait for a port of the congestion table. Timers are times, so other ports count by their rate.
  [[nodiscard]] double queue(double load) const;
};

class SwitchBuffers {
 public:
  // REQUIRES: both outlive it.
  SwitchBuffers(const topology::Topology& topology, const network::packet::PacketSpec& spec);
  [[nodiscard]] static bool packets_choose(const topology::Topology& topology) {
    return topology.routing == topology::Routing::adaptive || topology.routing == topology::Routing::spray;
  }
  // Index into all(); 0: PFC stops nobody there.
  [[nodiscard]] std::uint32_t of(DeviceId lower);
  [[nodiscard]] std::vector<SwitchBuffer> all() && { return std::move(buffers_); }

 private:
  [[nodiscard]] SwitchBuffer measure(DeviceId lower);
  const topology::Topology& topology_;
  const network::packet::PacketSpec& spec_;
  double slowest_ = 0;  // cable of the fabric; 0: not yet known
  std::map<DeviceId, std::uint32_t> known_;
  std::vector<SwitchBuffer> buffers_{{}};
};
}  // namespace topsim::executor
