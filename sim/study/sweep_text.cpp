#include "sim/study/sweep_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/base/suggest.hpp"
#include "sim/report/compare.hpp"
#include "sim/report/csv.hpp"
#include "sim/report/releases.hpp"
#include "sim/report/text.hpp"
#include "sim/report/version.hpp"
#include "sim/study/sweep.hpp"
#include "sim/study/sweep_choice.hpp"
#include "sim/study/sweep_figures.hpp"

namespace topsim::study {
namespace {
using report::pad_left;
using report::width;

constexpr std::size_t kMessages = 8;

// "tp" for workload.plan.tp if no other path ends in it.
std::vector<std::string> short_names(const std::vector<std::string>& paths) {
  const auto last = [](const std::string& path) { return path.substr(path.rfind('.') + 1); };
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    const auto same = [&](const std::string& other) { return last(other) == last(path); };
    names.push_back(std::count_if(paths.begin(), paths.end(), same) > 1 ? path : last(path));
  }
  return names;
}

// Right-aligned columns, as wide as their widest cell; columns that do not fit are left out.
std::string aligned(const std::vector<std::vector<std::string>>& lines, std::size_t columns) {
  std::vector<std::size_t> widths(lines.front().size());
  for (const auto& line : lines) {
    for (std::size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], width(line[c]));
  }
  std::string text;
  for (const auto& line : lines) {
    std::size_t used = 0;
    std::string row;
    for (std::size_t c = 0; c < line.size(); ++c) {
      used += widths[c] + 2;
      if (used > columns) break;
      row += "  " + pad_left(line[c], widths[c]);
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + '\n';
  }
  return text;
}

std::string settings_of(const SweepReport& report, const SweepRow& row,
                        const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t p = 0; p < names.size(); ++p)
    text += (p == 0 ? "" : " ") + names[p] + '=' + plain(report.space.points[row.point][p]);
  return text;
}

// Why points were not simulated, or the warnings of those that were; equal messages are shown once.
std::string messages(const SweepReport& report, bool of_simulated, const std::vector<std::string>& names,
                     std::size_t columns) {
  std::map<std::string, std::vector<const SweepRow*>> by_message;
  for (const SweepRow& row : report.rows) {
    if (row.ok != of_simulated) continue;
    std::istringstream lines(row.message);
    for (std::string line; std::getline(lines, line);) by_message[line].push_back(&row);
  }
  std::vector<std::pair<std::size_t, std::string>> order;  // by the first point
  for (const auto& [message, rows] : by_message) order.emplace_back(rows.front()->point, message);
  std::sort(order.begin(), order.end());
  std::string text = order.empty() ? "" : of_simulated ? "warnings\n" : "not simulated\n";
  for (std::size_t i = 0; i < order.size() && i < kMessages; ++i) {
    const auto& rows = by_message[order[i].second];
    const std::string others = rows.size() > 1 ? fmt::format(" and {} more", rows.size() - 1) : "";
    const std::string line =
        "  " + settings_of(report, *rows.front(), names) + others + ": " + order[i].second;
    for (const std::string& part : report::wrap(line, columns, 4)) text += part + '\n';
  }
  if (order.size() > kMessages)
    text += fmt::format("  and {}\n", report::plural(static_cast<double>(order.size() - kMessages),
                                                     of_simulated ? "other warning" : "other reason"));
  return text;
}

nlohmann::json json_value(const std::string& text) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception&) {
    return text;
  }
}

// Each path's values in the order in which they were given, whether their points are done or not.
nlohmann::json asked_json(const SweepReport& report) {
  using nlohmann::json;
  json values = json::object(), pareto = nullptr;
  for (std::size_t p = 0; p < report.space.paths.size(); ++p) {
    std::set<std::string> seen;
    json& of_path = values[report.space.paths[p]] = json::array();
    for (const auto& point : report.space.points)
      if (seen.insert(point[p]).second) of_path.push_back(json_value(point[p]));
  }
  const auto name = [](std::size_t figure) { return sweep_figures()[figure].name; };
  if (report.asked.pareto) {
    pareto = json::array();
    for (const std::size_t figure : report.pareto_figures) pareto.push_back(name(figure));
  }
  return {{"points", report.space.points.size()},
          {"values", std::move(values)},
          {"best", report.asked.best ? json(name(*report.asked.best)) : json(nullptr)},
          {"pareto", std::move(pareto)},
          {"allow_oom", report.asked.allow_oom}};
}
}  // namespace

