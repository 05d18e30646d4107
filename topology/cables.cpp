#include "topology/cables.hpp"

namespace topsim::topology {

std::optional<LinkId> other_direction(const Topology& topology, LinkId id) {
  const Link one = topology.link(id);
  std::size_t place = 0;
  for (const LinkId beside : topology.links_from(one.from))
    if (beside < id && topology.link(beside).to == one.to) ++place;
  for (const LinkId back : topology.links_from(one.to))
    if (topology.link(back).to == one.from && place-- == 0) return back;
  return std::nullopt;
}
}  // namespace topsim::topology
