#include "sim/report/terminal.hpp"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "sim/report/text.hpp"

namespace topsim::report {
namespace {
constexpr std::size_t kReasonRows = 5, kLinkRows = 4, kCollectiveRows = 3;

class Screen {
 public:
  explicit Screen(const TerminalOptions& options)
      : options_(options), columns_(static_cast<std::size_t>(std::max(options.columns, 40))) {}
  void line(std::string_view text) { append(clip(text, columns_)); }
  void blank() { append({}); }
  void bold(std::string_view text) {
    const std::string shown = clip(text, columns_);
    append(options_.colour ? "\x1b[1m" + shown + "\x1b[0m" : shown);
  }
  [[nodiscard]] std::size_t columns() const { return columns_; }
  [[nodiscard]] std::size_t lines_left() const { return kLines - std::min(kLines, lines_); }
  [[nodiscard]] const TerminalOptions& options() const { return options_; }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  static constexpr std::size_t kLines = 24;
  void append(std::string_view text) {
    text_ += text;
    text_ += '\n';
    ++lines_;
  }
  TerminalOptions options_;
  std::size_t columns_;
  std::size_t lines_ = 0;
  std::string text_;
};

std::string reason_text(executor::Reason reason) {
  switch (reason) {
    case executor::Reason::pipeline_bubble:
      return "pipeline bubble";
    case executor::Reason::straggler:
      return "waiting for the slowest";
    case executor::Reason::host:
      return "host and launch";
    case executor::Reason::offload:
      return "offload";
    case executor::Reason::other:
      return "other";
    default: {
      std::string text = "exposed " + std::string(name_of(reason));
      std::replace(text.begin(), text.end(), '_', ' ');
      return text;
    }
  }
}

void header(Screen& screen, const Result& result, const std::optional<RunRecord>& record) {
  for (const std::string& line :
       wrap(result.headline.empty() ? result.name : result.headline, screen.columns(), 2)) {
    screen.bold(line);
  }
  std::string how = result.network_model + " model";
  if (result.step_times.size() > 1) how += fmt::format(", mean of {} steps", result.step_times.size());
  if (record) {
    how += fmt::format(", {} events, {} of wall time", count_text(static_cast<double>(record->events)),
                       duration_text(from_seconds(record->wall_seconds)));
  }
  if (!result.complete) how += ", INCOMPLETE";
  screen.line(how);
}

void answer(Screen& screen, const Result& result) {
  const double step = seconds(result.step);
  std::string rates;
  if (result.throughput.tokens_per_second > 0) {
    rates = count_text(result.throughput.tokens_per_second) + " tokens/s";
  }
  if (result.throughput.mfu > 0) {
    rates +=
        fmt::format(", {} TFLOP/s/GPU, {} MFU", three_digits(result.throughput.model_tflops_per_accelerator),
                    percent_text(result.throughput.mfu));
  }
  screen.bold(fmt::format("  step time         {:<10}  {}", duration_text(result.step), rates));
  const double busy = step > 0 ? seconds(result.account.busy) / step : 0;
  screen.line(fmt::format("  accelerator busy  {:<10}  idle {} per accelerator per step{}",
                          percent_text(busy), duration_text(result.account.idle_total()),
                          result.account.idle_total() > Duration{} ? ", because:" : ""));
}

void reasons(Screen& screen, const Result& result) {
  std::vector<std::pair<Duration, executor::Reason>> rows;
  for (std::size_t i = 0; i < result.account.idle.size(); ++i) {
    if (result.account.idle[i] > Duration{}) {
      rows.emplace_back(result.account.idle[i], static_cast<executor::Reason>(i));
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  Duration rest{};
  std::size_t hidden = 0;
  const double step = seconds(result.step);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows.size() > kReasonRows && i + 1 >= kReasonRows) {
      rest += rows[i].first;
      ++hidden;
      continue;
    }
    const std::string tail =
        screen.options().bars ? "  " + bar(seconds(rows[i].first) / seconds(rows[0].first), 20) : "";
    screen.line(fmt::format("    {:<28}  {:>9}  {:>6}{}", reason_text(rows[i].second),
                            duration_text(rows[i].first), percent_text(seconds(rows[i].first) / step), tail));
  }
  if (hidden > 0) {
    screen.line(fmt::format("    {:<28}  {:>9}  {:>6}", plural(static_cast<double>(hidden), "smaller reason"),
                            duration_text(rest), percent_text(seconds(rest) / step)));
  }
}

void goodput(Screen& screen, const Result& result) {
  if (!result.goodput) return;
  const Goodput& g = *result.goodput;
  constexpr double kSecondsPerDay = 86400;
  std::string text =
      g.interruptions_per_day.usual > 0
          ? fmt::format("an interruption every {}", days_text(kSecondsPerDay / g.interruptions_per_day.usual))
          : std::string("no interruptions");
  if (g.known_losses > 0) text += fmt::format(" and {} known", g.known_losses);
  text += fmt::format(", a checkpoint every {}{}", days_text(g.checkpoint_interval),
                      g.optimum ? " (the optimum)" : "");
  screen.line(fmt::format("  goodput           {:<10}  over {} days: {}", percent_text(g.share.usual),
                          three_digits(g.days), text));
}

void memory(Screen& screen, const Result& result) {
  if (result.memory.capacity <= Bytes{}) return;
  screen.line(fmt::format("  memory            {:<10}  of {} per accelerator{}",
                          bytes_text(static_cast<double>(result.memory.per_accelerator.value())),
                          bytes_text(static_cast<double>(result.memory.capacity.value())),
                          result.memory.fits ? "" : ": DOES NOT FIT"));
}

// The most utilised link of each kind first: eight alike NVLinks would hide the NIC.
std::vector<const LinkRow*> busiest_links(const Result& result) {
  std::vector<const LinkRow*> first;
  std::vector<const LinkRow*> others;
  for (const LinkRow& row : result.links) {
    const bool seen =
        std::any_of(first.begin(), first.end(), [&](const LinkRow* each) { return each->type == row.type; });
    (seen ? others : first).push_back(&row);
  }
  first.insert(first.end(), others.begin(), others.end());
  if (first.size() > kLinkRows) first.resize(kLinkRows);
  std::stable_sort(first.begin(), first.end(),
                   [](const LinkRow* a, const LinkRow* b) { return a->utilization > b->utilization; });
  return first;
}

void links(Screen& screen, const Result& result) {
  if (result.links.empty()) return;
  // 30 columns of figures and gaps; the rest is shared by the two names.
  const std::size_t text = screen.columns() - std::min<std::size_t>(screen.columns() - 20, 30);
  const std::size_t type = std::min<std::size_t>(25, text * 2 / 5);
  const std::size_t name = std::min<std::size_t>(48, text - type);
  screen.line(fmt::format("  {} {:>8} {:>7} {:>7}", pad_right("busiest links", name + type + 3), "carried",
                          "mean", "peak"));
  for (const LinkRow* row : busiest_links(result)) {
    std::string id = row->from + " > " + row->to;
    if (row->count > 1) id += fmt::format(" x{}", row->count);
    screen.line(fmt::format("    {} {} {:>8} {:>7} {:>7}", pad_right(clip(id, name), name),
                            pad_right(clip_end(row->type, type), type), bytes_text(row->bytes),
                            percent_text(row->utilization), percent_text(row->peak_utilization)));
  }
}

void collectives(Screen& screen, const Result& result) {
  if (result.collectives.empty()) return;
  std::vector<const CollectiveRow*> rows;
  for (const CollectiveRow& row : result.collectives) rows.push_back(&row);
  const auto total = [](const CollectiveRow* row) {
    return seconds(row->each) * static_cast<double>(row->calls);
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const CollectiveRow* a, const CollectiveRow* b) { return total(a) > total(b); });
  screen.line(fmt::format("  {:<26} {:>8} {:>8} {:>8} {:>10}  {}", "collectives", "calls", "size", "each",
                          "busbw", "algorithm"));
  for (std::size_t i = 0; i < std::min(rows.size(), kCollectiveRows); ++i) {
    const CollectiveRow& row = *rows[i];
    screen.line(fmt::format(
        "    {} {:>8} {:>8} {:>8} {:>10}  {} {}", pad_right(clip(row.group + " " + row.kind, 24), 24),
        count_text(static_cast<double>(row.calls)), message_text(row.bytes), duration_text(row.each),
        rate_text(row.bus_bandwidth), row.algorithm, row.protocol));
  }
}

void finding_lines(Screen& screen, const Result& result, const std::string& result_file) {
  std::size_t shown = 0;
  for (const Finding& each : result.findings) {
    const auto rows = wrap((each.severity == Severity::warning ? "  warning: " : "  note: ") + each.message,
                           screen.columns(), 4);
    if (rows.size() + 1 > screen.lines_left()) break;
    for (const std::string& row : rows) screen.line(row);
    ++shown;
  }
  std::string closing;
  if (result.findings.size() > shown) {
    closing =
        plural(static_cast<double>(result.findings.size() - shown), shown == 0 ? "finding" : "more finding");
  }
  if (!result_file.empty()) {
    closing += fmt::format("{}topsim explain {}", closing.empty() ? "" : ": ", result_file);
  }
  if (!closing.empty()) screen.line("  " + closing);
}
}  // namespace

TerminalOptions options_of_stdout() {
  TerminalOptions options;
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  const char* kind = std::getenv("TERM");
  const char* no_colour = std::getenv("NO_COLOR");
  const bool dumb = kind != nullptr && std::string_view(kind) == "dumb";
  options.bars = terminal && !dumb;
  options.colour = options.bars && (no_colour == nullptr || *no_colour == '\0');
  winsize window{};
  if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0)
    options.columns = window.ws_col;
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr) {
    const int wanted = std::atoi(columns);
    if (wanted > 0) options.columns = wanted;
  }
  return options;
}

std::string to_terminal(const Result& result, const TerminalOptions& options,
                        const std::optional<RunRecord>& record, const std::string& result_file) {
  Screen screen(options);
  header(screen, result, record);
  screen.blank();
  answer(screen, result);
  reasons(screen, result);
  memory(screen, result);
  goodput(screen, result);
  screen.blank();
  links(screen, result);
  collectives(screen, result);
  finding_lines(screen, result, result_file);
  return screen.take();
}
}  // namespace topsim::report
