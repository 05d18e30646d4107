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

std::uint32_t mirror_bits(std::uint32_t value, std::uint32_t size) {
  std::uint32_t mirrored = 0;
  for (std::uint32_t bit = 1, top = size >> 1; bit < size; bit <<= 1, top >>= 1)
    if ((value & bit) != 0) mirrored |= top;
  return mirrored;
}

bool is_scale_up(DeviceKind a, DeviceKind b) {
  const auto ours = [](DeviceKind k) { return k == DeviceKind::accelerator || k == DeviceKind::nvswitch; };
  return ours(a) && ours(b);
}

}  // namespace

NodeShape::NodeShape(std::vector<Member> members, std::vector<LocalLink> links, bool peer_to_peer,
                     const std::vector<LocalLink>& of_lost)
    : members_(std::move(members)),
      links_(std::move(links)),
      peer_to_peer_(peer_to_peer),
      rows_(std::make_unique<Row[]>(members_.size())) {
  out_begin_.assign(members_.size() + 1, 0);
  for (const LocalLink& l : links_) ++out_begin_[l.from + 1];
  std::partial_sum(out_begin_.begin(), out_begin_.end(), out_begin_.begin());
  out_.resize(links_.size());
  std::vector<std::uint32_t> next(out_begin_.begin(), out_begin_.end() - 1);
  for (std::uint32_t i = 0; i < links_.size(); ++i) out_[next[links_[i].from]++] = i;
  orphaned_.assign(members_.size(), false);
  if (std::any_of(members_.begin(), members_.end(), [](const Member& m) { return m.lost; })) {
    const NodeShape whole = with_lost(of_lost);
    ports_ = whole.ports_;
    drop_lost_ports();
    share_ports();
    find_stand_ins(whole);
  } else {
    find_nearest_ports();
    share_ports();
  }
  find_parts();
}

void NodeShape::find_parts() {
  const auto ours = [&](std::uint32_t m) {
    return members_[m].kind == DeviceKind::accelerator || members_[m].kind == DeviceKind::nvswitch;
  };
  std::vector<std::uint32_t> rank(members_.size()), parent(members_.size());
  std::iota(parent.begin(), parent.end(), 0);
  boost::disjoint_sets sets(rank.data(), parent.data());
  for (const LocalLink& l : links_)
    if (l.scale_up) sets.union_set(l.from, l.to);
  part_.assign(members_.size(), kNone);
  for (std::uint32_t m = 0; m < members_.size(); ++m) {
    if (!ours(m)) continue;
    std::uint32_t& of_set = part_[sets.find_set(m)];
    if (of_set == kNone) of_set = parts_++;
    part_[m] = of_set;
  }
}

// Breadth first; the first of equally short ways in link order wins, so that the answer is stable.
NodeShape::Tree NodeShape::search(std::uint32_t from, Search kind) const {
  Tree tree{std::vector<std::uint32_t>(members_.size(), kNone),
            std::vector<std::uint32_t>(members_.size(), kNone)};
  std::vector<std::uint32_t> queue = {from};
  tree.hops[from] = 0;
  std::vector<std::uint8_t> accelerators_between(members_.size(), 0);
  for (std::size_t head = 0; head < queue.size(); ++head) {
    const std::uint32_t at = queue[head];
    for (std::uint32_t i = out_begin_[at]; i < out_begin_[at + 1]; ++i) {
      const LocalLink& l = links_[out_[i]];
      if (tree.hops[l.to] != kNone) continue;
      if (kind == Search::scale_up && !l.scale_up) continue;
      if (kind == Search::host && l.scale_up) continue;
      std::uint8_t between = accelerators_between[at];
      if (at != from) {
        const DeviceKind here = members_[at].kind;
        if (here == DeviceKind::host_memory || here == DeviceKind::nic || here == DeviceKind::storage)
          continue;
        if (here == DeviceKind::accelerator) {
          if (kind == Search::host) continue;
          if (kind == Search::scale_up && l.kind != LinkKind::torus && ++between > 1) continue;
        }
      }
      accelerators_between[l.to] = between;
      tree.hops[l.to] = tree.hops[at] + 1;
      tree.via[l.to] = out_[i];
      queue.push_back(l.to);
    }
  }
  return tree;
}

bool NodeShape::append(const Tree& tree, std::uint32_t from, std::uint32_t to,
                       std::vector<std::uint32_t>& out) const {
  if (tree.hops[to] == kNone) return false;
  const std::size_t start = out.size();
  for (std::uint32_t at = to; at != from; at = links_[tree.via[at]].from) out.push_back(tree.via[at]);
  std::reverse(out.begin() + static_cast<std::ptrdiff_t>(start), out.end());
  return true;
}

