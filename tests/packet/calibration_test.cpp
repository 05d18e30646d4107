// The committed table of congestion efficiencies, and how the flow model reads it.
#include "sim/scenario/cluster/calibration.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>

#include "sim/base/error.hpp"
#include "sim/network/packet/calibrate.hpp"

namespace topsim::network::packet::calibration_test {
using namespace topsim::literals;
namespace fs = std::filesystem;

// What the table says of an entry that is no row.
double predicted(const CongestionTable& table, const CongestionEntry& entry, Bound bound = Bound::middle) {
  const CongestionStack stack = entry.routing == "any"
                                    ? table.to_nic("roce", entry.queue_pairs, bound)
                                    : table.between_switches("roce", entry.routing, entry.queue_pairs, bound);
  return stack.at(static_cast<double>(entry.queue.value()), entry.load(),
                  static_cast<double>(entry.bytes.value()));
}

// A table of its own for TOPSIM_CONFIG_PATH.
class OwnTable : public testing::Test {
 protected:
  OwnTable() : folder_(fs::temp_directory_path() / "topsim-calibration") {
    fs::create_directories(folder_ / "calibration");
    if (const char* before = std::getenv("TOPSIM_CONFIG_PATH")) before_ = before;
  }
  ~OwnTable() override {
    before_ ? ::setenv("TOPSIM_CONFIG_PATH", before_->c_str(), 1) : ::unsetenv("TOPSIM_CONFIG_PATH");
    fs::remove_all(folder_);
  }
  std::string write(const std::string& text) const {
    const std::string path = (folder_ / "calibration" / "congestion.json").string();
    std::ofstream(path) << text;
    return path;
  }
  fs::path folder_;
  std::optional<std::string> before_;
};

constexpr const char* kTable =
    "{\"columns\": [\"fabric\", \"routing\", \"oversubscription\", \"incast_degree\", \"flows_per_port\", "
    "\"queue_pairs\", \"queue\", \"bytes\", \"efficiency\", \"low\", \"high\"],\n"
    "\"rows\": [[\"roce\", \"any\", 1, 2, 2, 1, 0, 524288, 0.5, 0.25, 0.75]]}";

// One row, whatever was read before, and the shipped table again afterwards.
TEST_F(OwnTable, EveryCallHasTheTableOfItsOwnPath) {
  const auto rows = [] { return scenario::shipped_congestion()->entries().size(); };
  const std::size_t shipped = rows();
  ASSERT_GT(shipped, 40U);
  write(kTable);
  ::setenv("TOPSIM_CONFIG_PATH", folder_.c_str(), 1);
  EXPECT_EQ(rows(), 1U);
  EXPECT_EQ(scenario::shipped_congestion(), scenario::shipped_congestion());  // not read twice
  ::unsetenv("TOPSIM_CONFIG_PATH");
  EXPECT_EQ(rows(), shipped);
}

TEST_F(OwnTable, MistakesHaveTheirPlaceAndARemedy) {
  EXPECT_EQ(scenario::read_congestion(write(kTable)).entries().size(), 1U);
  const auto message = [&](const std::string& from, const std::string& to, int line) -> std::string {
    std::string text = kTable;
    text.replace(text.find(from), from.size(), to);
    try {
      (void)scenario::read_congestion(write(text));
    } catch (const ConfigError& error) {
      const Problem& problem = error.problems().front();
      EXPECT_EQ(problem.place.line, line) << to;
      EXPECT_GT(problem.place.column, 0) << to;
      EXPECT_FALSE(problem.help.empty()) << to;
      return problem.message;
    }
    return {};
  };
  EXPECT_EQ(message("{\"columns\"", "{\"column\": [], \"columns\"", 1), "unknown key \"column\"");
  EXPECT_EQ(message("\"columns\"", "\"#columns\"", 1), "\"columns\" must be a list");
  EXPECT_EQ(message("\"low\", \"high\"", "\"high\", \"low\"", 1), "other columns than are read");
  EXPECT_EQ(message("\"rows\": [[", "\"rows\": {}, \"#\": [[", 2), "\"rows\" must be a list");
  EXPECT_EQ(message("[[\"roce\"", "[[7", 2), "\"fabric\" must be one of roce, infiniband");
  EXPECT_EQ(message("1, 2, 2", "1, 1e300, 2", 2),
            "\"incast_degree\" must be a whole number from 1 to 1048576");
  EXPECT_EQ(message("1, 2, 2", "-1, 2, 2", 2),
            "\"oversubscription\" must be a number above 0, at most 1.04858e+06");
  EXPECT_EQ(message("0.5", "1.5", 2), "\"efficiency\" must be a number above 0, at most 1");
  EXPECT_EQ(message("0.5, ", "", 2), "a row has 11 columns");
}

// Measures a few entries again. They must equal the table's, which has four digits.
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

// Degrees and sizes that are no rows: in, below and above the range of sizes that lose most. The tolerance is
// 10 %; of 32 such cases the worst was 9.1 % off.
TEST(Calibration, PredictsCasesThatAreNoRows) {
  const CongestionTable table = scenario::read_congestion("configs/calibration/congestion.json");
  for (CongestionEntry entry : {CongestionEntry{"roce", "any", 1, 3, 3, 1, 3_MiB},
                                {"roce", "ecmp", 2, 1, 2, 1, 64_MiB},
                                {"roce", "ecmp", 6, 1, 6, 1, 48_MiB},
                                {"roce", "adaptive", 1.75, 1, 14, 1, 24_MiB, 1, 1, 1, 5'000'000_B},
                                {"roce", "any", 1, 5, 20, 4, 20_MiB}}) {
    SCOPED_TRACE(testing::Message() << entry.routing << ", load " << entry.load());
    EXPECT_NEAR(measure(entry, {}).efficiency / predicted(table, entry), 1, 0.1);
  }
}

// 40 cases drawn at random that are no rows, with one seed each: degrees and ratios between rows, 3 to 600 MB
// through the port, one, two or four queue pairs, queues of 1 to 12 MB when PFC stops senders. Nine of ten
// must be within the table's ends. One percent beyond an end counts as within: sprayed packets have no rows
// of their own above 1:1, and of short messages they lose a percent more than packets that choose.
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
    CongestionEntry entry{
        "roce", one_of("any", "ecmp", "bundle", "adaptive", "adaptive", "spray"), 1, 1, 1, one_of(1, 2, 4)};
    const bool last = entry.routing == "any", bundle = entry.routing == "bundle",
               several = entry.routing == "adaptive" || entry.routing == "spray";
    if (last) entry.incast_degree = one_of(3, 5, 6, 7, 10, 12, 20, 24);
    if (!last)
      entry.oversubscription = several  ? one_of(0.75, 1.75, 2.5, 3.0)
                               : bundle ? one_of(3.0, 5.0, 6.0, 7.0)
                                        : one_of(3.0, 5.0, 6.0, 7.0, 10.0, 12.0);
    if (bundle || (several && entry.oversubscription > 1))
      entry.queue = one_of(1'000'000_B, 2'200'000_B, 3'000'000_B, 5'000'000_B, 6'000'000_B, 12'000'000_B);
    const double most = several ? 125e6 : 600e6;
    const double through = 3e6 * std::pow(most / 3e6, static_cast<double>(random() % 1000) / 1000);
    entry.bytes = Bytes(static_cast<std::int64_t>(through / std::max(entry.load(), 1.0)));
    const double found = measure(entry, once).efficiency;
    held += predicted(table, entry, Bound::low) - 0.01 <= found &&
                    found <= predicted(table, entry, Bound::high) + 0.01
                ? 1
                : 0;
  }
  EXPECT_GE(held, kCases * 9 / 10);
}

