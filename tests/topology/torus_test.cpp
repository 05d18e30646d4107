#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/topology/fixtures.hpp"

namespace topsim::topology::test::torus_test {

TEST(Torus, ATorusJoinsNeighboursAndWrapsAround) {
  TopologySpec spec = cluster("tpu-v4-host", 16, FabricKind::torus);
  spec.fabric.link.use = "ici-v4";
  spec.fabric.dimensions = {4, 4, 4};
  const Topology t = build(spec, catalogue());
  const Router router(t, 1);
  // Opposite corners of a 4 x 4 x 4 torus are 2 + 2 + 2 hops apart.
  const DeviceId from = t.accelerators()[0], to = t.accelerators()[2 * 16 + 2 * 4 + 2];
  Route r;
  router.route({from, to}, r);
  EXPECT_EQ(r.links.size(), 6U);
  router.route({from, t.accelerators()[3]}, r);  // around the edge
  EXPECT_EQ(r.links.size(), 1U);
}

TEST(Torus, ANodeOfATorusIsABlockOfNeighbours) {
  // TPU v4: a host holds 2 x 2 x 1 chips. Coordinates (0,0,0), (0,1,0), (1,0,0), (1,1,0) are ranks 0, 4, 16,
  // 20 of a 4 x 4 x 4 torus, row-major.
  TopologySpec spec = cluster("tpu-v4-host", 16, FabricKind::torus);
  spec.fabric.link.use = "ici-v4";
  spec.fabric.dimensions = {4, 4, 4};
  const Topology t = build(spec, catalogue());
  for (const std::size_t rank : {0U, 4U, 16U, 20U})
    EXPECT_EQ(t.device(t.accelerators()[rank]).node, 0U) << rank;
  EXPECT_EQ(t.device(t.accelerators()[1]).node, 1U);
  spec.fabric.dimensions = {4, 16, 1};
  EXPECT_NO_THROW({ EXPECT_EQ(build(spec, catalogue()).accelerators().size(), 64U); });
  spec.fabric.dimensions = {1, 16, 4};
  EXPECT_THROW({ EXPECT_TRUE(build(spec, catalogue()).accelerators().empty()); }, ConfigError);
}

// Eight v5e chips form 4 x 2: two rows of four with three links each and four links between them, both ways.
TEST(Torus, AHostOfATorusAloneHasTheLinksBetweenItsChips) {
  const Topology t = build(cluster("tpu-v5e-host", 1), catalogue());
  EXPECT_EQ(t.torus_dimensions, (std::vector<int>{4, 2}));
  const auto links = std::count_if(t.links().begin(), t.links().end(),
                                   [](const Link& link) { return link.kind == LinkKind::torus; });
  EXPECT_EQ(links, 2 * (3 * 2 + 4));
}

std::ptrdiff_t links_of(const char* node, const char* link, const std::vector<int>& dims,
                        std::optional<bool> rings = {}) {
  int chips = 1;
  for (const int size : dims) chips *= size;
  const int per_node = std::string_view(node) == "tpu-v6e-host" ? 8 : 4;
  TopologySpec spec = cluster(node, chips / per_node, FabricKind::torus);
  spec.fabric.link.use = link;
  spec.fabric.dimensions = dims;
  spec.fabric.rings = rings;
  const Topology t = build(spec, catalogue());
  return std::count_if(t.links().begin(), t.links().end(),
                       [](const Link& each) { return each.kind == LinkKind::torus; });
}

// TPU v6e joins the ends of axes of 16: of 8 x 16, 8 rings of 16 cables and 16 lines of 7, both ways. TPU v5p
// joins those of whole cubes of 4 x 4 x 4: three rings of four through every chip, 3 x 64 cables; of
// 2 x 4 x 4, 16 lines of 1 and twice 8 of 3.
TEST(Torus, TheEndsOfAnAxisAreJoinedWhereThePodHasTheLinks) {
  EXPECT_EQ(links_of("tpu-v6e-host", "ici-v6e", {8, 16}), 2 * (8 * 16 + 16 * 7));
  EXPECT_EQ(links_of("tpu-v5p-host", "ici-v5p", {4, 4, 4}), 2 * 3 * 64);
  EXPECT_EQ(links_of("tpu-v5p-host", "ici-v5p", {2, 4, 4}), 2 * (16 + 2 * 8 * 3));
  EXPECT_EQ(links_of("tpu-v5p-host", "ici-v5p", {8, 8}), 2 * 2 * 8 * 7);  // no cube
}

TEST(Torus, TheScenarioMayJoinTheEndsAnyway) {
  EXPECT_EQ(links_of("tpu-v6e-host", "ici-v6e", {8, 8}, true), 2 * 2 * 64);
  EXPECT_EQ(links_of("tpu-v6e-host", "ici-v6e", {16, 16}, false), 2 * 2 * 16 * 15);
}

// A chip in the middle of an axis has two neighbours along it, and one along an axis of two: 4 x 4 x 2 takes
// five links, and TPU v6e has four.
TEST(Torus, AChipHasNoMoreNeighboursThanLinks) {
  EXPECT_NO_THROW(links_of("tpu-v6e-host", "ici-v6e", {4, 2, 2}));
  for (const std::vector<int>& dims : {std::vector<int>{4, 4, 2}, {4, 4, 4}})
    EXPECT_THROW(links_of("tpu-v6e-host", "ici-v6e", dims), ConfigError);
}

}  // namespace topsim::topology::test::torus_test
