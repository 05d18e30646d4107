#include "sim/validation/validate.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/base/error.hpp"
#include "sim/report/text.hpp"

namespace topsim::validation::validate_test {
using namespace testing;
namespace fs = std::filesystem;

class Files : public Test {
 protected:
  Files() : folder_(fs::temp_directory_path() / "topsim-validation") {
    fs::create_directories(folder_ / "validation");
  }
  ~Files() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) {
    const std::string path = (folder_ / "validation" / (name + ".json")).string();
    std::ofstream(path) << text;
    return path;
  }
  config::Library library() const { return config::Library({folder_.string(), "configs"}); }
  fs::path folder_;
};

const char* const kTable = R"({
  "source": "a paper",
  "bars": {"mine": {"mean": 0.5}},
  "base": {"topology": {"node": "dgx-a100", "nodes": 1},
           "workload": {"model": "llama2-7b", "plan": {"tp": 8}, "framework": "megatron"},
           "run": {"steps": 1, "warmup": 0}},
  "named": {"workload.model": {"short": {"layers": 2, "hidden": 4096, "heads": 32, "vocab": 32000,
                                         "sequence": 2048}}},
  "columns": ["name", "workload.model", "workload.plan.global_batch", "collective", "points", "published",
              "source"],
  "rows": [["a step", "short", 4, null, null, "10 ms", "table 1"],
           ["a sweep", null, null, "all_reduce", {"8 KiB": "20 us", "1 MiB": "60 us", "16 MiB": "200 us"},
            null, "table 2"]]
})";

TEST_F(Files, ARowIsTheBaseWithItsColumnsSet) {
  const CaseFile file = read_case_file(write("mine", kTable));
  ASSERT_EQ(file.cases.size(), 2u);
  const Case& step = file.cases[0];
  EXPECT_EQ(step.family, "mine");
  EXPECT_EQ(step.source, "a paper, table 1");
  EXPECT_EQ(step.published, Duration(10'000'000'000));
  EXPECT_THAT(step.assignments, ElementsAre(AllOf(HasSubstr("workload.model="), HasSubstr("\"layers\": 2")),
                                            "workload.plan.global_batch=4"));
  const Case& sweep = file.cases[1];
  EXPECT_EQ(sweep.collective, program::CollectiveKind::all_reduce);
  ASSERT_EQ(sweep.points.size(), 3u);
  EXPECT_EQ(sweep.points[1].size, Bytes(1 << 20));
  EXPECT_EQ(sweep.points[1].published, Duration(60'000'000));
}

TEST_F(Files, StepsAndSweepsArePredictedAndSweepsAreCutBySize) {
  write("mine", kTable);
  const auto files = find_cases({"mine"}, library());
  const auto catalogue = topology::Catalogue::load("configs");
  const Report report = validate(files, catalogue, library(), 2);
  ASSERT_EQ(report.predictions.size(), 4u);
  EXPECT_THAT(report.families,
              ElementsAre(Key("mine"), Key("mine/large"), Key("mine/medium"), Key("mine/small")));
  for (const Prediction& p : report.predictions) {
    ASSERT_TRUE(p.predicted) << p.problem;
    EXPECT_GT(*p.predicted, 0);
  }
  // One core gives the same bytes as two.
  EXPECT_EQ(to_json(report), to_json(validate(files, catalogue, library(), 1)));
}

// No published figure is an input of its own prediction.
TEST_F(Files, TenTimesTheFigureLeavesThePredictionAsItIs) {
  write("mine", kTable);
  auto files = find_cases({"mine"}, library());
  const auto catalogue = topology::Catalogue::load("configs");
  const Report before = validate(files, catalogue, library());
  for (Case& c : files[0].cases) {
    c.published *= 10;
    for (Point& point : c.points) point.published *= 10;
  }
  const Report after = validate(files, catalogue, library());
  for (std::size_t i = 0; i < before.predictions.size(); ++i)
    EXPECT_EQ(before.predictions[i].predicted, after.predictions[i].predicted);
}

TEST_F(Files, ARowThatCannotBeSimulatedFailsItsFamily) {
  std::string text = kTable;
  text.replace(text.find("\"tp\": 8"), 7, "\"tp\": 3");
  write("mine", text);
  const Report report =
      validate(find_cases({"a step"}, library()), topology::Catalogue::load("configs"), library());
  ASSERT_EQ(report.predictions.size(), 1u);
  EXPECT_FALSE(report.predictions[0].predicted);
  EXPECT_THAT(report.predictions[0].problem, HasSubstr("tp = 3 does not divide"));
  EXPECT_THAT(report.predictions[0].problem, HasSubstr("workload.plan.tp: tp = 3"));
  EXPECT_FALSE(report.passed());
  // Its figures are none rather than 0 %, and the table says why.
  const std::string table = to_text(report, false, 80);
  EXPECT_EQ(table.find("0.0"), std::string::npos) << table;
  EXPECT_THAT(table, HasSubstr("not simulated\n  a step: workload.plan.tp: tp = 3 does not divide"));
  EXPECT_THAT(to_json(report), HasSubstr(R"("mean_abs_error": null)"));
}

// Fabric and switches of the table's cluster do not sum: a ring would stand under SHARP's name.
TEST_F(Files, ASweepThatAsksForWhatItsClusterHasNotIsNotSimulated) {
  std::string text = kTable;
  const std::string at = "\"base\": {";
  text.replace(text.find(at), at.size(), at + "\"network\": {\"nccl\": {\"sharp\": true}}, ");
  write("mine", text);
  const Report report =
      validate(find_cases({"a sweep"}, library()), topology::Catalogue::load("configs"), library());
  ASSERT_FALSE(report.predictions.empty());
  EXPECT_FALSE(report.predictions[0].predicted);
  EXPECT_THAT(report.predictions[0].problem, HasSubstr("network.nccl.sharp is on"));
}

// Eight A100 and sixteen with twice the batch: published 10 and 11 ms, so the larger run costs 1.1 times the
// accelerator seconds a sample, and predicted 16 s2 / 2 b over 8 s1 / b, which is s2 / s1.
const char* const kCompared = R"({
  "source": "a paper",
  "base": {"topology": {"node": "dgx-a100", "nodes": 1, "fabric": {"kind": "rail", "link": "ib-hdr"}},
           "workload": {"model": {"layers": 2, "hidden": 4096, "heads": 32, "vocab": 32000, "sequence": 2048},
                        "plan": {"tp": 8}, "framework": "megatron"},
           "run": {"steps": 1, "warmup": 0}},
  "columns": ["name", "topology.nodes", "workload.plan.global_batch", "published", "compared_with", "ratio",
              "overlapped"],
  "rows": [["small", 1, 4, "10 ms", null, null, 0.25],
           ["large", 2, 8, "11 ms", "small", null, null],
           ["as a ratio", 1, 8, null, "untimed", 1.5, null],
           ["untimed", 1, 4, null, null, null, null]]
})";