std::string sweep_table(const SweepReport& report, std::size_t most, std::size_t columns) {
  const auto figures = sweep_figures();
  const std::vector<std::size_t> order = ranked(report.rows, report.by);
  const std::vector<std::size_t> front = pareto(report.rows, report.pareto_figures);
  const std::vector<std::string> names = short_names(report.space.paths);

  std::vector<std::pair<std::size_t, std::string>> shown;
  for (std::size_t f = 0; f < figures.size(); ++f)
    if (!figures[f].heading.empty()) shown.emplace_back(f, figures[f].heading);
  // The column by which rows are ranked comes first, so a narrow table keeps it longest.
  const auto ranks =
      std::find_if(shown.begin(), shown.end(), [&](const auto& each) { return each.first == report.by; });
  if (ranks == shown.end())
    shown.emplace(shown.begin(), report.by, figures[report.by].name);
  else
    std::rotate(shown.begin(), ranks, ranks + 1);
  std::erase_if(shown, [&](const auto& each) {
    return std::none_of(report.rows.begin(), report.rows.end(),
                        [&](const SweepRow& row) { return row.ok && row.figures[each.first]; });
  });

  const auto failed = static_cast<std::size_t>(
      std::count_if(report.rows.begin(), report.rows.end(), [](const SweepRow& row) { return !row.ok; }));
  std::string text =
      fmt::format("{}: {}, {} simulated, {} not{}\n", report.scenario,
                  report::plural(static_cast<double>(report.space.points.size()), "point"),
                  report.rows.size() - failed, failed, report.complete ? "" : " (interrupted)");
  if (!order.empty()) {
    std::vector<std::vector<std::string>> lines(1);
    lines[0].emplace_back("");
    lines[0].insert(lines[0].end(), names.begin(), names.end());
    const bool several = !report.assumed_releases.empty();
    if (several) lines[0].emplace_back("assumed");
    for (const auto& each : shown) lines[0].push_back(each.second);
    // Settings may be whole objects; they are clipped so that two figures fit.
    constexpr std::size_t kLeastSetting = 8, kFigures = 34;
    const std::size_t setting = std::max(
        kLeastSetting, (columns - std::min(columns, kFigures)) / std::max<std::size_t>(1, names.size()));
    const std::size_t rows = most == 0 ? order.size() : std::min(most, order.size());
    for (std::size_t i = 0; i < rows; ++i) {
      const SweepRow& row = report.rows[order[i]];
      const bool on_front = std::binary_search(front.begin(), front.end(), order[i]);
      const bool built = can_be_built(row);
      lines.push_back({std::string(!built   ? "!"
                                   : i == 0 ? "*"
                                            : "") +
                       (fits_memory(row) ? "" : "x") + (on_front ? "+" : "")});
      for (const std::string& value : report.space.points[row.point])
        lines.back().push_back(report::clip(plain(value), setting));
      if (several) lines.back().push_back(row.assumed_release.empty() ? "-" : row.assumed_release);
      for (const auto& [figure, heading] : shown) {
        const std::optional<double>& value = row.figures[figure];
        lines.back().push_back(value ? report::value_text(*value, figures[figure].unit) : "-");
      }
    }
    text += aligned(lines, columns);
    if (rows < order.size()) text += fmt::format("  and {} more (--all)\n", order.size() - rows);
    std::vector<std::string> criteria;
    for (const std::size_t figure : report.pareto_figures) criteria.push_back(figures[figure].name);
    const bool all = can_be_built(report.rows[order.back()]), fits = fits_memory(report.rows[order.front()]);
    const bool all_fit = std::all_of(order.begin(), order.end(),
                                     [&](std::size_t row) { return fits_memory(report.rows[row]); });
    const std::string key =
        fmt::format("* best {}{}   + {} that no other point beats in all of {}{}{}", figures[report.by].name,
                    !fits     ? ", though no point fits the memory"
                    : all_fit ? ""
                              : " of those that fit",
                    front.size(), join(criteria), all_fit ? "" : "   x does not fit the memory",
                    all ? "" : "   ! cannot be built (warnings below)");
    for (const std::string& line : report::wrap(key, columns, 2)) text += line + '\n';
  }
  if (const std::string said = report::several_releases(report.assumed_releases); !said.empty())
    for (const std::string& line : report::wrap("note: " + said, columns, 2)) text += line + '\n';
  return text + messages(report, true, names, columns) + messages(report, false, names, columns);
}

