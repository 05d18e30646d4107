#include "sim/collective/torus.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace topsim::collective {
namespace {
constexpr std::uint32_t kNone = DeviceId::kNone;

// Calls visit(here, next, position) for every pair of neighbours along an axis, with the position counted
// from its beginning; the pair that closes a ring comes last.
template <class Visit>
void for_neighbours(const TorusBlock& block, std::size_t axis, Visit visit) {
  std::size_t stride = 1;
  for (std::size_t a = axis + 1; a < block.axes.size(); ++a) stride *= block.axes[a].size;
  const auto size = block.axes[axis].size;
  const bool ring = block.axes[axis].ring;
  for (std::size_t i = 0; i < block.chips.size(); ++i) {
    const auto at = static_cast<std::uint32_t>(i / stride % size);
    if (at + 1 == size && !ring) continue;
    const std::size_t next = at + 1 == size ? i - at * stride : i + stride;
    visit(block.chips[i], block.chips[next], at);
  }
}
}  // namespace

bool is_ring(const topology::Topology& topology, std::size_t dimension) {
  const std::vector<int>& dims = topology.torus_dimensions;
  if (dims[dimension] <= 2) return false;
  auto last = static_cast<std::size_t>(dims[dimension] - 1);  // its place; the first is at 0
  for (std::size_t d = dimension + 1; d < dims.size(); ++d) last *= static_cast<std::size_t>(dims[d]);
  const auto links = topology.links_from(topology.torus_chips.front());
  return std::any_of(links.begin(), links.end(),
                     [&](LinkId link) { return topology.link(link).to == topology.torus_chips[last]; });
}

Torus::Torus(const topology::Topology& topology) : topology_(topology) {
  if (topology.torus_chips.empty()) return;
  place_.assign(topology.devices().size(), kNone);
  for (std::size_t i = 0; i < topology.torus_chips.size(); ++i)
    place_[topology.torus_chips[i].index()] = static_cast<std::uint32_t>(i);
  for (std::size_t d = 0; d < topology.torus_dimensions.size(); ++d) rings_.push_back(is_ring(topology, d));
}

bool Torus::of_nodes() const {
  return !topology::by_coordinate(topology_.fabric_kind);
}

std::optional<TorusBlock> Torus::block_of(std::span<const DeviceId> gpus) const {
  if (place_.empty() || gpus.size() < 2) return std::nullopt;
  const std::vector<int>& dims = topology_.torus_dimensions;
  std::vector<std::set<std::uint32_t>> values(dims.size());
  std::set<std::uint32_t> places;
  for (const DeviceId gpu : gpus) {
    std::uint32_t place = place_[gpu.index()];
    if (place == kNone || !places.insert(place).second) return std::nullopt;
    for (std::size_t d = dims.size(); d-- > 0; place /= static_cast<std::uint32_t>(dims[d]))
      values[d].insert(place % static_cast<std::uint32_t>(dims[d]));
  }
  struct Named {
    TorusBlock::Axis axis;
    std::uint32_t stride, size;  // of the whole axis, in places
    [[nodiscard]] std::uint32_t at(std::uint32_t place) const { return place / stride % size; }
  };
  std::vector<Named> axes;
  std::size_t product = 1;
  std::uint32_t stride = 1;
  for (std::size_t d = dims.size(); d-- > 0; stride *= static_cast<std::uint32_t>(dims[d])) {
    const auto size = static_cast<std::uint32_t>(values[d].size());
    const bool nodes = d == 0 && of_nodes();
    const bool gaps = *values[d].rbegin() - *values[d].begin() + 1 != size;
    if (gaps && !nodes) return std::nullopt;
    product *= size;
    const bool whole = static_cast<int>(size) == dims[d];
    const TorusBlock::Axis axis{size, nodes || (whole && rings_[d]), nodes};
    if (size > 1) axes.push_back({axis, stride, static_cast<std::uint32_t>(dims[d])});
  }
  if (product != gpus.size()) return std::nullopt;
  // Sorted by size, the longest first, whatever the order in which dimensions are listed. This also spreads
  // three dimensions more evenly: of 2 x 4 x 8 the busiest link carries 38.5 of 64 x 3 parts, in the reverse
  // order 45.5.
  std::sort(axes.begin(), axes.end(), [](const Named& a, const Named& b) {
    return std::tuple(!a.axis.nodes, b.axis.size, b.axis.ring, b.stride) <
           std::tuple(!b.axis.nodes, a.axis.size, a.axis.ring, a.stride);
  });
  std::vector<std::uint32_t> order(places.begin(), places.end());
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    const auto differs =
        std::find_if(axes.begin(), axes.end(), [&](const Named& axis) { return axis.at(a) != axis.at(b); });
    return differs != axes.end() && differs->at(a) < differs->at(b);
  };
  if (!std::is_sorted(order.begin(), order.end(), before)) std::sort(order.begin(), order.end(), before);
  TorusBlock block;
  for (const Named& each : axes) block.axes.push_back(each.axis);
  for (const std::uint32_t place : order) block.chips.push_back(topology_.torus_chips[place]);
  return block;
}

