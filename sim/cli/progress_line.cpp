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
constexpr double kForetelling = 0.01;  // share of the ops that tells how long the rest may take

int columns_of_stderr() {
  winsize size{};
  constexpr int kUsual = 80;
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

// Why the run's ranks do not fold into a few classes, and what can be done about it.
std::string cause_text(const executor::Progress& run) {
  const std::string classes = std::to_string(run.rank_classes), ranks = std::to_string(run.ranks);
  switch (run.unfolded_by.load()) {
    case executor::UnfoldedReason::by_packet:
      return "every packet is simulated{}; network.model=flow shares links without packets";
    case executor::UnfoldedReason::by_choice:
      return "all " + ranks + " ranks are simulated one by one{}";
    case executor::UnfoldedReason::by_hash:
      return "paths by hash keep " + classes + " of " + ranks +
             " ranks apart{}; with topology.fabric.routing=adaptive more of them are simulated as one";
    case executor::UnfoldedReason::by_place:
      break;
  }
  return ranks + " ranks are of " + classes + " kinds{}";
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
  if (progress.stopped()) return "interrupted: summing up what was simulated; once more ends at once";
  if (done >= total) return "summing up what was simulated";
  const double share = done / total;
  std::string text =
      fmt::format("simulating step {}/{}  {}  {:.0f} %", progress.step.load() + 1, progress.steps.load(),
                  bar(share, std::clamp(columns - 77, 4, 30)), 100 * share);
  if (share > kForetelling) text += fmt::format("  {:.0f} s left", wall_seconds * (1 - share) / share);
  const double events = static_cast<double>(progress.events.load());
  text += " \u00b7 " + report::duration_text(Duration(progress.now_ps.load())) + " simulated";
  if (wall_seconds > 0)
    text += " \u00b7 " + report::count_text(std::round(events / wall_seconds)) + " events/s";
  return report::clip_end(text, static_cast<std::size_t>(std::max(1, columns - 1)));
}

std::string long_run_text(const executor::Progress& progress, Clock::time_point now) {
  constexpr double kLong = 15, kTelling = 1.0 / 500;  // seconds; a share of the ops
  constexpr auto kEnough = std::chrono::seconds(2), kLongEnough = std::chrono::seconds(3);
  // Packets of a collective that was simulated before are not simulated again, so the beginning is slowest,
  // and ops foretell nothing until a step is over.
  constexpr auto kEnoughOfPackets = std::chrono::seconds(10);
  std::string text;
  const auto note = [](const executor::Progress& run, const std::string& time) {
    return fmt::format("note: {}\n", fmt::format(fmt::runtime(cause_text(run)), time));
  };
  double longest = kLong;
  progress.each_run([&](const executor::Progress& run) {
    const Clock::time_point began = run.began;
    const double done = static_cast<double>(run.ops_done), total = static_cast<double>(run.ops_total);
    if (began == Clock::time_point{} || done <= 0 || done >= total) return;
    const bool packets = run.unfolded_by == executor::UnfoldedReason::by_packet;
    if (now < began + (packets ? kEnoughOfPackets : done < kTelling * total ? kLongEnough : kEnough)) return;
    if (packets && run.step == 0) {
      if (text.empty()) text = note(run, ", which may take minutes");
      return;
    }
    const double whole = std::chrono::duration<double>(now - began).count() * total / done;
    if (whole < longest) return;
    longest = whole;
    constexpr double kMinute = 60;
    const std::string time = whole < 2 * kMinute ? fmt::format("{:.0f} s", 10 * std::round(whole / 10))
                                                 : fmt::format("{:.0f} min", whole / kMinute);
    text = note(run, ": about " + time + " a run");
  });
  return text;
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
  if (share > kForetelling) line["seconds_left"] = wall_seconds * (1 - share) / share;
  return nlohmann::ordered_json{{"progress", std::move(line)}}.dump() + '\n';
}

ProgressLine::ProgressLine(Text text, bool quiet) : text_(std::move(text)), draws_(terminal_on_stderr()) {
  if (!quiet && draws_) thread_ = std::thread([this] { draw(); });
}

ProgressLine::ProgressLine(const executor::Progress& progress, bool quiet)
    : ProgressLine(progress, ProgressStyle::line, quiet) {}

ProgressLine::ProgressLine(const executor::Progress& progress, ProgressStyle style, bool quiet)
    : style_(style),
      text_([&progress, style](double wall, int columns) {
        return style == ProgressStyle::json ? progress_json(progress, wall)
                                            : progress_text(progress, wall, columns);
      }),
      draws_(style == ProgressStyle::json || terminal_on_stderr()) {
  if (style == ProgressStyle::line) note_ = [&progress] { return long_run_text(progress, Clock::now()); };
  if (!quiet) thread_ = std::thread([this] { draw(); });
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
    if (const std::string note = note_ ? note_() : ""; !note.empty()) {
      std::fprintf(stderr, "%s%s", drawn ? "\r\x1b[2K" : "", note.c_str());
      note_ = nullptr;  // once
    }
    if (!draws_) continue;
    write();
    drawn = true;
  }
  if (!line) return write();  // the final line
  if (drawn) {
    std::fputs("\r\x1b[2K", stderr);
    std::fflush(stderr);
  }
}
}  // namespace topsim::cli
