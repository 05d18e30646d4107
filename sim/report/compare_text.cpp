#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/report/compare.hpp"
#include "sim/report/reason_text.hpp"
#include "sim/report/text.hpp"

namespace topsim::report {
std::string value_text(double value, Unit unit) {
  if (std::isinf(value)) return "never";
  switch (unit) {
    case Unit::seconds:
      return duration_text(from_seconds(value));
    case Unit::bytes_per_second:
      return rate_text(value);
    case Unit::share:
      return percent_text(value);
    case Unit::bytes:
      return memory_text(Bytes(std::llround(value)));  // an accelerator's memory, in the form that run prints
    case Unit::watts:
      return three_digits(value / 1000) + " kW";
    case Unit::dollars:
      return dollars_text(value);
    case Unit::count:
      break;
  }
  return count_text(value);
}

std::string unit_name(Unit unit) {
  switch (unit) {
    case Unit::seconds:
      return "s";
    case Unit::bytes_per_second:
      return "B/s";
    case Unit::share:
      return "1";
    case Unit::bytes:
      return "B";
    case Unit::watts:
      return "W";
    case Unit::dollars:
      return "USD";
    case Unit::count:
      return "count";
  }
  return "1";
}

namespace {
std::string relative_text(const ComparisonRow& row, std::size_t c) {
  if (std::isinf(row.values[c]) != std::isinf(row.values[0])) return "-";
  if (std::isnan(row.relative[c])) return "new";
  // Relative to almost nothing a percentage is meaningless.
  constexpr double kManyTimes = 99;
  if (row.relative[c] >= kManyTimes) return "x " + three_digits(row.relative[c] + 1);
  return signed_percent_text(row.relative[c]);
}

std::vector<const ComparisonRow*> chosen(const Comparison& comparison, bool all_rows) {
  if (!all_rows) return rows_that_differ(comparison);
  std::vector<const ComparisonRow*> rows;
  for (const ComparisonRow& row : comparison.rows) rows.push_back(&row);
  return rows;
}

// The header, then one line per row: metric, values, and after each but the first its difference.
std::vector<std::vector<std::string>> cells(const Comparison& comparison, bool all_rows) {
  std::vector<std::vector<std::string>> table(1, {""});
  for (std::size_t c = 0; c < comparison.names.size(); ++c) {
    table[0].push_back(comparison.names[c]);
    if (c > 0) table[0].push_back("difference");
  }
  for (const ComparisonRow* row : chosen(comparison, all_rows)) {
    std::vector<std::string> line{metric_label(row->metric, comparison.traces)};
    for (std::size_t c = 0; c < row->values.size(); ++c) {
      line.push_back(value_text(row->values[c], row->unit));
      if (c > 0) line.push_back(relative_text(*row, c));
    }
    table.push_back(std::move(line));
  }
  return table;
}

// Wide enough for "exposed pipeline transfer".
constexpr std::size_t kMetricColumns = 25;

std::vector<std::size_t> widths_of(const std::vector<std::vector<std::string>>& table) {
  std::vector<std::size_t> widths(table[0].size(), 0);
  for (const auto& line : table) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], width(line[i]));
  }
  return widths;
}

// The columns that everything but the metric takes.
std::size_t rest_of(const std::vector<std::size_t>& widths) {
  std::size_t rest = 0;
  for (std::size_t i = 1; i < widths.size(); ++i) rest += widths[i] + 2;
  return rest;
}

// A, B, ... Z, AA, AB, ...
std::string letters(std::size_t number) {
  constexpr std::size_t kLetters = 26;
  const std::string before = number < kLetters ? "" : letters(number / kLetters - 1);
  return before + static_cast<char>('A' + number % kLetters);
}

