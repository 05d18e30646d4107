#include "sim/report/terminal.hpp"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "sim/report/collective_lines.hpp"
#include "sim/report/per_step.hpp"
#include "sim/report/reason_text.hpp"
#include "sim/report/text.hpp"

namespace topsim::report {
namespace {
// Rows per table: when findings need more lines, tables get fewer.
struct Rows {
  std::size_t reasons, links, collectives;
};
constexpr Rows kRows[] = {{5, 4, 3}, {5, 3, 2}, {4, 2, 2}, {4, 2, 1}, {3, 1, 1}};

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
  // "  step time         8.51 s      what it means"; if that is too wide, the note is on lines of its own.
  void answer(std::string_view label, std::string_view value, std::string_view note, bool bold_one = false) {
    const std::string whole = note.empty() ? fmt::format("  {:<16}  {}", label, value)
                                           : fmt::format("  {:<16}  {:<10}  {}", label, value, note);
    const bool fits = width(whole) <= columns_;
    const std::string first = fits ? whole : fmt::format("  {:<16}  {}", label, value);
    bold_one ? bold(first) : line(first);
    if (fits) return;
    for (const std::string& row : wrap("    " + std::string(note), columns_, 4)) line(row);
  }
  [[nodiscard]] std::size_t columns() const { return columns_; }
  [[nodiscard]] std::size_t lines_left() const { return kLines - std::min(kLines, lines_); }
  [[nodiscard]] const TerminalOptions& options() const { return options_; }
  // Without the empty line before sections that a result does not have.
  [[nodiscard]] std::string take() {
    if (text_.ends_with("\n\n")) text_.pop_back();
    return std::move(text_);
  }

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

}  // namespace

std::string run_text(const RunRecord& record) {
  const auto count = [](std::uint64_t n) { return count_text(static_cast<double>(n)); };
  const char* const classes = record.rank_classes == 1 ? " rank class" : " rank classes";
  return fmt::format("{}{} events, {} of wall time",
                     record.folded ? count(record.rank_classes) + classes + ", " : std::string(),
                     count(record.events), duration_text(from_seconds(record.wall_seconds)));
}

namespace {
void header(Screen& screen, const Result& result, const std::optional<RunRecord>& record) {
  for (const std::string& line :
       wrap(result.headline.empty() ? result.name : result.headline, screen.columns(), 2)) {
    screen.bold(line);
  }
  std::string how = result.network_model + " model";
  if (result.step_times.size() > 1) how += fmt::format(", mean of {} steps", result.step_times.size());
  if (record) how += ", " + run_text(*record);
  if (!result.complete) how += ", interrupted: partial";
  for (const std::string& line : wrap(how, screen.columns(), 2)) screen.line(line);
}

void answer(Screen& screen, const Result& result) {
  if (result.step_times.empty()) {
    screen.answer("step time", "-",
                  result.complete ? "no step was measured" : "interrupted before a measured step ended",
                  true);
    return;
  }
  const double step = seconds(result.step);
  std::string rates;
  if (result.throughput.tokens_per_second > 0) {
    rates = count_text(result.throughput.tokens_per_second) + " tokens/s";
  }
  if (result.throughput.mfu > 0) {
    rates += fmt::format(
        ", {} TFLOP/s{}, {} MFU", three_digits(result.throughput.model_tflops_per_accelerator),
        result.called == "accelerator" ? " each" : '/' + result.called, percent_text(result.throughput.mfu));
  }
  screen.answer("step time", duration_text(result.step), rates, true);
  const double busy = step > 0 ? seconds(result.account.busy) / step : 0;
  const Duration idle = result.account.idle_total();
  screen.answer("accelerator busy", percent_text(busy),
                idle > Duration{} ? "idle " + duration_text(idle) + " per accelerator per step, because:"
                                  : std::string("never idle"));
}

// Reasons beyond the limit, and those that would read 0.0 %, are summed up in the last row.
void reasons(Screen& screen, const Result& result, std::size_t limit) {
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
  constexpr double kVisible = 0.0005;
  const auto small = [&](std::size_t i) { return seconds(rows[i].first) < kVisible * step; };
  // Figures and gaps take 23 columns beside the name, a bar 22 more; without room for it there is no bar.
  constexpr std::size_t kFigures = 23, kBar = 20;
  const std::size_t name = std::min<std::size_t>(28, screen.columns() - kFigures);
  const bool bars = screen.options().bars && screen.columns() >= kFigures + name + 2 + kBar;
  const auto figures = [&](std::string_view what, Duration time) {
    return fmt::format("    {}  {:>9}  {:>6}", pad_right(clip_end(what, name), name), duration_text(time),
                       percent_text(seconds(time) / step));
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool beyond = rows.size() > limit && i + 1 >= limit;
    if (beyond || (i > 0 && small(i) && i + 1 < rows.size()) || (hidden > 0 && small(i))) {
      rest += rows[i].first;
      ++hidden;
      continue;
    }
    const std::string tail = bars ? "  " + bar(seconds(rows[i].first) / seconds(rows[0].first), kBar) : "";
    const auto text_of = result.trace ? trace_reason_text : reason_text;
    screen.line(figures(text_of(rows[i].second), rows[i].first) + tail);
  }
  if (hidden > 0) {
    screen.line(figures(plural(static_cast<double>(hidden), "smaller reason"), rest));
  }
}

// From 1 % of the step on. What is not hidden is among the idle reasons, unless the rank waited for something
// else meanwhile.
void communication(Screen& screen, const Result& result) {
  const double step = seconds(result.step), under_way = seconds(result.account.communication);
  if (step <= 0 || under_way < 0.01 * step) return;
  std::string text = percent_text(seconds(result.account.hidden_communication) / under_way) + " of it hidden";
  if (seconds(result.account.slowed) >= 0.01 * step)
    text += "; it slows kernels by " + duration_text(result.account.slowed);
  screen.answer("communication", percent_text(under_way / step), text);
}

void goodput(Screen& screen, const Result& result) {
  if (!result.goodput) return;
  const Goodput& g = *result.goodput;
  std::string text = g.interruptions_per_day.usual > 0
                         ? "stops every " + days_text(kSecondsPerDay / g.interruptions_per_day.usual)
                         : std::string("no failures");
  if (g.known_losses > 0) text += fmt::format(" + {}", g.known_losses);
  text += ", checkpoints every " + days_text(g.checkpoint_interval);
  screen.answer("goodput", percent_text(g.share.usual), text);
}

void memory(Screen& screen, const Result& result) {
  if (result.memory.capacity <= Bytes{}) return;
  screen.answer("memory", memory_text(result.memory.per_accelerator),
                result.memory.fits
                    ? fmt::format("of {} per accelerator", memory_text(result.memory.capacity))
                    : fmt::format("of {} per accelerator: DOES NOT FIT", capacity_text(result.memory)));
}

// "gpu" of "node0/gpu3", "leaf" of "leaf12"
std::string_view role_of(std::string_view device) {
  if (const std::size_t slash = device.rfind('/'); slash != std::string_view::npos)
    device = device.substr(slash + 1);
  const std::size_t last = device.find_last_not_of("0123456789");
  return device.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

// Whether two links of one type are between the same two kinds of devices, in either direction.
bool same_place(const LinkRow& a, const LinkRow& b) {
  const auto ends = [](const LinkRow& row) { return std::minmax({role_of(row.from), role_of(row.to)}); };
  return a.type == b.type && ends(a) == ends(b);
}

// The most utilised link of each type first, then of each place: otherwise eight equal NVLinks would hide the
// NIC, and a cable's other direction the next cable.
std::vector<const LinkRow*> busiest_links(const Result& result, std::size_t limit) {
  std::vector<const LinkRow*> first, elsewhere, others;
  const auto among = [](const std::vector<const LinkRow*>& rows, auto&& like) {
    return std::any_of(rows.begin(), rows.end(), like);
  };
  for (const LinkRow& row : result.links) {
    const auto same = [&](const LinkRow* each) { return same_place(*each, row); };
    if (!among(first, [&](const LinkRow* each) { return each->type == row.type; }))
      first.push_back(&row);
    else if (!among(first, same) && !among(elsewhere, same))
      elsewhere.push_back(&row);
    else
      others.push_back(&row);
  }
  first.insert(first.end(), elsewhere.begin(), elsewhere.end());
  first.insert(first.end(), others.begin(), others.end());
  if (first.size() > limit) first.resize(limit);
  std::stable_sort(first.begin(), first.end(),
                   [](const LinkRow* a, const LinkRow* b) { return a->utilization > b->utilization; });
  return first;
}

// "node0: gpu0 > nvswitch0 (28)" for links inside nodes, of which 28 are alike; full names otherwise.
std::string ends_of(const LinkRow& row) {
  const std::size_t slash = row.from.find('/');
  std::string text = row.from + " > " + row.to;
  if (slash != std::string::npos && row.to.compare(0, slash + 1, row.from, 0, slash + 1) == 0) {
    text = row.from.substr(0, slash) + ": " + row.from.substr(slash + 1) + " > " + row.to.substr(slash + 1);
  }
  return row.count > 1 ? text + fmt::format(" ({})", row.count) : text;
}

// "InfiniBand NDR 400 Gbit/s" without "InfiniBand", which NDR implies, where there is little room.
std::string type_of(const LinkRow& row, std::size_t room) {
  constexpr std::string_view kFamily = "InfiniBand ";
  if (width(row.type) > room && row.type.compare(0, kFamily.size(), kFamily) == 0) {
    return clip_end(row.type.substr(kFamily.size()), room);
  }
  return clip_end(row.type, room);
}

// Narrow screens show no link types; still narrower ones no bytes.
void links(Screen& screen, const Result& result, std::size_t limit) {
  if (result.links.empty()) return;
  const bool kinds = screen.columns() >= 70, carried = screen.columns() >= 56;
  // Figures and gaps take 18 columns and 8 with bytes, 1 with kinds; the rest is shared by the two names.
  const std::size_t text = screen.columns() - 18 - (carried ? 8 : 0) - (kinds ? 1 : 0);
  const std::vector<const LinkRow*> rows = busiest_links(result, limit);
  std::size_t name = 0;
  for (const LinkRow* row : rows) name = std::max(name, width(ends_of(*row)));
  if (kinds) name = std::min(name, std::max<std::size_t>(text - 14, text * 3 / 5));
  name = std::min(name, text);
  const std::size_t type = kinds ? std::min<std::size_t>(25, text - name) : 0;
  const auto row_text = [&](std::string_view ends, std::string_view bytes, std::string_view mean,
                            std::string_view peak) {
    return fmt::format("{}{} {:>6} {:>6}", ends, carried ? fmt::format(" {:>7}", bytes) : "", mean, peak);
  };
  // The heading begins two columns before the names, and "carried a step" is as wide as bytes and seven more.
  // What was carried before a measured step ended is of no step.
  const char* const bytes = result.step_times.empty() ? "carried so far" : "carried a step";
  const std::size_t heading = 2 + name + (kinds ? 1 + type : 0) - (carried ? 7 : 0);
  screen.line("  " + row_text(pad_right(clip_end("busiest links (number of equal links)", heading), heading),
                              bytes, "mean", "peak"));
  for (const LinkRow* row : rows) {
    std::string ends = "    " + pad_right(clip(ends_of(*row), name), name);
    if (kinds) ends += " " + pad_right(type_of(*row, type), type);
    screen.line(row_text(ends, bytes_text(bytes_per_step(result, *row)), percent_text(row->utilization),
                         percent_text(row->peak_utilization)));
  }
}

// "123 000", "3.11 M", "0.50": at most seven columns.
std::string calls_text(double count) {
  return count < 999'500 ? count_text(count) : three_digits(count / 1e6) + " M";
}

// Narrow screens show no algorithms; still narrower ones no sizes, then no calls.
void collectives(Screen& screen, const Result& result, std::size_t limit) {
  if (result.collectives.empty()) return;
  const bool algorithm = screen.columns() >= 70, size = screen.columns() >= 66,
             calls = screen.columns() >= 54;
  const std::size_t name = std::min<std::size_t>(22, screen.columns() - 24 - (calls ? 8 : 0));
  const auto row_text = [&](const std::string& what, std::string_view count, std::string_view bytes,
                            std::string_view each, std::string_view rate, std::string_view how) {
    std::string text = what;
    if (calls) text += fmt::format(" {:>7}", count);
    if (size) text += fmt::format(" {:>8}", bytes);
    text += fmt::format(" {:>8} {:>10}", each, rate);
    if (algorithm) text += fmt::format("  {}", how);
    return clip_end(text, screen.columns());
  };
  // "calls a step" is as wide as calls and eight more; the heading begins two columns before the names.
  const std::size_t heading = 2 + name - (calls ? 6 : 0);
  const char* const count = result.step_times.empty() ? " calls so far" : " calls a step";
  screen.line("  " +
              row_text(pad_right("collectives", heading), count, "size", "each", "busbw", "algorithm"));
  for (const CollectiveLine& line : longest_collectives(result, limit))
    screen.line(row_text("    " + pad_right(clip_end(line.name, name), name), calls_text(line.calls),
                         line.size, line.each, line.bus_bandwidth, line.algorithm));
}

// Returns whether all findings fitted.
bool finding_lines(Screen& screen, const Result& result, const std::string& result_file) {
  std::size_t shown = 0;
  for (const Finding& each : result.findings) {
    const auto rows =
        wrap(fmt::format("  {}: {}", name_of(each.severity), each.message), screen.columns(), 4);
    const bool closes = shown + 1 < result.findings.size() || !result_file.empty();
    if (rows.size() + (closes ? 1 : 0) > screen.lines_left()) break;
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
  return shown == result.findings.size();
}

void draw(Screen& screen, const Result& result, const std::optional<RunRecord>& record, const Rows& rows) {
  header(screen, result, record);
  screen.blank();
  answer(screen, result);
  if (!result.step_times.empty()) reasons(screen, result, rows.reasons);
  communication(screen, result);
  memory(screen, result);
  goodput(screen, result);
  screen.blank();
  links(screen, result, rows.links);
  collectives(screen, result, rows.collectives);
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
  std::string text;
  for (const Rows& rows : kRows) {
    Screen screen(options);
    draw(screen, result, record, rows);
    // What has no step is nothing to explain.
    const bool all = finding_lines(screen, result, result.step_times.empty() ? "" : result_file);
    text = screen.take();
    if (all) break;
  }
  return text;
}
}  // namespace topsim::report
