#include "sim/executor/switch_buffers.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "sim/network/packet/calibrate.hpp"

namespace topsim::executor {
namespace {
using topology::DeviceKind;

// Devices of one tier are beside each other; what leads to them leads away from the hosts.
bool above(const topology::Topology& topology, DeviceId lower, DeviceId other) {
  return topology.device(other).kind == DeviceKind::fabric_switch &&
         topology.device(other).tier >= topology.device(lower).tier;
}
// Whether the fabric has another way from the one end of a cable to the other.
bool another_way(const topology::Topology& topology, const topology::Link& link) {
  std::set<DeviceId> seen{link.from};
  std::vector<DeviceId> next{link.from};
  while (!next.empty()) {
    const DeviceId here = next.back();
    next.pop_back();
    for (const LinkId each : topology.links_from(here)) {
      const DeviceId there = topology.link(each).to;
      if (topology.device(there).kind != DeviceKind::fabric_switch || (here == link.from && there == link.to))
        continue;
      if (there == link.to) return true;
      if (seen.insert(there).second) next.push_back(there);
    }
  }
  return false;
}
}  // namespace

DeviceId lower_of(const topology::Topology& topology, const topology::Link& link) {
  return topology.device(link.to).tier < topology.device(link.from).tier ? link.to : link.from;
}

bool several_above(const topology::Topology& topology, const topology::Link& link) {
  if (topology.device(link.from).tier == topology.device(link.to).tier)
    return topology.device(link.from).count * topology.device(link.to).count > 1 ||
           another_way(topology, link);
  const DeviceId lower = lower_of(topology, link);
  std::vector<DeviceId> found;
  std::uint32_t count = 0;
  for (const LinkId each : topology.links_from(lower)) {
    const DeviceId other = topology.link(each).to;
    if (topology.device(other).kind != DeviceKind::fabric_switch ||
        topology.device(other).tier <= topology.device(lower).tier ||
        std::find(found.begin(), found.end(), other) != found.end())
      continue;
    found.push_back(other);
    count += topology.device(other).count;
  }
  return count > 1;
}

double SwitchBuffer::queue(double load) const {
  return ports.queue(total, load, network::packet::kCalibratedRate);
}

SwitchBuffers::SwitchBuffers(const topology::Topology& topology, const network::packet::PacketSpec& spec)
    : topology_(topology), spec_(spec) {}

std::uint32_t SwitchBuffers::of(DeviceId lower) {
  if (!packets_choose(topology_) || spec_.flow_control_on(false) != network::packet::FlowControl::pfc ||
      spec_.pfc.xoff)
    return 0;
  const auto [known, fresh] = known_.try_emplace(lower, static_cast<std::uint32_t>(buffers_.size()));
  if (fresh) buffers_.push_back(measure(lower));
  return known->second;
}

SwitchBuffer SwitchBuffers::measure(DeviceId lower) {
  const auto rate_of = [](const topology::Link& link) {
    return link.line_rate.value() > 0 ? link.line_rate.value() : link.capacity.value();
  };
  if (slowest_ == 0) {
    slowest_ = std::numeric_limits<double>::infinity();
    for (const LinkId cable : topology_.cables()) {
      const topology::Link link = topology_.link(cable);
      if (link.kind == topology::LinkKind::ethernet) slowest_ = std::min(slowest_, rate_of(link));
    }
  }
  std::vector<network::packet::SwitchPort> ports;
  for (const LinkId out : topology_.links_from(lower)) {
    const topology::Link link = topology_.link(out);
    const std::optional<LinkId> in = topology_.find_link(link.to, lower);
    if (link.kind != topology::LinkKind::ethernet || !in) continue;
    // Of each of the switches that the device stands for.
    const BytesPerSecond rate(rate_of(link) / topology_.device(lower).count);
    ports.push_back({rate, topology_.link(*in).latency, link.latency, above(topology_, lower, link.to)});
  }
  const Bytes own = topology_.facts_of(lower).buffer;
  const Bytes usual = own > Bytes{} ? own : network::packet::SwitchBuffer::kUsual;
  return {network::packet::PfcQueue(ports, spec_, slowest_), spec_.buffer.total.value_or(usual)};
}
}  // namespace topsim::executor