// One line per candidate; a single line if the same limits each.
std::vector<std::string> limits_text(const Comparison& comparison) {
  const std::string what = "critical path by what limits it";
  const bool alike = std::all_of(comparison.limits.begin(), comparison.limits.end(),
                                 [&](const std::string& each) { return each == comparison.limits[0]; });
  if (alike) return {fmt::format("{}, of each: {}", what, comparison.limits[0])};
  std::vector<std::string> lines;
  for (std::size_t c = 0; c < comparison.limits.size(); ++c)
    lines.push_back(fmt::format("{}, {}: {}", what, comparison.names[c], comparison.limits[c]));
  return lines;
}

nlohmann::json interval_json(const Interval& range) {
  return {{"p5", range.low}, {"p50", range.usual}, {"p95", range.high}};
}
}  // namespace

std::string metric_label(const std::string& metric, bool traces) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"step.seconds", "step time"},
      {"accelerators.busy_seconds", "accelerator busy"},
      {"accelerators.slowed_seconds", "of busy: slowed"},
      {"accelerators.communication_seconds", "communication"},
      {"accelerators.hidden_communication_seconds", "of it: hidden"},
      {"throughput.tokens_per_second", "tokens per second"},
      {"throughput.mfu", "model FLOPs utilisation"},
      {"memory.per_accelerator_bytes", "memory of the fullest"},
      {"reliability.goodput", "goodput"},
      {"reliability.interruptions_per_day", "interruptions a day"},
      {"reliability.step_seconds", "step time with failures"},
      {"cost.capital_usd", "price of everything"},
      {"cost.fabric_usd", "price of the fabric"},
      {"cost.watts", "power with cooling"},
      {"cost.usd_per_step", "cost of a step"},
      {"cost.usd_per_million_tokens", "cost per million tokens"},
      {"cost.usd_per_run", "cost of the training run"}};
  for (const auto& [name, label] : kNames)
    if (metric == name) return std::string(label);
  for (std::size_t i = 0; i < executor::kReasons; ++i) {
    const auto reason = static_cast<executor::Reason>(i);
    if (metric == fmt::format("accelerators.idle_seconds.{}", name_of(reason)))
      return traces ? trace_reason_text(reason) : reason_text(reason);
  }
  const auto between = [&](std::string_view prefix, std::string_view suffix) {
    if (!metric.starts_with(prefix) || !metric.ends_with(suffix)) return std::string();
    return metric.substr(prefix.size(), metric.size() - prefix.size() - suffix.size());
  };
  if (const std::string call = between("collectives.", ".bus_bandwidth"); !call.empty()) {
    const std::size_t kind = call.find('.'), size = call.rfind('.');
    return fmt::format("busbw {} {} {}", call.substr(0, kind), call.substr(kind + 1, size - kind - 1),
                       message_text(Bytes(std::stoll(call.substr(size + 1)))));
  }
  if (const std::string kind = between("links.", ".utilization"); !kind.empty())
    return fmt::format("busiest {} link, mean", kind);
  return metric;
}

std::string compare_table(const Comparison& comparison, bool all_rows, int columns) {
  auto table = cells(comparison, all_rows);
  const auto window = static_cast<std::size_t>(std::max(columns, 40));
  std::string text;
  std::vector<std::size_t> widths = widths_of(table);
  // Long names are shortened first: letters replace them. Then the metric's name is.
  if (rest_of(widths) + std::min<std::size_t>(widths[0], kMetricColumns) > window) {
    for (std::size_t c = 0; c < comparison.names.size(); ++c) {
      const std::string letter = letters(c);
      text += letter + ": " + comparison.names[c] + "\n";
      table[0][c == 0 ? 1 : 2 * c] = letter;
      if (c > 0) table[0][2 * c + 1] = "to A";
    }
    text += "\n";
    widths = widths_of(table);
  }
  const std::size_t rest = rest_of(widths);
  widths[0] = std::max<std::size_t>(std::min(widths[0], window > rest ? window - rest : 0), 15);
  for (const auto& line : table) {
    // A name that is too long for the window continues below its figures.
    std::vector<std::string> name = wrap(line[0], widths[0], 2);
    if (name.empty()) name.emplace_back();
    std::string row = pad_right(clip(name[0], widths[0]), widths[0]);
    for (std::size_t i = 1; i < line.size(); ++i) row += "  " + pad_left(line[i], widths[i]);
    text += row + "\n";
    for (std::size_t i = 1; i < name.size(); ++i) text += clip(name[i], widths[0]) + "\n";
  }
  text += "\n";
  const auto sentences = [&](const std::string& all) {
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t end = std::min(all.find('\n', at), all.size());
      for (const std::string& row : wrap(all.substr(at, end - at), window, 2)) text += row + "\n";
      at = end + 1;
    }
  };
  sentences(comparison.verdict);
  for (const std::string& line : limits_text(comparison)) sentences(line);
  for (const std::string& remark : comparison.remarks) sentences("note: " + remark);
  return text;
}

