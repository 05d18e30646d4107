#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "sim/base/error.hpp"
#include "sim/config/document.hpp"
#include "tests/catalogue/world.hpp"

namespace topsim::topology::catalogue_test {
namespace fs = std::filesystem;
using config::Document;
using config::Kind;
using config::Node;

const fs::path kHardware = fs::path(TOPSIM_SOURCE_DIR) / "configs" / "hardware";

std::vector<Document> all_files() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(kHardware)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Document> files;
  for (const fs::path& path : paths) files.push_back(Document::read_file(path.string()));
  return files;
}

void collect_strings(const Node& node, std::set<std::string>& strings) {
  if (node.is(Kind::string)) strings.insert(node.text());
  for (std::size_t i = 0; i < node.size(); ++i) collect_strings(node[i], strings);
}

// Keys of numbers that need no source: places, shapes and years.
const std::set<std::string> kStructure = {"year",       "sockets", "numa_nodes", "ports",
                                          "rack_units", "socket",  "parent",     "accelerators",
                                          "nics",       "rail_of", "owner"};

// Every number must stand in a figure, a list that names a source.
void expect_sourced(const Node& node, const Node& sources, const std::string& key, bool inside_figure) {
  const std::string name = node.key().empty() ? key : node.key();
  const bool is_figure =
      node.is(Kind::array) && node.size() >= 2 && node[1].is(Kind::string) && sources.find(node[1].text());
  if (node.is_number()) {
    EXPECT_TRUE(inside_figure || kStructure.count(name) > 0) << node.path() << " has no source";
  }
  for (std::size_t i = 0; i < node.size(); ++i) {
    expect_sourced(node[i], sources, name, inside_figure || is_figure);
  }
}

TEST(Catalogue, EveryNumberSaysWhereItComesFrom) {
  for (const Document& file : all_files()) {
    const Node sources = file.root().find("sources");
    ASSERT_GT(sources.size(), 0U) << file.name();
    for (std::size_t i = 0; i < file.root().size(); ++i) {
      const Node section = file.root()[i];
      if (section.is(Kind::object) && section.key() != "sources") expect_sourced(section, sources, "", false);
    }
  }
}

TEST(Catalogue, EverySourceSaysHowSureItIsAndIsUsed) {
  for (const Document& file : all_files()) {
    std::set<std::string> strings;
    const Node sources = file.root().find("sources");
    for (std::size_t i = 0; i < file.root().size(); ++i) {
      if (file.root()[i].key() != "sources") collect_strings(file.root()[i], strings);
    }
    for (std::size_t i = 0; i < sources.size(); ++i) {
      EXPECT_THAT(sources[i].text(), testing::MatchesRegex("(read|recalled|derived|measured): .+"));
      EXPECT_TRUE(strings.count(sources[i].key()) > 0) << file.name() << " never uses " << sources[i].key();
    }
  }
}

TEST(Catalogue, EverythingLoadsAndHasNameAndSource) {
  const std::vector<CatalogueEntry> entries = shipped().entries();
  EXPECT_GT(entries.size(), 350U);
  for (const CatalogueEntry& entry : entries) {
    EXPECT_FALSE(entry.name.empty()) << entry.id;
    EXPECT_THAT(entry.source, testing::MatchesRegex("(read|recalled|derived|measured): .+")) << entry.id;
    EXPECT_THAT(entry.id, testing::MatchesRegex("[a-z0-9][a-z0-9-]*"));
  }
}

TEST(Catalogue, ListsEveryEntryOfEveryCategory) {
  const std::map<std::string, std::string> section_of{{"accelerator", "accelerators"},
                                                      {"node", "nodes"},
                                                      {"fabric", "fabrics"},
                                                      {"link", "links"},
                                                      {"nic", "nics"},
                                                      {"switch", "switches"},
                                                      {"cable", "cables"}};
  for (const auto& [category, section] : section_of) {
    const Document file = Document::read_file((kHardware / (section + ".json")).string());
    const Node entries = file.root().find(section);
    std::vector<std::string> keys;
    for (std::size_t i = 0; i < entries.size(); ++i) keys.emplace_back(entries[i].key());
    EXPECT_FALSE(keys.empty()) << section;
    EXPECT_THAT(ids_of(category), testing::UnorderedElementsAreArray(keys)) << section;
  }
}

TEST(Catalogue, AnUnknownNameGetsTheClosestAndTheList) {
  try {
    static_cast<void>(shipped().node("hgx-h10"));
    FAIL();
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.problems().size(), 1U);
    EXPECT_EQ(error.problems()[0].message, "unknown node \"hgx-h10\"");
    EXPECT_THAT(error.problems()[0].help, testing::StartsWith("did you mean \"hgx-h100\"? known: "));
  }
}

TEST(Catalogue, AnUnknownIdThatIsANameForPeopleSuggestsTheEntriesOfThatName) {
  try {
    static_cast<void>(shipped().network_switch("drivenets"));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.problems()[0].help, testing::MatchesRegex("nearest: .*jericho3ai-leaf.*; known: .*"));
  }
}

