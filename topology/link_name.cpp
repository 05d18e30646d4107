#include "topology/link_name.hpp"

#include <fmt/format.h>

namespace topsim::topology {

std::string name_with_speed(const Topology& topology, const Link& link) {
  std::string text = topology.link_types()[link.type].label;
  if (link.count > 1) text += fmt::format(" x{}", link.count);
  if (link.kind == LinkKind::infiniband || link.kind == LinkKind::ethernet) return text;
  return text + fmt::format(", {:.4g} GB/s", link.line_rate.value() * 1e-9);
}
}  // namespace topsim::topology
