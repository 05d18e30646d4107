// The implementation of Router: what is derived from a topology once, and what its walks need.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "topology/routes.hpp"
#include "topology/routing/cells.hpp"
#include "topology/routing/fabric_routes.hpp"
#include "topology/routing/nic_choice.hpp"
#include "topology/routing/node_paths.hpp"
#include "topology/routing/remembered.hpp"
#include "topology/routing/sites.hpp"

namespace topsim::topology {

struct Router::Impl {
  static constexpr std::uint32_t kNone = DeviceId::kNone;

  Impl(const Topology& t, std::uint64_t seed, std::span<const LinkId> dead_links, std::uint32_t pairs,
       std::span<const SlowLink> slow);

  const Topology& topology;
  std::uint32_t queue_pairs;  // of each connection
  std::vector<bool> dead;
  LinkPlaces places;
  NodePaths nodes;
  std::uint32_t turns, accelerator_turns;  // common multiples of all nodes'
  FabricPorts ports;
  std::unique_ptr<FabricRoutes> fabric;
  std::unique_ptr<Cells> cells;
  std::unique_ptr<Sites> sites;
  std::vector<std::uint32_t> domain;  // by device: scale-up domain of accelerators and their switches
  // Accelerators' links to a switch that several nodes share (NVL72); by device. Empty without such switches.
  std::vector<LinkId> to_domain_switch, from_domain_switch;
  bool shared_switches = false;
  Remembered<NicChoice::Key, NicChoice> nic_choices;
  Remembered<NicChoice::Key, Trip> trips;

  void find_domains();
  [[nodiscard]] bool works(LinkId l) const { return dead.empty() || !dead[l.index()]; }
  [[nodiscard]] std::uint32_t node_of(DeviceId d) const { return nodes.node_of(d); }

  void add(LinkId link, Route& out) const {
    out.links.push_back({link, 1});
    out.latency += topology.link(link).latency;
  }
  // The elements of a route: links or stretches.
  enum class Grain { links, stretches };
  bool inside(DeviceId from, DeviceId to, Grain grain, Route& out) const {
    if (from == to) return true;
    if (over_shared_switch(from, to, out)) return true;
    const std::uint32_t node = node_of(from), a = nodes.position(from), b = nodes.position(to);
    const LocalPath path = nodes.shape(node).path(a, b);
    if (!path.reachable) return false;
    out.latency += path.latency;
    add_way(node, a, b, grain, out);
    return true;
  }
  void add_way(std::uint32_t node, std::uint32_t a, std::uint32_t b, Grain grain, Route& out) const {
    if (a == b) return;
    if (const LinkId way = grain == Grain::stretches ? cells->way(node, a, b) : LinkId(); way.valid())
      out.links.push_back({way, 1});
    else
      nodes.append(node, a, b, out.links);
  }
  bool over_fabric(DeviceId from, DeviceId to, const RouteQuery& q, Grain grain, Route& out) const {
    using Paths = FabricRoutes::Paths;
    const std::uint64_t first = q.connection * queue_pairs;
    if (q.one_port) return fabric->append(from, to, first + q.queue_pair, Paths::shortest, out);
    const bool apart = topology.routing == Routing::ecmp ||
                       (topology.routing == Routing::static_ && ports.cables(from).size() > 1);
    if (queue_pairs > 1 && apart) return over_queue_pairs(from, to, first, out);
    const Paths paths = q.even ? Paths::shortest : Paths::loaded;
    if (grain == Grain::links) return fabric->append(from, to, first, paths, out);
    return fabric->sketch(from, to, first, paths, cells->bundle(0), out);
  }
  // Those numbered from `first` on, an even share on the path that each takes as packets.
  bool over_queue_pairs(DeviceId from, DeviceId to, std::uint64_t first, Route& out) const;
  // Over scale-up links that leave the node.
  bool across_domain(const RouteQuery& q, Grain grain, Route& out) const {
    return over_shared_switch(q.from, q.to, out) || over_fabric(q.from, q.to, q, grain, out);
  }
  // Two accelerators of one node too: their only NVLinks lead to it.
  bool over_shared_switch(DeviceId from, DeviceId to, Route& out) const {
    if (to_domain_switch.empty() || from_domain_switch.empty()) return false;
    const LinkId up = to_domain_switch[from.index()], down = from_domain_switch[to.index()];
    if (!up.valid() || !down.valid() || topology.link(up).to != topology.link(down).from) return false;
    add(up, out);
    add(down, out);
    return true;
  }
  [[nodiscard]] DeviceId nearest_port(DeviceId device, std::uint64_t connection) const;
  [[nodiscard]] DeviceId rail_port(DeviceId gpu, DeviceId to, std::uint64_t connection) const;
  [[nodiscard]] DeviceId proxy_for(DeviceId gpu, DeviceId port) const;
  struct Stops {
    DeviceId proxy, leave, enter;  // as those of a NicChoice
  };
  [[nodiscard]] Stops stops(const RouteQuery& query) const;
  [[nodiscard]] bool nic_choice_key(const RouteQuery& query, NicChoice::Key& key) const;
  [[nodiscard]] NicChoice nic_choice(const RouteQuery& query) const;
  [[nodiscard]] NicChoice nic_choice(const RouteQuery& query, const Stops& by) const;
  [[nodiscard]] TripBetween trip(const RouteQuery& query) const;
  [[nodiscard]] Trip make_trip(const RouteQuery& query) const;
  bool between_nodes(const RouteQuery& query, Grain grain, Route& out) const;
  void route(const RouteQuery& query, Grain grain, Route& out) const;
};
}  // namespace topsim::topology
