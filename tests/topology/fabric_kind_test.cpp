#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "tests/topology/fixtures.hpp"
#include "topology/catalogue/fabric_kind_codec.hpp"

namespace topsim::topology::test::fabric_kind_test {

using testing::ElementsAre;

std::vector<std::string> names_in(const config::Value& schema) {
  std::vector<std::string> names;
  if (const config::Value* list = schema.find("enum"))
    for (const auto& name : list->children) names.push_back(name->text);
  return names;
}

TEST(FabricKind, ARecipeIsOfEveryKindThatIsBuiltBetweenNodesAndAScenarioOfEveryKind) {
  config::Definitions definitions;
  EXPECT_THAT(names_in(kinds_of_recipes()->schema(definitions)),
              ElementsAre("none", "rail", "fat-tree", "rail-only", "dragonfly", "torus", "mesh", "direct"));
  EXPECT_THAT(names_in(config::codec_for<FabricKind>()->schema(definitions)),
              ElementsAre("none", "rail", "fat-tree", "rail-only", "dragonfly", "torus", "mesh", "direct",
                          "explicit"));
}

// Two nodes of four chips are a torus of 2 x 2 x 2; two of four NICs, a dragonfly of two groups of two
// switches with two NICs' ports each and a cable to the other group.
TEST(FabricKind, EveryKindThatIsBuiltBetweenNodesIsBuiltUnderItsName) {
  for (const FabricTraits& each : kFabricTraits) {
    if (!each.of_nodes) continue;
    SCOPED_TRACE(each.name);
    TopologySpec spec = cluster(by_coordinate(each.kind) ? "tpu-v4-host" : "perlmutter-a100", 2);
    spec.fabric.use = each.name;
    if (by_coordinate(each.kind)) {
      spec.fabric.link.use = "ici-v4";
      spec.fabric.dimensions = {2, 2, 2};
    }
    if (each.family == FabricFamily::dragonfly) spec.fabric.dimensions = {2, 2, 2, 1};
    const Topology t = build(spec, catalogue());
    EXPECT_EQ(t.fabric_kind, each.kind);
    EXPECT_EQ(t.torus_chips.size(), by_coordinate(each.kind) ? 8U : 0U);
  }
}

TEST(FabricKind, ExplicitIsNoKindForNodesWhateverItsKeys) {
  TopologySpec spec = cluster("hgx-h100", 2, FabricKind::explicit_);
  spec.fabric.dimensions = {4, 4};
  try {
    (void)build(spec, catalogue());
    FAIL();
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.problems().size(), 1U);
    EXPECT_EQ(error.problems()[0].path, "topology.fabric.kind");
    EXPECT_EQ(error.problems()[0].help, "none, rail, fat-tree, rail-only, dragonfly, torus, mesh, direct");
  }
}
}  // namespace topsim::topology::test::fabric_kind_test
