#include "sim/report/terminal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "sim/report/text.hpp"
#include "tests/report/sample.hpp"

namespace topsim::report::terminal_test {
using namespace topsim::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) all.push_back(line);
  return all;
}

// A result with more of everything than fits on a screen.
Result crowded() {
  Result result = sample_result();
  for (std::size_t i = 0; i < result.account.idle.size(); ++i)
    result.account.idle[i] = Duration(1'000'000 << i);
  for (int i = 0; i < 20; ++i) {
    LinkRow link = result.links[0];
    link.type = "a kind of link with a long name " + std::to_string(i);
    link.from = "node12345/gpu7-with-a-name-nobody-expected";
    result.links.push_back(link);
    CollectiveRow collective = result.collectives[0];
    collective.bytes = Bytes(1 << i);
    result.collectives.push_back(collective);
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

// Of 10 ms: 4 of communication, of which 3 are hidden.
TEST(Terminal, CommunicationStandsBelowTheReasonsWithWhatItCostsKernels) {
  Result result = sample_result();
  result.account.communication = 90_us;  // less than 1 % of the step
  EXPECT_THAT(to_terminal(result, {}), Not(HasSubstr("communication   ")));
  result.account.communication = 4_ms;
  result.account.hidden_communication = 3_ms;
  EXPECT_THAT(to_terminal(result, {}), HasSubstr("communication     40.0 %      75.0 % of it hidden\n"));
  result.account.slowed = 1_ms;
  EXPECT_THAT(to_terminal(result, {}), HasSubstr("75.0 % of it hidden; it slows kernels by 1.00 ms\n"));
}

TEST(Terminal, ATraceHasMessagesAndNoPipeline) {
  Result result = sample_result();
  result.findings.clear();  // they mention the sample's own pipeline
  result.account.idle = {};
  result.account.idle[static_cast<std::size_t>(executor::Reason::pipeline_transfer)] = 4_ms;
  result.account.idle[static_cast<std::size_t>(executor::Reason::straggler)] = 1_ms;
  EXPECT_THAT(to_terminal(result, {}), HasSubstr("exposed pipeline transfer"));
  result.trace = true;
  const std::string text = to_terminal(result, {});
  EXPECT_THAT(text, HasSubstr("exposed messages"));
  EXPECT_THAT(text, HasSubstr("other ranks' part"));
  EXPECT_THAT(text, Not(HasSubstr("pipeline")));
}

// Three places: between NIC and leaf, leaf and spine, GPU and NIC. A link of each is shown before the other
// direction of a cable and before a second cable.
TEST(Terminal, OtherPlacesComeBeforeACablesOtherDirection) {
  Result result = sample_result();
  LinkRow link = result.links[0];
  result.findings.clear();  // they take lines from the tables
  result.links.clear();
  for (const auto& [from, to] :
       {std::pair("leaf0", "node0/nic0"), std::pair("node0/nic0", "leaf0"), std::pair("node1/nic0", "leaf1"),
        std::pair("leaf0", "spine0"), std::pair("leaf1", "spine0"), std::pair("node0/gpu0", "node0/nic0")}) {
    link.from = from, link.to = to;
    result.links.push_back(link);
  }
  const std::string text = to_terminal(result, {});
  EXPECT_THAT(text, HasSubstr("leaf0 > node0/nic0"));
  EXPECT_THAT(text, HasSubstr("leaf0 > spine0"));
  EXPECT_THAT(text, HasSubstr("gpu0 > nic0"));
  EXPECT_THAT(text, Not(HasSubstr("leaf1 > spine0")));
}

// In 40 columns remarks go to lines of their own, and tables lose columns before figures are cut.
TEST(Terminal, FiguresAreWholeOnANarrowScreen) {
  TerminalOptions options;
  options.columns = 40;
  const std::string text = to_terminal(sample_result(), options);
  EXPECT_THAT(text, HasSubstr("  step time         10.0 ms\n    400 000 tokens/s"));
  EXPECT_THAT(text, HasSubstr("  accelerator busy  55.0 %\n    idle 4.50 ms per accelerator"));
  EXPECT_THAT(text, HasSubstr("exposed data par…    3.50 ms  35.0 %\n"));
}

// A row is 23 columns of figures and gaps, 28 of the reason and 22 of its bar: 73.
TEST(Terminal, BarsGoWhereTheyDoNotFitBesideTheFigures) {
  TerminalOptions options;
  options.bars = true;
  for (const int columns : {40, 56, 72}) {
    options.columns = columns;
    const std::string text = to_terminal(sample_result(), options);
    EXPECT_THAT(text, Not(HasSubstr("█"))) << columns;
    EXPECT_THAT(text, HasSubstr("3.50 ms  35.0 %\n")) << columns;
  }
  options.columns = 73;
  EXPECT_THAT(to_terminal(sample_result(), options), HasSubstr("3.50 ms  35.0 %  ████"));
}

TEST(Terminal, NeverMoreThanTwentyFourLinesNorWiderThanTheWindow) {
  for (int columns : {40, 48, 60, 80, 120}) {
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

TEST(Terminal, FindingsTakeTheirLinesFromTheTables) {
  Result result = crowded();
  std::string message(100, 'y');
  message += " the end of it";
  result.findings = {{Severity::warning, message, "", ""}};
  const auto all = lines(to_terminal(result, {}));
  EXPECT_LE(all.size(), 24U);
  EXPECT_THAT(to_terminal(result, {}), HasSubstr("the end of it"));
}

TEST(Terminal, AnInterruptedRunWithoutAMeasuredStepHasNoStepTime) {
  Result result = sample_result();
  result.complete = false;
  result.step_times.clear();
  result.step = Duration{};
  const std::string text = to_terminal(result, {});
  EXPECT_THAT(text, HasSubstr("step time         -           interrupted"));
  EXPECT_THAT(text, Not(HasSubstr("0 ps")));
}

// Without a measured step totals are not per step, and there is no step to explain.
TEST(Terminal, AnInterruptedRunWithoutAMeasuredStepSaysNothingOfAStep) {
  Result result = sample_result();
  EXPECT_THAT(to_terminal(result, {}, {}, "out/result.json"),
              AllOf(HasSubstr("carried a step"), HasSubstr("calls a step"), HasSubstr("topsim explain")));
  result.complete = false;
  result.step_times.clear();
  result.step = Duration{};
  EXPECT_THAT(to_terminal(result, {}, {}, "out/result.json"),
              AllOf(HasSubstr("carried so far"), HasSubstr("calls so far"), Not(HasSubstr("a step ")),
                    Not(HasSubstr("topsim explain"))));
}

TEST(Terminal, ReasonsThatReadZeroAreOneRow) {
  Result result = sample_result();
  result.account.idle = {};
  result.account.idle[static_cast<std::size_t>(Reason::data_parallel)] = 4_ms;
  result.account.idle[static_cast<std::size_t>(Reason::host)] = 2_us;  // of 10 ms: 0.02 %
  result.account.idle[static_cast<std::size_t>(Reason::other)] = 1_us;
  EXPECT_THAT(to_terminal(result, {}), HasSubstr("2 smaller reasons"));
  EXPECT_THAT(to_terminal(result, {}), Not(HasSubstr("host and launch")));
}

TEST(Terminal, EightyColumnsHoldAWholeRowOfEachTable) {
  Result result = sample_result();
  result.links[0].from = "node1024/gpu0", result.links[0].to = "node1024/nvswitch0";
  result.links[0].type = "NVLink 4 x18, 450 GB/s", result.links[0].count = 8;
  result.links[1].from = "leaf128", result.links[1].to = "node512/nic0";
  result.links[1].type = "InfiniBand NDR 400 Gbit/s", result.links[1].count = 1024;
  result.collectives[0].group = "tensor", result.collectives[0].kind = "reduce_scatter";
  result.collectives[0].calls = 6'220'000, result.collectives[0].bytes = Bytes(206'976 * 1024);
  const std::string text = to_terminal(result, {});
  EXPECT_THAT(text, HasSubstr("node1024: gpu0 > nvswitch0 (8) NVLink 4 x18, 450 GB/s "));
  EXPECT_THAT(text, HasSubstr("NDR 400 Gbit/s "));
  EXPECT_THAT(text, HasSubstr("3.11 M  202 MiB"));
  EXPECT_THAT(text, Not(HasSubstr("…")));
}

// 0.5 GB and 2 calls over two steps are shown per step, however many steps were measured.
TEST(Terminal, TotalsAreThoseOfAStep) {
  Result result = sample_result();
  EXPECT_THAT(to_terminal(result, {}), HasSubstr("250 MB"));
  EXPECT_THAT(to_terminal(result, {}), HasSubstr("data all_reduce              1  128 MiB"));
  result.step_times.resize(4, 10_ms);
  EXPECT_THAT(to_terminal(result, {}), HasSubstr("125 MB"));
  EXPECT_THAT(to_terminal(result, {}), HasSubstr("data all_reduce          0.500  128 MiB"));
}

// Calls that look alike to three digits share a row: two buckets of 128 MiB, one some bytes larger, and a
// third that takes other channels. One in LL has a row of its own.
TEST(Terminal, CallsThatReadAlikeAreOneRow) {
  Result result = sample_result();
  result.findings.clear();  // they take lines that rows need
  for (int i = 0; i < 3; ++i) result.collectives.push_back(result.collectives[0]);
  result.collectives[1].bytes = result.collectives[0].bytes + Bytes(4096);
  result.collectives[2].channels = 4;
  result.collectives[3].protocol = "LL";
  const std::string text = to_terminal(result, {});
  EXPECT_THAT(text, HasSubstr("data all_reduce              3  128 MiB"));
  EXPECT_THAT(text, HasSubstr("data all_reduce              1  128 MiB"));
}

TEST(Terminal, BarsAndColourOnlyWhereAskedFor) {
  EXPECT_THAT(to_terminal(sample_result(), {}), Not(HasSubstr("\x1b[")));
  EXPECT_THAT(to_terminal(sample_result(), {}), Not(HasSubstr("█")));
  TerminalOptions person;
  person.bars = person.colour = true;
  EXPECT_THAT(to_terminal(sample_result(), person), HasSubstr("\x1b[1m"));
  EXPECT_THAT(to_terminal(sample_result(), person), HasSubstr("████"));
}
}  // namespace topsim::report::terminal_test
