// Shared by the topology tests: the shipped catalogue, short forms for topologies and routes.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "topology/build.hpp"
#include "topology/routes.hpp"

namespace topsim::topology::test {

inline const Catalogue& catalogue() {
  static const Catalogue loaded = Catalogue::load(std::string(TOPSIM_SOURCE_DIR) + "/configs");
  return loaded;
}

inline TopologySpec cluster(const std::string& node, int nodes, FabricKind fabric = FabricKind::none) {
  TopologySpec spec;
  spec.node.use = node;
  spec.nodes = nodes;
  spec.fabric.kind = fabric;
  return spec;
}

inline DeviceId device(const Topology& t, std::string_view name) {
  const auto found = t.find_device(name);
  EXPECT_TRUE(found) << name;
  return found.value_or(DeviceId{});
}

inline Route route(const Router& router, std::string_view from, std::string_view to,
                   std::uint64_t connection = 0) {
  const Topology& t = router.topology();
  RouteQuery query;
  query.from = device(t, from);
  query.to = device(t, to);
  query.connection = connection;
  Route out;
  router.route(query, out);
  return out;
}

// The route by the NICs that a channel of a ring names.
inline Route route_by(const Router& router, std::pair<std::string_view, std::string_view> ends,
                      std::pair<std::string_view, std::string_view> nics) {
  const Topology& t = router.topology();
  RouteQuery query;
  query.from = device(t, ends.first);
  query.to = device(t, ends.second);
  query.from_nic = device(t, nics.first);
  query.to_nic = device(t, nics.second);
  Route out;
  router.route(query, out);
  return out;
}

// The devices that the route passes, as in "gpu0 pcie0 cpu0"; "node0/" is left out of names.
inline std::string path_of(const Topology& t, const Route& r) {
  std::string text;
  const auto add = [&](DeviceId d) {
    std::string name = t.name(d);
    if (name.starts_with("node0/")) name = name.substr(6);
    text += (text.empty() ? "" : " ") + name;
  };
  for (std::size_t i = 0; i < r.links.size(); ++i) {
    if (i == 0) add(t.link(r.links[i].link).from);
    add(t.link(r.links[i].link).to);
  }
  return text;
}
inline std::map<int, int> switches_by_tier(const Topology& t) {
  std::map<int, int> count;
  for (const Device& d : t.devices())
    if (d.kind == DeviceKind::fabric_switch) count[d.tier] += d.count;
  return count;
}
}  // namespace topsim::topology::test
