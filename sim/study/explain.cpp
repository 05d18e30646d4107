#include "sim/study/explain.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/report/si.hpp"
#include "sim/report/text.hpp"

namespace topsim::study {
namespace {
using namespace report;
using nlohmann::json;

constexpr std::size_t kPathRows = 10;

// Of the names of all rows, so that the figures of all parts stand below each other; they take 19 columns.
std::size_t name_width(const Result& result, const std::optional<WhatIfs>& what_ifs, std::size_t window) {
  std::size_t widest = 0;
  const auto add = [&](const std::vector<metrics::PathShare>& shares) {
    for (std::size_t i = 0; i < std::min(shares.size(), kPathRows); ++i)
      widest = std::max(widest, width(shares[i].what));
  };
  add(result.critical_path);
  add(result.critical_path_links);
  if (what_ifs)
    for (const WhatIf& each : what_ifs->parts) widest = std::max(widest, width(each.part));
  constexpr std::size_t kUsual = 44, kFigures = 20;
  return std::min(std::max(widest, kUsual), std::max(window, kUsual + kFigures) - kFigures);
}

void path(std::string& text, const std::string& title, const std::vector<metrics::PathShare>& shares,
          std::size_t name) {
  if (shares.empty()) return;
  text += "\n" + title + "\n";
  Duration rest{};
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (i >= kPathRows) {
      rest += shares[i].time;
      continue;
    }
    text += fmt::format("  {} {:>9}  {:>6}\n", pad_right(clip(shares[i].what, name), name),
                        duration_text(shares[i].time), percent_text(shares[i].share));
  }
  if (rest > Duration{}) {
    text += fmt::format("  {} {:>9}\n", pad_right(fmt::format("{} more", shares.size() - kPathRows), name),
                        duration_text(rest));
  }
}

// A possible reason: links a little faster than one of NCCL's speeds are used like slower ones. RCCL does the
// same; other libraries are assumed to.
std::string listed(const std::string& library) {
  const bool known = library == "NCCL" || library == "RCCL";
  return (known ? library + " plans" : "collectives are planned here as NCCL does,") +
         " with speeds from a fixed list: a little more may reach no other of it";
}

// Whether the step waits for the link although a faster one gains nothing.
bool waits_for(const WhatIf& part, const std::vector<metrics::PathShare>& path) {
  constexpr double kMuch = 0.05;
  double share = 0;
  for (const metrics::PathShare& each : path)
    for (const std::string& link : part.planned_links)
      if (each.what == link || each.what.starts_with(link + ", as ")) share += each.share;
  return share >= kMuch;
}

void gains(std::string& text, const WhatIfs& what_ifs, const Result& result, std::size_t name,
           std::size_t window) {
  text += fmt::format("\nstep time if one part were {} faster (simulated again)\n",
                      percent_text(what_ifs.factor - 1));
  for (const WhatIf& each : what_ifs.parts) {
    // A thousandth is negligible; rounding alone causes such differences.
    const bool none = std::abs(each.gain) < 5e-4;
    const std::string change =
        none ? std::string("no shorter")
             : fmt::format("{} {}", percent_text(std::abs(each.gain)), each.gain > 0 ? "shorter" : "longer");
    text += fmt::format("  {} {:>9}  {}\n", pad_right(clip(each.part, name), name), duration_text(each.step),
                        change);
    const std::string why = !each.choices.empty()                                 ? each.choices
                            : none && waits_for(each, result.critical_path_links) ? listed(result.library)
                                                                                  : std::string();
    if (why.empty()) continue;
    for (const std::string& line : wrap("    " + why, window, 6)) text += line + "\n";
  }
}

json json_of(const WhatIfs& what_ifs) {
  json parts = json::array();
  for (const WhatIf& each : what_ifs.parts) {
    parts.push_back({{"part", each.part}, {"step_seconds", report::si(each.step)}, {"gain", each.gain}});
    if (!each.choices.empty()) parts.back()["choices"] = each.choices;
  }
  return {
      {"factor", what_ifs.factor}, {"step_seconds", report::si(what_ifs.step)}, {"parts", std::move(parts)}};
}
}  // namespace

std::string explain_text(const Result& result, const std::optional<WhatIfs>& what_ifs, int columns) {
  const auto window = static_cast<std::size_t>(std::max(columns, 40));
  std::string text;
  for (const std::string& line : wrap(result.headline, window, 2)) text += line + "\n";
  const double step = seconds(result.step);
  const double busy = step > 0 ? seconds(result.account.busy) / step : 0;
  text += fmt::format("step {}, accelerators busy {}\n", duration_text(result.step), percent_text(busy));
  const std::size_t name = name_width(result, what_ifs, window);
  path(text, "critical path of the last step, by what was done", result.critical_path, name);
  path(text, "the same, by what limited it", result.critical_path_links, name);
  if (what_ifs) gains(text, *what_ifs, result, name, window);
  if (!result.findings.empty()) text += "\nfindings\n";
  for (const Finding& each : result.findings) {
    const std::string_view kind = name_of(each.severity);
    for (const std::string& line :
         wrap(fmt::format("  {}: {}{}", kind, each.message, each.path.empty() ? "" : " (" + each.path + ")"),
              window, 4)) {
      text += line + "\n";
    }
    if (each.remedy.empty() || each.remedy.starts_with("topsim explain ")) continue;  // this is it
    for (const std::string& line : wrap("    what to do: " + each.remedy, window, 6)) text += line + "\n";
  }
  return text;
}

std::string what_if_json(const WhatIfs& what_ifs) {
  return json_of(what_ifs).dump();
}

std::string explain_json(const Result& result, const std::optional<WhatIfs>& what_ifs, bool complete) {
  const auto path_json = [&](const std::vector<metrics::PathShare>& shares) {
    json list = json::array();
    for (const auto& each : shares)
      list.push_back({{"what", each.what}, {"seconds", report::si(each.time)}, {"share", each.share}});
    return list;
  };
  json document = {{"format", "topsim.explain/1"},
                   {"name", result.name},
                   {"complete", complete},
                   {"step_seconds", report::si(result.step)},
                   {"critical_path", path_json(result.critical_path)},
                   {"critical_path_links", path_json(result.critical_path_links)}};
  document["findings"] = json::array();
  for (const Finding& each : result.findings) {
    document["findings"].push_back({{"severity", name_of(each.severity)},
                                    {"message", each.message},
                                    {"path", each.path},
                                    {"remedy", each.remedy}});
  }
  if (what_ifs) document["what_if"] = json_of(*what_ifs);
  return document.dump(1) + '\n';
}
}  // namespace topsim::study
