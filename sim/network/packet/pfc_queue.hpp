// What waits at a switch before PFC stops its senders. An ingress is paused once it holds alpha x (shared
// bytes - all that is held), so n ingresses that are alike hold
//
//   shared x alpha n / (1 + alpha n)
//
// together. On the way up, n = load x rate above / rate of a port below. A port above has its share of that.
// Where it is less than ECN begins to mark at, senders are stopped and never slowed.
#pragma once

#include <span>

#include "sim/network/packet/spec.hpp"

namespace topsim::network::packet {

// What PFC may have on the cable of a port of that rate when it says stop.
[[nodiscard]] double headroom_of(BytesPerSecond rate, Duration there, Duration back, double packet,
                                 const SwitchBuffer& buffer);
// Of a port, where the slowest one has that of the specification.
[[nodiscard]] double alpha_of(double rate, double slowest, const Pfc& pfc);

// A cable of a switch, or several that every packet may take.
struct SwitchPort {
  BytesPerSecond rate;
  Duration in, out;  // latency of either direction
  bool above;        // leads away from the hosts
};

class PfcQueue {
 public:
  PfcQueue() = default;  // never stops anybody
  PfcQueue(std::span<const SwitchPort> ports, const PacketSpec& spec, double slowest);
  // Bytes waiting for a port above of that rate, where PFC stops its senders.
  [[nodiscard]] double queue(Bytes total, double load, BytesPerSecond port) const;
  // The buffer in which that many wait.
  [[nodiscard]] Bytes total(double queue, double load, BytesPerSecond port) const;

 private:
  // Part of what is shared that waits.
  [[nodiscard]] double part(double load) const { return sharing_ * load / (1 + sharing_ * load); }
  double kept_ = 0;     // headroom and reserves
  double above_ = 0;    // rate of all ports above
  double sharing_ = 0;  // alpha x ports below that fill those above
};
}  // namespace topsim::network::packet
