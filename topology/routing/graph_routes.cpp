// Any fabric: shortest paths by hops over working switches. The distances to a destination switch are found
// breadth first (Boost.Graph) when first needed, and kept. At every switch the next hop is any that is one
// step closer: all of them evenly (weighted by cables) with adaptive and spray routing, but where links alike
// differ in capacity adaptive routing goes by that (path_capacities.hpp); otherwise one by hash or
// destination; on a torus the lowest, which is dimension order as the builder numbers the links. At half a
// ring's distance both directions are equally short: places of even coordinate go up and the others down, so
// that all links of the ring carry the same. Neighbours in a dragonfly share only a cable or two, which their
// ports can overload: adaptive routers also take the detours over every third router (non-minimal, UGAL: Kim
// et al. 2008), here evenly; and between groups those over third groups (group_routes.hpp).
#include <algorithm>
#include <array>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <shared_mutex>

#include "sim/base/mix.hpp"
#include "topology/routing/fabric_routes.hpp"
#include "topology/routing/group_routes.hpp"
#include "topology/routing/path_capacities.hpp"
#include "topology/routing/remembered.hpp"

namespace topsim::topology {
namespace {

constexpr std::uint16_t kFar = std::numeric_limits<std::uint16_t>::max();
using Graph = boost::compressed_sparse_row_graph<boost::directedS>;
using Distances = PathCapacities::Distances;

class GraphRoutes final : public FabricRoutes {
 public:
  GraphRoutes(const Topology& topology, const FabricPorts& ports, std::uint64_t seed,
              const std::vector<bool>& dead, std::span<const SlowLink> slow);
  bool append(DeviceId from, DeviceId to, std::uint64_t connection, Paths paths, Route& out) const override;

 private:
  using Hop = PathCapacities::Hop;
  // Pairs of a cable out and a cable in with the fewest switches between them.
  using Pairs = std::vector<std::pair<const FabricPorts::Cable*, const FabricPorts::Cable*>>;
  static std::vector<std::size_t> all_of(const Pairs& pairs);
  static std::size_t by_leaf(const Pairs& pairs, std::uint64_t connection, PathChoice& choice);
  const Distances& distances(std::uint32_t destination) const;
  // REQUIRES: both links lead closer. True if they are the two directions of a ring of a torus, and messages
  // from here take the second one.
  [[nodiscard]] bool other_way_round(const Link& first, const Link& second) const;
  void walk(std::uint32_t from, std::uint32_t to, const Distances& far, PathChoice& choice, Route& out) const;
  void flood(std::uint32_t from, const Distances& far, Route& out) const;
  void over_neighbours(std::uint32_t from, const Distances& far, Route& out) const;
  const Route& evenly(std::uint32_t from, std::uint32_t to, const Distances& far, Paths paths,
                      Route& out) const;
  [[nodiscard]] std::uint32_t vertex(DeviceId d) const { return vertex_[d.index()]; }

  // Two switches between which traffic divides evenly: the same for all that is behind them.
  struct Ends {
    std::uint32_t from, to;
    Paths paths;
    friend bool operator==(const Ends&, const Ends&) = default;
    [[nodiscard]] std::size_t hash() const {
      return hash_words(std::array{std::uint64_t{from} << 32 | to, static_cast<std::uint64_t>(paths)});
    }
  };
  static constexpr std::size_t kKept = 1 << 14, kMostLinks = 512;  // some tens of MB

