// Colours of ranks: what tells them apart before folding looks at the groups they belong to.
#include <gtest/gtest.h>

#include "sim/fold/incidence.hpp"

namespace topsim::fold::colours_test {

// Rank 2 is throttled and comes back (two changes), rank 5 is throttled once. A sum of (rank + 1) over
// changes would give both 6 (2 x 3 and 1 x 6) and make them one class.
TEST(RankColours, RanksWhoseSpeedChangesStandForThemselvesHoweverOftenItDoes) {
  topology::TopologyBuilder builder;
  topology::Device gpu{topology::DeviceKind::accelerator};
  gpu.node = 0;
  gpu.model = builder.model("gpu");
  builder.set_nodes(1);
  for (gpu.local = 0; gpu.local < 8; ++gpu.local) builder.device(gpu);
  const topology::Topology topology = std::move(builder).finish();
  program::Program program;
  program.ranks = 8;
  program.class_of_rank.assign(8, 0);
  FoldOptions options;
  options.marked_ranks = {RankId(2), RankId(2), RankId(5)};
  const RankColours colours(program, topology, options);
  EXPECT_NE(colours[RankId(2)], colours[RankId(5)]);
  EXPECT_NE(colours[RankId(2)], colours[RankId(0)]);
  EXPECT_EQ(colours[RankId(0)], colours[RankId(1)]);
}
}  // namespace topsim::fold::colours_test
