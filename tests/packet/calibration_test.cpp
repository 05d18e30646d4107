// The committed table of congestion efficiencies, and how the flow model reads it.
#include "sim/scenario/calibration.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/network/packet/calibrate.hpp"

namespace topsim::network::packet::calibration_test {
// A few entries anew: the table is what this model says, to the four digits it is written with.
TEST(Calibration, committed_table_is_what_the_packet_model_says) {
  const CongestionTable table = scenario::read_congestion("configs/calibration/congestion.json");
  ASSERT_GT(table.entries().size(), 40U);
  for (const std::size_t i : {std::size_t{1}, std::size_t{6}, table.entries().size() - 3}) {
    const CongestionEntry& committed = table.entries()[i];
    SCOPED_TRACE(testing::Message() << committed.fabric << ", " << committed.routing << ", load "
                                    << committed.load());
    const CongestionEntry anew = measure(committed, {});
    EXPECT_NEAR(anew.efficiency, committed.efficiency, 1e-4);
    EXPECT_NEAR(anew.low, committed.low, 1e-4);
    EXPECT_NEAR(anew.high, committed.high, 1e-4);
  }
}

// Credits lose nothing and wait for nobody: an InfiniBand port that many share stays full.
TEST(Calibration, finds_infiniband_ports_full_and_roce_ports_under_dcqcn_less_so) {
  CalibrationOptions options;
  options.seeds = 1;
  EXPECT_GT(measure({"infiniband", "any", 1, 8, 8, 1}, options).efficiency, 0.98);
  EXPECT_LT(measure({"roce", "any", 1, 8, 8, 1}, options).efficiency, 0.98);
}

// Points 0.6 at load 4 and 0.8 at load 16: half way in the logarithm, at 8, it is 0.7. From load 2 (half the
// first point) down flows keep everything, at 2 x sqrt(2) half of what 4 costs is lost.
TEST(CongestionCurve, joins_its_points_over_the_logarithm_of_the_load) {
  const CongestionCurve curve({{4, 0.6}, {16, 0.8}});
  EXPECT_DOUBLE_EQ(curve.at(0), 1);
  EXPECT_DOUBLE_EQ(curve.at(1), 1);
  EXPECT_DOUBLE_EQ(curve.at(2), 1);
  EXPECT_NEAR(curve.at(2 * std::sqrt(2.0)), 0.8, 1e-12);
  EXPECT_NEAR(curve.at(8), 0.7, 1e-12);
  EXPECT_DOUBLE_EQ(curve.at(100), 0.8);
  EXPECT_DOUBLE_EQ(CongestionCurve().at(10), 1);
}

TEST(CongestionTable, answers_with_the_nearest_queue_pairs_and_routing_it_has) {
  const CongestionTable table({{"roce", "ecmp", 2, 1, 2, 1, 0.9, 0.8, 1.0},
                               {"roce", "ecmp", 2, 1, 8, 4, 0.95, 0.9, 1.0},
                               {"roce", "any", 1, 2, 2, 1, 0.7, 0.6, 0.8}});
  EXPECT_DOUBLE_EQ(table.between_switches("roce", "ecmp", 1, Bound::middle).at(2), 0.9);
  EXPECT_DOUBLE_EQ(table.between_switches("roce", "ecmp", 3, Bound::middle).at(2), 0.9);
  EXPECT_DOUBLE_EQ(table.between_switches("roce", "ecmp", 16, Bound::low).at(2), 0.9);
  EXPECT_DOUBLE_EQ(table.between_switches("roce", "static", 1, Bound::high).at(2), 1.0);
  EXPECT_DOUBLE_EQ(table.to_nic("roce", 1, Bound::middle).at(2), 0.7);
  EXPECT_DOUBLE_EQ(table.to_nic("infiniband", 1, Bound::middle).at(2), 1);
}
}  // namespace topsim::network::packet::calibration_test
