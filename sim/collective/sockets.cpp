#include "sim/collective/sockets.hpp"

#include <algorithm>
#include <map>

namespace topsim::collective {

bool over_tcp(const topology::Topology& topology) {
  if (topology.accelerators().empty()) return false;
  const std::uint32_t node = topology.device(topology.accelerators().front()).node;
  if (node >= topology.nodes()) return false;
  bool tcp = false;
  for (const DeviceId nic : topology.nics_of_node(node))
    for (const LinkId l : topology.links_from(nic)) {
      const topology::Link link = topology.link(l);
      if (topology.device(link.to).node == node) continue;
      if (topology.type_of(l).transport != "tcp") return false;
      tcp = true;
    }
  return tcp;
}

double socket_cap(const std::vector<SocketHop>& hops, int threads) {
  double busiest = 0;  // seconds per byte
  if (threads > 0) {
    for (const SocketHop& hop : hops)
      busiest = std::max(busiest, hop.bytes / hop.connections / threads / kSocketReceive);
  } else {
    std::map<DeviceId, double> proxies;
    for (const SocketHop& hop : hops) {
      proxies[hop.from] += hop.bytes / kSocketSend;
      proxies[hop.to] += hop.bytes / kSocketReceive;
    }
    for (const auto& [gpu, time] : proxies) busiest = std::max(busiest, time);
  }
  return busiest > 0 ? 1 / busiest : 0;
}
}  // namespace topsim::collective
