#include "topology/routing/node_paths.hpp"

#include <algorithm>
#include <bit>
#include <boost/pending/disjoint_sets.hpp>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace topsim::topology {
namespace {

constexpr std::uint32_t kNone = DeviceId::kNone;

bool is_scale_up(DeviceKind a, DeviceKind b) {
  const auto ours = [](DeviceKind k) { return k == DeviceKind::accelerator || k == DeviceKind::nvswitch; };
  return ours(a) && ours(b);
}

}  // namespace

NodePaths::NodePaths(const Topology& t, const std::vector<bool>& dead, LinkPlaces& places) {
  seat_devices(t);
  place_inner_links(t, dead, places);
  find_shapes(t, place_cables(t, dead, places));
}

void NodePaths::seat_devices(const Topology& t) {
  seated_ = t.copies();
  by_seats_ = Divisor(seated_.devices);
  const std::size_t first = std::size_t{seated_.nodes} * seated_.devices, all = t.devices().size();
  members_begin_.assign(t.nodes() - seated_.nodes + 1, 0);
  for (std::size_t i = first; i < all; ++i)
    if (const std::uint32_t node = t.device(DeviceId(i)).node; node != kNone)
      ++members_begin_[node - seated_.nodes + 1];
  std::partial_sum(members_begin_.begin(), members_begin_.end(), members_begin_.begin());
  members_.resize(members_begin_.back());
  seats_.reserve(all - first);
  std::vector<std::uint32_t> next(members_begin_.begin(), members_begin_.end() - 1);
  for (std::size_t i = first; i < all; ++i) {
    const std::uint32_t node = t.device(DeviceId(i)).node, row = node - seated_.nodes;
    seats_.push_back({node, kNone});
    if (node == kNone) continue;
    seats_.back().position = next[row] - members_begin_[row];
    members_[next[row]++] = DeviceId(i);
  }
}

void NodePaths::place_inner_links(const Topology& t, const std::vector<bool>& dead, LinkPlaces& places) {
  const std::size_t all = t.links().size(), copied = std::size_t{t.copies().nodes} * t.copies().links;
  const bool rest_are_cables = copied + t.cables().size() == all;
  if (dead.empty() && rest_are_cables) linked_ = t.copies();
  places.nodes = linked_.nodes, places.each = linked_.links;
  places.by_each = Divisor(linked_.links);
  places.cell.assign(all - places.first(), kNone);
  places.at.assign(all - places.first(), kNone);
  links_begin_.assign(t.nodes() - linked_.nodes + 1, 0);
  if (linked_.nodes > 0) return;
  std::uint32_t last = 0;
  bool grouped = true;  // recipes create node after node
  std::size_t i = 0;
  for (const Link& link : t.links()) {
    const LinkId id(i++);
    const std::uint32_t node = node_of(link.from);
    if (node == kNone || node != node_of(link.to)) continue;
    places.cell_of(id) = node;
    if (!dead.empty() && dead[id.index()]) {
      dead_inside_.push_back(id);
      continue;
    }
    places.at_of(id) = links_begin_[node + 1]++;
    links_.push_back(id);
    grouped = grouped && node >= last;
    last = node;
  }
  std::partial_sum(links_begin_.begin(), links_begin_.end(), links_begin_.begin());
  if (!grouped)
    std::stable_sort(links_.begin(), links_.end(),
                     [&](LinkId a, LinkId b) { return places.cell_of(a) < places.cell_of(b); });
}

