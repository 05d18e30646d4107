#include "sim/study/sweep_space.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/base/error.hpp"

namespace topsim::study::sweep_space_test {
using testing::ElementsAre;
using Points = std::vector<std::vector<std::string>>;

std::string written(const std::string& name, const std::string& text) {
  const std::string file = testing::TempDir() + "/" + name;
  std::ofstream(file) << text;
  return file;
}

TEST(SweepSpace, CommasInsideQuotesBracketsAndBracesBelongToTheValue) {
  const SweepSpace space = vary(R"(a.b=1,"x,y",[2,3],{"use":"ib","k":[4,5]},plain)");
  EXPECT_THAT(space.paths, ElementsAre("a.b"));
  EXPECT_EQ(space.points, (Points{{"1"}, {R"("x,y")"}, {"[2,3]"}, {R"({"use":"ib","k":[4,5]})"}, {"plain"}}));
}

TEST(SweepSpace, TheLastPathOfAProductChangesFastest) {
  const SweepSpace space = product(vary("a=1,2"), vary("b=x,y"));
  EXPECT_EQ(space.points, (Points{{"1", "x"}, {"1", "y"}, {"2", "x"}, {"2", "y"}}));
  EXPECT_THAT(space.assignments(2), ElementsAre("a=2", "b=x"));
}

TEST(SweepSpace, APathIsVariedOnce) {
  EXPECT_THROW((void)product(vary("a=1"), vary("a=2")), ConfigError);
}

TEST(SweepSpace, APathWithoutValuesIsRefused) {
  for (const char* text : {"a", "a=", "=1", "a=1,,2"}) EXPECT_THROW((void)vary(text), ConfigError) << text;
}

TEST(SweepSpace, ListsAreReadFromCsvAndJsonAlike) {
  const SweepSpace csv = read_points(written("p.csv", "a.b,c\n1,\"x,y\"\n2,z\n"));
  const SweepSpace json = read_points(written("p.json", R"([{"a.b": 1, "c": "x,y"}, {"a.b": 2, "c": "z"}])"));
  EXPECT_THAT(csv.paths, ElementsAre("a.b", "c"));
  EXPECT_EQ(csv.paths, json.paths);
  ASSERT_EQ(csv.points.size(), 2u);
  ASSERT_EQ(json.points.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t p = 0; p < 2; ++p) EXPECT_EQ(plain(csv.points[i][p]), plain(json.points[i][p]));
  }
}

TEST(SweepSpace, PointsOfAListNameTheSamePaths) {
  EXPECT_THROW((void)read_points(written("q.json", R"([{"a": 1}, {"b": 1}])")), ConfigError);
  EXPECT_THROW((void)read_points(written("q.json", R"([{"a": 1}, {"a": 1, "b": 1}])")), ConfigError);
  try {
    static_cast<void>(read_points(written("q.csv", "a,b\n1\n")));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("q.csv:2 has 1 cell, the first line names 2 paths"));
  }
  EXPECT_THROW((void)read_points(written("r.csv", "a,b,a\n1,2,3\n")), ConfigError);
  EXPECT_THROW((void)read_points(written("q.json", "[]")), ConfigError);
}
}  // namespace topsim::study::sweep_space_test
