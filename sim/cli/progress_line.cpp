#include "sim/cli/progress_line.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "sim/cli/command.hpp"
#include "sim/report/text.hpp"

namespace topsim::cli {
namespace {
using Clock = std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::milliseconds(500);
constexpr auto kRedraw = std::chrono::milliseconds(100);

int columns_of_stderr() {
  winsize size{};
  constexpr int kUsual = 80;
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

std::string bar(double share, int width) {
  std::string text;
  const int full = static_cast<int>(share * width);
  for (int i = 0; i < width; ++i) text += i < full ? "\u2501" : "\u2500";
  return text;
}
}  // namespace

std::string progress_text(const executor::Progress& progress, double wall_seconds, int columns) {
  if (const std::size_t runs = progress.runs_total; runs > 1) {
    const std::size_t finished = progress.runs_done;
    const double part = static_cast<double>(finished) / static_cast<double>(runs);
    std::string text = fmt::format("simulating  {}  {} of {} runs",
                                   bar(part, std::clamp(columns - 46, 4, 30)), finished, runs);
    if (finished > 0) text += fmt::format(" \u00b7 {:.0f} s left", wall_seconds * (1 - part) / part);
    return report::clip_end(text, static_cast<std::size_t>(std::max(1, columns - 1)));
  }
  const auto done = static_cast<double>(progress.ops_done.load());
  const auto total = static_cast<double>(progress.ops_total.load());
  if (total <= 0) return "preparing";
  if (done >= total) return "summing up what was simulated";
  const double share = done / total;
  std::string text =
      fmt::format("simulating step {}/{}  {}  {:.0f} %", progress.step.load() + 1, progress.steps.load(),
                  bar(share, std::clamp(columns - 77, 4, 30)), 100 * share);
  if (share > 0.01) text += fmt::format("  {:.0f} s left", wall_seconds * (1 - share) / share);
  const double events = static_cast<double>(progress.events.load());
  text += " \u00b7 " + report::duration_text(Duration(progress.now_ps.load())) + " simulated";
  if (wall_seconds > 0)
    text += " \u00b7 " + report::count_text(std::round(events / wall_seconds)) + " events/s";
  return report::clip_end(text, static_cast<std::size_t>(std::max(1, columns - 1)));
}

std::string progress_json(const executor::Progress& progress, double wall_seconds) {
  const auto done = static_cast<double>(progress.ops_done.load());
  const auto total = static_cast<double>(progress.ops_total.load());
  const double share = total > 0 ? done / total : 0;
  nlohmann::ordered_json line{{"steps_done", progress.step.load()},
                              {"steps", progress.steps.load()},
                              {"share", share},
                              {"simulated_seconds", static_cast<double>(progress.now_ps.load()) / 1e12},
                              {"events", progress.events.load()},
                              {"wall_seconds", wall_seconds}};
  if (share > 0) line["seconds_left"] = wall_seconds * (1 - share) / share;
  return nlohmann::ordered_json{{"progress", std::move(line)}}.dump() + '\n';
}

ProgressLine::ProgressLine(Text text, bool quiet) : text_(std::move(text)) {
  if (!quiet && terminal_on_stderr()) thread_ = std::thread([this] { draw(); });
}

ProgressLine::ProgressLine(const executor::Progress& progress, bool quiet)
    : ProgressLine(progress, ProgressStyle::line, quiet) {}

ProgressLine::ProgressLine(const executor::Progress& progress, ProgressStyle style, bool quiet)
    : style_(style), text_([&progress, style](double wall, int columns) {
        return style == ProgressStyle::json ? progress_json(progress, wall)
                                            : progress_text(progress, wall, columns);
      }) {
  if (!quiet && (style == ProgressStyle::json || terminal_on_stderr()))
    thread_ = std::thread([this] { draw(); });
}

ProgressLine::~ProgressLine() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  finished_.notify_one();
  thread_.join();
}

void ProgressLine::draw() {
  const bool line = style_ == ProgressStyle::line;
  const auto begin = Clock::now();
  const auto write = [&] {
    const double wall = std::chrono::duration<double>(Clock::now() - begin).count();
    std::fprintf(stderr, line ? "\r\x1b[2K%s" : "%s", text_(wall, columns_of_stderr()).c_str());
    std::fflush(stderr);
  };
  bool drawn = false;
  std::unique_lock lock(mutex_);
  for (auto next = begin + kPatience; !finished_.wait_until(lock, next, [this] { return done_; });
       next = Clock::now() + kRedraw) {
    write();
    drawn = true;
  }
  if (!line) return write();  // how it ended
  if (drawn) {
    std::fputs("\r\x1b[2K", stderr);
    std::fflush(stderr);
  }
}
}  // namespace topsim::cli
