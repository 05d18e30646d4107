#include "workloads/compute/grids.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/fixtures.hpp"
#include "workloads/compute/compute_model.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::grids_test {
using namespace topsim::workloads::testing;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

// 216 tiles on 108 SMs are two waves; on 100, 92, 84 and 76 they are three. 300 are three, and three, four,
// four and four.
TEST(Grids, BlocksThatTakeTurnsAreRecountedOnTheUnitsThatAreLeft) {
  EXPECT_THAT(product_grid(216, 2, 108, 0, false).more_waves, ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(product_grid(300, 3, 108, 0, false).more_waves,
              ElementsAre(0, DoubleNear(1, 1e-9), DoubleNear(1, 1e-9), DoubleNear(1, 1e-9)));
  EXPECT_EQ(product_grid(300, 3, 108, 0, false).in_waves, 3);
  EXPECT_EQ(product_grid(300, 3, 108, 0, false).persistent, 0);
}

// 1024 tiles on 132 blocks: the first has eight, block 124 and all after it seven (124 + 6 x 132 = 916, + 132
// is more than 1023), block 100 eight: 100 + 7 x 132 = 1024 is not a tile, so seven as well.
TEST(Grids, PersistentBlocksKeepTheirTiles) {
  const GridTimes times = product_grid(1024, 8, 132, 0, true);
  EXPECT_EQ(times.persistent, 8);
  EXPECT_EQ(times.count, 1);
  EXPECT_THAT(times.left_over, ElementsAre(7, 7, 7, 7));
  // 1056 tiles are eight for each.
  EXPECT_THAT(product_grid(1056, 8, 132, 0, true).left_over, ElementsAre(8, 8, 8, 8));
}

// 112 tiles are 112 blocks: they fit beside 8 and 16 of 132 units, not beside 24 (108 left).
TEST(Grids, ASmallGridFitsBesideCommunication) {
  EXPECT_THAT(product_grid(112, 1, 132, 0, true).left_over, ElementsAre(0, 0, 1, 1));
}

// With 16 of 132 left free the grid has 116 blocks: beside 8 and 16 all of them run. 1160 tiles are ten for
// each.
TEST(Grids, AMarginMakesRoom) {
  EXPECT_THAT(product_grid(1160, 10, 132, 16, true).left_over, ElementsAre(0, 0, 10, 10));
}

// 8192 cubed on an H100, 2048 tiles of 256 x 128: 16 waves of 132; on 116, 18 waves.
TEST(Grids, AMarginCostsWavesAlways) {
  const auto accelerator = h100();
  ComputeSettings settings;
  const auto time = [&](int margin, int of_product) {
    settings.sm_margin = margin;
    return ComputeModel(accelerator, settings)
               .gemm({8192, 8192, 8192}, Precision::bf16, GemmOutput::fresh, of_product)
               .seconds -
           seconds(accelerator.gemm.at("bf16").fixed);
  };
  EXPECT_NEAR(time(16, 0) / time(0, 0), 18.0 / 16, 1e-9);
  EXPECT_EQ(time(0, 16), time(16, 0));
}

TEST(Grids, OnlyHopperSProductsKeepTheirTiles) {
  const auto grids_on = [](const topology::Accelerator& accelerator) {
    return ComputeModel(accelerator, {}).gemm({8192, 8192, 8192}, Precision::bf16).grids;
  };
  EXPECT_GT(grids_on(h100()).persistent, 0);
  EXPECT_EQ(grids_on(h100()).in_waves, 0);
  EXPECT_EQ(grids_on(a100()).persistent, 0);
  EXPECT_GT(grids_on(a100()).in_waves, 0);
  auto later = h100();
  later.compute_capability = 100;
  EXPECT_EQ(grids_on(later).persistent, 0);
}

// What memory limits slows with memory, not with units.
TEST(Grids, AThinProductHasNoGridToSpeakOf) {
  EXPECT_EQ(ComputeModel(h100(), {}).gemm({1, 4096, 4096}, Precision::bf16).grids.persistent, 0);
}

// User buffers move by copy engines in the ring, by 16 SMs in the pipelined scatter, and in bulk by 4, or by
// 24 for the scatter behind attention.
TEST(Grids, UserBuffersHoldTheUnitsOfTheirRecipes) {
  WorkloadSpec workload;
  workload.model = llama3_70b();
  workload.model.layers = 1;
  workload.plan.tp = 8;
  workload.plan.global_batch = 1;
  workload.plan.tp_overlap = TensorOverlap::userbuffers;
  const program::Program program = training_step(workload, h100(), 8);
  std::vector<int> count(32);
  for (const program::Op& op : program.classes.front().ops)
    if (op.kind == program::OpKind::collective && op.units >= 0) ++count[static_cast<std::size_t>(op.units)];
  // Forward and backward: four products in rings of seven; two in quarters; three of four exchanges in bulk.
  EXPECT_EQ(count[0], 4 * 7);
  EXPECT_EQ(count[16], 2 * 4);
  EXPECT_EQ(count[4], 3);
  EXPECT_EQ(count[24], 1);
}
}  // namespace topsim::workloads::grids_test