TEST_F(Files, ARowIsComparedWithAnotherByItsCost) {
  write("mine", kCompared);
  const auto catalogue = topology::Catalogue::load("configs");
  const Report report = validate(find_cases({"mine"}, library()), catalogue, library());
  ASSERT_EQ(report.predictions.size(), 5u);  // small, its share, large, two comparisons
  const auto named = [&](const std::string& name) {
    return *std::find_if(report.predictions.begin(), report.predictions.end(),
                         [&](const Prediction& p) { return p.name == name; });
  };
  const Prediction sizes = named("large / small");
  EXPECT_EQ(sizes.family, "mine/compared");
  EXPECT_NEAR(sizes.published, 1.1, 1e-12);
  EXPECT_NEAR(*sizes.predicted, *named("large").predicted / *named("small").predicted, 1e-12);
  const Prediction stated = named("as a ratio / untimed");
  EXPECT_EQ(stated.published, 1.5);
  EXPECT_GT(*stated.predicted, 0.5);  // twice the samples
  EXPECT_LT(*stated.predicted, 1);
  EXPECT_EQ(report.families.at("mine/compared").pairs, 2u);
  EXPECT_EQ(report.totals.at("comparisons").cases, 2u);
  // Overlap is the share of communication that is hidden: all of tensor parallelism's is exposed here.
  EXPECT_EQ(named("small overlapped").figure, Figure::share);
  EXPECT_LT(*named("small overlapped").predicted, 0.5);
  // Asked for alone, a comparison brings the row that it needs.
  EXPECT_EQ(find_cases({"large"}, library())[0].cases.size(), 2u);
}