TEST(Catalogue, ManyThreadsMayAskAtOnce) {
  const Catalogue catalogue = Catalogue::load(TOPSIM_SOURCE_DIR "/configs");
  std::vector<std::thread> threads;
  std::vector<const NodeRecipe*> found(8);
  for (std::size_t i = 0; i < found.size(); ++i) {
    threads.emplace_back([&, i] { found[i] = &catalogue.node("dgx-h100"); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(found, testing::Each(&catalogue.node("dgx-h100")));
}

class BrokenCatalogue : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(directory_ / "hardware"); }
  void TearDown() override { fs::remove_all(directory_); }
  void write(const std::string& file, const std::string& text) const {
    std::ofstream(directory_ / "hardware" / file) << text;
  }
  template <class Ask>
  std::vector<Problem> problems(Ask ask) const {
    try {
      ask(Catalogue::load(directory_.string()));
    } catch (const ConfigError& error) {
      return error.problems();
    }
    return {};
  }
  fs::path directory_ = fs::temp_directory_path() / "topsim-catalogue";
};

TEST_F(BrokenCatalogue, AFigureWithoutASourceIsRefusedAtItsPlace) {
  write("links.json", R"({"sources": {"a": "read: a"},
 "links": {"wire": {"label": "Wire", "kind": "ethernet", "line_rate": "400 Gbit/s"}}})");
  const auto found = problems([](const Catalogue& catalogue) { static_cast<void>(catalogue.link("wire")); });
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].message, "a figure of the catalogue needs its source");
  EXPECT_EQ(found[0].path, "links.wire.line_rate");
  EXPECT_EQ(found[0].place.line, 2);
}

TEST_F(BrokenCatalogue, AnUnknownSourceAndAnUnknownLinkAreBothReported) {
  write("links.json", R"({"sources": {"sheet": "read: a"},
 "links": {"wire": {"label": "W", "kind": "ethernet", "line_rate": ["1 GB/s", "sheet"]}}})");
  write("nics.json", R"({"sources": {"sheet": "read: a"},
 "nics": {"n": {"name": "N", "links": ["wyre"], "port_rate": ["1 GB/s", "shet"]}}})");
  const auto found = problems([](const Catalogue& catalogue) { static_cast<void>(catalogue.nic("n")); });
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].message, "unknown link \"wyre\"");
  EXPECT_EQ(found[0].label, "did you mean \"wire\"?");
  EXPECT_EQ(found[1].message, "unknown source \"shet\"");
}

TEST_F(BrokenCatalogue, UnknownKeysAreRefusedAtTheirPlaceWithTheClosestOne) {
  write("links.json", R"({"sources": {"a": "read: a"},
 "link": {},
 "links": {"wire": {"label": "Wire", "kind": "ethernet", "latenzy": ["1 us", "a"],
  "line_rate": {"use": ["1 GB/s", "a"], "others": [], "why": "so", "whi": "so"}}}})");
  const auto found = problems([](const Catalogue& catalogue) { static_cast<void>(catalogue.link("wire")); });
  ASSERT_EQ(found.size(), 3U);
  const auto expect = [&](std::size_t i, int line, int column, const char* path, const char* message,
                          const char* label) {
    EXPECT_EQ(found[i].place.line, line) << message;
    EXPECT_EQ(found[i].place.column, column) << message;
    EXPECT_EQ(found[i].path, path);
    EXPECT_EQ(found[i].message, message);
    EXPECT_EQ(found[i].label, label);
  };
  expect(0, 2, 2, "link", "unknown key \"link\"", "did you mean \"links\"?");
  EXPECT_EQ(found[0].help, "keys of a links file: also_called, links, sources");
  expect(1, 3, 58, "links.wire.latenzy", "unknown key \"latenzy\"", "did you mean \"latency\"?");
  expect(2, 4, 68, "links.wire.line_rate.whi", "unknown key \"whi\"", "did you mean \"why\"?");
}

// A relative needs fitted GEMM constants, and the chip of this file has none.
TEST_F(BrokenCatalogue, ARelativeMustBeKnownAndFittedAndStandByACapability) {
  write("links.json", R"({"links": {}})");
  write("accelerators.json", R"({"sources": {"a": "read: a"}, "relatives": {
 "86": ["chip", "a"],
 "9.0": ["chop", "a"]},
 "unmeasured": {"norm": [0.3, "a"], "elementwise": [0.5, "a"], "add": [0.8, "a"], "fused": [0.8, "a"],
  "vector_products": [1, "a"]},
 "accelerators": {"chip": {"name": "Chip", "vendor": "V", "architecture": "A",
  "dense": {"bf16": ["1 TFLOP/s", "a"]}, "memory": {"size": ["1 GiB", "a"], "bandwidth": ["1 GB/s", "a"]}}}})");
  const auto found = problems([](const Catalogue& c) { static_cast<void>(c.accelerator("chip")); });
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0].message, "\"relatives\" needs an entry \"0\": whose GEMM constants the rest takes over");
  EXPECT_EQ(found[1].message, "a relative needs \"gemm\" constants fitted in bf16");
  EXPECT_EQ(found[1].path, "relatives.86");
  EXPECT_EQ(found[2].message, "relatives stand by the compute capability from which they hold");
  EXPECT_EQ(found[2].place.line, 3);
  EXPECT_EQ(found[3].message, "unknown accelerator \"chop\"");
}
}  // namespace topsim::topology::catalogue_test
