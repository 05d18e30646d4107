// One line on stderr, redrawn ten times a second once a run has taken half a second; only on a terminal. Or,
// for programs that wrap this one, a line of JSON each time, wherever stderr goes, and one at the end. Before
// it, also in files, a note where a run will take long.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "sim/executor/progress.hpp"

namespace topsim::cli {

// "simulating  ━━━━────  12 of 64 runs · 3 s left", or of a single run
// "simulating step 3/8  ━━━━━━━━────  62 %   251 ms simulated · 1.9 M events/s · 4 s left"
[[nodiscard]] std::string progress_text(const executor::Progress& progress, double wall_seconds, int columns);

// A note about a run that will take more than 15 s: why, how long, what would be faster. "note: paths by hash
// keep 6140 of 6144 ranks apart: about 2 min a run; with ..." Empty for shorter runs, and at the very
// beginning of a run, which says little about the rest. A packet run gets no time before its first step ends.
[[nodiscard]] std::string long_run_text(const executor::Progress& progress,
                                        std::chrono::steady_clock::time_point now);

// {"progress": {"steps_done": 1, "steps": 3, "share": 0.62, "simulated_seconds": ..., "events": ...,
// "wall_seconds": ..., "seconds_left": ...}} and a line break.
[[nodiscard]] std::string progress_json(const executor::Progress& progress, double wall_seconds);

enum class ProgressStyle : std::uint8_t { line, json };

class ProgressLine {
 public:
  using Text = std::function<std::string(double wall_seconds, int columns)>;
  // Nothing is drawn where stderr is not a terminal, but the note is written; with --quiet neither.
  ProgressLine(Text text, bool quiet);
  ProgressLine(const executor::Progress& progress, bool quiet);
  ProgressLine(const executor::Progress& progress, ProgressStyle style, bool quiet);
  ~ProgressLine();  // erases the line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

 private:
  void draw();
  ProgressStyle style_ = ProgressStyle::line;
  Text text_;
  std::function<std::string()> note_;  // until it was written
  bool draws_;
  std::mutex mutex_;
  std::condition_variable finished_;
  bool done_ = false;
  std::thread thread_;
};
}  // namespace topsim::cli
