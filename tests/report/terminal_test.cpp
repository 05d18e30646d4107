#include "sim/report/terminal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "sim/report/text.hpp"
#include "tests/report/sample.hpp"

namespace topsim::report {
namespace {
using namespace topsim::testing;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) all.push_back(line);
  return all;
}

// More of everything than a screen holds.
Result crowded() {
  Result result = sample_result();
  for (std::size_t i = 0; i < result.account.idle.size(); ++i)
    result.account.idle[i] = Duration(1'000'000 << i);
  for (int i = 0; i < 20; ++i) {
    LinkRow link = result.links[0];
    link.type = "a kind of link with a long name " + std::to_string(i);
    link.from = "node12345/gpu7-with-a-name-nobody-expected";
    result.links.push_back(link);
    result.collectives.push_back(result.collectives[0]);
    result.findings.push_back({Severity::note, std::string(200, 'x'), "", ""});
  }
  return result;
}

TEST(Terminal, TheAnswerStandsOnTheFirstScreenWithItsUnit) {
  const std::string text = to_terminal(sample_result(), {});
  EXPECT_THAT(text, HasSubstr("step time         10.0 ms"));
  EXPECT_THAT(text, HasSubstr("400 000 tokens/s"));
  EXPECT_THAT(text, HasSubstr("accelerator busy  55.0 %"));
  EXPECT_THAT(text, HasSubstr("exposed data parallel           3.50 ms"));
}

TEST(Terminal, NeverMoreThanTwentyFourLinesNorWiderThanTheWindow) {
  for (int columns : {60, 80, 120}) {
    TerminalOptions options;
    options.columns = columns;
    options.bars = true;
    RunRecord record;
    record.wall_seconds = 0.1;
    const auto all = lines(to_terminal(crowded(), options, record, "results/some/where/result.json"));
    EXPECT_LE(all.size(), 24U);
    for (const std::string& line : all) EXPECT_LE(width(line), static_cast<std::size_t>(columns)) << line;
  }
}

TEST(Terminal, BarsAndColourOnlyWhereAskedFor) {
  EXPECT_THAT(to_terminal(sample_result(), {}), Not(HasSubstr("\x1b[")));
  EXPECT_THAT(to_terminal(sample_result(), {}), Not(HasSubstr("█")));
  TerminalOptions person;
  person.bars = person.colour = true;
  EXPECT_THAT(to_terminal(sample_result(), person), HasSubstr("\x1b[1m"));
  EXPECT_THAT(to_terminal(sample_result(), person), HasSubstr("████"));
}
}  // namespace
}  // namespace topsim::report
