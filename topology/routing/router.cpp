#include <fmt/format.h>

#include <boost/pending/disjoint_sets.hpp>
#include <numeric>

#include "topology/routes.hpp"
#include "topology/routing/cells.hpp"
#include "topology/routing/fabric_routes.hpp"
#include "topology/routing/journeys.hpp"
#include "topology/routing/node_paths.hpp"
#include "topology/routing/remembered.hpp"
#include "topology/routing/sites.hpp"

namespace topsim::topology {
namespace {

constexpr std::uint32_t kNone = DeviceId::kNone;

std::vector<bool> mask(const Topology& t, std::span<const LinkId> dead) {
  std::vector<bool> result;
  if (dead.empty()) return result;
  result.resize(t.links().size());
  for (const LinkId l : dead) result[l.index()] = true;
  return result;
}

}  // namespace

struct Router::Impl {
  Impl(const Topology& t, std::uint64_t seed, std::span<const LinkId> dead_links)
      : topology(t), dead(mask(t, dead_links)), nodes(t, dead, places), ports(t, dead) {
    fabric = make_clos_routes(t, ports, seed, dead);
    if (!fabric) fabric = make_graph_routes(t, ports, seed, dead);
    cells = std::make_unique<Cells>(t, nodes, *fabric, dead, std::move(places));
    find_domains();
    // In-network reduction leads to switches that stand in no site.
    const bool regular = dead.empty() && !shared_switches && !t.sharp;
    sites = std::make_unique<Sites>(nodes, ports, *fabric, *cells, regular);
  }

  const Topology& topology;
  std::vector<bool> dead;
  LinkPlaces places;
  NodePaths nodes;
  FabricPorts ports;
  std::unique_ptr<FabricRoutes> fabric;
  std::unique_ptr<Cells> cells;
  std::unique_ptr<Sites> sites;
  std::vector<std::uint32_t> domain;  // by device: scale-up domain of accelerators and their switches
  // Accelerators' links to a switch that several nodes share (NVL72); by device, none otherwise.
  std::vector<LinkId> to_domain_switch, from_domain_switch;
  bool shared_switches = false;
  Remembered<Journey::Key, Journey> journeys;
  Remembered<Journey::Key, Trip> trips;

  void find_domains();
  [[nodiscard]] bool works(LinkId l) const { return dead.empty() || !dead[l.index()]; }
  [[nodiscard]] std::uint32_t node_of(DeviceId d) const { return topology.device(d).node; }

