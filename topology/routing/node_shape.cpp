#include <algorithm>
#include <bit>
#include <boost/pending/disjoint_sets.hpp>
#include <tuple>
#include <utility>

#include "sim/base/mirror_bits.hpp"
#include "topology/routing/node_paths.hpp"

namespace topsim::topology {
namespace {

constexpr std::uint32_t kNone = DeviceId::kNone;

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

// Breadth first; among equally short paths the first in link order is taken, so that the result is stable.
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

// Through the memory nearest to the receiver. False if plain PCIe peer-to-peer is possible, or there is no
// memory.
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

// Peer traffic behind a root complex has more overhead: applies it to the row's last path, from its link
// `begin` on.
void NodeShape::cut_packets(std::size_t begin, Row& row) const {
  double overhead = 1;
  for (std::size_t l = begin; l < row.links.size(); ++l) {
    const LocalLink& link = links_[row.links[l]];
    if (members_[link.from].kind == DeviceKind::cpu) overhead = members_[link.from].peer_overhead;
    if (link.kind == LinkKind::pcie) row.shares[l] = overhead;
  }
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
      bool found = false, staged = false;
      if (accelerator && members_[to].kind == DeviceKind::accelerator) {
        found = append(scale_up, from, to, row.links);
        row.by_scale_up[to] = found || (members_[from].joined && members_[to].joined) ? 1 : 0;
        if (!found) found = staged = append_staged(host, from, to, row.links);
      }
      if (!found) found = append(host, from, to, row.links) || append(any, from, to, row.links);
      row.reachable[to] = found ? 1 : 0;
      row.shares.resize(row.links.size(), 1);
      if (accelerator && members_[to].kind == DeviceKind::accelerator && !staged)
        cut_packets(row.begin.back(), row);
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
  const std::size_t begin = r.begin[to], count = r.begin[to + 1] - begin;
  return {std::span(r.links).subspan(begin, count), std::span(r.shares).subspan(begin, count), r.latency[to],
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

// The shape as if the lost ports worked.
NodeShape NodeShape::with_lost(const std::vector<LocalLink>& of_lost) const {
  std::vector<Member> members = members_;
  for (Member& m : members) m.fabric |= std::exchange(m.lost, false);
  std::vector<LocalLink> links = links_;
  links.insert(links.end(), of_lost.begin(), of_lost.end());
  return {std::move(members), std::move(links), peer_to_peer_};
}

// If other ports are as near as a lost one, they take its place, also for those that use the lost port by
// name.
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

// A single port replaces a lost one: among the ports that serve accelerators the one that serves the fewest
// so far, then the nearest. NVLink and PXN make any NIC of a box reachable.
void NodeShape::find_stand_ins(const NodeShape& whole) {
  constexpr std::uint32_t kAccelerator = 5040;  // divisible by any number of ports up to ten
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

// NCCL spreads the ranks of a node over equally near NICs by the mirrored bits of the rank's device number
// (src/graph/topo.cc, ncclTopoGetLocalNet); with more NICs than accelerators, channels take the rest in turn.
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
      // Among several beside the same port, the one whose own port it is.
      const bool own = own_port(i, 0) == port;
      if (own || row.proxy[port] == from) row.proxy[port] = i;
      if (own) break;
    }
  }
}

}  // namespace topsim::topology
