// Accelerators connected to their neighbours without switches (TPU pods): coordinates are row-major over the
// whole cluster, last dimension fastest; a torus wraps around where its pods have the links for it, a mesh
// does not. A node holds a block of neighbours (TPU v4: 2 x 2 x 1), and nodes are row-major too. Ranks follow
// coordinates, not nodes, which is how JAX orders the devices of a slice.
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "sim/base/error.hpp"
#include "sim/base/product.hpp"
#include "topology/build/fabric.hpp"

namespace topsim::topology {
namespace {

// The node's block, with as many dimensions as the fabric; without a block a node is a run along the last
// dimension.
std::vector<int> block_of(const FabricInput& in) {
  const std::vector<int>& dims = in.spec.dimensions;
  std::vector<int> block = in.stamp.torus_block;
  while (block.size() > dims.size() && block.back() == 1) block.pop_back();
  if (block.size() > dims.size()) block.clear();
  if (block.empty()) return block;
  block.resize(dims.size(), 1);
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (dims[d] % block[d] != 0)
      throw ConfigError({Problem{
          {},
          fmt::format("topology.fabric.dimensions[{}]", d),
          fmt::format("nodes are blocks of {} along this dimension: {} is no multiple", block[d], dims[d]),
          {},
          fmt::format("a block is {}", fmt::join(block, " x ")),
          {}}});
  return block;
}

// The accelerator at each coordinate (row-major), counted node by node.
std::vector<long long> places(const std::vector<int>& dims, const std::vector<int>& block, long long total) {
  std::vector<long long> place(static_cast<std::size_t>(total));
  std::iota(place.begin(), place.end(), 0LL);
  if (block.empty()) return place;
  for (long long i = 0; i < total; ++i) {
    long long node = 0, inside = 0, stride = total;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      stride /= dims[d];
      const long long at = i / stride % dims[d];
      node = node * (dims[d] / block[d]) + at / block[d];
      inside = inside * block[d] + at % block[d];
    }
    const long long size = std::accumulate(block.begin(), block.end(), 1LL, std::multiplies<>());
    place[static_cast<std::size_t>(i)] = node * size + inside;
  }
  return place;
}

// The most equal shape of so many axes that nodes of this block fill, without axes of 1.
std::vector<long long> most_equal(long long total, std::size_t axes, const std::vector<int>& block) {
  std::vector<long long> best, shape(axes, 1);
  const auto part = [&](std::size_t d) { return d < block.size() && block.size() <= axes ? block[d] : 1; };
  const auto try_axis = [&](const auto& self, std::size_t d, long long left) -> void {
    if (d + 1 == axes) {
      shape[d] = left;
      const auto longest = [](const auto& s) { return *std::max_element(s.begin(), s.end()); };
      if (left % part(d) == 0 && (best.empty() || longest(shape) < longest(best))) best = shape;
      return;
    }
    for (long long size = part(d); size <= left; size += part(d))
      if (left % size == 0) shape[d] = size, self(self, d + 1, left / size);
  };
  try_axis(try_axis, 0, total);
  std::erase(best, 1);
  return best;
}

// A link for each neighbour: an axis of two has one, a longer one two.
int links_of_a_chip(const std::vector<int>& dims) {
  return std::accumulate(dims.begin(), dims.end(), 0,
                         [](int sum, int size) { return sum + std::min(size - 1, 2); });
}

std::string proposal(const FabricInput& in, long long total) {
  constexpr int kMostAxes = 3;
  const int axes = in.stamp.ports > 0 ? std::clamp(in.stamp.ports / 2, 1, kMostAxes) : kMostAxes;
  return fmt::format(
      "\"dimensions\": [{}]",
      fmt::join(most_equal(total, static_cast<std::size_t>(axes), in.stamp.torus_block), ", "));
}

void check_ports(const FabricInput& in, long long total) {
  const std::vector<int>& dims = in.spec.dimensions;
  const int links = links_of_a_chip(dims);
  if (in.stamp.ports == 0 || links <= in.stamp.ports) return;
  throw ConfigError(
      {Problem{{},
               "topology.fabric.dimensions",
               fmt::format("a {} of {} takes {} links of a chip; {} has {}", name_of(in.spec.kind),
                           fmt::join(dims, " x "), links, in.stamp.chip, in.stamp.ports),
               {},
               fmt::format("fewer axes, e.g. {}", proposal(in, total)),
               {}}});
}

// Whether the ends of this axis are joined. Those of two are neighbours anyway.
bool is_ring(const FabricInput& in, int size) {
  if (!traits(in.spec.kind).rings || size <= 2) return false;
  if (in.spec.rings) return *in.spec.rings;
  const auto cubes = [&](int each) { return each % in.link.ring_cube == 0; };
  const std::vector<int>& dims = in.spec.dimensions;
  if (in.link.ring_cube > 0) return dims.size() == 3 && std::all_of(dims.begin(), dims.end(), cubes);
  return in.link.ring_axis == 0 || size % in.link.ring_axis == 0;
}

}  // namespace

std::vector<DeviceId> build_torus(const FabricInput& in, TopologyBuilder& builder) {
  const std::vector<int>& dims = in.spec.dimensions;
  const auto per_node = static_cast<long long>(in.stamp.accelerators.size());
  const long long total = per_node * in.nodes;
  const auto product = product_of(dims);
  if (dims.empty() || product != total)
    throw ConfigError(
        {Problem{{},
                 dims.empty() ? "topology.fabric" : "topology.fabric.dimensions",
                 dims.empty() ? fmt::format("a {} needs its dimensions", name_of(in.spec.kind))
                              : fmt::format("the dimensions make {} accelerators; the topology has {}",
                                            product_text(product), total),
                 {},
                 "nodes x accelerators a node, e.g. " + proposal(in, total),
                 {}}});
  if (!in.stamp.nics.empty() && (in.link.kind == LinkKind::infiniband || in.link.kind == LinkKind::ethernet))
    throw ConfigError({Problem{
        {},
        "topology.fabric",
        fmt::format("a {} joins accelerators by links of their own; {} is a NIC's", name_of(in.spec.kind),
                    in.link.type.label),
        {},
        "a link like \"ici-v5p\"; or, for nodes with NICs, kind rail, fat-tree, rail-only or dragonfly",
        {}}});
  check_ports(in, total);
  const std::vector<long long> place = places(dims, block_of(in), total);
  const auto accelerator = [&](long long i) {
    const long long p = place[static_cast<std::size_t>(i)];
    return DeviceId(in.first_device[static_cast<std::size_t>(p / per_node)] +
                    in.stamp.accelerators[static_cast<std::size_t>(p % per_node)]);
  };
  std::vector<DeviceId> ranks;
  for (long long i = 0; i < total; ++i) ranks.push_back(accelerator(i));
  builder.facts().torus_dimensions = dims;
  builder.facts().torus_chips = ranks;
  long long inner = total;
  for (const int size : dims) {
    inner /= size;
    const bool ring = is_ring(in, size);
    for (long long i = 0; i < total && size > 1; ++i) {
      const long long at = i / inner % size;
      const bool last = at == size - 1;
      if (last && !ring) continue;
      Link link = bundle(in.link, in.link_type, 1);
      link.from = accelerator(i);
      link.to = accelerator(last ? i - at * inner : i + inner);
      link.length = in.length_said(0);
      link.latency = in.link.hop.value_or(in.link.latency);
      builder.cable(link);
    }
  }
  return ranks;
}

}  // namespace topsim::topology
