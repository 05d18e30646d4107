#include "topology/build/attach.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/base/error.hpp"
#include "topology/build/clos_plan.hpp"

namespace topsim::topology {
namespace {

[[noreturn]] void refuse(const char* path, std::string message, std::string help) {
  throw ConfigError({Problem{{}, path, std::move(message), {}, std::move(help), {}}});
}

double leaf_ratio(const FabricInput& in) {
  return in.spec.oversubscription.empty() ? 1.0 : in.spec.oversubscription.front();
}

void set_planes(const FabricInput& in, Attachment& a) {
  a.planes = in.spec.planes.value_or(1);
  a.leaves_per_rail = in.spec.leaves_per_rail.value_or(a.planes);
  if (a.leaves_per_rail % a.planes != 0)
    refuse("topology.fabric.leaves_per_rail",
           fmt::format("{} leaves a rail cannot be dealt over {} planes", a.leaves_per_rail, a.planes),
           "a multiple of planes");
  if (in.spec.leaves_per_pod.value_or(0) % a.leaves_in_plane() != 0)
    refuse("topology.fabric.leaves_per_pod",
           fmt::format("a rail has {} leaves{} for the same nodes, and a pod of {} would part them",
                       a.leaves_in_plane(), a.planes > 1 ? " a plane" : "", *in.spec.leaves_per_pod),
           fmt::format("a multiple of {}", a.leaves_in_plane()));
}

// Assigns ports to leaves; `rail` numbers NICs (or accelerators) until deal_rails() puts several on one rail.
int cut_ports(const FabricInput& in, Attachment& a) {
  const auto nics = static_cast<int>(in.stamp.nics.size());
  const auto accelerators = static_cast<int>(in.stamp.accelerators.size());
  const int ways = a.leaves_per_rail;
  const int own = nics % accelerators == 0 ? nics / accelerators : 1;
  if (ways > 1 && own > 1 && own % ways == 0) {
    for (int n = 0; n < nics; ++n) {
      const NicPort& port = in.stamp.nics[static_cast<std::size_t>(n)];
      a.ports.push_back({static_cast<std::size_t>(n), n / own, n % own % ways, port.ports, port.rate});
    }
    return accelerators;
  }
  for (int n = 0; n < nics; ++n) {
    const NicPort& port = in.stamp.nics[static_cast<std::size_t>(n)];
    if (port.ports % ways != 0 && ways % port.ports != 0)
      refuse(in.spec.planes ? "topology.fabric.planes" : "topology.fabric.leaves_per_rail",
             fmt::format("the {} port{} of a NIC cannot be dealt over {} leaves", port.ports,
                         port.ports == 1 ? "" : "s", ways),
             "as many leaves as ports, or a multiple");
    const int cables = std::max(1, port.ports / ways);
    BytesPerSecond rate = port.rate.value() > 0 ? port.rate : in.link.line_rate;
    if (ways > port.ports) rate = rate * (static_cast<double>(port.ports) / ways);
    for (int leaf = 0; leaf < ways; ++leaf)
      a.ports.push_back({static_cast<std::size_t>(n), n, leaf, cables, ways > 1 ? rate : port.rate});
  }
  return nics;
}

int ports_on_fullest_leaf(const Attachment& a) {
  std::map<std::pair<int, int>, int> cables;
  int most = 0;
  for (const NodePort& port : a.ports) most = std::max(most, cables[{port.rail, port.leaf}] += port.cables);
  return most;
}

// Distributes the `slots` NICs of a node over as many rails as the kind of fabric needs and the leaf has
// ports for.
void deal_rails(const FabricInput& in, Attachment& a, int slots, int most) {
  const std::vector<NodePort> apart = a.ports;
  a.rails = traits(in.spec.kind).rails == Rails::none
                ? std::clamp(in.spec.node_leaves / a.leaves_per_rail, 1, slots)
                : slots;
  for (;; ++a.rails) {
    for (std::size_t i = 0; i < apart.size(); ++i) a.ports[i].rail = apart[i].rail * a.rails / slots;
    a.ports_per_node = ports_on_fullest_leaf(a);
    if (a.rails == slots || (slots % a.rails == 0 && a.ports_per_node <= most)) return;
  }
}

// A NIC may be slower than the link's cables. Of several rates the highest, so that no leaf exceeds its
// ratio.
double uplink_speed(const FabricInput& in, const Attachment& a) {
  BytesPerSecond fastest{};
  for (const NodePort& port : a.ports)
    fastest = std::max(fastest, port.rate.value() > 0 ? port.rate : in.link.line_rate);
  return in.uplink.line_rate / std::min(fastest, in.link.line_rate);
}

int down_ports(const FabricInput& in, const Attachment& a) {
  return down_ports_of(in.leaf().radix, in.leaf().uplink_radix, leaf_ratio(in) * a.uplink_speed);
}

// Checks a user's nodes_per_leaf, which may use every port of a leaf only if nothing is above it.
void refuse_full_leaf(const FabricInput& in, const Attachment& a, int nodes) {
  const bool rails_meet = traits(in.spec.kind).rails != Rails::apart && a.rails > 1;
  const bool spines = in.spec.tiers != 1 && (in.nodes > nodes || rails_meet || a.leaves_in_plane() > 1);
  const int most = (spines ? down_ports(in, a) : in.leaf().radix) / a.ports_per_node;
  if (std::min(nodes, in.nodes) <= most && nodes * a.ports_per_node <= in.leaf().radix) return;
  refuse("topology.fabric.nodes_per_leaf",
         fmt::format("{} nodes with {} ports each need {} ports of a leaf{}; the switch has {}", nodes,
                     a.ports_per_node, nodes * a.ports_per_node, spines ? " beside its uplinks" : "",
                     in.leaf().radix),
         most > 0 ? fmt::format("at most {} nodes fit a leaf", most)
                  : "use kind rail, or a switch with more ports");
}

// The number of nodes that share leaves.
int group_size(const FabricInput& in, const Attachment& a) {
  const int on_one_leaf = in.leaf().radix / a.ports_per_node;
  // Without spines every port of a leaf may connect to nodes.
  const Rails rails = traits(in.spec.kind).rails;
  const bool own_leaves = rails == Rails::apart || (rails == Rails::none && a.rails == 1);
  const bool may_do_without = own_leaves && a.leaves_in_plane() == 1 && in.spec.tiers.value_or(1) == 1;
  const bool single =
      (may_do_without || in.spec.tiers == 1) && in.nodes <= on_one_leaf && !in.spec.nodes_per_leaf;
  int nodes = on_one_leaf;
  if (!single) {
    nodes = down_ports(in, a) / a.ports_per_node;
    if (in.spec.unit_nodes > 0) nodes = std::min(nodes, in.spec.unit_nodes);
  }
  if (in.spec.nodes_per_leaf) nodes = *in.spec.nodes_per_leaf;
  if (nodes < 1)
    refuse("topology.fabric.switch",
           fmt::format("a node has {} ports for one leaf, more than the switch's {} allow beside uplinks",
                       a.ports_per_node, in.leaf().radix),
           "use kind rail, or a switch with more ports");
  if (in.spec.nodes_per_leaf) refuse_full_leaf(in, a, nodes);
  if (in.spec.tiers == 1 && in.nodes > nodes)
    refuse("topology.fabric.tiers", fmt::format("one tier carries {} nodes, not {}", nodes, in.nodes),
           "use tiers 2, or leave tiers out");
  return nodes;
}

}  // namespace

Attachment attach_nodes(const FabricInput& in) {
  Attachment a;
  set_planes(in, a);
  const int slots = cut_ports(in, a);
  a.uplink_speed = uplink_speed(in, a);
  deal_rails(in, a, slots, down_ports(in, a));
  a.nodes_per_group = std::min(group_size(in, a), in.nodes);
  a.groups = (in.nodes + a.nodes_per_group - 1) / a.nodes_per_group;
  // Unless a number is given, all leaves get equally many nodes: a nearly empty leaf would have the uplinks
  // of a full one.
  if (!in.spec.nodes_per_leaf && in.spec.unit_nodes == 0)
    a.nodes_per_group = (in.nodes + a.groups - 1) / a.groups;
  return a;
}

}  // namespace topsim::topology
