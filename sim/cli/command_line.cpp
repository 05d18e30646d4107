#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/suggest.hpp"
#include "sim/cli/command.hpp"
#include "sim/config/home_of_key.hpp"
#include "sim/config/reader.hpp"
#include "sim/report/terminal.hpp"
#include "sim/report/text.hpp"
#include "sim/report/version.hpp"
#include "sim/scenario/read/tables.hpp"
#include "sim/scenario/scenario.hpp"

namespace topsim::cli {
namespace {

constexpr std::string_view kTeaching =
    R"(topsim predicts how long a training step takes on a cluster, which links are
busy, and why accelerators idle.

  topsim run configs/8xH100-ib.json     simulate a scenario, one screen
  topsim run configs/8xH100-ib.json --set topology.fabric.link=ib-hdr
  topsim list hardware                  what a scenario may name
  topsim schema                         every key of a scenario, for editors

)";

void report(const std::string& text) {
  std::cout.flush();
  std::cerr << text << std::flush;
}

int user_error(const std::string& message, const std::string& help) {
  Problem problem;
  problem.message = message;
  problem.help = help;
  report(config::picture({problem}, colour_on_stderr()));
  return kUserError;
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.emplace_back(command.name);
  return names;
}

// CLI11 does not break lines: descriptions are wrapped under themselves. Examples stay whole, to be copied.
std::string broken_into_lines(const std::string& help) {
  constexpr std::size_t kDescriptions = 30;  // the column where CLI11 begins them
  const auto columns = static_cast<std::size_t>(std::max(report::options_of_stdout().columns, 60));
  std::istringstream lines(help);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("  topsim ", 0) == 0 || line.rfind("  |", 0) == 0) {
      text += line + '\n';
      continue;
    }
    const std::size_t indent = line.rfind("  ", 0) == 0 ? kDescriptions : 2;
    for (const std::string& part : report::wrap(line, columns, indent)) text += part + '\n';
  }
  return text;
}

std::string teaching() {
  std::string text(kTeaching);
  text += "commands:\n";
  for (const Command& command : commands()) {
    constexpr std::size_t kNames = 14;  // 64 columns remain for the summary
    text += "  " + report::pad_right(command.name, kNames) + std::string(command.summary) + '\n';
  }
  return text + "\ntopsim COMMAND --help shows its options and examples.\n";
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    for (const std::string& name : option->get_snames()) flags.push_back("-" + name);
  }
  return flags;
}

// The innermost command that was parsed: "topo", then "show".
const CLI::App& innermost(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return *at;
}

// For example "topsim topo show".
std::string words_of(const CLI::App& command) {
  return (command.get_parent() == nullptr ? "" : words_of(*command.get_parent()) + ' ') + command.get_name();
}

// The first example in the help texts that begins with these words; empty if there is none.
std::string example_of(const std::string& words) {
  for (const Command& command : commands()) {
    std::istringstream lines{std::string(command.examples)};
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind(words + ' ', 0) == 0) return line;
    }
  }
  return {};
}

// "topsim run needs SCENARIO": names what is missing as --help does, with an example.
int missing_argument(const CLI::App& command, const std::string& see) {
  std::string missing;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_required() || option->count() > 0) continue;
    const std::string type = option->get_type_name();
    missing +=
        (missing.empty() ? "" : " and ") + (type.find('|') == std::string::npos ? type : "one of " + type);
  }
  if (missing.empty()) {
    std::vector<std::string> parts;
    for (const CLI::App* sub : command.get_subcommands({})) parts.push_back(sub->get_name());
    missing = "one of: " + join(parts);
  }
  const std::string words = words_of(command);
  const std::string example = example_of(words);
  return user_error(words + " needs " + missing, (example.empty() ? "" : "e.g. " + example + "; ") + see);
}

// The path in a scenario of what other programs set by an option: "--tensor-model-parallel-size".
std::string path_of(std::string_view option) {
  std::string key(option.substr(std::min(option.find_first_not_of('-'), option.size())));
  std::replace(key.begin(), key.end(), '-', '_');
  return key.size() < 2 ? std::string() : config::home_of_key<scenario::Scenario>(key);
}

