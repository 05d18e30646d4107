#include "topology/routing/cells.hpp"

#include <array>
#include <bit>
#include <numeric>

#include "sim/base/mix.hpp"

namespace topsim::topology {
namespace {

constexpr std::uint32_t kNone = DeviceId::kNone;

}  // namespace

// A hash of everything that distinguishes links. Cables of one kind follow each other, in pairs of both
// directions, so the last kind of each direction is cached.
class Cells::LinkKinds {
 public:
  LinkKinds(const Topology& topology, const std::vector<bool>& dead) : topology_(topology), dead_(dead) {}
  std::uint64_t operator()(LinkId id) {
    const Link l = topology_.link(id);
    const std::array<std::uint64_t, 4> figures{
        std::bit_cast<std::uint64_t>(l.capacity.value()), std::bit_cast<std::uint64_t>(l.line_rate.value()),
        std::uint64_t{l.type} << 8 | static_cast<std::uint64_t>(l.kind),
        static_cast<std::uint64_t>(topology_.device(l.from).kind) << 16 |
            static_cast<std::uint64_t>(topology_.device(l.to).kind) << 8 |
            (dead_.empty() || !dead_[id.index()] ? 1 : 0)};
    Known& known = last_[id.value % 2];
    if (known.figures != figures)
      known = {figures, mix(mix(mix(figures[0], figures[1]), figures[2]), figures[3])};
    return known.kind;
  }

 private:
  struct Known {
    std::array<std::uint64_t, 4> figures{};
    std::uint64_t kind = 0;
  };
  const Topology& topology_;
  const std::vector<bool>& dead_;
  std::array<Known, 2> last_;
};

Cells::Cells(const Topology& topology, const NodePaths& nodes, const FabricRoutes& fabric,
             const std::vector<bool>& dead, LinkPlaces places)
    : node_paths_(nodes), places_(std::move(places)), bundles_(fabric.bundles()), nodes_(nodes.nodes()) {
  kinds_.resize(nodes_ + bundles_.size());
  sizes_.resize(kinds_.size());
  LinkKinds kinds(topology, dead);
  number_nodes(topology);
  number_bundles(kinds);
  number_cables(topology, kinds);
  mark_dead_links(topology, dead, kinds);
  number_stretches();
}

void Cells::number_nodes(const Topology& topology) {
  for (std::uint32_t n = 0; n < nodes_; ++n) {
    sizes_[n] = node_paths_.inner_links(n);
    if (n > 0 && n < topology.copies().nodes &&
        node_paths_.shape_number(n) == node_paths_.shape_number(n - 1)) {
      kinds_[n] = kinds_[n - 1];
      continue;
    }
    kinds_[n] = node_paths_.shape_number(n);
    for (std::uint32_t p = 0; p < node_paths_.shape(n).members().size(); ++p)
      kinds_[n] = mix(kinds_[n], topology.device(node_paths_.device(n, p)).model);
  }
}

void Cells::number_bundles(LinkKinds& kinds) {
  for (std::size_t b = 0; b < bundles_.size(); ++b) {
    const auto cell = static_cast<std::uint32_t>(nodes_ + b);
    std::uint32_t at = 0;
    for (const LinkShare& use : bundles_[b]) {
      places_.cell_of(use.link) = cell;
      places_.at_of(use.link) = at++;
      kinds_[cell] = mix(kinds_[cell], kinds(use.link));
      kinds_[cell] = mix(kinds_[cell], std::bit_cast<std::uint64_t>(use.share));
    }
    sizes_[cell] = at;
  }
}

// Cables of a node are numbered after the links inside it; a cable in no bundle and no node is a cell of its
// own.
void Cells::number_cables(const Topology& topology, LinkKinds& kinds) {
  const auto of_a_node = [&](LinkId id) {
    const auto [cell, at] = places_[id];
    return cell < nodes_ && at >= NodePaths::kCables && at != kNone;
  };
  cable_begin_.assign(nodes_ + 1, 0);
  for (const LinkId id : topology.cables())
    if (of_a_node(id)) ++cable_begin_[places_[id].cell + 1];
  std::partial_sum(cable_begin_.begin(), cable_begin_.end(), cable_begin_.begin());
  cables_.resize(cable_begin_.back());
  for (const LinkId id : topology.cables()) {
    std::uint32_t &cell = places_.cell_of(id), &at = places_.at_of(id);
    if (cell == kNone) {
      cell = static_cast<std::uint32_t>(kinds_.size());
      at = 0;
      kinds_.push_back(kinds(id));
      sizes_.push_back(1);
      singles_.push_back(id);
    } else if (of_a_node(id)) {
      cables_[cable_begin_[cell] + at - NodePaths::kCables] = id;
      at = sizes_[cell]++;
      // By its direction, and the position of the device in this cell to which it is connected.
      const Link link = topology.link(id);
      const bool leaves = node_paths_.node_of(link.from) == cell;
      const std::uint32_t here = node_paths_.position(leaves ? link.from : link.to);
      kinds_[cell] = mix(mix(kinds_[cell], 2 * here + (leaves ? 1 : 0)), kinds(id));
    }
  }
}

// Dead links inside nodes have no place, but they distinguish their nodes.
void Cells::mark_dead_links(const Topology& topology, const std::vector<bool>& dead, LinkKinds& kinds) {
  for (std::size_t i = 0; i < dead.size(); ++i) {
    const LinkId id(i);
    if (!dead[i] || places_[id].at != kNone) continue;
    const Link link = topology.link(id);
    const std::uint64_t ends =
        std::uint64_t{node_paths_.position(link.from)} << 32 | node_paths_.position(link.to);
    std::uint64_t& kind = kinds_[places_[id].cell];
    kind = mix(mix(kind, ends), kinds(id));
  }
}

// The numbers are 32 bits wide; if that is not enough, ways inside nodes are not numbered.
void Cells::number_stretches() {
  const std::uint32_t bits = static_cast<std::uint32_t>(std::bit_width(node_paths_.most_members()));
  const std::uint64_t ways = std::uint64_t{nodes_} << (2 * bits);
  const bool fits = places_.links() + ways + bundles_.size() < kNone;
  bits_ = fits ? bits : 0;
  first_bundle_ = static_cast<std::uint32_t>(places_.links() + (fits ? ways : 0));
}

void Cells::expand(Router::Place place, std::vector<LinkShare>& out) const {
  out.clear();
  const auto [cell, at] = place;
  if (cell < nodes_ && at >= kStretch) {
    const std::uint32_t from = (at - kStretch) >> bits_, to = at & ((1U << bits_) - 1);
    node_paths_.append(cell, from, to, out);
  } else if (cell < nodes_) {
    const std::uint32_t inner = node_paths_.inner_links(cell);
    out.push_back({at < inner ? node_paths_.link(cell, at) : cables_[cable_begin_[cell] + at - inner], 1});
  } else if (cell < nodes_ + bundles_.size()) {
    const std::vector<LinkShare>& bundle = bundles_[cell - nodes_];
    if (at == kStretch)
      out = bundle;
    else
      out.push_back({bundle[at].link, 1});
  } else {
    out.push_back({singles_[cell - nodes_ - bundles_.size()], 1});
  }
}
}  // namespace topsim::topology
