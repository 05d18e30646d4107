// Regular folded Clos: cable i of leaf a leads to spine i / p of its pod, spine s of every pod to the same
// cores. A path is then computed from these tables, without a search.
#include <algorithm>
#include <map>
#include <tuple>

#include "topology/routing/fabric_routes.hpp"

namespace topsim::topology {
namespace {

constexpr std::uint32_t kNone = DeviceId::kNone;

// The cables between a switch and the tier above, ordered by upper switch.
struct Uplinks {
  std::vector<LinkId> up, down;
  std::vector<DeviceId> above;            // distinct, ascending
  std::uint32_t each = 0;                 // number of cables to each of them
  Duration up_latency{}, down_latency{};  // of the first cable
};

class ClosRoutes final : public FabricRoutes {
 public:
  ClosRoutes(const Topology& topology, const FabricPorts& ports, std::uint64_t seed)
      : topology_(topology), ports_(ports), seed_(seed) {}

  // False: the fabric is not regular.
  bool learn(const std::vector<bool>& dead, std::span<const LinkId> cables);
  bool append(DeviceId from, DeviceId to, std::uint64_t connection, Paths /*paths*/,
              Route& out) const override {
    return find(from, to, connection, LinkId(), out);
  }
  [[nodiscard]] std::vector<std::vector<LinkShare>> bundles() const override;
  [[nodiscard]] std::optional<LeafBundles> leaf_bundles(DeviceId leaf) const override;
  bool sketch(DeviceId from, DeviceId to, std::uint64_t connection, Paths /*paths*/, LinkId first_bundle,
              Route& out) const override {
    return find(from, to, connection, first_bundle, out);
  }

 private:
  struct Leaf {
    const Uplinks& links;
    std::uint32_t position, pod;
  };
  bool learn_uplinks(const std::vector<bool>& dead, std::span<const LinkId> cables);
  bool learn_pods();
  bool learn_planes();
  void add(LinkId link, double share, Route& out) const { out.links.push_back({link, share}); }
  void spread(std::span<const LinkId> links, double total, Route& out) const {
    for (const LinkId l : links) add(l, total / static_cast<double>(links.size()), out);
  }
  bool find(DeviceId from, DeviceId to, std::uint64_t connection, LinkId first_bundle, Route& out) const;
  void even(const Leaf& a, const Leaf& b, LinkId first_bundle, Route& out) const;
  void spread_spines(std::uint32_t pod, bool up, Route& out) const;
  void single(const Leaf& a, const Leaf& b, PathChoice& choice, Route& out) const;
  [[nodiscard]] const Uplinks& spine(std::uint32_t pod, std::size_t s) const {
    return uplinks_[position(pods_[pod][s])];
  }
  [[nodiscard]] std::size_t position(DeviceId sw) const {
    return switch_position_[sw.index() - first_switch_];
  }
  [[nodiscard]] Duration latency(LinkId id) const { return topology_.link(id).latency; }