// What to do with an option of nccl-tests that bench lacks: it simulates one call, free of noise.
std::string_view of_nccl_tests(std::string_view option) {
  constexpr std::string_view kRepeats =
      "nccl-tests repeats and averages calls, which differ; here one is simulated: leave it out";
  constexpr std::string_view kNoEffect =
      "an option of nccl-tests without effect on what is simulated: leave it out (-b, -e, -f and -g are "
      "read)";
  constexpr std::string_view kRanks =
      "ranks are the scenario's accelerators: --set topology.nodes=N or topology.accelerators=N; -g as "
      "nccl-tests";
  constexpr std::pair<std::string_view, std::string_view> kOptions[] = {
      {"-n", kRepeats},
      {"--iters", kRepeats},
      {"-w", kRepeats},
      {"--warmup_iters", kRepeats},
      {"-m", kRepeats},
      {"--agg_iters", kRepeats},
      {"-N", kRepeats},
      {"--run_cycles", kRepeats},
      {"-a", kRepeats},
      {"--average", kRepeats},
      {"-t", kRanks},
      {"--nthreads", kRanks},
      {"-c", kNoEffect},
      {"--check", kNoEffect},
      {"-o", kNoEffect},
      {"--op", kNoEffect},
      {"-d", kNoEffect},
      {"--datatype", kNoEffect},
      {"-r", kNoEffect},
      {"--root", kNoEffect},
      {"-p", kNoEffect},
      {"--parallel_init", kNoEffect},
      {"-z", kNoEffect},
      {"--blocking", kNoEffect},
      {"-G", kNoEffect},
      {"--cudagraph", kNoEffect},
      {"-C", kNoEffect},
      {"--report_cputime", kNoEffect},
      {"-R", kNoEffect},
      {"--local_register", kNoEffect},
      {"-T", kNoEffect},
      {"--timeout", kNoEffect},
      {"-i", "sizes grow by a factor: -f 2"},
      {"--stepbytes", "sizes grow by a factor: -f 2"}};
  for (const auto& [name, says] : kOptions)
    if (name == option) return says;
  return {};
}

// Rewrites CLI11's parse errors, with the closest flag or a remedy.
int parse_failure(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = innermost(app);
  const std::string see = words_of(command) + " --help lists the options";
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) return missing_argument(command, see);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const auto extras = app.remaining(true);
    const std::string word = extras.empty() ? "" : extras.front().substr(0, extras.front().find('='));
    if (word.substr(0, 1) != "-") return user_error("unexpected argument \"" + word + '"', see);
    if (const auto other = words_of(command) == "topsim bench" ? of_nccl_tests(word) : std::string_view();
        !other.empty())
      return user_error("bench has no option " + word, std::string(other));
    const std::vector<std::string> flags = flags_of(command);
    const auto close = closest(word, flags);
    if (!close && std::find(flags.begin(), flags.end(), "--set") != flags.end())
      if (const std::string path = path_of(word); !path.empty())
        return user_error("unknown option " + word, "--set " + path + "=VALUE changes the scenario's");
    return user_error("unknown option " + word, close ? "did you mean " + *close + "?" : see);
  }
  std::string message = error.what();
  if (!message.empty() && message.back() == '.') message.pop_back();
  // "Could not convert: --rank = abc", "--fail-if: At Most 1 required but received 2"
  const std::string no_value = "Could not convert: ";
  if (const auto equals = message.find(" = "); message.rfind(no_value, 0) == 0 && equals != std::string::npos)
    message = '"' + message.substr(equals + 3) + "\" is no value for " +
              message.substr(no_value.size(), equals - no_value.size()) + ", which takes a number";
  if (const auto twice = message.find(": At Most 1 required"); twice != std::string::npos)
    message = message.substr(0, twice) + " can be given once";
  return user_error(message, see);
}

