// The course of a route: inside the node to a NIC, over the fabric, and from a NIC of the other node.
#include <algorithm>
#include <boost/pending/disjoint_sets.hpp>
#include <numeric>
#include <unordered_map>

#include "topology/routing/router_impl.hpp"

namespace topsim::topology {
namespace {

std::vector<bool> mask(const Topology& t, std::span<const LinkId> dead) {
  std::vector<bool> result;
  if (dead.empty()) return result;
  result.resize(t.links().size());
  for (const LinkId l : dead) result[l.index()] = true;
  // A NIC that no device of its node can reach counts as unplugged.
  for (const LinkId lost : dead)
    for (const DeviceId nic : {t.link(lost).from, t.link(lost).to}) {
      const auto links = t.links_from(nic);
      const auto inside = [&](LinkId l) { return t.device(t.link(l).to).node == t.device(nic).node; };
      if (t.device(nic).kind != DeviceKind::nic || !inside(lost)) continue;
      if (std::any_of(links.begin(), links.end(), [&](LinkId l) { return inside(l) && !result[l.index()]; }))
        continue;
      for (const LinkId cable : links) {
        result[cable.index()] = true;
        if (const auto back = t.find_link(t.link(cable).to, nic)) result[back->index()] = true;
      }
    }
  return result;
}

// The number of leaves to which a NIC has ports; its connections take them in turn.
std::uint32_t leaves_of_a_port(const FabricPorts& ports) {
  std::uint32_t turns = 1;
  for (std::uint32_t port = 0; port < ports.size(); ++port) {
    std::uint32_t leaves = 0;  // cables are ordered by leaf
    DeviceId last;
    for (const FabricPorts::Cable& cable : ports.cables_of(port)) {
      if (leaves == 0 || cable.at != last) ++leaves;
      last = cable.at;
    }
    if (leaves > 1) turns = std::lcm(turns, leaves);
  }
  return turns;
}

}  // namespace

Router::Impl::Impl(const Topology& t, std::uint64_t seed, std::span<const LinkId> dead_links,
                   std::uint32_t pairs, std::span<const SlowLink> slow)
    : topology(t),
      queue_pairs(pairs),
      dead(mask(t, dead_links)),
      nodes(t, dead, places),
      turns(nodes.turns()),
      accelerator_turns(nodes.turns(&NodeShape::accelerator_turns)),
      ports(t, dead, t.cables()) {
  const bool notices = t.routing == Routing::adaptive && !slow.empty();
  if (!notices) fabric = make_clos_routes(t, ports, seed, dead, t.cables());
  if (!fabric) fabric = make_graph_routes(t, ports, seed, dead, slow);
  if (t.routing == Routing::static_) accelerator_turns = std::lcm(accelerator_turns, leaves_of_a_port(ports));
  cells = std::make_unique<Cells>(t, nodes, *fabric, dead, std::move(places));
  find_domains();
  // In-network reduction uses switches that belong to no site.
  const bool regular = dead.empty() && !shared_switches && !t.sharp;
  sites = std::make_unique<Sites>(nodes, ports, *fabric, *cells, regular);
}

// Inside a node its shape tells which devices scale-up links connect; cables may connect those of several
// nodes.
void Router::Impl::find_domains() {
  const auto devices = topology.devices();
  const auto scale_up = [](const Device& d) {
    return d.kind == DeviceKind::accelerator || d.kind == DeviceKind::nvswitch;
  };
  std::vector<std::uint32_t> first_part;  // by node
  std::uint32_t parts = 0;
  for (std::uint32_t node = 0; node < nodes.nodes(); ++node) {
    first_part.push_back(parts);
    parts += nodes.shape(node).parts();
  }
  std::unordered_map<std::uint32_t, std::uint32_t> outside;  // devices in no node are parts of their own
  const Topology::Copies& copies = topology.copies();
  for (std::uint32_t d = copies.nodes * copies.devices; d < devices.size(); ++d)
    if (devices[d].node == kNone && scale_up(devices[d])) outside[d] = parts++;
  const auto part_of = [&](DeviceId d) {
    const auto [node, position] = nodes.seat(d);
    return node == kNone ? outside.at(d.value) : first_part[node] + nodes.shape(node).part(position);
  };
  std::vector<std::uint32_t> rank(parts), parent(parts);
  std::iota(parent.begin(), parent.end(), 0);
  boost::disjoint_sets sets(rank.data(), parent.data());
  // Of several such links a device keeps the one with the highest number.
  const auto take = [&](std::vector<LinkId>& of_devices, DeviceId device, LinkId link) {
    of_devices.resize(devices.size());
    LinkId& kept = of_devices[device.index()];
    if (!kept.valid() || kept < link) kept = link;
  };
  for (const LinkId id : topology.cables()) {
    const Link& l = topology.link(id);
    // Cables to and from fabric switches are nearly all cables, and these switches are in no node.
    const auto outside_nodes = [&](DeviceId d) { return d.value >= copies.nodes * copies.devices; };
    if (outside_nodes(l.from) && !scale_up(topology.device(l.from))) continue;
    if (outside_nodes(l.to) && !scale_up(topology.device(l.to))) continue;
    const Device &a = topology.device(l.from), &b = topology.device(l.to);
    if (!scale_up(a) || !scale_up(b) || !works(id)) continue;
    sets.union_set(part_of(l.from), part_of(l.to));
    if (a.node == b.node) continue;
    if (b.kind == DeviceKind::nvswitch) take(to_domain_switch, l.from, id);
    if (a.kind == DeviceKind::nvswitch) take(from_domain_switch, l.to, id);
    shared_switches = true;
  }
  // Numbered in the order of their first accelerator.
  domain.assign(devices.size(), kNone);
  std::vector<std::uint32_t> number(parts, kNone);
  std::uint32_t next = 0;
  for (const DeviceId gpu : topology.accelerators()) {
    auto& n = number[sets.find_set(part_of(gpu))];
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

// The local port on the rail of `to`: that of the accelerator with the same number in this node.
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

Router::Impl::Stops Router::Impl::stops(const RouteQuery& q) const {
  const bool gpu = topology.device(q.from).kind == DeviceKind::accelerator;
  DeviceId from = q.from_nic, to = q.to_nic;
  // A channel graph may name a NIC that has lost its cables: its stand-in is used.
  const auto lost = [&](DeviceId nic) { return !dead.empty() && nic.valid() && ports.cables(nic).empty(); };
  if (lost(from)) from = nearest_port(from, q.connection);
  if (lost(to)) to = nearest_port(to, q.connection);
  if (!to.valid()) to = nearest_port(q.to, q.connection);
  if (!from.valid())
    from = gpu && q.allow_pxn ? rail_port(q.from, q.to, q.connection) : nearest_port(q.from, q.connection);
  DeviceId proxy = q.from;
  if (gpu && q.allow_pxn && from.valid() && to.valid()) proxy = proxy_for(q.from, from);
  return {proxy, from, to};
}

// REQUIRES: `q` has a key.
NicChoice Router::Impl::nic_choice(const RouteQuery& q) const {
  const NicChoice asked = nic_choice(q, stops(q));
  if (asked.reachable || (!q.from_nic.valid() && !q.to_nic.valid())) return asked;
  // A ring's channel enters and leaves a node by one NIC each. Accelerators that have their own NICs and
  // cannot reach these use their own.
  RouteQuery own = q;
  own.from_nic = own.to_nic = {};
  return nic_choice(own, stops(own));
}

NicChoice Router::Impl::nic_choice(const RouteQuery& q, const Stops& by) const {
  const auto [proxy, leave, enter] = by;
  NicChoice result;
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

bool Router::Impl::over_queue_pairs(DeviceId from, DeviceId to, std::uint64_t first, Route& out) const {
  struct Use {
    std::size_t hop;
    LinkShare of;
  };
  std::vector<Use> uses;
  for (std::uint32_t pair = 0; pair < queue_pairs; ++pair) {
    Route one;
    if (!fabric->append(from, to, first + pair, FabricRoutes::Paths::shortest, one)) return false;
    for (std::size_t hop = 0; hop < one.links.size(); ++hop) {
      const LinkShare& use = one.links[hop];
      const auto same =
          std::find_if(uses.begin(), uses.end(), [&](const Use& known) { return known.of.link == use.link; });
      if (same == uses.end())
        uses.push_back({hop, use});
      else
        same->of.share += use.share;
    }
    if (pair > 0) continue;
    out.latency += one.latency;
    out.switches = static_cast<std::uint16_t>(out.switches + one.switches);
  }
  std::stable_sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) { return a.hop < b.hop; });
  for (const Use& use : uses) out.links.push_back({use.of.link, use.of.share / queue_pairs});
  return true;
}

bool Router::Impl::between_nodes(const RouteQuery& q, Grain grain, Route& out) const {
  if (NicChoice::Key key; nic_choice_key(q, key)) {
    const NicChoice* known = nic_choices.find(key);
    NicChoice fresh;
    if (known == nullptr) {
      fresh = nic_choice(q);
      nic_choices.keep(key, fresh);
      known = &fresh;
    }
    if (!known->reachable) return false;
    const std::uint32_t from = node_of(q.from), to = node_of(q.to);
    add_way(from, key.from, known->proxy, grain, out);
    add_way(from, known->proxy, known->leave, grain, out);
    out.latency += known->latency;
    if (!over_fabric(nodes.device(from, known->leave), nodes.device(to, known->enter), q, grain, out))
      return false;
    add_way(to, known->enter, key.to, grain, out);
    out.proxied = known->proxy != key.from;
  } else {
    const auto [proxy, leave, enter] = stops(q);
    if (!leave.valid() || !enter.valid() || !inside(q.from, proxy, grain, out)) return false;
    out.proxied = proxy != q.from;
    if (!inside(proxy, leave, grain, out) || !over_fabric(leave, enter, q, grain, out) ||
        !inside(enter, q.to, grain, out))
      return false;
  }
  out.crosses_fabric = true;
  out.latency += topology.nic_latency;
  return true;
}

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
    found = across_domain(q, grain, out);
  }
  if (!found) {
    out.links.clear();
    out.latency = Duration::zero();
    found = between_nodes(q, grain, out);
  }
  if (!found) out.links.clear();
}

}  // namespace topsim::topology