void lower_torus(CollectiveKind kind, const TorusBlock& block, UsageBuilder& usage) {
  // Nodes are the first axis, and the first to be gathered, so that the least data goes between them.
  const std::size_t outer = block.axes.front().nodes ? 1 : 0, axes = block.axes.size() - outer;
  const double nodes = outer > 0 ? block.axes.front().size : 1;
  const auto n = static_cast<double>(block.chips.size());
  // All-reduce: a reduce-scatter, then a gather. A root also sends, or receives, what it has itself.
  const bool rooted = kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
  const double rounds = kind == CollectiveKind::all_reduce ? 2 : rooted ? n / (n - 1) : 1;
  if (outer > 0)
    for_neighbours(block, 0, [&](DeviceId here, DeviceId next, std::uint32_t) {
      usage.add_message({.from = here, .to = next}, rounds * (nodes - 1) / (2 * n));
      usage.add_message({.from = next, .to = here}, rounds * (nodes - 1) / (2 * n));
    });
  for (std::size_t axis = 0; axis < axes; ++axis) {
    // The part of the buffer that a chip holds, over all parts, when this axis is gathered.
    double held = 0;
    for (std::size_t first = 0; first < axes; ++first) {
      double before = nodes;
      for (std::size_t a = first; a != axis; a = (a + 1) % axes) before *= block.axes[outer + a].size;
      held += before;
    }
    held /= n * static_cast<double>(axes);
    const TorusBlock::Axis& along = block.axes[outer + axis];
    for_neighbours(block, outer + axis, [&](DeviceId here, DeviceId next, std::uint32_t at) {
      // On a ring half of the chips' parts go each way; on a line all parts that lie behind.
      const double others = along.size - 1, on = along.ring ? others / 2 : at + 1.0,
                   back = along.ring ? others / 2 : others - at;
      usage.add({.from = here, .to = next}, rounds * held * on);
      usage.add({.from = next, .to = here}, rounds * held * back);
    });
  }
}

Duration torus_latency(CollectiveKind kind, const TorusBlock& block, const topology::Topology& topology,
                       Duration between) {
  std::uint32_t hops = 0, nodes = 0;
  for (const TorusBlock::Axis& axis : block.axes) {
    if (axis.nodes)
      nodes = axis.size / 2;
    else
      hops += axis.ring ? axis.size / 2 : axis.size - 1;
  }
  if (!by_axes(kind)) nodes = std::min(nodes, 1U);
  Duration hop{};
  for (const LinkId l : topology.links_from(block.chips.front()))
    if (topology.link(l).kind == topology::LinkKind::torus) hop = std::max(hop, topology.link(l).latency);
  // Where nodes hold a torus each, the fabric's base time is in `between`.
  const bool own = topology::by_coordinate(topology.fabric_kind);
  return (own ? topology.nic_latency : Duration{}) +
         (kind == CollectiveKind::all_reduce ? 2 : 1) * (hops * hop + nodes * between);
}
}  // namespace topsim::collective
