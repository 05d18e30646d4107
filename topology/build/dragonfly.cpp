// Dragonfly (Kim et al. 2008): groups of routers, fully connected within a group; every router has global
// cables to other groups, distributed so that each pair of groups gets the same number, as far as possible.
// dimensions: [groups, routers per group, NIC ports per router, global cables per router, and cables between
// two routers of a group: one where that is left out].
#include <fmt/format.h>

#include <array>

#include "sim/base/error.hpp"
#include "sim/base/product.hpp"
#include "topology/build/fabric.hpp"

namespace topsim::topology {
namespace {

[[noreturn]] void refuse(std::string message, std::string help) {
  throw ConfigError({Problem{{}, "topology.fabric.dimensions", std::move(message), {}, std::move(help), {}}});
}

struct Shape {
  int groups, routers, terminals, global, local;
};

constexpr std::int64_t kMostSwitches = 1'000'000;  // as many as there may be nodes

// Balanced: a = 2p = 2h (routers, terminals, global cables), the paper's recommendation.
Shape shape_of(const FabricInput& in, int ports) {
  const std::vector<int>& said = in.spec.dimensions;
  if (said.size() == 4 || said.size() == 5)
    return {said[0], said[1], said[2], said[3], said.size() == 5 ? said[4] : 1};
  if (!said.empty())
    refuse(
        "a dragonfly has four dimensions, or five",
        "groups, routers a group, NIC ports a router, global cables a router, and cables to each router of "
        "the group (left out: one)");
  const int h = std::max(1, (in.leaf().radix + 1) / 4), a = 2 * h;
  const int groups = (ports + a * h - 1) / (a * h);
  return {groups, a, h, h, 1};
}

// The router of the `nic`-th NIC of all, counted node by node. The NICs of a node are connected to equally
// many routers of their group, as in HPE's Cray EX, where each compute blade of a chassis is connected to
// each of its switch blades (NERSC, Perlmutter architecture: 8 compute blades of two nodes of four NICs and 4
// switch blades per chassis): n routers share the NICs of n times as many nodes as a single router would
// serve.
int router_of(int nic, int nics_of_node, int nics_of_router, int routers_of_group) {
  const int group = nic / (routers_of_group * nics_of_router),
            inside = nic % (routers_of_group * nics_of_router);
  const int first = inside / (nics_of_node * nics_of_router) * nics_of_node;
  const int together = std::min(nics_of_node, routers_of_group - first);
  return group * routers_of_group + first + (inside - first * nics_of_router) % together;
}

}  // namespace

void build_dragonfly(const FabricInput& in, TopologyBuilder& builder) {
  int ports_per_node = 0;
  for (const NicPort& nic : in.stamp.nics) ports_per_node += nic.ports;
  const Shape s = shape_of(in, ports_per_node * in.nodes);
  // The share of a switch's ports that its cables use.
  const double used = static_cast<double>(s.terminals) / in.leaf().radix +
                      ((s.routers - 1.0) * s.local + s.global) / in.leaf().uplink_radix;
  if (used > 1 + 1e-9)
    refuse(
        fmt::format("{} NIC ports, {}{} neighbours and {} global cables need more than the switch's {} ports",
                    s.terminals, s.local > 1 ? fmt::format("{} cables to each of ", s.local) : "",
                    s.routers - 1, s.global, in.leaf().radix),
        s.local > 1
            ? "fewer routers a group, a fifth dimension of fewer cables to each, or a switch with more "
              "ports"
            : "fewer routers a group, or a switch with more ports");
  const auto switches = product_of(std::array{s.groups, s.routers});
  const auto places = product_of(std::array{s.groups, s.routers, s.terminals});
  const std::int64_t needed = std::int64_t{ports_per_node} * in.nodes;
  if (places && needed > *places)
    refuse(fmt::format("{} nodes need {} ports; the dragonfly has {}", in.nodes, needed, *places),
           "more groups or more NIC ports a router");
  if (s.groups > 1 && s.routers * s.global < s.groups - 1)
    refuse(
        fmt::format("a group has {} global cables for {} other groups", s.routers * s.global, s.groups - 1),
        "every pair of groups needs one: more global cables or fewer groups");
  if (!places || *switches > kMostSwitches)
    refuse(fmt::format("{} groups of {} are {} switches for {} nodes", s.groups, s.routers,
                       product_text(switches), in.nodes),
           fmt::format("fewer groups or switches a group, at most {} in all", kMostSwitches));

  builder.facts().dragonfly_dimensions = {s.groups, s.routers, s.terminals, s.global};
  std::vector<DeviceId> routers;
  for (int r = 0; r < s.groups * s.routers; ++r) routers.push_back(add_switch(in, builder, 1, r));
  const auto router = [&](int group, int index) {
    return routers[static_cast<std::size_t>(group * s.routers + index)];
  };
  const auto nics = static_cast<int>(in.stamp.nics.size());
  const int nics_of_router = s.terminals * nics / ports_per_node;
  if (nics * in.nodes > *switches * nics_of_router)
    refuse(fmt::format("{} ports of a router hold {} whole NICs; {} nodes need {}", s.terminals,
                       nics_of_router, in.nodes, nics * in.nodes),
           "NIC ports a router that whole NICs fill");
  for (int node = 0; node < in.nodes; ++node)
    for (int nic = 0; nic < nics; ++nic) {
      const NicPort& out = in.stamp.nics[static_cast<std::size_t>(nic)];
      const int at = router_of(node * nics + nic, nics, nics_of_router, s.routers);
      join_nic(in, builder, node, static_cast<std::size_t>(nic), routers[static_cast<std::size_t>(at)],
               nic_cable(in, out.ports, out.rate));
    }
  for (int g = 0; g < s.groups; ++g)
    for (int a = 0; a < s.routers; ++a)
      for (int b = a + 1; b < s.routers; ++b)
        join_switches(in, builder, router(g, a), router(g, b), s.local, 1);
  if (s.groups == 1) return;
  // Cable k of a group leads to the k-th next group; its other end is the mirror cable there.
  const int rounds = s.routers * s.global / (s.groups - 1);
  for (int g = 0; g < s.groups; ++g)
    for (int other = g + 1; other < s.groups; ++other)
      for (int round = 0; round < rounds; ++round) {
        const int here = round * (s.groups - 1) + other - 1, there = round * (s.groups - 1) + g;
        join_switches(in, builder, router(g, here / s.global), router(other, there / s.global), 1, 1);
      }
}

}  // namespace topsim::topology