// Through the memory nearest to the receiver. False: plain PCIe peer-to-peer serves, or there is no memory.
bool NodeShape::append_staged(const Tree& host, std::uint32_t from, std::uint32_t to,
                              std::vector<std::uint32_t>& out) const {
  if (host.hops[to] == kNone) return false;
  bool crosses_sockets = false;
  for (std::uint32_t at = to; at != from; at = links_[host.via[at]].from) {
    const LocalLink& l = links_[host.via[at]];
    if (members_[l.from].kind == DeviceKind::cpu && members_[l.to].kind == DeviceKind::cpu)
      crosses_sockets = true;
  }
  if (peer_to_peer_ && !crosses_sockets) return false;
  const Tree back = search(to, Search::host);
  std::uint32_t memory = kNone;
  for (std::uint32_t i = 0; i < members_.size(); ++i)
    if (members_[i].kind == DeviceKind::host_memory && back.hops[i] != kNone &&
        (memory == kNone || back.hops[i] < back.hops[memory]))
      memory = i;
  if (memory == kNone || host.hops[memory] == kNone) return false;
  append(host, from, memory, out);
  return append(search(memory, Search::host), memory, to, out);
}

const NodeShape::Row& NodeShape::row(std::uint32_t from) const {
  Row& row = rows_[from];
  std::call_once(row.once, [&] {
    const Tree host = search(from, Search::host), any = search(from, Search::anything);
    const bool accelerator = members_[from].kind == DeviceKind::accelerator;
    const Tree scale_up = accelerator ? search(from, Search::scale_up) : Tree{};
    const std::size_t n = members_.size();
    row.begin.assign(1, 0);
    row.reachable.assign(n, 0);
    row.by_scale_up.assign(n, 0);
    row.latency.assign(n, Duration{});
    for (std::uint32_t to = 0; to < n; ++to) {
      bool found = false;
      if (accelerator && members_[to].kind == DeviceKind::accelerator) {
        found = append(scale_up, from, to, row.links);
        row.by_scale_up[to] = found || (members_[from].joined && members_[to].joined) ? 1 : 0;
        if (!found) found = append_staged(host, from, to, row.links);
      }
      if (!found) found = append(host, from, to, row.links) || append(any, from, to, row.links);
      row.reachable[to] = found ? 1 : 0;
      for (std::size_t l = row.begin.back(); l < row.links.size(); ++l)
        row.latency[to] += links_[row.links[l]].latency;
      row.begin.push_back(static_cast<std::uint32_t>(row.links.size()));
    }
    find_proxies(from, row);
  });
  return row;
}

LocalPath NodeShape::path(std::uint32_t from, std::uint32_t to) const {
  const Row& r = row(from);
  return {std::span(r.links).subspan(r.begin[to], r.begin[to + 1] - r.begin[to]), r.latency[to],
          r.reachable[to] != 0};
}

bool NodeShape::scale_up(std::uint32_t a, std::uint32_t b) const {
  return a == b || row(a).by_scale_up[b] != 0;
}

void NodeShape::find_nearest_ports() {
  ports_.resize(members_.size());
  for (std::uint32_t i = 0; i < members_.size(); ++i) {
    if (members_[i].fabric) {
      ports_[i] = {i};
      continue;
    }
    if (members_[i].kind != DeviceKind::accelerator && members_[i].kind != DeviceKind::cpu) continue;
    for (const Search kind : {Search::host, Search::anything}) {
      const Tree tree = search(i, kind);
      std::uint32_t best = kNone;
      for (std::uint32_t p = 0; p < members_.size(); ++p) {
        if (!members_[p].fabric || tree.hops[p] == kNone || tree.hops[p] > best) continue;
        if (tree.hops[p] < best) ports_[i].clear();
        best = tree.hops[p];
        ports_[i].push_back(p);
      }
      if (best != kNone) break;
    }
  }
}

// As if the lost ports worked.
NodeShape NodeShape::with_lost(const std::vector<LocalLink>& of_lost) const {
  std::vector<Member> members = members_;
  for (Member& m : members) m.fabric |= std::exchange(m.lost, false);
  std::vector<LocalLink> links = links_;
  links.insert(links.end(), of_lost.begin(), of_lost.end());
  return {std::move(members), std::move(links), peer_to_peer_};
}

// Where others are as near as a lost port they have its part; who asks for it, too.
void NodeShape::drop_lost_ports() {
  const auto works = [&](std::uint32_t port) { return !members_[port].lost; };
  for (std::uint32_t i = 0; i < members_.size(); ++i) {
    if (std::none_of(ports_[i].begin(), ports_[i].end(), works)) continue;
    std::vector<std::uint32_t> left;
    std::copy_if(ports_[i].begin(), ports_[i].end(), std::back_inserter(left), works);
    for (const std::uint32_t port : ports_[i])
      if (!works(port) && members_[i].kind == DeviceKind::accelerator) ports_[port] = left;
    ports_[i] = std::move(left);
  }
}