TEST_F(Files, AComparisonNamesARowAndHasAFigure) {
  const auto first_problem = [&](const std::string& from, const std::string& to) {
    std::string text = kCompared;
    text.replace(text.find(from), from.size(), to);
    try {
      (void)read_case_file(write("mine", text));
    } catch (const ConfigError& error) {
      return error.problems().front().message;
    }
    return std::string("was read");
  };
  EXPECT_EQ(first_problem("\"small\", null, null]", "\"smal\", null, null]"),
            "no other row is named \"smal\"");
  EXPECT_EQ(first_problem("\"untimed\", 1.5", "null, 1.5"), "a ratio is to another row");
  EXPECT_EQ(first_problem("\"untimed\", 1.5", "\"untimed\", null"), "a row needs a published figure");
  EXPECT_EQ(first_problem("\"untimed\", 1.5", "\"small\", 1.5"), "a row needs a published figure");
}

TEST_F(Files, MistakesOfATableHaveTheirPlace) {
  std::string text = kTable;
  text.replace(text.find("\"10 ms\""), 7, "\"10\"");
  try {
    (void)read_case_file(write("mine", text));
    FAIL() << "a figure without a unit was read";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.problems().front().place.line, 11);
  }
  EXPECT_THROW((void)find_cases({"mime"}, library()), ConfigError);
}

// A file of the user's, outside of the configuration directories, with a topology beside it.
TEST_F(Files, AFileOfOnesOwnIsReadWhereItLiesAndSoIsWhatItIncludes) {
  const fs::path own = folder_ / "own";
  fs::create_directories(own);
  std::ofstream(own / "two.json") << R"({"node": "dgx-a100", "nodes": 1})";
  std::string text = kTable;
  const std::string node = R"({"node": "dgx-a100", "nodes": 1})";
  text.replace(text.find(node), node.size(), R"({"file": "two.json"})");
  const std::string path = (own / "mine.json").string();
  std::ofstream(path) << text;
  write("shipped", kTable);  // whose mistakes are not ours: its bars name no family of its own
  const auto files = find_cases({path}, library());
  ASSERT_EQ(files.size(), 1u);
  const Report report = validate(files, topology::Catalogue::load("configs"), library());
  ASSERT_EQ(report.predictions.size(), 4u);
  for (const Prediction& p : report.predictions) EXPECT_EQ(p.problem, "");
}

TEST_F(Files, AFileIsReadOnceHoweverItIsNamed) {
  const std::string path = write("mine", kTable);
  EXPECT_EQ(
      find_cases({path, (folder_ / "." / "validation" / "mine.json").string(), "mine"}, library()).size(),
      1u);
}

TEST_F(Files, AFileThatIsNotThereIsSaidByItsPath) {
  const std::string missing = (folder_ / "mime.json").string();
  EXPECT_THAT([&] { (void)find_cases({missing}, library()); },
              ThrowsMessage<ConfigError>(HasSubstr("no such file: " + missing)));
  write("mine", kTable);
  EXPECT_EQ(find_cases({"configs/validation/mine.json"}, library()).size(), 1u);  // a shipped file's name
  EXPECT_THROW((void)find_cases({"elsewhere/mine.json"}, library()), ConfigError);
}

TEST_F(Files, TwoFilesOfOneNameWouldBeOneFamily) {
  const fs::path own = folder_ / "mine.json";
  std::ofstream(own) << kTable;
  write("mine", kTable);
  EXPECT_THAT(
      [&] {
        (void)find_cases({own.string(), "mine"}, library());
      },
      ThrowsMessage<ConfigError>(HasSubstr("family mine is in two files: ")));
}

Prediction prediction(double published, double predicted) {
  Prediction p;
  p.published = published;
  p.predicted = predicted;
  return p;
}

TEST_F(Files, KeysThatWouldCheckNothingAreRefused) {
  const auto problem = [&](const std::string& from, const std::string& to) {
    std::string text = kTable;
    text.replace(text.find(from), from.size(), to);
    try {
      (void)read_case_file(write("mine", text));
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.problems()[0].place.line, 3) << to;
      return error.problems()[0].message + "; " + error.problems()[0].label;
    }
    return std::string();
  };
  EXPECT_EQ(problem("\"bars\"", "\"bar\""), "unknown key \"bar\"; did you mean \"bars\"?");
  EXPECT_EQ(problem("{\"mine\"", "{\"mime\""), "unknown family \"mime\"; did you mean \"mine\"?");
  EXPECT_EQ(problem("{\"mine\"", "{\"mine/memory\""), "unknown family \"mine/memory\"; ");
  EXPECT_EQ(problem("{\"mine\"", "{\"mine/small\""), "");  // of the sweep's 8 KiB
}

