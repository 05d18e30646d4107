#include "topology/validate/cuts.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/biconnected_components.hpp>
#include <iterator>

namespace topsim::topology {
namespace {

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, boost::no_property,
                                    boost::property<boost::edge_index_t, std::size_t>>;

// Vertices: the nodes first, then every device outside nodes.
struct Vertices {
  std::vector<std::uint32_t> of;  // by device
  std::vector<DeviceId> outside;  // by vertex - nodes
};

Vertices number(const Topology& t) {
  Vertices v;
  for (std::size_t i = 0; i < t.devices().size(); ++i) {
    const Device& d = t.devices()[i];
    if (d.node != DeviceId::kNone) {
      v.of.push_back(d.node);
    } else {
      v.of.push_back(t.nodes() + static_cast<std::uint32_t>(v.outside.size()));
      v.outside.push_back(DeviceId(i));
    }
  }
  return v;
}

}  // namespace

std::vector<DeviceId> single_points_of_failure(const Topology& t) {
  const Vertices v = number(t);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  for (const Link& l : t.links()) {
    const auto [a, b] = std::minmax(v.of[l.from.index()], v.of[l.to.index()]);
    if (a != b) edges.emplace_back(a, b);
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  Graph clusters(t.nodes() + v.outside.size());
  for (const auto& [a, b] : edges) boost::add_edge(a, b, clusters);
  std::vector<DeviceId> switches;
  std::vector<std::size_t> found;
  boost::articulation_points(clusters, std::back_inserter(found));
  std::sort(found.begin(), found.end());
  for (const std::size_t vertex : found) {
    if (vertex < t.nodes()) continue;
    const DeviceId d = v.outside[vertex - t.nodes()];
    if (t.device(d).kind == DeviceKind::fabric_switch && t.device(d).count == 1) switches.push_back(d);
  }
  return switches;
}

}  // namespace topsim::topology
