// Router::sketch() is route() at the grain of stretches: expanded, it is the same links with the same shares.
#include <gtest/gtest.h>

#include <map>

#include "topology/build.hpp"
#include "topology/catalogue.hpp"
#include "topology/routes.hpp"

namespace topsim::topology::sketch_test {

struct Fabric {
  const char* name;
  const char* kind;
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

TEST_P(Sketch, stands_for_the_links_of_the_route) {
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

TEST_P(Sketch, gives_every_link_one_place) {
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

TEST_P(Sketch, a_node_is_one_cell_like_the_next_one) {
  const Topology topology = cluster(GetParam());
  const Router router(topology, 7);
  EXPECT_EQ(router.kind_of_cell(0), router.kind_of_cell(1));
}

INSTANTIATE_TEST_SUITE_P(fabric, Sketch,
                         testing::Values(Fabric{"rail_adaptive", "rail", 64, Routing::adaptive, 1},
                                         Fabric{"rail_hashed", "rail", 64, Routing::ecmp, 1},
                                         Fabric{"tree_adaptive", "fat-tree", 72, Routing::adaptive, 2},
                                         Fabric{"tree_static", "fat-tree", 72, Routing::static_, 1}),
                         [](const auto& fabric) { return std::string(fabric.param.name); });
}  // namespace topsim::topology::sketch_test