// Errors +10 %, +20 %, +30 %, +60 %: the median of four is the mean of the middle two.
TEST(Summary, TheMedianOfAnEvenNumberIsTheMeanOfTheMiddleTwo) {
  const Prediction all[] = {prediction(10, 13), prediction(10, 11), prediction(10, 16), prediction(10, 12)};
  std::vector<const Prediction*> pointers;
  for (const Prediction& p : all) pointers.push_back(&p);
  EXPECT_NEAR(summarise(pointers).median, 0.25, 1e-12);
  EXPECT_NEAR(summarise(pointers).percentile_90, 0.60, 1e-12);
}

// Errors -10 %, +20 %, 0 %, +30 %, -20 %; sorted by size 0, 10, 20, 20, 30: mean 16, median 20. With signs
// the mean, the bias, is 4 %.
TEST(Summary, IsThatOfTheRelativeErrors) {
  const Prediction all[] = {prediction(10, 9), prediction(10, 12), prediction(5, 5), prediction(10, 13),
                            prediction(10, 8)};
  std::vector<const Prediction*> pointers;
  for (const Prediction& p : all) pointers.push_back(&p);
  Summary summary = summarise(pointers);
  EXPECT_NEAR(summary.mean, 0.16, 1e-12);
  EXPECT_NEAR(summary.median, 0.20, 1e-12);
  EXPECT_NEAR(summary.percentile_90, 0.30, 1e-12);
  EXPECT_NEAR(summary.max, 0.30, 1e-12);
  EXPECT_NEAR(summary.bias, 0.04, 1e-12);
  summary.bar.mean = 0.15;
  EXPECT_FALSE(summary.passed());
  summary.bar.mean = 0.17;
  EXPECT_TRUE(summary.passed());
  summary.bar.bias = 0.03;
  EXPECT_FALSE(summary.passed());
}

// The widest names that are shipped, with a bar that is missed.
TEST(Text, OfEightyColumnsHasAllFiguresAndTheBarsThatAreMissed) {
  Report report;
  Summary& summary = report.families["nccl-h100-1-node-blind/medium"];
  summary.cases = 1234, summary.mean = 0.101, summary.median = 0.202, summary.percentile_90 = 0.303,
  summary.max = 1.404;
  summary.bias = -0.505, summary.tau = 0.61, summary.tau_beyond_noise = 0.72, summary.slope = 0.083;
  summary.bar.mean = 0.05;
  const std::string text = to_text(report, false, 80);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(report::width(line), 80) << line;
  for (const char* part :
       {"nccl-h100", "/medium  1234", " 10.1 ", " 20.2 ", " 30.3 ", " 140.4 ", " -50.5 ", " 0.61 ", " 0.72 ",
        "  8.3\n", "nccl-h100-1-node-blind/medium: FAILED: above mean 5.0 %"})
    EXPECT_NE(text.find(part), std::string::npos) << part << '\n' << text;
  EXPECT_NE(to_text(report, false, 200).find("-50.5 %   0.61    0.72   8.3 %  FAILED"), std::string::npos);
  // If not all cases of a family were simulated, whether it holds its bar is unknown.
  report.complete = false;
  for (const std::size_t columns : {80U, 200U}) {
    const std::string partial = to_text(report, false, columns);
    EXPECT_EQ(partial.find("FAILED"), std::string::npos) << partial;
    EXPECT_EQ(partial.find("missed"), std::string::npos) << partial;
    EXPECT_NE(partial.find("not judged"), std::string::npos) << partial;
  }
  EXPECT_NE(to_json(report).find("\"passed\": null"), std::string::npos);
}

// Bars of families that a file does not have are mistakes of the file (KeysThatWouldCheckNothingAreRefused).
TEST(Shipped, EveryRowNamesItsSource) {
  for (const CaseFile& file : find_cases({}, config::Library({"configs"})))
    for (const Case& c : file.cases) EXPECT_FALSE(c.source.empty()) << file.name << ' ' << c.name;
}

// The quick families only, so that no change spoils them unseen; `topsim validate` runs all.
TEST(Shipped, QuickFamiliesHoldTheirBars) {
  const config::Library library({"configs"});
  const auto files = find_cases({"korthikanti-2022", "nccl-h100-1-node", "nccl-a100-1-node"}, library);
  const Report report = validate(files, topology::Catalogue::load("configs"), library);
  EXPECT_TRUE(report.passed()) << to_text(report, false, 80);
}
}  // namespace topsim::validation::validate_test