  void add(LinkId link, Route& out) const {
    out.links.push_back({link, 1});
    out.latency += topology.link(link).latency;
  }
  // What a route consists of: links or stretches.
  enum class Grain { links, stretches };
  bool inside(DeviceId from, DeviceId to, Grain grain, Route& out) const {
    if (from == to) return true;
    if (over_shared_switch(from, to, out)) return true;
    const std::uint32_t node = node_of(from), a = nodes.position(from), b = nodes.position(to);
    const LocalPath path = nodes.shape(node).path(a, b);
    if (!path.reachable) return false;
    out.latency += path.latency;
    add_way(node, a, b, grain, out);
    return true;
  }
  void add_way(std::uint32_t node, std::uint32_t a, std::uint32_t b, Grain grain, Route& out) const {
    if (a == b) return;
    if (const LinkId way = grain == Grain::stretches ? cells->way(node, a, b) : LinkId(); way.valid())
      out.links.push_back({way, 1});
    else
      for (const std::uint32_t l : nodes.shape(node).path(a, b).links)
        out.links.push_back({nodes.link(node, l), 1});
  }
  bool over_fabric(DeviceId from, DeviceId to, std::uint64_t connection, bool one_port, Grain grain,
                   Route& out) const {
    if (grain == Grain::links || one_port) return fabric->append(from, to, connection, one_port, out);
    return fabric->sketch(from, to, connection, cells->bundle(0), out);
  }
  // Over scale-up links that leave the node.
  bool across_domain(DeviceId from, DeviceId to, std::uint64_t connection, Grain grain, Route& out) const {
    return over_shared_switch(from, to, out) || over_fabric(from, to, connection, false, grain, out);
  }
  // Two accelerators of one node too: their only NVLinks lead to it.
  bool over_shared_switch(DeviceId from, DeviceId to, Route& out) const {
    const LinkId up = to_domain_switch[from.index()], down = from_domain_switch[to.index()];
    if (!up.valid() || !down.valid() || topology.link(up).to != topology.link(down).from) return false;
    add(up, out);
    add(down, out);
    return true;
  }
  [[nodiscard]] DeviceId nearest_port(DeviceId device, std::uint64_t connection) const;
  [[nodiscard]] DeviceId rail_port(DeviceId gpu, DeviceId to, std::uint64_t connection) const;
  [[nodiscard]] DeviceId proxy_for(DeviceId gpu, DeviceId port) const;
  struct Stops {
    DeviceId proxy, leave, enter;  // as those of a journey
  };
  [[nodiscard]] Stops stops(const RouteQuery& query) const;
  [[nodiscard]] std::optional<Journey::Key> journey_key(const RouteQuery& query) const;
  [[nodiscard]] Journey journey(const RouteQuery& query) const;
  [[nodiscard]] const Trip* trip(const RouteQuery& query) const;
  [[nodiscard]] Trip make_trip(const RouteQuery& query) const;
  bool between_nodes(const RouteQuery& query, Grain grain, Route& out) const;
  void route(const RouteQuery& query, Grain grain, Route& out) const;
};

void Router::Impl::find_domains() {
  const auto devices = topology.devices();
  std::vector<std::uint32_t> rank(devices.size()), parent(devices.size());
  std::iota(parent.begin(), parent.end(), 0);
  boost::disjoint_sets sets(rank.data(), parent.data());
  to_domain_switch.assign(devices.size(), LinkId{});
  from_domain_switch.assign(devices.size(), LinkId{});
  const auto scale_up = [&](DeviceKind k) {
    return k == DeviceKind::accelerator || k == DeviceKind::nvswitch;
  };
  for (std::size_t i = 0; i < topology.links().size(); ++i) {
    const Link& l = topology.links()[i];
    const Device &a = topology.device(l.from), &b = topology.device(l.to);
    if (!works(LinkId(i)) || !scale_up(a.kind) || !scale_up(b.kind)) continue;
    sets.union_set(l.from.value, l.to.value);
    if (a.node == b.node) continue;
    if (b.kind == DeviceKind::nvswitch) to_domain_switch[l.from.index()] = LinkId(i);
    if (a.kind == DeviceKind::nvswitch) from_domain_switch[l.to.index()] = LinkId(i);
    shared_switches = true;
  }
  // Numbered in the order of their first accelerator.
  domain.assign(devices.size(), kNone);
  std::vector<std::uint32_t> number(devices.size(), kNone);
  std::uint32_t next = 0;
  for (const DeviceId gpu : topology.accelerators()) {
    auto& n = number[sets.find_set(gpu.value)];
    if (n == kNone) n = next++;
    domain[gpu.index()] = n;
  }
}

DeviceId Router::Impl::nearest_port(DeviceId device, std::uint64_t connection) const {
  const std::uint32_t node = node_of(device);
  if (node == kNone) return {};
  const std::uint32_t port = nodes.shape(node).own_port(nodes.position(device), connection);
  return port == kNone ? DeviceId{} : nodes.device(node, port);
}

// The local port on the rail of `to`: the one that the accelerator of the same number here has.
DeviceId Router::Impl::rail_port(DeviceId gpu, DeviceId to, std::uint64_t connection) const {
  const std::uint32_t node = node_of(gpu), at = nodes.position(gpu);
  const NodeShape& shape = nodes.shape(node);
  const Device& peer = topology.device(to);
  std::uint32_t beside = peer.kind == DeviceKind::accelerator ? shape.accelerator(peer.local) : kNone;
  if (beside == kNone || !shape.scale_up(at, beside)) beside = at;
  const std::uint32_t port = shape.own_port(beside, connection);
  return port == kNone ? DeviceId{} : nodes.device(node, port);
}

DeviceId Router::Impl::proxy_for(DeviceId gpu, DeviceId port) const {
  const std::uint32_t node = node_of(gpu);
  if (node_of(port) != node) return gpu;
  return nodes.device(node, nodes.shape(node).proxy(nodes.position(gpu), nodes.position(port)));
}

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

const Router::Trip* Router::Impl::trip(const RouteQuery& q) const {
  const std::uint32_t from = node_of(q.from), to = node_of(q.to);
  if (from == to || q.one_port) return nullptr;
  auto key = journey_key(q);
  if (!key) return nullptr;
  const Standing a = sites->standing(from), b = sites->standing(to);
  if (a.site == kNowhere || b.site == kNowhere) return nullptr;
  key->from_kind = a.kind;
  key->to_kind = b.kind;
  key->options |= (a.site == b.site ? 2U : 0U) | (a.region == b.region ? 4U : 0U);
  const Trip* known = trips.find(*key);
  if (known == nullptr) known = trips.keep(*key, make_trip(q));
  return known == nullptr || known->stops.empty() ? nullptr : known;
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

Router::Impl::Stops Router::Impl::stops(const RouteQuery& q) const {
  const bool gpu = topology.device(q.from).kind == DeviceKind::accelerator;
  DeviceId from = q.from_nic, to = q.to_nic;
  // A channel graph may ask for a NIC that has lost its cables: another one of the node takes over.
  const auto lost = [&](DeviceId nic) { return !dead.empty() && nic.valid() && ports.cables(nic).empty(); };
  if (lost(from)) from = nearest_port(q.from, q.connection);
  if (lost(to)) to = nearest_port(q.to, q.connection);
  if (!to.valid()) to = nearest_port(q.to, q.connection);
  if (!from.valid())
    from = gpu && q.allow_pxn ? rail_port(q.from, q.to, q.connection) : nearest_port(q.from, q.connection);
  DeviceId proxy = q.from;
  if (gpu && q.allow_pxn && from.valid() && to.valid()) proxy = proxy_for(q.from, from);
  return {proxy, from, to};
}

// REQUIRES: `q` has a key.
Journey Router::Impl::journey(const RouteQuery& q) const {
  const auto [proxy, leave, enter] = stops(q);
  Journey result;
  Route inner;
  result.reachable = leave.valid() && enter.valid() && inside(q.from, proxy, Grain::stretches, inner) &&
                     inside(proxy, leave, Grain::stretches, inner) &&
                     inside(enter, q.to, Grain::stretches, inner);
  if (!result.reachable) return result;
  result.proxy = nodes.position(proxy);
  result.leave = nodes.position(leave);
  result.enter = nodes.position(enter);
  result.latency = inner.latency;
  return result;
}

bool Router::Impl::between_nodes(const RouteQuery& q, Grain grain, Route& out) const {
  if (const auto key = journey_key(q)) {
    const Journey* known = journeys.find(*key);
    Journey fresh;
    if (known == nullptr) {
      fresh = journey(q);
      journeys.keep(*key, fresh);
      known = &fresh;
    }
    if (!known->reachable) return false;
    const std::uint32_t from = node_of(q.from), to = node_of(q.to);
    add_way(from, key->from, known->proxy, grain, out);
    add_way(from, known->proxy, known->leave, grain, out);
    out.latency += known->latency;
    if (!over_fabric(nodes.device(from, known->leave), nodes.device(to, known->enter), q.connection,
                     q.one_port, grain, out))
      return false;
    add_way(to, known->enter, key->to, grain, out);
    out.proxied = known->proxy != key->from;
  } else {
    const auto [proxy, leave, enter] = stops(q);
    if (!leave.valid() || !enter.valid() || !inside(q.from, proxy, grain, out)) return false;
    out.proxied = proxy != q.from;
    if (!inside(proxy, leave, grain, out) ||
        !over_fabric(leave, enter, q.connection, q.one_port, grain, out) || !inside(enter, q.to, grain, out))
      return false;
  }
  out.crosses_fabric = true;
  out.latency += topology.nic_latency;
  return true;
}

Router::Router(const Topology& topology, std::uint64_t seed, std::span<const LinkId> dead)
    : impl_(std::make_unique<Impl>(topology, seed, dead)) {}
Router::~Router() = default;
Router::Router(Router&&) noexcept = default;

void Router::Impl::route(const RouteQuery& q, Grain grain, Route& out) const {
  out.links.clear();
  out.latency = Duration::zero();
  out.switches = 0;
  out.crosses_fabric = out.proxied = false;
  const auto gpu = [&](DeviceId d) { return topology.device(d).kind == DeviceKind::accelerator; };
  const bool forced = q.from_nic.valid() || q.to_nic.valid();
  bool found = false;
  if (node_of(q.from) == node_of(q.to) && !forced) {
    found = inside(q.from, q.to, grain, out);
  } else if (gpu(q.from) && gpu(q.to) && domain[q.from.index()] == domain[q.to.index()] && !forced) {
    found = across_domain(q.from, q.to, q.connection, grain, out);
  }
  if (!found) {
    out.links.clear();
    out.latency = Duration::zero();
    found = between_nodes(q, grain, out);
  }
  if (!found) out.links.clear();
}

void Router::route(const RouteQuery& query, Route& out) const {
  impl_->route(query, Impl::Grain::links, out);
}

void Router::sketch(const RouteQuery& query, Route& out) const {
  impl_->route(query, Impl::Grain::stretches, out);
}

Router::Place Router::place(LinkId stretch) const {
  return impl_->cells->place(stretch);
}

void Router::expand(Place place, std::vector<LinkShare>& out) const {
  impl_->cells->expand(place, out);
}

std::uint32_t Router::cells() const {
  return impl_->cells->size();
}

std::uint64_t Router::kind_of_cell(std::uint32_t cell) const {
  return impl_->cells->kind(cell);
}

std::uint32_t Router::nics_of(DeviceId device) const {
  const std::uint32_t node = impl_->node_of(device);
  if (node == kNone) return 1;
  const std::uint32_t turns = impl_->nodes.shape(node).port_turns(impl_->nodes.position(device));
  if (impl_->dead.empty()) return turns;
  // Who has lost its own NIC moves to one other, not to all that are equally far.
  return std::min(turns, impl_->nodes.shape(node).nics_per_accelerator());
}

Router::Standing Router::standing(std::uint32_t node) const {
  return impl_->sites->standing(node);
}

Router::Owner Router::owner(std::uint32_t cell) const {
  return impl_->sites->owner(cell);
}

std::uint32_t Router::cell(Owner owner) const {
  return impl_->sites->cell(owner);
}

const Router::Trip* Router::trip(const RouteQuery& query) const {
  return impl_->trip(query);
}

std::uint32_t Router::turns() const {
  return impl_->nodes.turns();
}

std::uint32_t Router::sites() const {
  return impl_->sites->sites();
}

std::uint32_t Router::regions() const {
  return impl_->sites->regions();
}

DeviceId Router::nic_for(DeviceId gpu, DeviceId to) const {
  return impl_->rail_port(gpu, to, 0);
}

std::uint32_t Router::scale_up_domain(DeviceId gpu) const {
  return impl_->domain[gpu.index()];
}

const Topology& Router::topology() const {
  return impl_->topology;
}

std::uint32_t Router::node_shape(std::uint32_t node) const {
  return impl_->nodes.shape_number(node);
}

std::uint32_t Router::place_of(DeviceId device) const {
  return impl_->nodes.position(device);
}

std::optional<std::uint32_t> Router::place_of(LinkId link, std::uint32_t node) const {
  return impl_->nodes.position(link, node);
}

LinkId Router::link_at(std::uint32_t node, std::uint32_t place) const {
  return impl_->nodes.link(node, place);
}

std::uint32_t Router::links_of_cell(std::uint32_t cell) const {
  return impl_->cells->links_of(cell);
}

std::string Router::why_unreachable(DeviceId from, DeviceId to) const {
  const Topology& t = impl_->topology;
  const std::string sentence = fmt::format("{} cannot reach {}: ", t.name(from), t.name(to));
  const std::uint32_t a = impl_->node_of(from), b = impl_->node_of(to);
  if (a == b && a != kNone) return sentence + fmt::format("no bus joins them inside node{}", a);
  for (const auto& [device, node] : {std::pair(from, a), std::pair(to, b)}) {
    if (node == kNone) continue;
    if (t.nics_of_node(node).empty() && !impl_->nearest_port(device, 0).valid())
      return sentence + fmt::format("node{} has no NIC", node);
    if (!impl_->nearest_port(device, 0).valid())
      return sentence + (t.fabric_kind == "none"
                             ? "the topology has no fabric between nodes (topology.fabric)"
                             : fmt::format("no working cable leaves node{}'s NICs", node));
  }
  const DeviceId x = impl_->nearest_port(from, 0), y = impl_->nearest_port(to, 0);
  if (!x.valid() || !y.valid()) return sentence + "one of them is outside every node";
  return sentence + fmt::format("no working path joins {} and {} over the fabric", t.name(x), t.name(y));
}

}  // namespace topsim::topology
