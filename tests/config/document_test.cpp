#include "sim/config/document.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/config/reader.hpp"

namespace topsim::config::document_test {
using testing::HasSubstr;

Problem refused(const std::string& text) {
  try {
    (void)Document::parse(text, "f.json");
  } catch (const ConfigError& error) {
    EXPECT_FALSE(error.problems().empty());
    return error.problems().front();
  }
  ADD_FAILURE() << "accepted: " << text.substr(0, 80);
  return {};
}

TEST(Document, KnowsThePlaceOfEveryKeyAndValue) {
  const Document d =
      Document::parse("{\n  \"a\": 12,\n  \"list\": [true, \"\xC3\xA9\xC3\xA9\", -1.5e3]\n}", "f.json");
  const Node a = d.root().find("a");
  EXPECT_EQ(a.place().line, 2);
  EXPECT_EQ(a.place().column, 8);
  EXPECT_EQ(a.place().length, 2);
  EXPECT_EQ(a.key_place().column, 3);
  EXPECT_EQ(a.key_place().length, 3);
  const Node list = d.root().find("list");
  EXPECT_EQ(list[0].place().column, 12);
  EXPECT_EQ(list[0].place().length, 4);
  EXPECT_EQ(list[1].place().column, 18);
  EXPECT_EQ(list[1].place().length, 4);  // characters, not bytes
  EXPECT_EQ(list[2].place().column, 24);
  EXPECT_EQ(list[2].place().length, 6);
  EXPECT_EQ(list[2].path(), "list[2]");
  EXPECT_EQ(list[2].number(), -1500);
}

TEST(Document, PathsLeadBackToTheirNodes) {
  const Document d = Document::parse(R"({"a": {"b.c": [1, {"d": 2}]}})", "f.json");
  const Node deep = d.root().find("a").find("b.c")[1].find("d");
  EXPECT_EQ(deep.path(), "a[\"b.c\"][1].d");
  EXPECT_EQ(&d.root().at_path(deep.path()).value(), &deep.value());
  EXPECT_FALSE(d.root().at_path("a.nothing[3]"));
}

TEST(Document, HundredMegabytesOfNestingAreRefusedNotCrashedOn) {
  const Problem p = refused(std::string(100'000'000, '['));
  EXPECT_THAT(p.message, HasSubstr("more than 100 levels"));
  EXPECT_EQ(p.place.column, 101);
}

TEST(Document, MistakesOfJsonAreNamedWithTheirPlace) {
  EXPECT_THAT(refused("{\"a\": 1,}").message, HasSubstr("comma before \"}\""));
  EXPECT_THAT(refused("{\"a\": [1,\n]}").message, HasSubstr("comma before \"]\""));
  EXPECT_THAT(refused("{\"a\": NaN}").message, HasSubstr("NaN"));
  EXPECT_THAT(refused("{\"a\": -Infinity}").message, HasSubstr("NaN and infinity"));
  EXPECT_THAT(refused("{\"a\": 1e999}").message, HasSubstr("too large"));
  EXPECT_THAT(refused("{\"a\": {\n\"b\": 1").message, HasSubstr("ends inside an object"));
  EXPECT_THAT(refused("").message, HasSubstr("empty"));
  EXPECT_THAT(refused("{} {}").message, HasSubstr("follows the end"));
  EXPECT_THAT(refused("{'a': 1}").message, HasSubstr("double quotes"));
  EXPECT_THAT(refused("// hi\n{}").message, HasSubstr("no comments"));
  EXPECT_THAT(refused("{\"a\": 1 \"b\": 2}").help, HasSubstr("comma missing"));
  EXPECT_THAT(refused("{\"a\": \"\xFF\"}").message, HasSubstr("UTF-8"));
}

TEST(Document, AKeyTwiceIsRefusedInSmallAndLargeObjects) {
  EXPECT_EQ(refused("{\"a\": 1, \"a\": 2}").place.column, 10);
  std::string large = "{";
  for (int i = 0; i < 40; ++i) large += "\"k" + std::to_string(i) + "\": 1, ";
  EXPECT_THAT(refused(large + "\"k39\": 1}").message, HasSubstr("twice"));
  EXPECT_THAT(refused(large + "\"x\": 1, \"x\": 1}").message, HasSubstr("twice"));
}

TEST(Document, SetReplacesCreatesAndAppends) {
  Document d =
      Document::parse(R"({"topology": {"fabric": {"link": "ib-ndr"}}, "list": [{"x": 1}]})", "f.json");
  d.set("topology.nodes=16");
  d.set("topology.fabric.link.latency=700 ns");
  d.set("workload.plan.tp=8");
  d.set("list[0].x=true");
  d.set("list[1]={\"x\": 3}");
  EXPECT_EQ(to_text(d.root().value(), 0),
            R"({"topology": {"fabric": {"link": {"use": "ib-ndr", "latency": "700 ns"}}, "nodes": 16}, )"
            R"("list": [{"x": true}, {"x": 3}], "workload": {"plan": {"tp": 8}}})");
  const Place place = d.root().at_path("workload.plan.tp").place();
  EXPECT_EQ(place.file, "--set");
  EXPECT_EQ(place.column, 18);
}

TEST(Document, SetRefusesWhatItCannotReach) {
  Document d = Document::parse(R"({"n": 3, "list": []})", "f.json");
  EXPECT_THROW(d.set("n"), ConfigError);
  EXPECT_THROW(d.set("=3"), ConfigError);
  EXPECT_THROW(d.set("a..b=3"), ConfigError);
  EXPECT_THROW(d.set("a[x]=3"), ConfigError);
  EXPECT_THROW(d.set("n.x=3"), ConfigError);
  EXPECT_THROW(d.set("list[7]=3"), ConfigError);
  EXPECT_THROW(d.set("a[18446744073709551616]=3"), ConfigError);
}

TEST(Document, ProblemsThatOnlyNameAPathGetTheirPlace) {
  const Document d = Document::parse("{\n \"workload\": {\"plan\": {\"tp\": 3}}\n}", "f.json");
  std::vector<Problem> problems(3);
  problems[0].path = "workload.plan.dp";
  problems[1].path = "x";
  const auto located = d.locate(std::move(problems));
  EXPECT_EQ(located[0].place.line, 2);
  EXPECT_EQ(located[0].place.column, 23);  // dp is not given: its plan is shown
  EXPECT_EQ(located[1].place.line, 1);
  // A problem without a path is shown for the file as a whole.
  EXPECT_EQ(located[2].place.file, "f.json");
  EXPECT_EQ(located[2].place.line, 0);
}

TEST(Document, AMissingFileTellsThePathTriedAndASimilarOne) {
  try {
    (void)Document::read_file(TOPSIM_SOURCE_DIR "/CMakeList.txt");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.problems().front().help, HasSubstr("did you mean"));
    EXPECT_THAT(error.problems().front().help, HasSubstr("CMakeLists.txt"));
  }
}

