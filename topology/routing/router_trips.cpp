// What routes share: NIC choices between nodes of the same shapes, and trips between nodes with equal
// connections.
#include "topology/routing/router_impl.hpp"

namespace topsim::topology {
// False if the choice does not follow from the shapes of the two nodes alone.
bool Router::Impl::nic_choice_key(const RouteQuery& q, NicChoice::Key& key) const {
  using Seat = NodePaths::Seat;
  const Seat from = nodes.seat(q.from), to = nodes.seat(q.to);
  const auto seat_of = [&](DeviceId nic, const Seat& end) {
    return nic.valid() ? nodes.seat(nic) : Seat{end.node, kNone};
  };
  const Seat from_nic = seat_of(q.from_nic, from), to_nic = seat_of(q.to_nic, to);
  if (!dead.empty() || shared_switches || from.node == kNone || to.node == kNone ||
      from_nic.node != from.node || to_nic.node != to.node)
    return false;
  key.from_kind = nodes.shape_number(from.node), key.to_kind = nodes.shape_number(to.node);
  key.from = from.position, key.to = to.position;
  key.from_nic = from_nic.position, key.to_nic = to_nic.position;
  key.from_turn = key.to_turn = 0;
  if (turns > 1) {
    key.from_turn = static_cast<std::uint32_t>(q.connection % nodes.shape(from.node).turns());
    key.to_turn = static_cast<std::uint32_t>(q.connection % nodes.shape(to.node).turns());
  }
  key.options = q.allow_pxn ? 1U : 0U;
  return true;
}

Router::TripBetween Router::Impl::trip(const RouteQuery& q) const {
  const std::uint32_t from = node_of(q.from), to = node_of(q.to);
  NicChoice::Key key;
  if (from == to || q.one_port || !nic_choice_key(q, key)) return {};
  const Standing &a = sites->standing(from), &b = sites->standing(to);
  if (a.site == kNowhere || b.site == kNowhere) return {};
  key.from_kind = a.kind;
  key.to_kind = b.kind;
  key.options |= (a.site == b.site ? 2U : 0U) | (a.region == b.region ? 4U : 0U) | (q.even ? 8U : 0U);
  const Trip* known = trips.find(key);
  if (known == nullptr) known = trips.keep(key, make_trip(q));
  if (known == nullptr || known->stops.empty()) return {};
  return {known, from, to};
}

// The trip has no stops if it does not follow from the standing of its ends.
Router::Trip Router::Impl::make_trip(const RouteQuery& q) const {
  const std::uint32_t nodes_of[2] = {node_of(q.from), node_of(q.to)};
  Route whole;
  route(q, Grain::stretches, whole);
  Trip result{{}, whole.latency, whole.crosses_fabric};
  for (const LinkShare& use : whole.links) {
    const Place place = cells->place(use.link);
    const Owner owner = sites->owner(place.cell);
    std::uint32_t end = 0;
    for (; end < 2; ++end) {
      const Standing standing = sites->standing(nodes_of[end]);
      if (owner.kind == Owner::Kind::node && owner.number == nodes_of[end]) break;
      if (owner.kind == Owner::Kind::site && owner.number == standing.site) break;
      if (owner.kind == Owner::Kind::region && owner.number == standing.region) break;
    }
    if (end == 2) return {};
    result.stops.push_back({owner.kind, end == 1, owner.at, place.at, use.share});
  }
  return result;
}

}  // namespace topsim::topology
