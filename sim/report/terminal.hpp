// The screen of `topsim run`: at most 24 lines, the answer first, a unit on every number.
#pragma once

#include <optional>
#include <string>

#include "sim/report/result.hpp"

namespace topsim::report {

struct TerminalOptions {
  int columns = 80;
  bool bars = false;    // only where a person looks
  bool colour = false;  // likewise, and NO_COLOR is not set
};
// From this process's standard output: isatty, COLUMNS or the window's size, NO_COLOR, TERM=dumb.
[[nodiscard]] TerminalOptions options_of_stdout();

// What a run took: "16 rank classes, 5 980 events, 113 ms of wall time"; classes where it was folded.
[[nodiscard]] std::string run_text(const RunRecord& record);

// `record`: adds classes, events and wall time to the first line. `explain`: the closing hint's path of a
// result file, empty when none was written.
[[nodiscard]] std::string to_terminal(const Result& result, const TerminalOptions& options,
                                      const std::optional<RunRecord>& record = {},
                                      const std::string& result_file = {});
}  // namespace topsim::report