  const Topology& topology_;
  const FabricPorts& ports_;
  std::uint64_t seed_;
  std::size_t first_switch_ = 0;
  std::vector<std::uint32_t> switch_position_;  // by device, from the first switch on
  std::vector<DeviceId> switches_;
  std::vector<Uplinks> uplinks_;             // by switch position
  std::vector<std::uint32_t> pod_of_;        // leaves, by switch position
  std::vector<std::vector<DeviceId>> pods_;  // spines of each
  bool cores_ = false;
};

bool ClosRoutes::learn(const std::vector<bool>& dead, std::span<const LinkId> cables) {
  const Topology::Copies& copies = topology_.copies();  // no fabric switch is in a copied node
  for (std::size_t i = std::size_t{copies.nodes} * copies.devices; i < topology_.devices().size(); ++i)
    if (topology_.device(DeviceId(i)).kind == DeviceKind::fabric_switch) switches_.push_back(DeviceId(i));
  if (switches_.empty()) return false;
  first_switch_ = switches_.front().index();
  switch_position_.assign(switches_.back().index() - first_switch_ + 1, kNone);
  for (std::size_t i = 0; i < switches_.size(); ++i)
    switch_position_[switches_[i].index() - first_switch_] = static_cast<std::uint32_t>(i);
  for (std::uint32_t port = 0; port < ports_.size(); ++port) {
    const auto of_port = ports_.cables_of(port);
    for (const FabricPorts::Cable& c : of_port)
      if (c.at != of_port.front().at) return false;  // a port on two leaves
  }
  return learn_uplinks(dead, cables) && learn_pods() && learn_planes();
}

bool ClosRoutes::learn_uplinks(const std::vector<bool>& dead, std::span<const LinkId> cables) {
  uplinks_.resize(switches_.size());
  const std::uint32_t copied = topology_.copies().nodes * topology_.copies().devices;  // devices in nodes
  for (const LinkId id : cables) {
    const Link& l = topology_.link(id);
    if (l.to.value < copied) continue;
    const Device &from = topology_.device(l.from), &to = topology_.device(l.to);
    const bool lower = from.kind == DeviceKind::fabric_switch, upper = to.kind == DeviceKind::fabric_switch;
    if (upper && !lower && to.tier != 1) return false;  // ports on spines
    if (!lower || !upper) continue;
    if (!dead.empty() && dead[id.index()]) return false;
    if (from.tier + 1 == to.tier)
      uplinks_[position(l.from)].up.push_back(id);
    else if (to.tier + 1 == from.tier)
      uplinks_[position(l.to)].down.push_back(id);
    else
      return false;
  }
  for (std::size_t s = 0; s < uplinks_.size(); ++s) {
    Uplinks& u = uplinks_[s];
    if (u.up.empty() && u.down.empty()) continue;
    if (u.up.size() != u.down.size()) return false;
    const auto by = [&](auto end) {
      return [this, end](LinkId a, LinkId b) {
        return std::tuple(topology_.link(a).*end, a) < std::tuple(topology_.link(b).*end, b);
      };
    };
    std::sort(u.up.begin(), u.up.end(), by(&Link::to));
    std::sort(u.down.begin(), u.down.end(), by(&Link::from));
    const Link& first = topology_.link(u.up.front());
    u.up_latency = first.latency;
    u.down_latency = latency(u.down.front());
    for (std::size_t i = 0; i < u.up.size(); ++i) {
      const Link &up = topology_.link(u.up[i]), &down = topology_.link(u.down[i]);
      if (up.to != down.from || up.capacity != first.capacity || down.capacity != first.capacity ||
          up.latency != first.latency || up.count != first.count)
        return false;
      if (u.above.empty() || u.above.back() != up.to) u.above.push_back(up.to);
    }
    u.each = static_cast<std::uint32_t>(u.up.size() / u.above.size());
    for (std::size_t i = 0; i < u.up.size(); ++i)
      if (topology_.link(u.up[i]).to != u.above[i / u.each]) return false;
  }
  return true;
}

// A pod is a set of leaves with the same spines.
bool ClosRoutes::learn_pods() {
  std::map<DeviceId, std::uint32_t> pod_of_spine;
  pod_of_.assign(switches_.size(), kNone);
  for (std::size_t s = 0; s < switches_.size(); ++s) {
    const Uplinks& u = uplinks_[s];
    if (topology_.device(switches_[s]).tier != 1 || u.above.empty()) continue;
    const auto [found, fresh] =
        pod_of_spine.emplace(u.above.front(), static_cast<std::uint32_t>(pods_.size()));
    if (fresh) {
      pods_.push_back(u.above);
      for (std::size_t i = 1; i < u.above.size(); ++i)
        if (!pod_of_spine.emplace(u.above[i], found->second).second) return false;
    }
    if (pods_[found->second] != u.above) return false;
    pod_of_[s] = found->second;
  }
  return true;
}

// Checks that spine s of every pod leads to the same cores, or that there are no cores.
bool ClosRoutes::learn_planes() {
  for (std::uint32_t pod = 0; pod < pods_.size(); ++pod) {
    for (std::size_t s = 0; s < pods_[pod].size(); ++s) {
      const Uplinks& u = spine(pod, s);
      if (!u.above.empty()) cores_ = true;
      if (s < pods_[0].size() && (u.above != spine(0, s).above || u.each != spine(0, s).each)) return false;
      // Adaptive routing prefers planes that carry more: GraphRoutes.
      if (topology_.routing == Routing::adaptive && !u.up.empty() && !spine(pod, 0).up.empty() &&
          topology_.link(u.up.front()).capacity != topology_.link(spine(pod, 0).up.front()).capacity)
        return false;
    }
  }
  const auto like_first = [this](const auto& pod) { return pod.size() == pods_[0].size(); };
  return !cores_ || std::all_of(pods_.begin(), pods_.end(), like_first);
}

// Per switch: its links up, and the links down to it; per pod: the same for all its spines together.
std::vector<std::vector<LinkShare>> ClosRoutes::bundles() const {
  PathChoice policy;
  policy.routing = topology_.routing;
  if (!policy.even()) return {};
  std::vector<std::vector<LinkShare>> result(2 * (switches_.size() + pods_.size()));
  Route route;
  const auto take = [&](std::size_t number) { result[number].swap(route.links); };
  for (std::size_t s = 0; s < switches_.size(); ++s) {
    if (pod_of_[s] == kNone) continue;
    spread(uplinks_[s].up, 1, route);
    take(2 * s);
    spread(uplinks_[s].down, 1, route);
    take(2 * s + 1);
  }
  for (std::uint32_t pod = 0; pod < pods_.size(); ++pod)
    for (const bool up : {true, false}) {
      spread_spines(pod, up, route);
      take(2 * (switches_.size() + pod) + (up ? 0 : 1));
    }
  return result;
}

std::optional<FabricRoutes::LeafBundles> ClosRoutes::leaf_bundles(DeviceId leaf) const {
  PathChoice policy;
  policy.routing = topology_.routing;
  if (!policy.even()) return std::nullopt;
  const auto a = static_cast<std::uint32_t>(position(leaf));
  if (pod_of_[a] == kNone) return LeafBundles{a, Router::kNowhere, {}};
  const Uplinks &links = uplinks_[a], &up = spine(pod_of_[a], 0);
  return LeafBundles{a,
                     static_cast<std::uint32_t>(switches_.size()) + pod_of_[a],
                     {links.up_latency, links.down_latency, up.up_latency, up.down_latency}};
}

void ClosRoutes::spread_spines(std::uint32_t pod, bool up, Route& out) const {
  const auto spines = static_cast<double>(pods_[pod].size());
  for (std::size_t s = 0; s < pods_[pod].size(); ++s)
    spread(up ? spine(pod, s).up : spine(pod, s).down, 1 / spines, out);
}

void ClosRoutes::even(const Leaf& a, const Leaf& b, LinkId first_bundle, Route& out) const {
  const auto bundle = [&](std::size_t number) { add(LinkId(first_bundle.index() + number), 1, out); };
  const std::size_t pods = switches_.size();
  const bool sketch = first_bundle.valid(), through_core = a.pod != b.pod;
  if (sketch) {
    bundle(2 * a.position);
    if (through_core) bundle(2 * (pods + a.pod)), bundle(2 * (pods + b.pod) + 1);
    bundle(2 * b.position + 1);
  } else {
    spread(a.links.up, 1, out);
    if (through_core) spread_spines(a.pod, true, out), spread_spines(b.pod, false, out);
    spread(b.links.down, 1, out);
  }
  const auto latency = [](const Uplinks& from, const Uplinks& to) {
    return from.up_latency + to.down_latency;
  };
  if (through_core) out.latency += latency(spine(a.pod, 0), spine(b.pod, 0));
  out.latency += latency(a.links, b.links);
}

void ClosRoutes::single(const Leaf& a, const Leaf& b, PathChoice& choice, Route& out) const {
  const std::uint32_t cable = choice.pick(static_cast<std::uint32_t>(a.links.up.size()), 0);
  const std::uint32_t s = cable / a.links.each;
  // Among parallel cables down, a forwarding table has one entry per destination, whatever the source; the
  // entries for the ports of a leaf differ as far as there are cables, as on the way up.
  const auto down_cable = [&](std::uint32_t n, std::uint32_t up_cable, std::uint32_t level) {
    return choice.routing == Routing::static_ ? up_cable % n : choice.pick(n, level);
  };
  const auto take = [&](LinkId link) {
    add(link, 1, out);
    out.latency += latency(link);
  };
  take(a.links.up[cable]);
  if (a.pod != b.pod) {
    const Uplinks &up = spine(a.pod, s), &down = spine(b.pod, s);
    const std::uint32_t core_cable = choice.pick(static_cast<std::uint32_t>(up.up.size()), 1);
    take(up.up[core_cable]);
    take(down.down[core_cable / up.each * down.each + down_cable(down.each, core_cable, 2)]);
  }
  take(b.links.down[s * b.links.each + down_cable(b.links.each, cable, 3)]);
}

bool ClosRoutes::find(DeviceId from, DeviceId to, std::uint64_t connection, LinkId first_bundle,
                      Route& out) const {
  const auto here = ports_.cables(from), there = ports_.cables(to);
  if (here.empty() || there.empty()) return false;
  PathChoice choice;
  choice.routing = topology_.routing;
  if (!choice.even()) choice = choose(topology_.routing, seed_, from, to, ports_.lid(to), connection);
  const std::size_t a = position(here.front().at), b = position(there.front().at);
  if (a != b && (pod_of_[a] == kNone || pod_of_[b] == kNone || (pod_of_[a] != pod_of_[b] && !cores_)))
    return false;
  // A port with several cables (all to one switch) uses one per connection, or all evenly.
  const auto cable = [&](std::span<const FabricPorts::Cable> cables, LinkId FabricPorts::Cable::*way,
                         Duration FabricPorts::Cable::*latency, std::uint32_t level) {
    out.latency += cables.front().*latency;
    const auto n = static_cast<std::uint32_t>(cables.size());
    if (!choice.even()) return add(cables[choice.pick(n, level)].*way, 1, out);
    for (const FabricPorts::Cable& c : cables) add(c.*way, 1.0 / n, out);
  };
  cable(here, &FabricPorts::Cable::up, &FabricPorts::Cable::up_latency, 4);
  ++out.switches;
  if (a != b) {
    const bool via_core = pod_of_[a] != pod_of_[b];
    out.switches = static_cast<std::uint16_t>(out.switches + (via_core ? 4 : 2));
    const Leaf x{uplinks_[a], static_cast<std::uint32_t>(a), pod_of_[a]},
        y{uplinks_[b], static_cast<std::uint32_t>(b), pod_of_[b]};
    if (choice.even())
      even(x, y, first_bundle, out);
    else
      single(x, y, choice, out);
  }
  cable(there, &FabricPorts::Cable::down, &FabricPorts::Cable::down_latency, 5);
  return true;
}

}  // namespace

std::unique_ptr<FabricRoutes> make_clos_routes(const Topology& topology, const FabricPorts& ports,
                                               std::uint64_t seed, const std::vector<bool>& dead,
                                               std::span<const LinkId> cables) {
  auto routes = std::make_unique<ClosRoutes>(topology, ports, seed);
  if (!routes->learn(dead, cables)) return nullptr;
  return routes;
}

}  // namespace topsim::topology
