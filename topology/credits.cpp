#include "topology/credits.hpp"

#include "topology/cables.hpp"

namespace topsim::topology {
namespace {
// Of all cables of the link.
double on_the_way(const Topology& topology, const Link& link) {
  constexpr Bytes usual = payload_on_the_way(Bytes(4096), Bytes(26));
  const Bytes own = topology.link_types()[link.type].on_the_way;
  return static_cast<double>((own.value() > 0 ? own : usual).value()) * link.count;
}
}  // namespace

BytesPerSecond credit_bound(const Topology& topology, const Link& there, const Link& back) {
  const double trip = seconds(there.latency + back.latency);
  return BytesPerSecond(on_the_way(topology, there) / std::max(trip, 1e-12));
}

bool waits_for_credits(const Topology& topology, const Link& there, const Link& back) {
  return there.kind == LinkKind::infiniband &&
         there.capacity >= (1 - 1e-9) * credit_bound(topology, there, back);
}

bool may_wait_for_credits(const Topology& topology, const Link& slower) {
  return slower.kind == LinkKind::infiniband &&
         2 * slower.line_rate.value() * seconds(slower.latency) >= on_the_way(topology, slower);
}

void Topology::bound_by_credits() {
  const std::size_t before = links().size() - links_.size();
  for (const LinkId id : cables_) {
    if (!may_wait_for_credits(*this, link(id))) continue;
    const std::optional<LinkId> other = other_direction(*this, id);
    if (!other) continue;
    Link &there = links_[id.index() - before], &back = links_[other->index() - before];
    there.capacity = std::min(there.capacity, credit_bound(*this, there, back));
    back.capacity = std::min(back.capacity, credit_bound(*this, back, there));
  }
}
}  // namespace topsim::topology