// Measures a row again with its first seed, which must be within the row's least and most, to the table's
// four digits.
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

// Four leaves at 1:1, each port to a port of another leaf, adaptive routing. If queues were compared to the
// picosecond, packets that leave at the same time would always take the same ways, and ports would carry 0.91
// (credits) and 0.79 (RoCE). With eight grades of queues every seed carries more than 0.92.
TEST(Calibration, FindsPortsNearlyFullWherePacketsChooseByGrades) {
  const CongestionTable table = scenario::read_congestion("configs/calibration/congestion.json");
  EXPECT_GT(checked_row(table, "infiniband", "adaptive", 1).low, 0.92);
  EXPECT_GT(checked_row(table, "roce", "adaptive", 1).low, 0.92);
}

// Eight senders to one port. Under credits nothing is lost and senders are not slowed, so an InfiniBand port
// stays full. Under DCQCN it does not with any seed.
TEST(Calibration, FindsInfinibandPortsFullAndRocePortsUnderDcqcnLessSo) {
  const CongestionTable table = scenario::read_congestion("configs/calibration/congestion.json");
  EXPECT_DOUBLE_EQ(checked_row(table, "infiniband", "any", 8).low, 1);
  EXPECT_LT(checked_row(table, "roce", "any", 8).high, 1);
}