std::string sweep_json(const SweepReport& report) {
  using nlohmann::json;
  const auto figures = sweep_figures();
  const bool traces = report.tasks == std::set<std::string>{std::string(kReplay)};
  json document = {{"format", "topsim.sweep/1"},
                   {"scenario", report.scenario},
                   {"paths", report.space.paths},
                   {"set", report.settings},
                   {"asked", asked_json(report)},
                   {"tasks", report.tasks},
                   {"complete", report.complete},
                   {"topsim", {{"version", report::version()}, {"commit", report::commit()}}},
                   {"figures", json::array()},
                   {"remarks", json::array()},
                   {"rows", json::array()}};
  for (const SweepFigure& figure : figures)
    document["figures"].push_back({{"name", figure.name},
                                   {"label", label_of(figure, traces)},
                                   {"meaning", figure.meaning},
                                   {"unit", report::unit_name(figure.unit)},
                                   {"more_is_better", figure.more_is_better},
                                   {"main", !figure.heading.empty()}});
  if (const std::string said = report::several_releases(report.assumed_releases); !said.empty())
    document["remarks"].push_back(said);
  for (const SweepRow& row : report.rows) {
    json each = {{"point", row.point},
                 {"values", json::object()},
                 {"status", row.ok ? "ok" : "failed"},
                 {"can_be_built", can_be_built(row)},
                 {"fits", row.ok ? json(fits_memory(row)) : json(nullptr)},
                 {"assumed_release", row.assumed_release.empty() ? json(nullptr) : json(row.assumed_release)},
                 {"message", row.message}};
    for (std::size_t p = 0; p < report.space.paths.size(); ++p)
      each["values"][report.space.paths[p]] = json_value(report.space.points[row.point][p]);
    for (std::size_t f = 0; f < figures.size(); ++f)
      each["figures"][figures[f].name] = row.ok && row.figures[f] ? json(*row.figures[f]) : json(nullptr);
    document["rows"].push_back(std::move(each));
  }
  const std::vector<std::size_t> order = ranked(report.rows, report.by);
  document["best"] = {{"figure", figures[report.by].name}, {"point", nullptr}};
  if (!order.empty() && can_be_built(report.rows[order.front()])) {
    document["best"]["point"] = report.rows[order.front()].point;
    document["best"]["fits"] = fits_memory(report.rows[order.front()]);
  }
  if (!report.assumed_releases.empty()) document["assumed_releases"] = report.assumed_releases;
  json criteria = json::array(), front = json::array();
  for (const std::size_t figure : report.pareto_figures) criteria.push_back(figures[figure].name);
  for (const std::size_t row : pareto(report.rows, report.pareto_figures))
    front.push_back(report.rows[row].point);
  document["pareto"] = {{"figures", criteria}, {"points", front}};
  return document.dump(1) + '\n';
}

std::string sweep_csv(const SweepReport& report) {
  std::string text;
  const auto add = [&](const std::string& cell) { text += cell + ','; };
  const auto end_line = [&] { text.back() = '\n'; };
  for (const std::string& name : row_columns(report.space)) add(report::csv_field(name));
  end_line();
  for (const SweepRow& row : report.rows) {
    add(std::to_string(row.point));
    for (const std::string& value : report.space.points[row.point]) add(report::csv_field(plain(value)));
    add(row.ok ? "ok" : "failed");
    add(report::csv_field(row.message));
    add(!row.ok ? "" : fits_memory(row) ? "true" : "false");
    add(row.assumed_release);
    // nlohmann writes the shortest decimals that read back the same, as in JSON.
    for (std::size_t f = 0; f < sweep_figures().size(); ++f)
      add(row.ok && row.figures[f] ? nlohmann::json(*row.figures[f]).dump() : "");
    end_line();
  }
  return text;
}
}  // namespace topsim::study