  const Topology& topology_;
  const FabricPorts& ports_;
  std::uint64_t seed_;
  bool dimension_order_, detours_;
  std::vector<std::uint32_t> place_;   // by device: its coordinate on the torus, row-major
  std::vector<std::uint32_t> vertex_;  // by device
  std::uint32_t vertices_ = 0;
  std::vector<std::vector<Hop>> hops_;
  std::optional<PathCapacities> capacities_;  // where adaptive routing has reason to ask
  std::optional<GroupRoutes> groups_;         // of a dragonfly whose groups are known
  Graph reversed_;
  mutable std::shared_mutex mutex_;
  mutable std::map<std::uint32_t, std::unique_ptr<const Distances>> kept_;
  Remembered<Ends, Route, kKept> evenly_;
};

GraphRoutes::GraphRoutes(const Topology& t, const FabricPorts& ports, std::uint64_t seed,
                         const std::vector<bool>& dead, std::span<const SlowLink> slow)
    : topology_(t),
      ports_(ports),
      seed_(seed),
      dimension_order_(by_coordinate(t.fabric_kind)),
      detours_(traits(t.fabric_kind).family == FabricFamily::dragonfly) {
  vertex_.assign(t.devices().size(), DeviceId::kNone);
  for (std::size_t i = 0; i < t.devices().size(); ++i)
    if (t.devices()[i].kind == DeviceKind::fabric_switch) vertex_[i] = vertices_++;
  place_.assign(t.torus_chips.empty() ? 0 : t.devices().size(), DeviceId::kNone);
  for (std::size_t i = 0; i < t.torus_chips.size(); ++i)
    place_[t.torus_chips[i].index()] = static_cast<std::uint32_t>(i);
  // In a torus the accelerators are the switches.
  const auto forwards = [&](const Link& l) {
    return l.kind == LinkKind::torus && t.device(l.from).kind == DeviceKind::accelerator &&
           t.device(l.to).kind == DeviceKind::accelerator;
  };
  for (const Link& l : t.links())
    for (const DeviceId end : {l.from, l.to})
      if (forwards(l) && vertex(end) == DeviceId::kNone) vertex_[end.index()] = vertices_++;
  hops_.resize(vertices_);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> back;
  for (std::size_t i = 0; i < t.links().size(); ++i) {
    const Link& l = t.links()[i];
    if ((!dead.empty() && dead[i]) || vertex(l.from) == DeviceId::kNone || vertex(l.to) == DeviceId::kNone)
      continue;
    hops_[vertex(l.from)].push_back({LinkId(i), vertex(l.to)});
    back.emplace_back(vertex(l.to), vertex(l.from));
  }
  reversed_ = Graph(boost::edges_are_unsorted, back.begin(), back.end(), vertices_);
  if (t.routing == Routing::adaptive && !dimension_order_) {
    PathCapacities capacities(t, hops_, slow);
    if (capacities.differ()) capacities_ = std::move(capacities);
  }
  if (t.routing == Routing::adaptive && !t.dragonfly_dimensions.empty())
    groups_.emplace(t, ports, hops_, vertex_, slow);
}

const Distances& GraphRoutes::distances(std::uint32_t destination) const {
  {
    const std::shared_lock lock(mutex_);
    if (const auto found = kept_.find(destination); found != kept_.end()) return *found->second;
  }
  auto far = std::make_unique<Distances>(vertices_, kFar);
  (*far)[destination] = 0;
  boost::breadth_first_search(
      reversed_, destination,
      boost::visitor(boost::make_bfs_visitor(boost::record_distances(far->data(), boost::on_tree_edge()))));
  const std::unique_lock lock(mutex_);
  return *kept_.emplace(destination, std::move(far)).first->second;
}

bool GraphRoutes::other_way_round(const Link& first, const Link& second) const {
  if (place_.empty()) return false;
  std::uint32_t at = place_[first.from.index()], a = place_[first.to.index()], b = place_[second.to.index()];
  if (at == DeviceId::kNone || a == DeviceId::kNone || b == DeviceId::kNone || a == b) return false;
  for (auto size = topology_.torus_dimensions.rbegin(); size != topology_.torus_dimensions.rend(); ++size) {
    const auto n = static_cast<std::uint32_t>(*size);
    const std::uint32_t here = at % n, up = a % n, down = b % n;
    if (up != here) return up != down && down != here && (here % 2 == 0) != (up == (here + 1) % n);
    if (down != here) return false;  // along another axis
    at /= n, a /= n, b /= n;
  }
  return false;
}

void GraphRoutes::walk(std::uint32_t from, std::uint32_t to, const Distances& far, PathChoice& choice,
                       Route& out) const {
  std::uint32_t level = 6;
  // By tier: the rest of a static choice when the path went up from it. A table has one entry per
  // destination, whatever the source, so the cable down to a tier depends on the digit that chose the cable
  // up from it, as in the regular Clos; the next digit is the same for all ports of a leaf.
  std::array<std::uint64_t, 4> left_tier;  // leaf, spine, core
  left_tier.fill(choice.destination);
  for (std::uint32_t at = from; at != to; ++level) {
    std::uint32_t closer = 0;
    Link one{}, two{};  // the first two that lead closer
    for (const Hop& hop : hops_[at]) {
      if (far[hop.to] + 1 != far[at]) continue;
      if (++closer <= 2) (closer == 1 ? one : two) = topology_.link(hop.link);
    }
    const std::size_t here = topology_.device(one.from).tier & 3U, next = topology_.device(one.to).tier & 3U;
    if (next > here) left_tier[here] = choice.destination;
    std::uint32_t wanted = 0;
    if (dimension_order_)
      wanted = closer > 1 && other_way_round(one, two) ? 1 : 0;
    else
      wanted = choice.routing == Routing::static_ && next < here
                   ? static_cast<std::uint32_t>(left_tier[next] % closer)
                   : choice.pick(closer, level);
    for (const Hop& hop : hops_[at]) {
      if (far[hop.to] + 1 != far[at] || wanted-- != 0) continue;
      out.links.push_back({hop.link, 1});
      out.latency += topology_.link(hop.link).latency;
      at = hop.to;
      break;
    }
  }
}

std::vector<std::size_t> GraphRoutes::all_of(const Pairs& pairs) {
  std::vector<std::size_t> all(pairs.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

// Chooses a port on one of the sender's leaves, and one of its cables by the policy: bonded ports get queue
// pairs in turn, and each queue pair stays on its port (mlx5: the port of a queue pair in a RoCE bond).
// NCCL's channels use a NIC at regular intervals; the digits to the base of the number of leaves are summed,
// so channels are dealt evenly for any interval. Static routes take plain turns, which Router::turns()
// counts.
std::size_t GraphRoutes::by_leaf(const Pairs& pairs, std::uint64_t connection, PathChoice& choice) {
  std::map<DeviceId, std::vector<std::size_t>> of_leaf;
  for (std::size_t i = 0; i < pairs.size(); ++i) of_leaf[pairs[i].first->at].push_back(i);
  std::uint64_t turn = connection;
  if (choice.routing == Routing::ecmp && of_leaf.size() > 1) {
    turn = 0;
    for (std::uint64_t left = connection; left != 0; left /= of_leaf.size()) turn += left % of_leaf.size();
  }
  const auto leaf = std::next(of_leaf.begin(), static_cast<std::ptrdiff_t>(turn % of_leaf.size()));
  return leaf->second[choice.pick(static_cast<std::uint32_t>(leaf->second.size()), 5)];
}

// Shares flow from the source to the destination, level by level.
void GraphRoutes::flood(std::uint32_t from, const Distances& far, Route& out) const {
  std::map<std::uint32_t, double> onwards;  // by vertex; empty: cables count
  if (capacities_) onwards = capacities_->onwards(from, far);
  const auto weight = [&](const Hop& hop) -> double {
    return onwards.empty() ? topology_.link(hop.link).count
                           : std::min(capacities_->of(hop.link), onwards.at(hop.to));
  };
  std::map<std::uint32_t, double> level = {{from, 1.0}};
  while (!level.empty() && far[level.begin()->first] > 0) {
    std::map<std::uint32_t, double> next;
    Duration slowest{};
    for (const auto& [at, share] : level) {
      double all = 0;
      for (const Hop& hop : hops_[at])
        if (far[hop.to] + 1 == far[at]) all += weight(hop);
      for (const Hop& hop : hops_[at]) {
        if (far[hop.to] + 1 != far[at]) continue;
        const Link& link = topology_.link(hop.link);
        const double part = share * weight(hop) / all;
        out.links.push_back({hop.link, part});
        slowest = std::max(slowest, link.latency);
        next[hop.to] += part;
      }
    }
    out.latency += slowest;
    level = std::move(next);
  }
}

// REQUIRES: one hop. Uses the cable, and every switch that is a neighbour of both, with the latency of the
// cable.
void GraphRoutes::over_neighbours(std::uint32_t from, const Distances& far, Route& out) const {
  const bool by_capacity = capacities_ && capacities_->differ_around(from, far);
  const auto cables_of = [&](const Hop& hop) -> double {
    return by_capacity ? capacities_->of(hop.link) : topology_.link(hop.link).count;
  };
  const auto onwards_of = [&](const Hop& hop) {
    double onwards = 0;
    for (const Hop& second : hops_[hop.to])
      if (far[second.to] == 0) onwards += cables_of(second);
    return onwards;
  };
  const auto weight = [&](const Hop& hop) {
    const double own = cables_of(hop);
    return by_capacity && far[hop.to] == 1 ? std::min(own, onwards_of(hop)) : own;
  };
  double all = 0;
  for (const Hop& hop : hops_[from])
    if (far[hop.to] <= 1) all += weight(hop);
  Duration direct{};
  for (const Hop& hop : hops_[from]) {
    if (far[hop.to] > 1) continue;
    const Link& link = topology_.link(hop.link);
    const double part = weight(hop) / all;
    out.links.push_back({hop.link, part});
    if (far[hop.to] == 0) {
      direct = std::max(direct, link.latency);
      continue;
    }
    const double onwards = onwards_of(hop);
    for (const Hop& second : hops_[hop.to])
      if (far[second.to] == 0) out.links.push_back({second.link, part * cables_of(second) / onwards});
  }
  out.latency += direct;
}

// In `out`, unless it is kept.
const Route& GraphRoutes::evenly(std::uint32_t from, std::uint32_t to, const Distances& far, Paths paths,
                                 Route& out) const {
  const Ends ends{from, to, paths};
  if (const Route* known = evenly_.find(ends)) return *known;
  if (paths == Paths::loaded && groups_ && groups_->append(from, to, out.links)) {
    Route shortest;  // idle routers take it, so it has the latency
    out.latency += evenly(from, to, far, Paths::shortest, shortest).latency;
  } else if (detours_ && far[from] == 1)
    over_neighbours(from, far, out);
  else
    flood(from, far, out);
  const Route* kept = out.links.size() <= kMostLinks ? evenly_.keep(ends, out) : nullptr;
  return kept != nullptr ? *kept : out;
}

bool GraphRoutes::append(DeviceId from, DeviceId to, std::uint64_t connection, Paths paths,
                         Route& out) const {
  if (vertex(from) != DeviceId::kNone && vertex(to) != DeviceId::kNone) {  // a torus
    const Distances& far = distances(vertex(to));
    if (far[vertex(from)] == kFar) return false;
    PathChoice choice = choose(topology_.routing, seed_, from, to, to.value, connection);
    walk(vertex(from), vertex(to), far, choice, out);
    return true;
  }
  if (const auto cable = topology_.find_link(from, to)) {  // NIC to NIC without a switch
    out.links.push_back({*cable, 1});
    out.latency += topology_.link(*cable).latency;
    return true;
  }
  // The pairs of cables with the fewest switches between them; all such pairs are parallel.
  Pairs pairs;
  std::uint16_t best = kFar;
  for (const auto& last : ports_.cables(to)) {
    const Distances& far = distances(vertex(last.at));
    for (const auto& first : ports_.cables(from)) {
      const std::uint16_t d = far[vertex(first.at)];
      if (d == kFar || d > best) continue;
      if (d < best) pairs.clear();
      best = d;
      pairs.emplace_back(&first, &last);
    }
  }
  if (pairs.empty()) return false;
  PathChoice choice = choose(topology_.routing, seed_, from, to, ports_.lid(to), connection);
  const std::vector<std::size_t> taken =
      choice.even() ? all_of(pairs) : std::vector{by_leaf(pairs, connection, choice)};
  const auto parts = static_cast<double>(taken.size());
  for (const std::size_t i : taken) {
    const auto& [first, last] = pairs[i];
    const Distances& far = distances(vertex(last->at));
    Route fresh;
    if (!choice.even()) walk(vertex(first->at), vertex(last->at), far, choice, fresh);
    const Route& between =
        choice.even() ? evenly(vertex(first->at), vertex(last->at), far, paths, fresh) : fresh;
    out.links.push_back({first->up, 1 / parts});
    for (const LinkShare& s : between.links) out.links.push_back({s.link, s.share / parts});
    out.links.push_back({last->down, 1 / parts});
    if (i == taken.front())
      out.latency += topology_.link(first->up).latency + between.latency + topology_.link(last->down).latency;
  }
  out.switches = static_cast<std::uint16_t>(out.switches + best + 1);
  return true;
}

}  // namespace

std::unique_ptr<FabricRoutes> make_graph_routes(const Topology& topology, const FabricPorts& ports,
                                                std::uint64_t seed, const std::vector<bool>& dead,
                                                std::span<const SlowLink> slow) {
  return std::make_unique<GraphRoutes>(topology, ports, seed, dead, slow);
}

}  // namespace topsim::topology
