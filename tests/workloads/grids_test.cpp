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

// Communication holds 8, 16, 24 or 32 of 108 SMs, and 100, 92, 84 or 76 are left. 216 tiles, two waves of 1 s
// on 108, take three on all of these: 1 s more. 300 tiles take three waves on 108 and on 100, and four on the
// others.
TEST(Grids, BlocksThatTakeTurnsAreRecountedOnTheUnitsThatAreLeft) {
  EXPECT_THAT(product_grid(216, 2, 108, 0, TileOrder::in_turn).more_waves, ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(product_grid(300, 3, 108, 0, TileOrder::in_turn).more_waves,
              ElementsAre(0, DoubleNear(1, 1e-9), DoubleNear(1, 1e-9), DoubleNear(1, 1e-9)));
  EXPECT_EQ(product_grid(300, 3, 108, 0, TileOrder::in_turn).in_waves, 3);
  EXPECT_EQ(product_grid(300, 3, 108, 0, TileOrder::in_turn).persistent, 0);
}

// A persistent grid of 132 blocks: block b has the tiles b, b + 132, ... Of 1024 tiles block 0 has eight, of
// 1 s each. Beside communication on 8, 16, 24 or 32 units the first block that has to wait is 124, 116, 108
// or 100. Each of these has seven tiles: the eighth of block 100 would be 100 + 7 x 132 = 1024, and the last
// tile is 1023.
TEST(Grids, PersistentBlocksKeepTheirTiles) {
  const GridTimes times = product_grid(1024, 8, 132, 0, TileOrder::fixed);
  EXPECT_EQ(times.persistent, 8);
  EXPECT_EQ(times.count, 1);
  EXPECT_THAT(times.left_over, ElementsAre(7, 7, 7, 7));
  // 1056 = 8 x 132 tiles: every block has eight.
  EXPECT_THAT(product_grid(1056, 8, 132, 0, TileOrder::fixed).left_over, ElementsAre(8, 8, 8, 8));
}

// The same 1024 tiles where blocks have two of their own. Beside 8 units 124 blocks share 1024 - 8 x 2 = 1008
// tiles, nine each at most, and then the 8 others do their two: 11 s instead of 8. Beside 16 to 32: 992 tiles
// on 116 are nine, 976 on 108 and 960 on 100 ten each.
TEST(Grids, BlocksOfLaterLibrariesKeepTwoTiles) {
  EXPECT_THAT(product_grid(1024, 8, 132, 0, TileOrder::two_fixed).left_over, ElementsAre(3, 3, 4, 4));
  // One wave: 128 blocks of one tile. Eight of them find no unit beside eight: twice as long. Two waves: two
  // tiles each, twice as long too.
  EXPECT_THAT(product_grid(128, 1, 132, 0, TileOrder::two_fixed).left_over, ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(product_grid(264, 2, 132, 0, TileOrder::two_fixed).left_over, ElementsAre(2, 2, 2, 2));
}

// 112 tiles are 112 blocks. Beside 8 and 16 of 132 units they all run (124, 116 left); beside 24 and 32 some
// wait (108, 100).
TEST(Grids, ASmallGridFitsBesideCommunication) {
  EXPECT_THAT(product_grid(112, 1, 132, 0, TileOrder::fixed).left_over, ElementsAre(0, 0, 1, 1));
}

// A margin of 16 leaves a grid of 116 blocks, which all run beside communication on 8 or 16 units. 1160 tiles
// are ten per block.
TEST(Grids, AMarginMakesRoom) {
  EXPECT_THAT(product_grid(1160, 10, 132, 16, TileOrder::fixed).left_over, ElementsAre(0, 0, 10, 10));
}

// 8192 cubed on an H100: 2048 tiles of 256 x 128 are 16 waves on 132 SMs and 18 on 116.
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

// 4096 x 4096 x 4096 on an H100: two tiles of its own or all of them make no difference to a product of few
// waves, but to one of 16 (8192 cubed). Sets of 2024 launch the earlier kernels.
TEST(Grids, SetsOf2024HaveTheProductsOfTheirTime) {
  const auto left_over = [](bool fixed) {
    const auto accelerator = h100();
    ComputeSettings settings;
    settings.fixed_tiles = fixed;
    const GridTimes grids =
        ComputeModel(accelerator, settings).gemm({8192, 8192, 8192}, Precision::bf16).grids;
    return grids.left_over[1] / grids.persistent;
  };
  EXPECT_GT(left_over(true), 0.9);   // 15 or 16 of 16 tiles
  EXPECT_LT(left_over(false), 0.3);  // two, and what the other blocks take meanwhile
  for (const auto& [set, fixed] : {std::pair("megatron@2024", true),
                                   {"megatron@2025", false},
                                   {"fsdp@2024-compile", true},
                                   {"fsdp@2025-compile", false},
                                   {"pax@2024", true},
                                   {"deepspeed@2024", true}}) {
    WorkloadSpec workload;
    workload.framework = set;
    EXPECT_EQ(framework_of(workload).fixed_tiles, fixed) << set;
  }
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

// A product limited by memory bandwidth does not slow when units are held.
TEST(Grids, AThinProductHasNoGridToSpeakOf) {
  EXPECT_EQ(ComputeModel(h100(), {}).gemm({1, 4096, 4096}, Precision::bf16).grids.persistent, 0);
}

// SMs that user buffers hold: 0 in the ring, whose transfers copy engines make; 16 in the pipelined scatter;
// 4 in bulk transfers, or 24 for the scatter behind attention (layer_kernels.cpp has the sources).
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
  // tp 8, forward and backward: four products in rings of seven exchanges; two products in quarters; four
  // bulk exchanges.
  EXPECT_EQ(count[0], 4 * 7);
  EXPECT_EQ(count[16], 2 * 4);
  EXPECT_EQ(count[4], 3);
  EXPECT_EQ(count[24], 1);
}
}  // namespace topsim::workloads::grids_test
