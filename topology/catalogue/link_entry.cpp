#include "topology/catalogue/link_entry.hpp"

namespace topsim::topology {

const std::vector<std::string>& transports() {
  static const std::vector<std::string> names = {"roce", "tcp", "srd", "slingshot", "gaudi", "tcpxo"};
  return names;
}

BytesPerSecond payload_capacity(const LinkEntry& link, Bytes mtu) {
  const auto payload = static_cast<double>((mtu.value() > 0 ? mtu : link.mtu).value());
  const auto header = static_cast<double>(link.header.value());
  const double share = payload > 0 ? payload / (payload + header) : 1;
  return link.line_rate * (link.encoding * share * link.efficiency);
}

BytesPerSecond payload_capacity_at_nic(const LinkEntry& link, Bytes mtu) {
  return payload_capacity(link, mtu) * link.nic_efficiency;
}
}  // namespace topsim::topology