int unknown_command(const std::string& word) {
  const auto close = closest(word, command_names());
  return user_error("unknown command \"" + word + '"',
                    close ? "did you mean topsim " + *close + "?" : "commands: " + join(command_names()));
}

int guarded(const Action& action) {
  try {
    return action();
  } catch (const ConfigError& error) {
    report(config::picture(error.problems(), colour_on_stderr()));
    return kUserError;
  } catch (const std::bad_alloc&) {
    report("error: out of memory\n   = fold the run (no --no-fold), or use fewer accelerators\n");
    return kInternalError;
  } catch (const std::exception& error) {
    report("internal error: " + std::string(error.what()) +
           "\n   = this is a mistake of topsim, not yours; please report it with the scenario and the output "
           "of topsim doctor\n");
    return kInternalError;
  }
}
}  // namespace

bool terminal_on_stderr() {
  const char* terminal = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

bool colour_on_stderr() {
  const char* no_colour = std::getenv("NO_COLOR");
  return terminal_on_stderr() && (no_colour == nullptr || *no_colour == '\0');
}

namespace {
// The examples that begin with `words`.
std::string footer_of(std::string_view examples, const std::string& words) {
  std::istringstream lines{std::string(examples)};
  std::string footer;
  for (std::string line; std::getline(lines, line);)
    if (line.rfind(words, 0) == 0) footer += (footer.empty() ? "Examples:\n  " : "\n  ") + line;
  return footer;
}
}  // namespace

void declare(CLI::App& app, std::span<Action> actions) {
  app.name("topsim");
  app.description("Cluster interconnect and topology simulator");
  app.set_version_flag(
      "--version", "topsim " + std::string(report::version()) + " (" + std::string(report::commit()) + ')');
  for (std::size_t i = 0; i < commands().size(); ++i) {
    const Command& command = commands()[i];
    CLI::App* sub = app.add_subcommand(std::string(command.name), std::string(command.summary));
    sub->footer(footer_of(command.examples, ""));
    actions[i] = command.configure(*sub);
    for (CLI::App* part : sub->get_subcommands({}))  // its own examples only
      part->footer(footer_of(command.examples, "topsim " + sub->get_name() + ' ' + part->get_name() + ' '));
  }
}

namespace {
int dispatch(int argc, const char* const* argv) {
  std::vector<const char*> words(argv, argv + argc);
  // "topsim help run" means "topsim run --help".
  if (words.size() > 1 && std::string_view(words[1]) == "help") {
    words.erase(words.begin() + 1);
    if (words.size() > 1) words.push_back("--help");
  }
  const std::string first = words.size() > 1 ? words[1] : "--help";
  if (first == "--help" || first == "-h") {
    std::cout << teaching();
    return kOk;
  }
  const std::vector<std::string> names = command_names();
  if (first.substr(0, 1) != "-" && std::find(names.begin(), names.end(), first) == names.end()) {
    return unknown_command(first);
  }
  CLI::App app;
  std::vector<Action> actions(commands().size());
  return guarded([&] {
    declare(app, actions);
    try {
      app.parse(static_cast<int>(words.size()), words.data());
    } catch (const CLI::CallForHelp&) {
      std::cout << (app.get_subcommands().empty()
                        ? teaching()
                        : broken_into_lines(app.get_subcommands().front()->help("topsim")));
      return static_cast<int>(kOk);
    } catch (const CLI::CallForVersion& version) {
      std::cout << version.what() << '\n';
      return static_cast<int>(kOk);
    } catch (const CLI::ParseError& error) {
      return parse_failure(app, error);
    }
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (app.got_subcommand(std::string(commands()[i].name))) return guarded(actions[i]);
    }
    std::cout << teaching();
    return static_cast<int>(kOk);
  });
}
}  // namespace

int run_command_line(int argc, const char* const* argv) {
  const int status = dispatch(argc, argv);
  if (status == kOk && !std::cout.flush())
    return user_error("cannot write to standard output", "is the disk full?");
  return status;
}
}  // namespace topsim::cli
