#include "sim/network/packet/fabrics.hpp"

namespace topsim::network::packet {
namespace {
void attach_hosts(Fabric& fabric, DeviceIndex to, std::uint32_t count, const LinkFigures& link) {
  for (std::uint32_t i = 0; i < count; ++i) {
    fabric.hosts.push_back(fabric.graph.device());
    fabric.graph.cable(fabric.hosts.back(), to, link.rate, link.latency, link.flow_control);
  }
}

std::vector<DeviceIndex> add_switches(Fabric& fabric, std::uint32_t count) {
  std::vector<DeviceIndex> added;
  for (std::uint32_t i = 0; i < count; ++i) added.push_back(fabric.graph.device());
  fabric.switches.insert(fabric.switches.end(), added.begin(), added.end());
  return added;
}
}  // namespace

Fabric star(std::uint32_t hosts, const LinkFigures& link) {
  Fabric fabric;
  fabric.graph.infiniband = link.infiniband;
  attach_hosts(fabric, add_switches(fabric, 1)[0], hosts, link);
  return fabric;
}

Fabric dumbbell(std::uint32_t left, std::uint32_t right, const LinkFigures& link) {
  Fabric fabric;
  fabric.graph.infiniband = link.infiniband;
  const auto ends = add_switches(fabric, 2);
  fabric.graph.cable(ends[0], ends[1], link.rate, link.latency, link.flow_control);
  attach_hosts(fabric, ends[0], left, link);
  attach_hosts(fabric, ends[1], right, link);
  return fabric;
}

Fabric leaf_spine(std::uint32_t leaves, std::uint32_t down, std::uint32_t spines, const LinkFigures& link,
                  int cables) {
  Fabric fabric;
  fabric.graph.infiniband = link.infiniband;
  const auto spine = add_switches(fabric, spines);
  const BytesPerSecond rate(link.rate.value() * cables);
  for (const DeviceIndex leaf : add_switches(fabric, leaves)) {
    for (const DeviceIndex up : spine) {
      const PortIndex port = fabric.graph.cable(leaf, up, rate, link.latency, link.flow_control);
      for (const PortIndex each : {port, fabric.graph.ports[port].reverse})
        fabric.graph.ports[each].cables = cables;
    }
    attach_hosts(fabric, leaf, down, link);
  }
  return fabric;
}
}  // namespace topsim::network::packet
