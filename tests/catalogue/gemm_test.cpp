#include "topology/catalogue/gemm.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/catalogue/world.hpp"

namespace topsim::topology::gemm_test {

// GeForce cards clock above the boost clock that their data sheets are computed from.
bool clocks_above_its_sheet(const Accelerator& accelerator) {
  return accelerator.id == "rtx-3090" || accelerator.id == "rtx-5090";
}

// FLOP/s of the largest tile with full waves, where memory is no limit.
double ceiling(const Accelerator& accelerator, std::string_view precision) {
  return accelerator.dense_flops.find(precision)->second *
         best_tile_efficiency(accelerator.gemm.find(precision)->second);
}

// The ratio of two accelerators' data-sheet rates per compute unit.
double faster(const char* a, const char* b, std::string_view precision) {
  const auto rate = [&](const Accelerator& x) {
    return x.dense_flops.find(precision)->second / x.compute_units;
  };
  return rate(shipped().accelerator(a)) / rate(shipped().accelerator(b));
}

TEST(Gemm, FittedConstantsAreTheFittedOnes) {
  const GemmConstants& h100 = shipped().accelerator("h100-sxm5").gemm.at("bf16");
  EXPECT_DOUBLE_EQ(h100.peak_fraction, 0.946);
  EXPECT_DOUBLE_EQ(h100.memory_fraction, 0.830);
  EXPECT_DOUBLE_EQ(h100.tile_penalty, 16.8);
  EXPECT_EQ(h100.fixed, from_microseconds(2.4));  // own-h100
  const GemmConstants& a100 = shipped().accelerator("a100-sxm4-80gb").gemm.at("bf16");
  EXPECT_DOUBLE_EQ(a100.peak_fraction, 0.818);
  EXPECT_DOUBLE_EQ(a100.k_offset, 73);
  const GemmConstants& a40 = shipped().accelerator("a40").gemm.at("bf16");
  EXPECT_DOUBLE_EQ(a40.tile_penalty, 5.8);
}

TEST(Gemm, EveryPrecisionOfEveryAcceleratorHasConstantsThatSayTheirSource) {
  for (const std::string& id : ids_of("accelerator")) {
    const Accelerator& accelerator = shipped().accelerator(id);
    ASSERT_FALSE(accelerator.dense_flops.empty()) << id;
    for (const auto& [precision, flops] : accelerator.dense_flops) {
      ASSERT_TRUE(accelerator.gemm.contains(precision)) << id << ' ' << precision;
      const GemmConstants& gemm = accelerator.gemm.find(precision)->second;
      EXPECT_EQ(gemm.source.rfind("derived: ", 0), 0U) << id << ' ' << precision << ' ' << gemm.source;
      EXPECT_GT(best_tile_efficiency(gemm), 0.2) << id << ' ' << precision;
      EXPECT_LT(best_tile_efficiency(gemm), clocks_above_its_sheet(accelerator) ? 1.15 : 1)
          << id << ' ' << precision;
      EXPECT_GE(gemm.k_offset, 0) << id;
      EXPECT_LT(gemm.memory_fraction, 1) << id;
    }
  }
}

TEST(Gemm, NoModelBeatsTheBestProductAnyoneMeasured) {
  int measured = 0;
  for (const std::string& id : ids_of("accelerator")) {
    const Accelerator& accelerator = shipped().accelerator(id);
    for (const auto& [precision, best] : accelerator.achievable_flops) {
      ++measured;
      if (!accelerator.dense_flops.contains(precision)) {  // on other units
        EXPECT_EQ(precision, "bf16") << id;
        EXPECT_LT(best, accelerator.dense_flops.at("fp32")) << id;
        continue;
      }
      EXPECT_LE(ceiling(accelerator, precision), best * (1 + 1e-12)) << id << ' ' << precision;
      if (!clocks_above_its_sheet(accelerator)) {
        EXPECT_LT(best, accelerator.dense_flops.at(precision)) << id << ' ' << precision;
      }
    }
  }
  EXPECT_GT(measured, 15);
}

TEST(Gemm, NarrowerNumbersAreNotSlower) {
  for (const std::string& id : ids_of("accelerator")) {
    const Accelerator& accelerator = shipped().accelerator(id);
    for (const auto& [wide, narrow] : {std::pair{"fp32", "tf32"}, {"tf32", "bf16"}, {"bf16", "fp8"}}) {
      if (!accelerator.dense_flops.contains(wide) || !accelerator.dense_flops.contains(narrow)) continue;
      if (accelerator.dense_flops.at(wide) == accelerator.dense_flops.at(narrow)) continue;
      EXPECT_LE(ceiling(accelerator, wide), ceiling(accelerator, narrow))
          << id << ' ' << wide << ' ' << narrow;
    }
  }
}

// H100 80GB, H200 and H800 are one chip, although their sheets round to 989.4 and 989.5 TFLOP/s. So are A100
// and A800.
TEST(Gemm, PartsWithOneChipHaveOneModel) {
  const auto same = [](const char* a, const char* b) {
    const GemmConstants& x = shipped().accelerator(a).gemm.at("bf16");
    const GemmConstants& y = shipped().accelerator(b).gemm.at("bf16");
    EXPECT_NEAR(x.peak_fraction, y.peak_fraction, 0.002) << a << ' ' << b;
    EXPECT_NEAR(x.k_offset, y.k_offset, 0.1) << a << ' ' << b;
    EXPECT_NEAR(x.tile_penalty, y.tile_penalty * faster(a, b, "bf16"), 1e-9) << a << ' ' << b;
  };
  same("h100-sxm5", "h200-sxm");
  same("h100-sxm5", "h800-sxm5");
  same("a100-sxm4-80gb", "a800-sxm4-80gb");
}

// B200's fitted best tile reaches 0.699 / (1 + 0.3 x 3/256) = 0.6966 of 2250 TFLOP/s. The best published
// products are 1745 of 2250 on B200 and 1822 of 2500 on GB200, so GB200's best tile reaches
// 0.6966 x (1822/2500) / (1745/2250) x 2500 = 1636 TFLOP/s.
TEST(Gemm, Gb200TakesItsShapeFromB200AndItsHeightFromItsOwnBestProduct) {
  EXPECT_NEAR(ceiling(shipped().accelerator("gb200"), "bf16") * 1e-12, 1636, 1);
}

// sm_120 multiplies with mma.sync, as Ada does, so these cards take A40's shape. No best product of an A40 is
// published, so a card's best tile is the best product measured on it: 163.1, 236 and 409.4 TFLOP/s. They
// read weights at 0.88 of their bandwidth, as cuBLAS did on GDDR without inline error correction.
TEST(Gemm, ConsumerCardsTakeTheirShapeFromA40AndReachWhatTheirOwnersMeasured) {
  const GemmConstants& a40 = shipped().accelerator("a40").gemm.at("bf16");
  for (const auto& [id, rate] :
       {std::pair{"rtx-4090", 163.1}, {"rtx-5090", 236.0}, {"rtx-pro-6000-se", 409.4}}) {
    const Accelerator& card = shipped().accelerator(id);
    EXPECT_DOUBLE_EQ(card.gemm.at("bf16").tile_penalty, a40.tile_penalty) << id;
    EXPECT_NEAR(ceiling(card, "bf16") * 1e-12, rate, 1e-9) << id;
  }
  EXPECT_DOUBLE_EQ(shipped().accelerator("rtx-4090").gemm.at("bf16").memory_fraction, 0.88);
  EXPECT_DOUBLE_EQ(shipped().accelerator("l40s").gemm.at("bf16").memory_fraction, 0.775);
  EXPECT_DOUBLE_EQ(shipped().accelerator("h200-sxm").gemm.at("bf16").memory_fraction, 0.83);
  // 55 of 82.6 TFLOP/s, less than an A100's share of 0.977: half of Ada's fp32 lanes share their issue slots.
  EXPECT_NEAR(ceiling(shipped().accelerator("rtx-4090"), "fp32") * 1e-12, 55, 1e-9);
}

// The best products are 141.9 of 148 TFLOP/s on H20 and 794.5 of 989.4 on H100, so H20's best tile reaches
// 1.194 times H100's 0.7903: 139.7 TFLOP/s.
TEST(Gemm, H20ReachesMoreOfItsSheetThanH100) {
  EXPECT_NEAR(ceiling(shipped().accelerator("h20"), "bf16") * 1e-12, 139.7, 0.1);
}

// H20 loads operands as an H100 does but multiplies at 148 / 78 TFLOP/s a unit instead of 989.4 / 132, 0.2531
// of it, so small tiles lose 0.2531 as much. Chips of another compute capability keep their relative's figure
// (ConsumerCards... above).
TEST(Gemm, SmallTilesLoseLessWhereProductsAreCut) {
  EXPECT_NEAR(shipped().accelerator("h20").gemm.at("bf16").tile_penalty, 16.8 * 0.2531, 0.001);
  EXPECT_NEAR(shipped().accelerator("rtx-3090").gemm.at("bf16").tile_penalty,
              5.8 * (71.0 / 82) / (149.7 / 84), 0.001);
}

// B200's best product is 5702 of 9000 TFLOP/s in fp4 and 1745 of 2250 in bf16, so its best tile in fp4
// reaches 0.6966 x (5702/9000) / (1745/2250) = 0.5690. GB200's reaches that times (1822/2500) / (1745/2250):
// 5,346 of 10,000. B300's NVFP4 has its own rate, 14,000, and its own best product in bf16, 1769 of 2250.
TEST(Gemm, FourBitsLoseOnEveryBlackwellWhatTheyLoseOnB200) {
  EXPECT_NEAR(ceiling(shipped().accelerator("b200"), "fp4") * 1e-12, 0.5690 * 9000, 2);
  EXPECT_NEAR(ceiling(shipped().accelerator("gb200"), "fp4") * 1e-12, 5346, 2);
  EXPECT_NEAR(ceiling(shipped().accelerator("b300"), "nvfp4") * 1e-12, 0.5690 * 1769 / 1745 * 14000, 3);
}

// MI350X is MI355X at a lower clock, where the best product is 1565 of 2516 TFLOP/s. An A100, whose shape
// they take, reaches 271.2 of 312.
TEST(Gemm, AChipNoOneMeasuredIsAsGoodAsItsSibling) {
  const double a100 = best_tile_efficiency(shipped().accelerator("a100-sxm4-80gb").gemm.at("bf16"));
  EXPECT_NEAR(best_tile_efficiency(shipped().accelerator("mi350x").gemm.at("bf16")),
              a100 * (1565.0 / 2516) / (271.2 / 312), 1e-6);
}

// TPUs have one architecture but units of several sizes. The best products are 1912.8 of 2307 TFLOP/s on v7x,
// 727.7 of 918 on v6e and 181.8 of 197 on v5e; v5p has none and takes v5e's share.
TEST(Gemm, ATpuReachesItsOwnBestProductAndOthersTheFirstTpus) {
  const double a100 = best_tile_efficiency(shipped().accelerator("a100-sxm4-80gb").gemm.at("bf16"));
  for (const auto& [id, share] : {std::pair{"tpu-v7x", 1912.8 / 2307},
                                  {"tpu-v6e", 727.7 / 918},
                                  {"tpu-v5e", 181.8 / 197},
                                  {"tpu-v5p", 181.8 / 197}})
    EXPECT_NEAR(best_tile_efficiency(shipped().accelerator(id).gemm.at("bf16")), a100 * share / (271.2 / 312),
                1e-6)
        << id;
}

// In fp8 the shape is that of the relative's fp8 sweep. H800 is the same chip as H100.
TEST(Gemm, NarrowPrecisionsFollowTheirOwnSweep) {
  const GemmConstants& h800 = shipped().accelerator("h800-sxm5").gemm.at("fp8");
  const GemmConstants& h100 = shipped().accelerator("h100-sxm5").gemm.at("fp8");
  EXPECT_NEAR(h800.tile_penalty, h100.tile_penalty * faster("h800-sxm5", "h100-sxm5", "fp8"), 1e-9);
  EXPECT_NEAR(best_tile_efficiency(h800), best_tile_efficiency(h100), 1e-9);
  EXPECT_EQ(h800.source, "derived: shape of h100-sxm5 in fp8, height from h100-sxm5");
}

// Eager norms run at the relative's share of the memory bandwidth: H800 as H100, cards with GDDR as A40,
// AMD's and those without a relative's measurement as A100.
TEST(Kernels, EagerOnesFollowTheRelative) {
  const auto norm = [](const char* id) { return shipped().accelerator(id).norm_fraction_eager; };
  EXPECT_DOUBLE_EQ(norm("h800-sxm5"), 0.44);
  EXPECT_DOUBLE_EQ(norm("rtx-4090"), 0.61);
  EXPECT_DOUBLE_EQ(norm("a800-sxm4-80gb"), 0.35);
  EXPECT_DOUBLE_EQ(norm("b200"), 0.35);
  EXPECT_DOUBLE_EQ(norm("mi300x"), 0.35);
  EXPECT_DOUBLE_EQ(shipped().accelerator("h800-sxm5").add_fraction_eager, 0.88);
}

TEST(Gemm, VectorUnitsReachWhatFlagPerfMeasuredOnA100) {
  EXPECT_NEAR(ceiling(shipped().accelerator("a100-sxm4-80gb"), "fp32") * 1e-12, 19.05, 0.01);
}
}  // namespace topsim::topology::gemm_test
