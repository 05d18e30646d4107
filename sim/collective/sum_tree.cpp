#include "sim/collective/sum_tree.hpp"

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/collective/wiring.hpp"
#include "topology/cables.hpp"

namespace topsim::collective {
using topology::DeviceKind;

int SumTrees::heads() const {
  const auto& facts = placement_.tuner->facts();
  return nvls_ ? facts.nvls_graph.channels : facts.collnet_direct.channels;
}

const nccl::Channel& SumTrees::channel(const PlacedBox& box, int head) const {
  const auto& graph = nvls_ ? box.graphs->nvls : box.graphs->collnet_direct;
  return graph.channels[static_cast<std::size_t>(head)];
}

std::size_t SumTrees::head_of(const PlacedBox& box, int head) const {
  return static_cast<std::size_t>(channel(box, head).gpus.front());
}

DeviceId SumTrees::nic(const PlacedBox& box, int head) const {
  return box.nics[static_cast<std::size_t>(channel(box, head).enter_net)];
}

// Chooses the way that the fewest heads have taken; among equals the one with the head's own number. So all
// leaves lead one head to the same spine, and heads whose route divides over all uplinks take one uplink
// each.
LinkId SumTrees::least_taken(const Links& ways, int head) {
  const std::size_t own = static_cast<std::size_t>(head) % ways.size();
  LinkId best = ways[own];
  for (std::size_t i = 1; i < ways.size(); ++i) {
    const LinkId way = ways[(own + i) % ways.size()];
    if (heads_on_[way] < heads_on_[best]) best = way;
  }
  ++heads_on_[best];
  return best;
}

// One path of the route, split at the fabric's switches; it ends at the receiver, or at the first switch from
// which a path is `known`.
template <class Known>
std::vector<SumTrees::Links> SumTrees::parts(const PlacedBox& from, const PlacedBox& to, int head,
                                             const Known& known) {
  topology::Route route;
  DeviceId at = gpu(from, head);
  const DeviceId end = gpu(to, head);
  const topology::RouteQuery query{.from = at,
                                   .to = end,
                                   .connection = static_cast<std::uint64_t>(head),
                                   .from_nic = nic(from, head),
                                   .to_nic = nic(to, head),
                                   .one_port = true};
  router_.route(query, route);
  if (!route.reachable()) throw ConfigError(router_.why_unreachable(query));
  std::vector<Links> parts(1);
  while (at != end) {
    std::vector<LinkId> ways;
    for (const topology::LinkShare& use : route.links)
      if (topology_.link(use.link).from == at) ways.push_back(use.link);
    if (ways.empty()) throw InternalError("a route of a sum in the fabric ends before its end");
    const LinkId way = least_taken(ways, head);
    parts.back().push_back(way);
    at = topology_.link(way).to;
    if (topology_.device(at).kind != DeviceKind::fabric_switch) continue;
    if (known(at)) break;
    parts.emplace_back();
  }
  return parts;
}

LinkId SumTrees::other_way(LinkId id) const {
  if (const auto back = topology::other_direction(topology_, id)) return *back;
  throw ConfigError("a sum in the fabric needs cables of both directions");
}
SumTrees::Links SumTrees::turned(const Links& links) const {
  Links back;
  for (auto link = links.rbegin(); link != links.rend(); ++link) back.push_back(other_way(*link));
  return back;
}

// All paths lead to the first box's leaf: the union of their cables, as in the pipelined form.
SumTree SumTrees::in_fabric(int head) {
  const auto& boxes = placement_.boxes;
  struct Edge {
    DeviceId to;
    Links up;
  };
  std::map<DeviceId, Edge> above;  // of a switch
  std::vector<Edge> of_box(boxes.size());
  DeviceId top{};
  for (std::size_t b = 1; b < boxes.size(); ++b) {
    const auto known = [&](DeviceId at) { return b > 1 && (at == top || above.count(at) > 0); };
    const std::vector<Links> way = parts(boxes[b], boxes[0], head, known);
    DeviceId at = topology_.link(way[0].back()).to;
    of_box[b] = {at, way[0]};
    const bool to_the_end = topology_.link(way.back().back()).to == gpu(boxes[0], head);
    for (std::size_t i = 1; i + (to_the_end ? 1 : 0) < way.size(); ++i) {
      const DeviceId next = topology_.link(way[i].back()).to;
      above.try_emplace(at, Edge{next, way[i]});
      at = next;
    }
    if (b > 1) continue;
    top = at;
    of_box[0] = {at, turned(way.back())};
  }
  SumTree tree;
  std::map<DeviceId, std::uint32_t> node_of;
  const auto add = [&](std::uint32_t box, DeviceId device, const Edge* edge) {
    SumTree::Node node;
    node.box = box, node.device = device;
    if (edge != nullptr) node.up = along(edge->up), node.down = along(turned(edge->up));
    tree.nodes.push_back(std::move(node));
    return static_cast<std::uint32_t>(tree.nodes.size() - 1);
  };
  for (std::uint32_t b = 0; b < boxes.size(); ++b) add(b, {}, &of_box[b]);
  // Switches by their distance from the top, the farthest first.
  std::vector<std::pair<std::size_t, DeviceId>> switches;
  for (std::size_t b = 0; b < boxes.size(); ++b) {
    for (DeviceId at = of_box[b].to;;) {
      std::size_t distance = 0;
      for (DeviceId up = at; up != top; up = above.at(up).to) {
        if (++distance > above.size()) throw InternalError("the switches of a sum form a circle");
      }
      switches.emplace_back(distance, at);
      if (at == top) break;
      at = above.at(at).to;
    }
  }
  std::sort(switches.begin(), switches.end(), std::greater<>());
  switches.erase(std::unique(switches.begin(), switches.end()), switches.end());
  for (const auto& [distance, device] : switches)
    node_of[device] = add(SumTree::kNone, device, device == top ? nullptr : &above.at(device));
  for (std::uint32_t n = 0; n + 1 < tree.nodes.size(); ++n) {
    const DeviceId parent = topology_.link(tree.nodes[n].up.links.back()).to;
    tree.nodes[n].parent = node_of.at(parent);
    tree.nodes[node_of.at(parent)].children.push_back(n);
  }
  return tree;
}

SumTree SumTrees::over_boxes(int head, bool second) const {
  const std::vector<Hop> hops = head_tree_of(placement_, head, second);
  const auto boxes = static_cast<std::uint32_t>(placement_.boxes.size());
  std::vector<const Hop*> up(boxes);
  std::vector<std::vector<std::uint32_t>> below(boxes);
  for (const Hop& hop : hops) {
    up[hop.from_box] = &hop;
    below[hop.to_box].push_back(static_cast<std::uint32_t>(hop.from_box));
  }
  const auto root = static_cast<std::uint32_t>(std::find(up.begin(), up.end(), nullptr) - up.begin());
  std::vector<std::uint32_t> order = {root};  // parents before children
  for (std::size_t i = 0; i < order.size(); ++i)
    order.insert(order.end(), below[order[i]].begin(), below[order[i]].end());
  const auto edge = [&](const Hop& hop) {
    topology::Route route;
    const topology::RouteQuery query = hop.query(head_connection(head, second));
    router_.route(query, route);
    if (!route.reachable()) throw ConfigError(router_.why_unreachable(query));
    return SumWay{{}, route.latency, hop.from_nic, hop.to_nic};
  };
  SumTree tree;
  tree.nodes.resize(boxes);
  std::vector<std::uint32_t> node_of(boxes);
  for (std::uint32_t i = 0; i < boxes; ++i) node_of[order[i]] = boxes - 1 - i;
  for (std::uint32_t b = 0; b < boxes; ++b) {
    SumTree::Node& node = tree.nodes[node_of[b]];
    node.box = b;
    for (const std::uint32_t child : below[b]) node.children.push_back(node_of[child]);
    if (up[b] == nullptr) continue;
    node.parent = node_of[up[b]->to_box];
    node.up = edge(*up[b]), node.down = edge(up[b]->back());
  }
  return tree;
}

SumWay SumTrees::along(Links links) const {
  Duration latency{};
  for (const LinkId link : links) latency += topology_.link(link).latency;
  return {std::move(links), latency, {}, {}};
}
}  // namespace topsim::collective