// The lost time, in MiB, is size x (1 / efficiency - 1): 0 at 2 MiB, 1 at 4, 2 at 8. It is interpolated
// linearly (6 MiB: 1.5) and extrapolated beyond 8 MiB (1 MiB for every 4; 16 MiB: 4). Sizes below the first
// row are as efficient as the first.
TEST(CongestionCurve, JoinsTheTimeThatIsLostOverTheSize) {
  constexpr double kMiB = 1 << 20;
  const CongestionCurve curve({{2 * kMiB, 1}, {4 * kMiB, 0.8}, {8 * kMiB, 0.8}});
  for (const auto& [mib, lost] :
       {std::pair{1.0, 0.0}, {2.0, 0.0}, {3.0, 0.5}, {4.0, 1.0}, {6.0, 1.5}, {8.0, 2.0}, {16.0, 4.0}})
    EXPECT_NEAR(curve.at(mib * kMiB), mib / (mib + lost), 1e-12) << mib;
  EXPECT_DOUBLE_EQ(CongestionCurve().at(10), 1);
}

// 2 bytes are lost at size 4 and 1 at size 8. Beyond the last row the loss does not fall further: 1 at 64.
TEST(CongestionCurve, WinsNoTimeBackBeyondItsLastSize) {
  EXPECT_NEAR(CongestionCurve({{4, 4.0 / 6}, {8, 8.0 / 9}}).at(64), 64.0 / 65, 1e-12);
}

// Losses by rows: 0 at 4, 8 at 8, 4 at 16. Between 4 and 8 the ends are their efficiencies, 1 and 0.5; the
// middle at 6 loses 4, so 6 / 10. On a row (8) both ends are its own; below the first row and beyond the last
// the nearest counts.
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

// Rows at load 4 and 16. Between them (8) the ends are theirs; on 4 only its own counts; between 2 and 4 the
// ends are its own and no loss; at 2 nothing is lost.
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

// Interpolation is linear in log2 of the load. 0.6 at load 4 and 0.8 at 16 give 0.7 at 8. From load 2 (half
// the first) down nothing is lost, so at 2 x sqrt(2) half of load 4's loss: 0.8.
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

// Loads are compared at the same bytes through the port. 20 bytes from each of 8 senders are 160: 40 from
// each of 4 (0.6) and 10 from each of 16 (0.8), so 0.7. A port with a load below 1 passes one sender's bytes.
TEST(CongestionSurface, ComparesLoadsWhereAsMuchGoesThroughThePort) {
  const CongestionCurve four({{40, 0.6}, {80, 0.5}}), sixteen({{10, 0.8}, {80, 0.5}}),
      half({{20, 0.9}, {40, 0.5}});
  EXPECT_NEAR(CongestionSurface({{4, four}, {16, sixteen}}).at(8, 20), 0.7, 1e-12);
  EXPECT_DOUBLE_EQ(CongestionSurface({{0.5, half}}).at(0.5, 20), 0.9);
}

// Rows for 1 and 4 queue pairs: other numbers take the nearest below. Static routing takes the rows of ECMP.
// A fabric without rows loses nothing.
TEST(CongestionTable, AnswersWithTheNearestQueuePairsAndRoutingItHas) {
  const CongestionTable table({{"roce", "ecmp", 2, 1, 2, 1, 1_MiB, 0.9, 0.8, 1.0},
                               {"roce", "ecmp", 2, 1, 8, 4, 1_MiB, 0.95, 0.9, 1.0},
                               {"roce", "any", 1, 2, 2, 1, 1_MiB, 0.7, 0.6, 0.8}});
  constexpr double kSize = 1 << 20, kAny = 0;
  EXPECT_DOUBLE_EQ(table.between_switches("roce", "ecmp", 1, Bound::middle).at(kAny, 2, kSize), 0.9);
  EXPECT_DOUBLE_EQ(table.between_switches("roce", "ecmp", 3, Bound::middle).at(kAny, 2, kSize), 0.9);
  EXPECT_DOUBLE_EQ(table.between_switches("roce", "ecmp", 16, Bound::low).at(kAny, 2, kSize), 0.9);
  EXPECT_DOUBLE_EQ(table.between_switches("roce", "static", 1, Bound::high).at(kAny, 2, kSize), 1.0);
  EXPECT_DOUBLE_EQ(table.to_nic("roce", 1, Bound::middle).at(kAny, 2, kSize), 0.7);
  EXPECT_DOUBLE_EQ(table.to_nic("infiniband", 1, Bound::middle).at(kAny, 2, kSize), 1);
}