// One port after the other takes over from a lost one: of those that serve accelerators the one with the
// fewest by then, of equals the nearest. NVLink and PXN bring any NIC of a box within reach.
void NodeShape::find_stand_ins(const NodeShape& whole) {
  constexpr std::uint32_t kAccelerator = 5040;  // in shares of up to ten ports
  const auto size = static_cast<std::uint32_t>(members_.size());
  std::vector<std::uint32_t> load(size), stand_in(size, kNone);
  for (std::uint32_t i = 0; i < size; ++i)
    for (const std::uint32_t port : ports_[i])
      if (members_[i].kind == DeviceKind::accelerator)
        load[port] += kAccelerator / static_cast<std::uint32_t>(ports_[i].size());
  for (std::uint32_t lost = 0; lost < size; ++lost) {
    if (!members_[lost].lost) continue;
    const Tree tree = whole.search(lost, Search::host);
    const auto rank = [&](std::uint32_t port) {
      return std::tuple(load[port] == 0, load[port], tree.hops[port]);
    };
    std::uint32_t& best = stand_in[lost];
    for (std::uint32_t port = 0; port < size; ++port)
      if (members_[port].fabric && (best == kNone || rank(port) < rank(best))) best = port;
    if (best != kNone) load[best] += load[lost];
  }
  for (std::uint32_t i = 0; i < size; ++i) {
    if (ports_[i].empty() || !members_[ports_[i].front()].lost) continue;
    orphaned_[i] = true;
    for (std::uint32_t& port : ports_[i]) port = stand_in[port];
    std::erase(ports_[i], kNone);
  }
}

// NCCL spreads the ranks of a node over equally near NICs by the bits of the rank's device number, mirrored
// (src/graph/topo.cc, ncclTopoGetLocalNet); with more NICs than accelerators channels go round the rest.
void NodeShape::share_ports() {
  std::vector<std::uint32_t> accelerators_at(members_.size());
  for (std::uint32_t i = 0; i < members_.size(); ++i) {
    if (members_[i].kind != DeviceKind::accelerator) continue;
    for (const std::uint32_t port : ports_[i]) ++accelerators_at[port];
    if (by_local_.size() <= members_[i].local) by_local_.resize(members_[i].local + 1, kNone);
    by_local_[members_[i].local] = i;
  }
  const auto of_kind = [&](DeviceKind kind) {
    return static_cast<std::uint32_t>(
        std::count_if(members_.begin(), members_.end(), [&](const Member& m) { return m.kind == kind; }));
  };
  nics_per_accelerator_ =
      std::max(1U, of_kind(DeviceKind::nic) / std::max(1U, of_kind(DeviceKind::accelerator)));
  shares_.resize(members_.size());
  for (std::uint32_t i = 0; i < members_.size(); ++i) {
    if (ports_[i].empty()) continue;
    const auto n = static_cast<std::uint32_t>(ports_[i].size());
    const std::uint32_t sharing = std::max(1U, accelerators_at[ports_[i].front()]);
    shares_[i].spread = (n + sharing - 1) / sharing;
    turns_ = std::lcm(turns_, shares_[i].spread);
    if (members_[i].kind == DeviceKind::accelerator)
      accelerator_turns_ = std::lcm(accelerator_turns_, shares_[i].spread);
    shares_[i].start = std::has_single_bit(n) ? mirror_bits(members_[i].local, n) : members_[i].local;
  }
}

std::uint32_t NodeShape::own_port(std::uint32_t device, std::uint64_t connection) const {
  const auto& near = ports_[device];
  if (near.empty()) return kNone;
  const Share share = shares_[device];
  return near[(share.start + (share.spread > 1 ? connection % share.spread : 0)) % near.size()];
}

void NodeShape::find_proxies(std::uint32_t from, Row& row) const {
  row.proxy.assign(members_.size(), from);
  for (std::uint32_t port = 0; port < members_.size(); ++port) {
    const auto beside = [&](std::uint32_t device) {
      return !orphaned_[device] &&
             std::find(ports_[device].begin(), ports_[device].end(), port) != ports_[device].end();
    };
    if (!members_[port].fabric || beside(from)) continue;
    for (std::uint32_t i = 0; i < members_.size(); ++i) {
      if (row.by_scale_up[i] == 0 || !beside(i)) continue;
      // Of several beside the same port the one whose own port it is.
      const bool own = own_port(i, 0) == port;
      if (own || row.proxy[port] == from) row.proxy[port] = i;
      if (own) break;
    }
  }
}

NodePaths::NodePaths(const Topology& t, const std::vector<bool>& dead, LinkPlaces& places) {
  seat_devices(t);
  place_inner_links(t, dead, places);
  find_shapes(t, place_cables(t, dead, places));
}

void NodePaths::seat_devices(const Topology& t) {
  seated_ = t.copies();
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
  places.cell.assign(all - places.first(), kNone);
  places.at.assign(all - places.first(), kNone);
  links_begin_.assign(t.nodes() - linked_.nodes + 1, 0);
  if (linked_.nodes > 0) return;
  std::uint32_t last = 0;
  bool grouped = true;  // recipes make node after node
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
    return NodeShape::Member{d.kind, d.local, (ports & 1) != 0, ports == 2, ways.joined[id.index()] == 3};
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
  // Neighbours are mostly alike: compare with the previous node before anything is made of this one.
  const auto like_previous = [&](std::uint32_t node) {
    if (shape == kNone || its.size() != members(node)) return false;
    const bool copy = node > 0 && node < linked_.nodes;  // as the one before it: cables alone may differ
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