namespace {
std::string in_a_cell(const std::string& text) {
  std::string cell;
  for (const char c : text) cell += c == '|' ? std::string("\\|") : std::string(1, c);
  return cell;
}
}  // namespace

std::string compare_markdown(const Comparison& comparison, std::span<const Candidate> candidates,
                             bool all_rows) {
  std::string text = "# " + comparison.names[0];
  for (std::size_t c = 1; c < comparison.names.size(); ++c) text += " or " + comparison.names[c];
  text += "\n\n";
  for (char c : comparison.verdict) text += c == '\n' ? std::string("\n\n") : std::string(1, c);
  text += "\n";
  for (const std::string& line : limits_text(comparison)) text += "\n" + line + "\n";
  text += "\n";
  const auto table = cells(comparison, all_rows);
  for (std::size_t r = 0; r < table.size(); ++r) {
    text += "|";
    for (const std::string& cell : table[r]) text += " " + in_a_cell(cell) + " |";
    text += "\n";
    if (r > 0) continue;
    text += "|:--|";
    for (std::size_t i = 1; i < table[0].size(); ++i) text += "--:|";
    text += "\n";
  }
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    text += fmt::format("\n## {}\n\n{}\n", comparison.names[c], candidates[c].result.headline);
    if (candidates[c].cost)
      text += "\n```\n" + bom_table(candidates[c].cost->bill, std::numeric_limits<int>::max()) + "```\n";
  }
  text += "\n## How this was computed\n\n";
  text += fmt::format("- topsim {} ({}), {} sample{}.\n", candidates[0].result.version,
                      candidates[0].result.commit, comparison.samples,
                      comparison.samples == 1 ? "" : "s of ECMP seeds and of uncertain inputs");
  for (const std::string& remark : comparison.remarks) text += "- " + remark + "\n";
  return text;
}

std::string compare_json(const Comparison& comparison) {
  using nlohmann::json;
  json rows = json::array();
  const std::vector<const ComparisonRow*> shown = rows_that_differ(comparison);
  for (const ComparisonRow& row : comparison.rows) {
    json each = {{"metric", row.metric},
                 {"unit", unit_name(row.unit)},
                 {"values", row.values},
                 {"effect", row.effect},
                 {"label", metric_label(row.metric, comparison.traces)},
                 {"shown", std::find(shown.begin(), shown.end(), &row) != shown.end()}};
    json relative = json::array();
    for (double value : row.relative) relative.push_back(std::isfinite(value) ? json(value) : json());
    each["relative"] = std::move(relative);
    for (const Interval& range : row.ranges) each["ranges"].push_back(interval_json(range));
    rows.push_back(std::move(each));
  }
  json steps = json::array();
  for (const Interval& interval : comparison.step_relative) steps.push_back(interval_json(interval));
  const json document = {{"limits", comparison.limits},
                         {"per_token", comparison.per_token},
                         {"format", "topsim.compare/1"},
                         {"baseline", comparison.names.empty() ? std::string() : comparison.names[0]},
                         {"names", comparison.names},
                         {"samples", comparison.samples},
                         {"rows", std::move(rows)},
                         {"step_relative", std::move(steps)},
                         {"verdict", comparison.verdict},
                         {"remarks", comparison.remarks},
                         {"complete", comparison.complete}};
  return document.dump(1) + '\n';
}
}  // namespace topsim::report