NodePaths::Ways NodePaths::place_cables(const Topology& t, const std::vector<bool>& dead,
                                        LinkPlaces& places) {
  Ways out;
  out.ports.assign(t.devices().size(), 0);
  out.joined.assign(t.devices().size(), 0);
  std::vector<std::uint32_t> cables(t.nodes(), kCables);
  for (const LinkId id : t.cables()) {
    const Link& l = t.link(id);
    const std::uint32_t from = node_of(l.from), to = node_of(l.to), node = from != kNone ? from : to;
    if (from == to) continue;  // inside a node or in none
    places.cell_of(id) = node;
    places.at_of(id) = cables[node]++;
    const bool alive = dead.empty() || !dead[id.index()];
    const Device &a = t.device(l.from), &b = t.device(l.to);
    if (alive && is_scale_up(a.kind, b.kind)) {
      if (b.kind == DeviceKind::nvswitch) out.joined[l.from.index()] |= 1;
      if (a.kind == DeviceKind::nvswitch) out.joined[l.to.index()] |= 2;
    }
    const bool to_nic = b.kind == DeviceKind::nic && a.kind == DeviceKind::nic;
    if (a.kind != DeviceKind::fabric_switch && (b.kind == DeviceKind::fabric_switch || to_nic))
      out.ports[l.from.index()] |= alive ? 1 : 2;
  }
  return out;
}

void NodePaths::find_shapes(const Topology& t, const Ways& ways) {
  using Key = std::tuple<std::vector<NodeShape::Member>, std::vector<LocalLink>, std::vector<LocalLink>>;
  std::map<Key, std::uint32_t> known;
  Key previous;
  auto& [its, inner, of_lost] = previous;
  std::uint32_t shape = kNone;
  const auto member = [&](DeviceId id) {
    const Device d = t.device(id);
    const std::uint8_t ports = ways.ports[id.index()];
    NodeShape::Member m{d.kind, d.local, (ports & 1) != 0, ports == 2, ways.joined[id.index()] == 3};
    if (d.kind == DeviceKind::cpu) m.peer_overhead = t.facts_of(id).peer_overhead;
    return m;
  };
  const auto local = [&](LinkId id) {
    const Link l = t.link(id);
    return LocalLink{
        position(l.from), position(l.to), l.latency, l.capacity,
        l.line_rate,      l.kind,         l.type,    is_scale_up(t.device(l.from).kind, t.device(l.to).kind)};
  };
  std::map<std::uint32_t, std::vector<LocalLink>> lost;  // by node
  for (const LinkId id : dead_inside_) {
    const Link& l = t.link(id);
    if (member(l.from).lost || member(l.to).lost) lost[node_of(l.from)].push_back(local(id));
  }
  // Consecutive nodes are mostly alike: compares with the previous node before building anything for this
  // one.
  const auto like_previous = [&](std::uint32_t node) {
    if (shape == kNone || its.size() != members(node)) return false;
    const bool copy = node > 0 && node < linked_.nodes;  // a copy of the node before; only cables may differ
    for (std::uint32_t at = 0; at < its.size(); ++at) {
      const std::size_t id = device(node, at).index();
      if (copy ? its[at].fabric != ((ways.ports[id] & 1) != 0) || its[at].joined != (ways.joined[id] == 3)
               : member(device(node, at)) != its[at])
        return false;
    }
    if (copy) return true;
    if (inner.size() != inner_links(node)) return false;
    for (std::uint32_t at = 0; at < inner.size(); ++at) {  // between the same kinds of devices
      const Link l = t.link(link(node, at));
      const LocalLink& other = inner[at];
      if (position(l.from) != other.from || position(l.to) != other.to || l.latency != other.latency ||
          l.capacity != other.capacity || l.line_rate != other.line_rate || l.kind != other.kind ||
          l.type != other.type)
        return false;
    }
    return true;
  };
  for (std::uint32_t node = 0; node < t.nodes(); ++node) {
    const auto lost_here = lost.find(node);
    const std::vector<LocalLink> none, &of_lost_here = lost_here == lost.end() ? none : lost_here->second;
    if (of_lost != of_lost_here || !like_previous(node)) {
      of_lost = of_lost_here;
      its.clear();
      inner.clear();
      for (std::uint32_t at = 0; at < members(node); ++at) its.push_back(member(device(node, at)));
      for (std::uint32_t at = 0; at < inner_links(node); ++at) inner.push_back(local(link(node, at)));
      const auto [found, fresh] = known.emplace(previous, static_cast<std::uint32_t>(shapes_.size()));
      if (fresh) shapes_.push_back(std::make_unique<NodeShape>(its, inner, t.peer_to_peer, of_lost));
      shape = found->second;
    }
    shape_of_.push_back(shape);
  }
}

}  // namespace topsim::topology