TEST(Picture, IsTheOneOfTheContract) {
  Problem p;
  p.place = {"configs/my-cluster.json", 14, 9, 10};
  p.path = "topology.links[2].bandwith";
  p.message = "unknown key \"bandwith\"";
  p.label = "did you mean \"bandwidth\"?";
  p.help = "keys of a link: bandwidth, kind, lanes, latency, length, source";
  p.source_line = "        \"bandwith\": \"400 Gbit/s\",";
  EXPECT_EQ(picture({p}),
            "error: unknown key \"bandwith\"\n"
            "  --> configs/my-cluster.json:14:9   at topology.links[2].bandwith\n"
            "   |\n"
            "14 |         \"bandwith\": \"400 Gbit/s\",\n"
            "   |         ^^^^^^^^^^ did you mean \"bandwidth\"?\n"
            "   = keys of a link: bandwidth, kind, lanes, latency, length, source\n");
}

// Each of the key's three wide letters takes two columns: its five letters take 1 + 3 x 2 + 1 = 8, and the
// nine before the number 9 + 3 = 12.
TEST(Picture, AMarkIsAsWideAsTheTerminalShowsItsLetters) {
  Problem key;
  key.place = {"c.json", 1, 3, 5};
  key.message = "m";
  key.source_line = "{ \"\u9375\u9375\u9375\": 1 }";
  EXPECT_THAT(picture({key}), HasSubstr("   |   ^^^^^^^^\n"));
  key.place = {"c.json", 1, 10, 1};
  EXPECT_THAT(picture({key}), HasSubstr("   | " + std::string(12, ' ') + "^\n"));
}

TEST(Picture, AKeyOfThousandsOfLettersIsShortened) {
  const std::string key(3000, 'k');
  Problem problem;
  problem.place = {"c.json", 1, 2, 3002};
  problem.path = "topology." + key;
  problem.message = "unknown key \"" + key + '"';
  const std::string text = picture({problem});
  EXPECT_LT(text.size(), 300U);
  EXPECT_THAT(text, HasSubstr("kkk...\"\n"));
}

TEST(Picture, BytesThatAreNoTextAreQuestionMarks) {
  Problem problem;
  problem.message = "a\xFF\xC3(\xE9\x9B";  // none of them begins a character that ends
  EXPECT_THAT(picture({problem}), HasSubstr("a?"
                                            "?(?"
                                            "?\n"));
  problem.message = "\xC3\xA9 \xE9\x9B\x86 \xF0\x9F\x9A\x80";
  EXPECT_THAT(picture({problem}), HasSubstr(problem.message + "\n"));
}

TEST(Picture, ShowsTenAndCountsTheRest) {
  const std::string text = picture(std::vector<Problem>(13, Problem{{}, {}, "m", {}, {}, {}}));
  EXPECT_THAT(text, HasSubstr("and 3 more (13 in all)"));
}
}  // namespace topsim::config::document_test
