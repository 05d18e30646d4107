// A command of topsim: a name, a summary, examples, and a function that declares its options on a CLI11 app
// and returns what to do once they are parsed. One file per command; commands.cpp lists them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace topsim::cli {

// Exit codes; README.md at the root promises them.
enum Exit : int { kOk = 0, kCheckFailed = 1, kUserError = 2, kInternalError = 70, kInterrupted = 130 };

using Action = std::function<int()>;  // returns an exit code; ConfigError and others are main's to report

struct Command {
  std::string_view name;
  std::string_view summary;
  Action (*configure)(CLI::App& app);
  std::string_view examples;  // shown at the end of --help, one per line
};

// In the order of `topsim --help`.
[[nodiscard]] std::span<const Command> commands();

// The whole command line as CLI11 sees it, for --help and completion. `chosen` is set to the parsed command's
// action's index by the caller; see main.cpp.
void declare(CLI::App& app, std::span<Action> actions);

// Parses and runs; turns exceptions into exit codes and messages on stderr.
[[nodiscard]] int run_command_line(int argc, const char* const* argv);

// Whether stderr is a terminal with escape sequences: TERM is set and not dumb.
[[nodiscard]] bool terminal_on_stderr();
// Whether messages on stderr may be coloured: such a terminal, and NO_COLOR unset.
[[nodiscard]] bool colour_on_stderr();
}  // namespace topsim::cli
