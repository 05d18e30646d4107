// Valid scenarios with random damage: each is either read or refused with a ConfigError that has a place;
// nothing crashes, hangs or escapes as another exception.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "sim/scenario/read/read.hpp"
#include "sim/scenario/scenario.hpp"

namespace topsim::scenario::mutation_test {
namespace fs = std::filesystem;

std::vector<std::string> valid_texts() {
  std::vector<std::string> texts;
  std::vector<fs::path> files = {fs::path(TOPSIM_SOURCE_DIR) / "tests/scenario/data/full.json"};
  for (const auto& entry : fs::directory_iterator(fs::path(TOPSIM_SOURCE_DIR) / "configs")) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& path : files) {
    std::ifstream file(path, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::string mutate(std::string text) {
    for (std::size_t i = 0, n = 1 + below(4); i < n; ++i) once(text);
    return text;
  }
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

 private:
  void once(std::string& text) {
    static const std::vector<std::string> kTokens = {"{",
                                                     "}",
                                                     "[",
                                                     "]",
                                                     ",",
                                                     ":",
                                                     "\"",
                                                     "null",
                                                     "true",
                                                     "-1",
                                                     "1e400",
                                                     "1e-400",
                                                     "9223372036854775808",
                                                     "0",
                                                     "\"400 Gb/s\"",
                                                     "\"1e30 s\"",
                                                     "\"\"",
                                                     "\\u0000",
                                                     "\xFF",
                                                     "\xC3",
                                                     std::string(1, '\0'),
                                                     "\n",
                                                     "{\"use\": {}}",
                                                     "[[[[[[[[",
                                                     "\"file\": \"full.json\",",
                                                     "NaN",
                                                     "\"-\"",
                                                     "// x\n",
                                                     "0.1",
                                                     "\"5 \xC2\xB5s\""};
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = std::min(text.size() - at, 1 + below(12));
    switch (below(6)) {
      case 0:
        text.insert(at, kTokens[below(kTokens.size())]);
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(below(text.size() + 1), length));
        break;
      case 3:
        text.resize(at);
        break;
      case 4:
        if (at < text.size()) text[at] = static_cast<char>(random_());
        break;
      default:
        replace_value(text);
    }
  }
  // Replaces the value after a colon by another token: damage that stays JSON.
  void replace_value(std::string& text) {
    static const std::vector<std::string> kValues = {
        "null",       "true",        "-7", "0",          "1e300",
        "\"x\"",      "{}",          "[]", "[1, \"a\"]", "{\"use\": \"ib-ndr\"}",
        "\"16 MiB\"", "99999999999", "0.5"};
    const std::size_t colon = text.find(": ", below(text.size() + 1));
    if (colon == std::string::npos) return;
    const std::size_t end = text.find_first_of(",}]", colon + 2);
    if (end == std::string::npos) return;
    text.replace(colon + 2, end - colon - 2, kValues[below(kValues.size())]);
  }
  std::mt19937_64 random_;
};

// Reading also looks up names of hardware, in a catalogue that takes time to load. Most mutants do without
// it.
class Libraries {
 public:
  Libraries() {
    fs::create_directories(folder_);
    fs::create_directory_symlink(kConfigs / "models", folder_ / "models");
  }
  ~Libraries() { fs::remove_all(folder_); }
  Libraries(const Libraries&) = delete;
  Libraries& operator=(const Libraries&) = delete;
  [[nodiscard]] const config::Library& of(int mutant) const { return mutant % 16 == 0 ? all_ : models_; }

 private:
  static inline const fs::path kConfigs = fs::absolute(TOPSIM_SOURCE_DIR) / "configs";
  const fs::path folder_ = fs::temp_directory_path() / "topsim-mutants";
  const config::Library all_{{kConfigs.string()}}, models_{{folder_.string()}};
};

void expect_read_or_refused(const std::string& text, const config::Library& library, std::size_t& read) {
  try {
    const Scenario scenario = parse_scenario(text, "mutant.json", {}, library);
    (void)to_json(scenario);
    ++read;
  } catch (const ConfigError& error) {
    ASSERT_FALSE(error.problems().empty());
    ASSERT_FALSE(error.problems().front().message.empty());
    ASSERT_FALSE(config::picture(error.problems()).empty());
  }
}

TEST(Mutations, AreReadOrRefusedWithAConfigError) {
  const Libraries libraries;
  const std::vector<std::string> texts = valid_texts();
  std::size_t read = 0, runs = 0;
  for (const std::string& text : texts) {
    Mutator mutator(20261121 + runs);
    for (int i = 0; i < 1500; ++i, ++runs) {
      const std::string mutant = mutator.mutate(text);
      SCOPED_TRACE(mutant);
      ASSERT_NO_FATAL_FAILURE(expect_read_or_refused(mutant, libraries.of(i), read));
    }
  }
  // Both kinds occur, or the test says nothing.
  EXPECT_GT(read, runs / 100);
  EXPECT_LT(read, runs);
}

TEST(Mutations, OfSetArgumentsAreAppliedOrRefused) {
  const Libraries libraries;
  const std::string text = valid_texts().back();
  Mutator mutator(3);
  const std::vector<std::string> seeds = {"topology.nodes=16", "topology.fabric.link.latency=700 ns",
                                          "faults[0].at=1 ms", "workload.plan.stage_layers=[1, 2]",
                                          "network={\"model\": \"flow\"}"};
  int applied = 0, refused = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::vector<std::string> assignment = {mutator.mutate(seeds[mutator.below(seeds.size())])};
    SCOPED_TRACE(assignment.front());
    try {
      (void)parse_scenario(text, "mutant.json", assignment, libraries.of(i));
      ++applied;
    } catch (const ConfigError& error) {
      ASSERT_FALSE(error.problems().empty());
      ++refused;
    }
  }
  // Both kinds occur, or the test says nothing.
  EXPECT_GT(applied, 20);
  EXPECT_GT(refused, 20);
}
}  // namespace topsim::scenario::mutation_test
