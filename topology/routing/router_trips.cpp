// What routes share: journeys between nodes of the same shapes, trips between nodes that stand alike.
#include "topology/routing/router_impl.hpp"

namespace topsim::topology {
// None where it does not follow from the shapes of two nodes alone.
std::optional<Journey::Key> Router::Impl::journey_key(const RouteQuery& q) const {
  const std::uint32_t from = node_of(q.from), to = node_of(q.to);
  const auto strange = [&](DeviceId nic, std::uint32_t node) { return nic.valid() && node_of(nic) != node; };
  if (!dead.empty() || shared_switches || from == kNone || to == kNone || strange(q.from_nic, from) ||
      strange(q.to_nic, to))
    return std::nullopt;
  const auto position = [&](DeviceId device) { return device.valid() ? nodes.position(device) : kNone; };
  const auto turn = [&](std::uint32_t node) {
    const std::uint32_t turns = nodes.shape(node).turns();
    return turns == 1 ? 0 : static_cast<std::uint32_t>(q.connection % turns);
  };
  return Journey::Key{nodes.shape_number(from), nodes.shape_number(to), position(q.from), position(q.to),
                      position(q.from_nic),     position(q.to_nic),     turn(from),       turn(to),
                      q.allow_pxn ? 1U : 0U};
}

Router::TripBetween Router::Impl::trip(const RouteQuery& q) const {
  const std::uint32_t from = node_of(q.from), to = node_of(q.to);
  if (from == to || q.one_port) return {};
  auto key = journey_key(q);
  if (!key) return {};
  const Standing a = sites->standing(from), b = sites->standing(to);
  if (a.site == kNowhere || b.site == kNowhere) return {};
  key->from_kind = a.kind;
  key->to_kind = b.kind;
  key->options |= (a.site == b.site ? 2U : 0U) | (a.region == b.region ? 4U : 0U);
  const Trip* known = trips.find(*key);
  if (known == nullptr) known = trips.keep(*key, make_trip(q));
  if (known == nullptr || known->stops.empty()) return {};
  return {known, from, to};
}

// Without stops where it does not follow from where its ends stand.
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
