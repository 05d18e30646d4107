#include "topology/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "sim/base/error.hpp"
#include "sim/base/shuffle.hpp"

namespace topsim::topology {
namespace {

// Nodes in the order in which ranks fill them; `wanted` nodes are enough for the job.
std::vector<std::uint32_t> node_order(const Placement& placement, std::uint32_t nodes, std::uint32_t wanted,
                                      std::uint64_t seed) {
  std::vector<std::uint32_t> order(nodes);
  std::iota(order.begin(), order.end(), 0);
  if (placement.kind == PlacementKind::list) {
    order.clear();
    for (const int node : placement.nodes) order.push_back(static_cast<std::uint32_t>(node));
  } else if (placement.kind == PlacementKind::spread && wanted > 0) {
    for (std::uint32_t i = 0; i < wanted; ++i)
      order[i] = static_cast<std::uint32_t>(std::uint64_t{i} * nodes / wanted);
    order.resize(wanted);
  } else if (placement.kind == PlacementKind::random) {
    std::mt19937_64 random(seed);
    shuffle(order, random);
  }
  return order;
}

}  // namespace

std::vector<DeviceId> place_ranks(const TopologySpec& spec, const Topology& topology, std::uint64_t seed) {
  const auto all = topology.accelerators();
  const std::size_t wanted = spec.accelerators ? static_cast<std::size_t>(*spec.accelerators) : all.size();
  // The topology's own order: in a torus, by coordinate.
  if (spec.placement.kind == PlacementKind::packed && wanted <= all.size())
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(wanted)};
  std::vector<std::vector<DeviceId>> by_node(topology.nodes());
  for (const DeviceId gpu : all) by_node[topology.device(gpu).node].push_back(gpu);
  std::size_t largest = 1;
  for (const auto& node : by_node) largest = std::max(largest, node.size());
  const auto nodes_wanted =
      static_cast<std::uint32_t>(std::min<std::size_t>((wanted + largest - 1) / largest, topology.nodes()));
  for (std::size_t i = 0; i < spec.placement.nodes.size(); ++i)
    if (spec.placement.nodes[i] < 0 || spec.placement.nodes[i] >= static_cast<int>(topology.nodes()))
      throw ConfigError(
          {Problem{{},
                   fmt::format("topology.placement[{}]", i),
                   fmt::format("there is no node {} among {}", spec.placement.nodes[i], topology.nodes()),
                   {},
                   "nodes are numbered from 0",
                   {}}});
  std::vector<DeviceId> ranks;
  if (spec.placement.kind == PlacementKind::packed) ranks.assign(all.begin(), all.end());
  for (const std::uint32_t node : node_order(spec.placement, topology.nodes(), nodes_wanted, seed))
    for (const DeviceId gpu : by_node[node])
      if (ranks.size() < std::min(wanted, all.size())) ranks.push_back(gpu);
  const bool listed = spec.placement.kind == PlacementKind::list;
  if (ranks.size() < wanted && (spec.accelerators || !listed))
    throw ConfigError(
        {Problem{{},
                 listed ? "topology.placement" : "topology.accelerators",
                 fmt::format("the job asks for {} accelerators; {} {}", wanted,
                             listed ? "the listed nodes hold" : "the topology has", ranks.size()),
                 {},
                 "use fewer, or add nodes",
                 {}}});
  return ranks;
}

}  // namespace topsim::topology
