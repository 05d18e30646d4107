// Every bad input in cases/ and the message it gets, word for word: NAME.json (with NAME.set: one --set a
// line) and NAME.txt. After a change of wording:  TOPSIM_UPDATE_GOLDEN=1 build/release/test_errors
// then read the difference before committing it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "sim/scenario/read/read.hpp"
#include "sim/scenario/run/simulate.hpp"
#include "sim/scenario/scenario.hpp"

namespace topsim::errors_test {
namespace fs = std::filesystem;

const fs::path kRoot = fs::absolute(TOPSIM_SOURCE_DIR).lexically_normal();
const fs::path kCases = kRoot / "tests/errors/cases";

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> lines(const fs::path& path) {
  std::vector<std::string> result;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) result.push_back(line);
  return result;
}

std::vector<std::string> all_cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kCases)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// As `topsim run` does it: read, then simulate.
std::string message_of(const std::string& name) {
  const config::Library library({(kRoot / "configs").string()});
  try {
    const std::vector<std::string> assignments = lines(name + ".set");
    const scenario::Scenario scenario = scenario::read_scenario(name + ".json", assignments, library);
    const auto catalogue = topology::Catalogue::load(library.directories().front());
    (void)scenario::simulate(scenario, catalogue, {}, nullptr);
  } catch (const ConfigError& error) {
    return config::picture(error.problems());
  }
  return "accepted\n";
}

class BadInput : public testing::TestWithParam<std::string> {};

TEST_P(BadInput, GetsItsMessage) {
  // Messages name files as they were given; a relative name reads the same everywhere.
  const fs::path before = fs::current_path();
  fs::current_path(kCases);
  std::string message = message_of(GetParam());
  fs::current_path(before);
  // "looked for /somewhere/tests/errors/cases/x" tells the whole path tried.
  const std::string root = kRoot.string();
  for (std::size_t at = message.find(root); at != std::string::npos; at = message.find(root)) {
    message.replace(at, root.size(), "ROOT/");
  }
  const fs::path golden = kCases / (GetParam() + ".txt");
  if (std::getenv("TOPSIM_UPDATE_GOLDEN") != nullptr) std::ofstream(golden, std::ios::binary) << message;
  EXPECT_EQ(message, content(golden));
  EXPECT_NE(message, "accepted\n");
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-'; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Cases, BadInput, testing::ValuesIn(all_cases()), test_name);

TEST(BadInputs, AreAtLeastForty) {
  EXPECT_GE(all_cases().size(), 40U);
}
}  // namespace topsim::errors_test
