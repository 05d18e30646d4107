#include "sim/network/packet/pfc_queue.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace topsim::network::packet {

double headroom_of(BytesPerSecond rate, Duration there, Duration back, double packet,
                   const SwitchBuffer& buffer) {
  if (buffer.headroom) return static_cast<double>(buffer.headroom->value());
  // Bytes on the cable in one direction: half of what fits into a round trip of data and XOFF. The two
  // directions may differ, because a switch's latency counts on the way into it.
  const double flight = rate.value() * (seconds(there) + seconds(back)) / 2;
  return std::max(3 * flight, 2 * flight + 3 * packet);
}

double alpha_of(double rate, double slowest, const Pfc& pfc) {
  return pfc.alpha * std::exp2(std::max(0.0, std::round(std::log2(rate / slowest))));
}

PfcQueue::PfcQueue(std::span<const SwitchPort> ports, const PacketSpec& spec, double slowest) {
  const Framing framing = spec.framing.value_or(Framing::roce());
  const auto packet = static_cast<double>((framing.mtu + framing.header).value());
  double below = 0, alphas = 0;
  int ingresses = 0;
  for (const SwitchPort& port : ports) {
    const double headroom = headroom_of(port.rate, port.in, port.out, packet, spec.buffer);
    kept_ += spec.lanes.count * (headroom + static_cast<double>(spec.buffer.reserve.value()));
    if (port.above) {
      above_ += port.rate.value();
      continue;
    }
    below += port.rate.value();
    alphas += alpha_of(port.rate.value(), slowest, spec.pfc);
    ++ingresses;
  }
  if (below > 0) sharing_ = alphas / ingresses * above_ / (below / ingresses);
}

double PfcQueue::queue(Bytes total, double load, BytesPerSecond port) const {
  if (sharing_ == 0) return std::numeric_limits<double>::infinity();
  const double shared = std::max(static_cast<double>(total.value()) - kept_, 0.0);
  return shared * part(load) * port.value() / above_;
}

Bytes PfcQueue::total(double queue, double load, BytesPerSecond port) const {
  return Bytes(static_cast<std::int64_t>(queue * above_ / port.value() / part(load) + kept_));
}
}  // namespace topsim::network::packet
