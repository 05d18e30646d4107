#include "topology/catalogue/list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "sim/base/error.hpp"
#include "tests/catalogue/world.hpp"

namespace topsim::topology::list_test {
using testing::HasSubstr;

const std::vector<std::string> kShippedFiles{TOPSIM_SOURCE_DIR "/configs"};

const ListRow& row_of(const std::vector<ListRow>& rows, std::string_view category, std::string_view id) {
  for (const ListRow& row : rows) {
    if (row.category == category && row.id == id) return row;
  }
  throw InternalError("no such row");
}

TEST(List, EveryEntryHasARowWithFacts) {
  const auto hardware = list_hardware(shipped());
  const auto fabrics = list_fabrics(shipped());
  EXPECT_EQ(hardware.size() + fabrics.size(), shipped().entries().size());
  for (const ListRow& row : hardware) EXPECT_FALSE(row.facts.empty()) << row.id;
  for (const ListRow& row : fabrics) EXPECT_FALSE(row.facts.empty()) << row.id;
}

TEST(List, TheFactsAreThoseOneComparesBy) {
  const auto rows = list_hardware(shipped());
  EXPECT_EQ(row_of(rows, "accelerator", "h100-sxm5").facts,
            "989.4 TFLOP/s bf16, 80 GiB at 3.35 TB/s, 18 x nvlink4, 700 W");
  EXPECT_EQ(row_of(rows, "node", "dgx-h100").facts, "8 x h100-sxm5, nvlink4, 8 x connectx-7");
  EXPECT_THAT(row_of(rows, "link", "ib-ndr").facts, HasSubstr("49.68 GB/s payload"));
  EXPECT_THAT(row_of(rows, "switch", "qm9700").facts, HasSubstr("64 x 400 Gbit/s"));
  EXPECT_THAT(row_of(list_fabrics(shipped()), "fabric", "dgx-superpod").facts, HasSubstr("127 x dgx-h100"));
}

TEST(List, RatesHaveFourDigitsAndTheLargestUnitThatFits) {
  const auto rows = list_hardware(shipped());
  EXPECT_THAT(row_of(rows, "accelerator", "gb10").facts, HasSubstr(" 273 GB/s"));  // no 273000000000.00003
  EXPECT_THAT(row_of(rows, "accelerator", "cerebras-wse3").facts, HasSubstr(" 21 PB/s"));
  // 1 Gbit/s is 125 MB/s; TCP in frames of 1,538 B on the wire carries 1,448 B: 0.1177 GB/s.
  EXPECT_THAT(row_of(rows, "link", "eth-1g").facts, HasSubstr("125 MB/s line, 117.7 MB/s payload"));
}

TEST(List, AnEntryShowsEveryFigureWithItsSourceAndTheOnesNotChosen) {
  const auto figures = figures_of(kShippedFiles, "qm9700");
  int latencies = 0;
  int chosen = 0;
  for (const FigureRow& figure : figures) {
    if (figure.path == "asic" || figure.path == "rack_units") continue;  // without source, see the next test
    EXPECT_THAT(figure.source, testing::MatchesRegex("(read|recalled|derived): .+"));
    if (figure.path != "port_to_port") continue;
    ++latencies;
    chosen += figure.chosen ? 1 : 0;
  }
  EXPECT_EQ(latencies, 6);
  EXPECT_EQ(chosen, 1);
}

TEST(List, AnEntryShowsWhatNothingCountsWith) {
  const auto value_of = [](const char* id, std::string_view path) -> std::string {
    for (const FigureRow& figure : figures_of(kShippedFiles, id))
      if (figure.path == path) return figure.value;
    return "";
  };
  EXPECT_EQ(value_of("qm9700", "asic"), "Quantum-2");
  EXPECT_EQ(value_of("qm9700", "rack_units"), "1");
  EXPECT_EQ(value_of("dgx1-v100", "host.numa_nodes"), "2");  // inherited from dgx-1-v100
}

// An hgx-h100 is "like" a dgx-h100 and shows its figures. A p5 is "like" it too, but has NICs of its own.
TEST(List, AnEntryThatIsLikeAnotherShowsItsFiguresAndItsOffers) {
  const auto paths_of = [](const char* id) {
    std::multiset<std::string> paths;
    for (const FigureRow& figure : figures_of(kShippedFiles, id)) paths.insert(figure.path);
    return paths;
  };
  const auto dgx = paths_of("dgx-h100"), hgx = paths_of("hgx-h100"), p5 = paths_of("p5");
  EXPECT_EQ(dgx, hgx);
  EXPECT_EQ(hgx.count("accelerators"), 1U);
  EXPECT_EQ(hgx.count("nics.count"), 2U);  // compute and storage
  EXPECT_EQ(p5.count("nics.count"), 1U);
  EXPECT_GE(hgx.count("price"), 2U);
}

TEST(List, AnUnknownEntryIsAUsersMistake) {
  EXPECT_THROW(static_cast<void>(figures_of(kShippedFiles, "h1000")), ConfigError);
}
}  // namespace topsim::topology::list_test