// Rows of one load, in any order, make one curve: 0.9 at 1 MiB, 0.5 at 16 MiB.
TEST(CongestionTable, HasACurveOverTheSizesOfEachLoad) {
  const CongestionTable table({{"roce", "any", 1, 2, 2, 1, 16_MiB, 0.5, 0.4, 0.6},
                               {"roce", "any", 1, 2, 2, 1, 1_MiB, 0.9, 0.8, 1.0}});
  constexpr double kAny = 0;
  EXPECT_DOUBLE_EQ(table.to_nic("roce", 1, Bound::middle).at(kAny, 2, 1 << 20), 0.9);
  EXPECT_DOUBLE_EQ(table.to_nic("roce", 1, Bound::low).at(kAny, 2, 16 << 20), 0.4);
  EXPECT_DOUBLE_EQ(table.to_nic("roce", 1, Bound::high).at(kAny, 2, 16 << 20), 0.6);
}

// Rows at 2 MB lose nothing at 2:1, those at 8 MB half: at 4 MB, half way in the logarithm, a quarter. Beyond
// the rows the nearest counts. The ends are those of the queues on either side, on a row its own. A row at
// 1:1 holds for every queue.
TEST(CongestionTable, JoinsTheQueuesAtWhichPfcStopsSenders) {
  const CongestionTable table({{"roce", "adaptive", 1, 1, 4, 1, 1_MiB, 0.9, 0.9, 0.9},
                               {"roce", "adaptive", 2, 1, 8, 1, 1_MiB, 1.0, 1.0, 1.0, 2'000'000_B},
                               {"roce", "adaptive", 2, 1, 8, 1, 1_MiB, 0.5, 0.4, 0.6, 8'000'000_B}});
  const auto at = [&](double queue, Bound bound = Bound::middle, double load = 2) {
    return table.between_switches("roce", "adaptive", 1, bound).at(queue, load, 1 << 20);
  };
  EXPECT_NEAR(at(4e6), 0.75, 1e-12);
  EXPECT_DOUBLE_EQ(at(1e6), 1);
  EXPECT_DOUBLE_EQ(at(std::numeric_limits<double>::infinity()), 0.5);
  EXPECT_DOUBLE_EQ(at(4e6, Bound::low), 0.4);
  EXPECT_DOUBLE_EQ(at(4e6, Bound::high), 1);
  EXPECT_DOUBLE_EQ(at(8e6, Bound::high), 0.6);
  EXPECT_DOUBLE_EQ(at(4e6, Bound::middle, 1), 0.9);
}

// Packets that are sprayed have rows of their own up to 1:1, where no queue fills, and above that those of
// packets that choose.
TEST(CongestionTable, AboveOneToOneSprayedPacketsDoAsThoseThatChoose) {
  const CongestionTable table({{"roce", "adaptive", 1, 1, 4, 1, 1_MiB, 0.9, 0.9, 0.9},
                               {"roce", "spray", 1, 1, 4, 1, 1_MiB, 0.8, 0.8, 0.8},
                               {"roce", "adaptive", 2, 1, 8, 1, 1_MiB, 0.5, 0.4, 0.6, 8'000'000_B}});
  const CongestionStack stack = table.between_switches("roce", "spray", 1, Bound::middle);
  EXPECT_DOUBLE_EQ(stack.at(8e6, 1, 1 << 20), 0.8);
  EXPECT_DOUBLE_EQ(stack.at(8e6, 2, 1 << 20), 0.5);
}
}  // namespace topsim::network::packet::calibration_test
