// The committed table of congestion efficiencies, and how the flow model reads it.
#include "sim/scenario/calibration.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <stdexcept>

#include "sim/network/packet/calibrate.hpp"

namespace topsim::network::packet::calibration_test {
using namespace topsim::literals;
// A few entries anew: the table is what this model says, to the four digits it is written with.
TEST(Calibration, CommittedTableIsWhatThePacketModelSays) {
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

// Degrees and sizes between rows, before, in and behind the sizes that lose most. 10 %: of 32 such cases the
// worst is 9.1 % off.
TEST(Calibration, PredictsCasesThatAreNoRows) {
  const CongestionTable table = scenario::read_congestion("configs/calibration/congestion.json");
  for (CongestionEntry entry : {CongestionEntry{"roce", "any", 1, 3, 3, 1, 3_MiB},
                                {"roce", "ecmp", 2, 1, 2, 1, 64_MiB},
                                {"roce", "ecmp", 6, 1, 6, 1, 48_MiB},
                                {"roce", "any", 1, 5, 20, 4, 20_MiB}}) {
    SCOPED_TRACE(testing::Message() << entry.routing << ", load " << entry.load());
    const bool last = entry.routing == "any";
    const CongestionSurface surface =
        last ? table.to_nic("roce", entry.queue_pairs, Bound::middle)
             : table.between_switches("roce", entry.routing, entry.queue_pairs, Bound::middle);
    const double predicted = surface.at(entry.load(), static_cast<double>(entry.bytes.value()));
    EXPECT_NEAR(measure(entry, {}).efficiency / predicted, 1, 0.1);
  }
}

// 40 cases drawn at random, none of them a row, one run each: degrees and ratios between rows, 3 to 600 MB
// through the port, one, two or four queue pairs. The table has four digits, and its fluid counts the way's
// latency: half a percent beside an end is in.
TEST(Calibration, HoldsNineOfTenCasesThatAreNoRows) {
  const CongestionTable table = scenario::read_congestion("configs/calibration/congestion.json");
  std::mt19937_64 random(11);
  const auto one_of = [&](auto... values) {
    const std::array all{values...};
    return all[random() % all.size()];
  };
  constexpr int kCases = 40;
  int held = 0;
  CalibrationOptions once;
  once.seeds = 1;
  for (int i = 0; i < kCases; ++i) {
    CongestionEntry entry{"roce",         one_of("any", "ecmp", "ecmp", "adaptive", "spray"), 1, 1, 1,
                          one_of(1, 2, 4)};
    const bool last = entry.routing == "any",
               several = entry.routing == "adaptive" || entry.routing == "spray";
    if (last) entry.incast_degree = one_of(3, 5, 6, 7, 10, 12, 20, 24);
    if (!last)
      entry.oversubscription = several ? one_of(0.75, 1.5, 2.5, 3.0) : one_of(3.0, 5.0, 6.0, 7.0, 10.0, 12.0);
    const double most = several ? 250e6 : 600e6;
    const double through = 3e6 * std::pow(most / 3e6, static_cast<double>(random() % 1000) / 1000);
    entry.bytes = Bytes(static_cast<std::int64_t>(through / std::max(entry.load(), 1.0)));
    const auto end = [&](Bound bound) {
      const CongestionSurface surface =
          last ? table.to_nic("roce", entry.queue_pairs, bound)
               : table.between_switches("roce", entry.routing, entry.queue_pairs, bound);
      return surface.at(entry.load(), static_cast<double>(entry.bytes.value()));
    };
    const double found = measure(entry, once).efficiency;
    held += end(Bound::low) - 0.005 <= found && found <= end(Bound::high) + 0.005 ? 1 : 0;
  }
  EXPECT_GE(held, kCases * 9 / 10);
}

// One of the seeds of a row lies between its least and its most, to the digits of the table.
CongestionEntry checked_row(const CongestionTable& table, const std::string& fabric,
                            const std::string& routing, int senders) {
  const auto row =
      std::find_if(table.entries().begin(), table.entries().end(), [&](const CongestionEntry& each) {
        return each.fabric == fabric && each.routing == routing && each.incast_degree == senders &&
               each.load() == senders && each.queue_pairs == 1 && each.bytes == 16_MiB;
      });
  if (row == table.entries().end()) throw std::runtime_error("no such row: " + fabric + ", " + routing);
  CalibrationOptions options;
  options.seeds = 1;
  const double found = measure(*row, options).efficiency;
  EXPECT_GE(found, row->low - 1e-4);
  EXPECT_LE(found, row->high + 1e-4);
  return *row;
}

// Four leaves at 1:1, each port to one of another leaf: queues told apart to the picosecond would leave 0.91
// and 0.79, packets that leave in step always on the same ways; eight grades leave less to lose in every
// seed.
TEST(Calibration, FindsPortsNearlyFullWherePacketsChooseByGrades) {
  const CongestionTable table = scenario::read_congestion("configs/calibration/congestion.json");
  EXPECT_GT(checked_row(table, "infiniband", "adaptive", 1).low, 0.92);
  EXPECT_GT(checked_row(table, "roce", "adaptive", 1).low, 0.92);
}

// Credits lose nothing and wait for nobody: an InfiniBand port that many share stays full. Under DCQCN no
// seed keeps it so.
TEST(Calibration, FindsInfinibandPortsFullAndRocePortsUnderDcqcnLessSo) {
  const CongestionTable table = scenario::read_congestion("configs/calibration/congestion.json");
  EXPECT_DOUBLE_EQ(checked_row(table, "infiniband", "any", 8).low, 1);
  EXPECT_LT(checked_row(table, "roce", "any", 8).high, 1);
}

// Of 2 MiB nothing is lost, of 4 MiB at 0.8 as much as 1 MiB takes, of 8 MiB at 0.8 2 MiB: at 6 MiB half way
// between them, 1.5, and beyond 8 MiB 1 MiB more for every 4: 4 of 16. Smaller ones than the first are as
// efficient as it.
TEST(CongestionCurve, JoinsTheTimeThatIsLostOverTheSize) {
  constexpr double kMiB = 1 << 20;
  const CongestionCurve curve({{2 * kMiB, 1}, {4 * kMiB, 0.8}, {8 * kMiB, 0.8}});
  for (const auto& [mib, lost] :
       {std::pair{1.0, 0.0}, {2.0, 0.0}, {3.0, 0.5}, {4.0, 1.0}, {6.0, 1.5}, {8.0, 2.0}, {16.0, 4.0}})
    EXPECT_NEAR(curve.at(mib * kMiB), mib / (mib + lost), 1e-12) << mib;
  EXPECT_DOUBLE_EQ(CongestionCurve().at(10), 1);
}

// 2 bytes lost of 4, 1 of 8: what a longer message seems to have won is no reason for more.
TEST(CongestionCurve, WinsNoTimeBackBeyondItsLastSize) {
  EXPECT_NEAR(CongestionCurve({{4, 4.0 / 6}, {8, 8.0 / 9}}).at(64), 64.0 / 65, 1e-12);
}

// Between 4 and 8 what lies between their 1 and 0.5 by the lines over the time lost: at 6, of which 4 x 0 and
// 8 x 1 = 8 make 4 lost, 0.6. At 8 there is one row, below the first and beyond the last the nearest counts.
TEST(CongestionCurve, LiesBetweenTheRowsOnEitherSide) {
  const CongestionCurve curve({{4, 1}, {8, 0.5}, {16, 0.8}});
  EXPECT_DOUBLE_EQ(curve.end(6, Bound::low), 0.5);
  EXPECT_NEAR(curve.end(6, Bound::middle), 0.6, 1e-12);
  EXPECT_DOUBLE_EQ(curve.end(6, Bound::high), 1);
  EXPECT_DOUBLE_EQ(curve.end(8, Bound::low), 0.5);
  EXPECT_DOUBLE_EQ(curve.end(8, Bound::high), 0.5);
  EXPECT_DOUBLE_EQ(curve.end(2, Bound::high), 1);
  EXPECT_DOUBLE_EQ(curve.end(12, Bound::low), 0.5);
}

// Of one row at load 4 and one at 16; on 4 itself of that alone, between 2 and 4 of it and of no loss at all.
TEST(CongestionSurface, HasTheLeastAndTheMostOfTheRowsAround) {
  const std::vector<std::pair<double, CongestionCurve>> rows{{4, CongestionCurve({{100, 0.6}})},
                                                             {16, CongestionCurve({{100, 0.8}})}};
  const CongestionSurface low(rows, Bound::low), high(rows, Bound::high);
  EXPECT_DOUBLE_EQ(low.at(8, 50), 0.6);
  EXPECT_DOUBLE_EQ(high.at(8, 50), 0.8);
  EXPECT_DOUBLE_EQ(high.at(4, 50), 0.6);
  EXPECT_DOUBLE_EQ(low.at(3, 50), 0.6);
  EXPECT_DOUBLE_EQ(high.at(3, 50), 1);
  EXPECT_DOUBLE_EQ(low.at(2, 50), 1);
}

// Points 0.6 at load 4 and 0.8 at load 16: half way in the logarithm, at 8, it is 0.7. From load 2 (half the
// first point) down flows keep everything, at 2 x sqrt(2) half of what 4 costs is lost.
TEST(CongestionSurface, JoinsItsCurvesOverTheLogarithmOfTheLoad) {
  const CongestionSurface surface({{4, CongestionCurve({{100, 0.6}})}, {16, CongestionCurve({{100, 0.8}})}});
  EXPECT_DOUBLE_EQ(surface.at(0, 50), 1);
  EXPECT_DOUBLE_EQ(surface.at(1, 50), 1);
  EXPECT_DOUBLE_EQ(surface.at(2, 50), 1);
  EXPECT_NEAR(surface.at(2 * std::sqrt(2.0), 50), 0.8, 1e-12);
  EXPECT_NEAR(surface.at(8, 50), 0.7, 1e-12);
  EXPECT_DOUBLE_EQ(surface.at(100, 50), 0.8);
  EXPECT_DOUBLE_EQ(CongestionSurface().at(10, 50), 1);
}

// 20 bytes of each of 8 are 160 through the port: 40 of each of 4 and 10 of each of 16, on which their curves
// have 0.6 and 0.8. A port that is not full passes what one sender sends.
TEST(CongestionSurface, ComparesLoadsWhereAsMuchGoesThroughThePort) {
  const CongestionCurve four({{40, 0.6}, {80, 0.5}}), sixteen({{10, 0.8}, {80, 0.5}}),
      half({{20, 0.9}, {40, 0.5}});
  EXPECT_NEAR(CongestionSurface({{4, four}, {16, sixteen}}).at(8, 20), 0.7, 1e-12);
  EXPECT_DOUBLE_EQ(CongestionSurface({{0.5, half}}).at(0.5, 20), 0.9);
}

TEST(CongestionTable, AnswersWithTheNearestQueuePairsAndRoutingItHas) {
  const CongestionTable table({{"roce", "ecmp", 2, 1, 2, 1, 1_MiB, 0.9, 0.8, 1.0},
                               {"roce", "ecmp", 2, 1, 8, 4, 1_MiB, 0.95, 0.9, 1.0},
                               {"roce", "any", 1, 2, 2, 1, 1_MiB, 0.7, 0.6, 0.8}});
  constexpr double kSize = 1 << 20;
  EXPECT_DOUBLE_EQ(table.between_switches("roce", "ecmp", 1, Bound::middle).at(2, kSize), 0.9);
  EXPECT_DOUBLE_EQ(table.between_switches("roce", "ecmp", 3, Bound::middle).at(2, kSize), 0.9);
  EXPECT_DOUBLE_EQ(table.between_switches("roce", "ecmp", 16, Bound::low).at(2, kSize), 0.9);
  EXPECT_DOUBLE_EQ(table.between_switches("roce", "static", 1, Bound::high).at(2, kSize), 1.0);
  EXPECT_DOUBLE_EQ(table.to_nic("roce", 1, Bound::middle).at(2, kSize), 0.7);
  EXPECT_DOUBLE_EQ(table.to_nic("infiniband", 1, Bound::middle).at(2, kSize), 1);
}

// 0.9 for 1 MiB and 0.5 for 16, in whatever order.
TEST(CongestionTable, HasACurveOverTheSizesOfEachLoad) {
  const CongestionTable table({{"roce", "any", 1, 2, 2, 1, 16_MiB, 0.5, 0.4, 0.6},
                               {"roce", "any", 1, 2, 2, 1, 1_MiB, 0.9, 0.8, 1.0}});
  EXPECT_DOUBLE_EQ(table.to_nic("roce", 1, Bound::middle).at(2, 1 << 20), 0.9);
  EXPECT_DOUBLE_EQ(table.to_nic("roce", 1, Bound::low).at(2, 16 << 20), 0.4);
  EXPECT_DOUBLE_EQ(table.to_nic("roce", 1, Bound::high).at(2, 16 << 20), 0.6);
}
}  // namespace topsim::network::packet::calibration_test
