#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "sim/cli/command.hpp"

namespace topsim::cli::command_line_test {
using testing::HasSubstr;
using testing::IsEmpty;

struct Outcome {
  int code = 0;
  std::string out, err;
};

Outcome call(std::vector<std::string> words) {
  words.insert(words.begin(), "topsim");
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.code = run_command_line(static_cast<int>(argv.size()), argv.data());
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.err = testing::internal::GetCapturedStderr();
  return outcome;
}

TEST(CommandLine, AloneItTeaches) {
  const Outcome outcome = call({});
  EXPECT_EQ(outcome.code, kOk);
  EXPECT_THAT(outcome.out, HasSubstr("topsim run configs/8xH100-ib.json"));
  for (const Command& command : commands()) EXPECT_THAT(outcome.out, HasSubstr(std::string(command.name)));
  EXPECT_THAT(outcome.err, IsEmpty());
}

TEST(CommandLine, EveryCommandHasHelpWithExamples) {
  for (const Command& command : commands()) {
    const Outcome outcome = call({std::string(command.name), "--help"});
    EXPECT_EQ(outcome.code, kOk) << command.name;
    EXPECT_THAT(outcome.out, HasSubstr("Examples:\n  topsim " + std::string(command.name)));
  }
}

TEST(CommandLine, VersionNamesTheCommit) {
  const Outcome outcome = call({"--version"});
  EXPECT_EQ(outcome.code, kOk);
  EXPECT_THAT(outcome.out, testing::MatchesRegex("topsim [0-9.]+ \\(.+\\)\n"));
}

TEST(CommandLine, AMistypedCommandOrOptionGetsTheClosest) {
  Outcome outcome = call({"rum", "x.json"});
  EXPECT_EQ(outcome.code, kUserError);
  EXPECT_THAT(outcome.err, HasSubstr("did you mean topsim run?"));
  outcome = call({"run", "x.json", "--netwrk", "flow"});
  EXPECT_EQ(outcome.code, kUserError);
  EXPECT_THAT(outcome.err, HasSubstr("unknown option --netwrk"));
  EXPECT_THAT(outcome.err, HasSubstr("did you mean --network?"));
  outcome = call({"list", "hardwares"});
  EXPECT_EQ(outcome.code, kUserError);
  EXPECT_THAT(outcome.err, HasSubstr("did you mean hardware?"));
}

TEST(CommandLine, UserErrorsExitWithTwoAndSayWhere) {
  Outcome outcome = call({"run"});
  EXPECT_EQ(outcome.code, kUserError);
  EXPECT_THAT(outcome.err, HasSubstr("topsim run needs SCENARIO"));
  outcome = call({"run", "no-such-scenario.json"});
  EXPECT_EQ(outcome.code, kUserError);
  EXPECT_THAT(outcome.err, HasSubstr("no such scenario"));
  outcome = call({"run", "tests/errors/cases/unknown-key.json"});
  EXPECT_EQ(outcome.code, kUserError);
  EXPECT_THAT(outcome.err, HasSubstr("tests/errors/cases/unknown-key.json:5:"));
  EXPECT_THAT(outcome.out, IsEmpty());
}

TEST(CommandLine, CompletionKnowsEveryCommandAndFlag) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Outcome outcome = call({"completion", shell});
    EXPECT_EQ(outcome.code, kOk);
    for (const Command& command : commands()) EXPECT_THAT(outcome.out, HasSubstr(std::string(command.name)));
    EXPECT_THAT(outcome.out, HasSubstr("fail-if"));
    EXPECT_THAT(outcome.out, HasSubstr("flow"));
  }
}

// zsh does not complete a command that has two specifications of the remaining arguments, and offers an
// option again only if a star says so.
TEST(CommandLine, ZshIsToldOnceWhatTheRestIsAndWhatRepeats) {
  std::istringstream script(call({"completion", "zsh"}).out);
  int commands_seen = 0;
  for (std::string line; std::getline(script, line);) {
    if (line.find("_arguments") == std::string::npos) continue;
    ++commands_seen;
    const std::size_t rest = line.find("'*:");
    EXPECT_TRUE(rest == std::string::npos || line.find("'*:", rest + 1) == std::string::npos) << line;
    EXPECT_EQ(line.find("'--set["), std::string::npos) << line;
  }
  EXPECT_EQ(commands_seen, static_cast<int>(commands().size()));
}

TEST(CommandLine, ListsAndSchemaGoToStandardOutput) {
  EXPECT_THAT(call({"list", "hardware"}).out, HasSubstr("h100"));
  EXPECT_THAT(call({"list", "models"}).out, HasSubstr("llama3-70b"));
  EXPECT_THAT(call({"list", "networks"}).out, HasSubstr("flow (default)"));
  EXPECT_THAT(call({"schema"}).out, HasSubstr("json-schema.org"));
}

// What other programs set by an option the scenario has, and nccl-tests' options are not bench's.
TEST(CommandLine, AnOptionOfAnotherProgramIsAnsweredWithWhatDoesIt) {
  EXPECT_THAT(call({"run", "x.json", "--tensor-model-parallel-size", "4"}).err,
              HasSubstr("--set workload.plan.tp=VALUE"));
  EXPECT_THAT(call({"run", "x.json", "--gpus", "64"}).err, HasSubstr("--set topology.accelerators=VALUE"));
  EXPECT_THAT(call({"bench", "all_reduce", "x.json", "-n", "20"}).err, HasSubstr("here one is simulated"));
  EXPECT_THAT(call({"bench", "all_reduce", "x.json", "-t", "8"}).err, HasSubstr("topology.nodes=N"));
  EXPECT_THAT(call({"list", "servers"}).err, HasSubstr("did you mean hardware?"));
  EXPECT_THAT(call({"simulate", "x.json"}).err, HasSubstr("did you mean topsim run?"));
}
}  // namespace topsim::cli::command_line_test
