// Router::sketch() is route() in coarser form (routes.hpp: cells, stretches, sites). Expanded to links, it
// must have the same links with the same shares.
#include <gtest/gtest.h>

#include <map>

#include "topology/build.hpp"
#include "topology/catalogue.hpp"
#include "topology/routes.hpp"

namespace topsim::topology::sketch_test {

struct Fabric {
  const char* name;
  FabricKind kind;
  int nodes;
  Routing routing;
  double oversubscription;
};

class Sketch : public testing::TestWithParam<Fabric> {};

Topology cluster(const Fabric& fabric) {
  TopologySpec spec;
  spec.node.use = "hgx-h100";
  spec.nodes = fabric.nodes;
  spec.fabric.kind = fabric.kind;
  spec.fabric.link.use = "ib-ndr";
  spec.fabric.oversubscription = {fabric.oversubscription};
  spec.fabric.routing = fabric.routing;
  return build(spec, Catalogue::load(TOPSIM_SOURCE_DIR "/configs"));
}

TEST_P(Sketch, StandsForTheLinksOfTheRoute) {
  const Topology topology = cluster(GetParam());
  const Router router(topology, 7);
  const auto gpus = topology.accelerators();
  Route route, sketch;
  std::vector<LinkShare> links;
  for (std::size_t a = 0; a < gpus.size(); a += 3)
    for (std::size_t b = 0; b < gpus.size(); b += 5) {
      if (a == b) continue;
      const RouteQuery query{.from = gpus[a], .to = gpus[b], .connection = a + b};
      router.route(query, route);
      router.sketch(query, sketch);
      EXPECT_EQ(route.latency, sketch.latency);
      EXPECT_EQ(route.switches, sketch.switches);
      std::map<LinkId, double> expected, found;
      for (const LinkShare& use : route.links) expected[use.link] += use.share;
      for (const LinkShare& stretch : sketch.links) {
        router.expand(router.place(stretch.link), links);
        for (const LinkShare& use : links) found[use.link] += use.share * stretch.share;
      }
      ASSERT_EQ(expected, found) << topology.name(gpus[a]) << " to " << topology.name(gpus[b]);
    }
}

TEST_P(Sketch, GivesEveryLinkOnePlace) {
  const Topology topology = cluster(GetParam());
  const Router router(topology, 7);
  std::vector<LinkShare> links;
  std::vector<std::uint32_t> in_cell(router.cells());
  for (std::size_t l = 0; l < topology.links().size(); ++l) {
    const Router::Place place = router.place(LinkId(l));
    ASSERT_LT(place.cell, router.cells());
    EXPECT_LT(place.at, router.links_of_cell(place.cell));
    ++in_cell[place.cell];
    router.expand(place, links);
    ASSERT_EQ(links.size(), 1U);
    EXPECT_EQ(links[0].link, LinkId(l));
    EXPECT_EQ(links[0].share, 1);
  }
  for (std::uint32_t c = 0; c < router.cells(); ++c) EXPECT_EQ(in_cell[c], router.links_of_cell(c));
}

TEST_P(Sketch, ANodeIsOneCellLikeTheNextOne) {
  const Topology topology = cluster(GetParam());
  const Router router(topology, 7);
  EXPECT_EQ(router.kind_of_cell(0), router.kind_of_cell(1));
}

// with_links() gives the same links without the builder's knowledge that nodes are equal, so the router looks
// at each node by itself. The result must be the same.
TEST_P(Sketch, OfCopiesOfANodeIsThatOfNodesLookedAtOneByOne) {
  const Topology copied = cluster(GetParam()), single = copied.with_links([](Link&) {});
  ASSERT_EQ(copied.copies().nodes, GetParam().nodes);
  ASSERT_EQ(single.copies().nodes, 0U);
  const Router a(copied, 7), b(single, 7);
  ASSERT_EQ(a.cells(), b.cells());
  for (std::uint32_t c = 0; c < a.cells(); ++c) {
    EXPECT_EQ(a.kind_of_cell(c), b.kind_of_cell(c)) << "cell " << c;
    EXPECT_EQ(a.links_of_cell(c), b.links_of_cell(c)) << "cell " << c;
  }
  for (std::size_t l = 0; l < copied.links().size(); ++l) {
    EXPECT_EQ(a.place(LinkId(l)).cell, b.place(LinkId(l)).cell) << copied.name(LinkId(l));
    EXPECT_EQ(a.place(LinkId(l)).at, b.place(LinkId(l)).at) << copied.name(LinkId(l));
  }
}

TEST_P(Sketch, ANodeWithASlowerLinkIsOfAnotherKind) {
  const Topology topology = cluster(GetParam());
  const auto gpu = topology.find_device("node1/gpu0"), nvswitch = topology.find_device("node1/nvswitch0");
  ASSERT_TRUE(gpu && nvswitch);
  const Topology slower = topology.with_links([&](Link& link) {
    if (link.from == *gpu && link.to == *nvswitch) link.capacity = link.capacity * 0.5;
  });
  const Router router(slower, 7);
  EXPECT_NE(router.kind_of_cell(0), router.kind_of_cell(1));
}

// A trip holds for every route between nodes of equal standings. Resolved for the two nodes at hand, its
// stops must be the stretches of the sketch.
TEST_P(Sketch, OfARouteIsThatOfItsTrip) {
  const Topology topology = cluster(GetParam());
  const Router router(topology, 7);
  const auto gpus = topology.accelerators();
  const bool even = GetParam().routing == Routing::adaptive;
  Route sketch;
  for (std::size_t a = 0; a < gpus.size(); a += 3)
    for (std::size_t b = 0; b < gpus.size(); b += 5) {
      const std::uint32_t from = topology.device(gpus[a]).node, to = topology.device(gpus[b]).node;
      if (from == to) continue;
      const RouteQuery query{.from = gpus[a], .to = gpus[b], .connection = a + b};
      const Router::Trip* trip = router.trip(query).what;
      ASSERT_EQ(trip != nullptr, even);
      if (trip == nullptr) continue;
      router.sketch(query, sketch);
      EXPECT_EQ(trip->latency, sketch.latency);
      ASSERT_EQ(trip->stops.size(), sketch.links.size());
      for (std::size_t i = 0; i < trip->stops.size(); ++i) {
        const Router::Trip::Stop& stop = trip->stops[i];
        const Router::Place place = router.place(sketch.links[i].link);
        const std::uint32_t node = stop.there ? to : from;
        const Router::Standing standing = router.standing(node);
        const std::uint32_t number = stop.kind == Router::Owner::Kind::node   ? node
                                     : stop.kind == Router::Owner::Kind::site ? standing.site
                                                                              : standing.region;
        EXPECT_EQ(router.cell({stop.kind, number, stop.of}), place.cell);
        EXPECT_EQ(stop.at, place.at);
        EXPECT_EQ(stop.share, sketch.links[i].share);
      }
    }
}

// Nodes have the same site exactly where their cables lead to the same leaves.
TEST_P(Sketch, SitesAreTheLeavesThatNodesHangOn) {
  const Topology topology = cluster(GetParam());
  const Router router(topology, 7);
  std::vector<std::vector<DeviceId>> leaves(topology.nodes());
  for (const Link& link : topology.links())
    if (topology.device(link.from).kind == DeviceKind::nic &&
        topology.device(link.to).kind == DeviceKind::fabric_switch)
      leaves[topology.device(link.from).node].push_back(link.to);
  for (std::uint32_t a = 0; a < topology.nodes(); ++a) {
    if (GetParam().routing != Routing::adaptive) {
      EXPECT_EQ(router.standing(a).site, Router::kNowhere);  // hashed routes depend on more
      continue;
    }
    for (std::uint32_t b = 0; b < topology.nodes(); ++b)
      EXPECT_EQ(router.standing(a).site == router.standing(b).site, leaves[a] == leaves[b]);
  }
}

INSTANTIATE_TEST_SUITE_P(
    fabric, Sketch,
    testing::Values(Fabric{"rail_adaptive", FabricKind::rail, 64, Routing::adaptive, 1},
                    Fabric{"rail_hashed", FabricKind::rail, 64, Routing::ecmp, 1},
                    Fabric{"tree_adaptive", FabricKind::fat_tree, 72, Routing::adaptive, 2},
                    Fabric{"tree_static", FabricKind::fat_tree, 72, Routing::static_, 1}),
    [](const auto& fabric) { return std::string(fabric.param.name); });
}  // namespace topsim::topology::sketch_test
