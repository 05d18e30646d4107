#include "sim/report/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/validation/validate.hpp"

namespace topsim::validation {
namespace {

using Json = nlohmann::ordered_json;

std::string percent(double share) {
  return fmt::format("{:.1f} %", share * 100);
}
std::string signed_percent(double share) {
  return fmt::format("{:+.1f} %", share * 100);
}
std::string figure_text(const Prediction& p, double value) {
  if (p.figure == Figure::memory) return fmt::format("{:.5g} GiB", value / (1 << 30));
  if (p.figure == Figure::share) return percent(value);
  if (p.figure == Figure::ratio) return fmt::format("{:.4g}", value);
  return value < 0.1 ? fmt::format("{:.5g} us", value * 1e6) : fmt::format("{:.5g} s", value);
}
const char* name_of(Figure figure) {
  switch (figure) {
    case Figure::step:
      return "step";
    case Figure::memory:
      return "memory";
    case Figure::share:
      return "share";
    case Figure::ratio:
      return "ratio";
    case Figure::collective:
      return "collective";
  }
  return "";
}
std::string tau_text(const std::optional<double>& tau) {
  return tau ? fmt::format("{:.2f}", *tau) : "";
}
std::string slope_text(const Summary& s) {
  return s.slope ? percent(*s.slope) : "";
}

struct Limit {
  const char* name;
  const std::optional<double> Bar::*member;
};
constexpr Limit kLimits[] = {{"mean", &Bar::mean}, {"median", &Bar::median}, {"p90", &Bar::percentile_90},
                             {"max", &Bar::max},   {"bias", &Bar::bias},     {"slope", &Bar::slope}};

std::string limits_text(const Bar& bar) {
  std::string text;
  for (const Limit& limit : kLimits) {
    if (const auto& value = bar.*limit.member)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", limit.name, percent(*value));
  }
  if (bar.tau) text += fmt::format("{}tau {:.2f}", text.empty() ? "" : ", ", *bar.tau);
  return text;
}

// Which limits a family misses; empty if it meets its bar and its goal.
std::string missed(const Summary& s) {
  if (s.failed > 0) return fmt::format("FAILED: {} not simulated", s.failed);
  if (!s.meets(s.bar)) return "FAILED: above " + limits_text(s.bar);
  return s.meets(s.goal) ? "" : fmt::format("goal {} missed", limits_text(s.goal));
}

// Nobody judges a family by the cases that happened to be done when it was stopped.
std::string verdict(const Summary& s, bool complete) {
  if (!complete) return limits_text(s.bar);
  const std::string misses = missed(s);
  if (s.failed > 0 || !s.meets(s.bar)) return misses;
  const std::string bar = limits_text(s.bar);
  return bar + (bar.empty() || misses.empty() ? "" : "; ") + misses;
}

std::string cases_text(const std::vector<Prediction>& predictions) {
  std::size_t width = 4;
  for (const Prediction& p : predictions) width = std::max(width, p.name.size());
  std::string text =
      fmt::format("{:<{}}  {:>12}  {:>12}  {:>8}\n", "case", width, "published", "predicted", "error");
  for (const Prediction& p : predictions) {
    text += fmt::format("{:<{}}  {:>12}  ", p.name, width, figure_text(p, p.published));
    text += p.predicted ? fmt::format("{:>12}  {:>8}{}\n", figure_text(p, *p.predicted),
                                      signed_percent(p.error()), p.fits ? "" : "  does not fit memory")
                        : "not simulated: " + p.problem + '\n';
  }
  return text;
}

// Why cases were not simulated, each reason once.
std::string reasons(const std::vector<Prediction>& predictions, std::size_t columns) {
  std::vector<std::pair<std::string, std::vector<const Prediction*>>> found;
  for (const Prediction& p : predictions) {
    if (p.predicted || p.problem.empty()) continue;
    auto at =
        std::find_if(found.begin(), found.end(), [&](const auto& each) { return each.first == p.problem; });
    if (at == found.end()) at = found.insert(found.end(), {p.problem, {}});
    at->second.push_back(&p);
  }
  std::string text;
  for (const auto& [problem, who] : found)
    for (const std::string& line :
         report::wrap(fmt::format("  {}{}: {}", who.front()->name,
                                  who.size() > 1 ? fmt::format(" and {} more", who.size() - 1) : "", problem),
                      std::min<std::size_t>(columns, 98), 4))
      text += line + '\n';
  return text.empty() ? "" : "\nnot simulated\n" + text;
}

// With the bar of every family: for a wide window, or for grep and sort.
constexpr std::size_t kWideColumns = 120;  // beside the family's name; most bars are shorter than 45
std::string wide_table(const Report& report, std::size_t width) {
  const auto figure = [](const Summary& s, double share) { return s.none() ? "" : percent(share); };
  const auto line = [&](const std::string& name, const Summary& s) {
    return fmt::format("{:<{}}  {:>5}  {:>7}  {:>7}  {:>7}  {:>7}  {:>8}  {:>5}  {:>6}  {:>6}  {}\n", name,
                       width, s.cases, figure(s, s.mean), figure(s, s.median), figure(s, s.percentile_90),
                       figure(s, s.max), s.none() ? "" : signed_percent(s.bias), tau_text(s.tau),
                       tau_text(s.tau_beyond_noise), slope_text(s), verdict(s, report.complete));
  };
  std::string text =
      fmt::format("{:<{}}  {:>5}  {:>7}  {:>7}  {:>7}  {:>7}  {:>8}  {:>5}  {:>6}  {:>6}  {}\n", "family",
                  width, "cases", "mean", "median", "p90", "max", "bias", "tau", "clear", "slope", "bar");
  for (const auto& [family, s] : report.families) text += line(family, s);
  text += "\nall scored families, each weighing the same\n";
  for (const auto& [kind, s] : report.totals) text += line(kind, s);
  return text;
}

// The same figures in 80 columns; bars only where they, or goals, are missed.
constexpr std::size_t kNarrowColumns = 54;
std::string narrow_table(const Report& report, std::size_t width) {
  const auto number = [](double share) { return fmt::format("{:.1f}", share * 100); };
  const auto figure = [&](const Summary& s, double share) { return s.none() ? "" : number(share); };
  const auto line = [&](const std::string& name, const Summary& s) {
    return fmt::format("{} {:>5} {:>5} {:>6} {:>5} {:>5} {:>5} {:>4} {:>5} {:>5}\n",
                       report::pad_right(report::clip(name, width), width), s.cases, figure(s, s.mean),
                       figure(s, s.median), figure(s, s.percentile_90), figure(s, s.max),
                       s.none() ? "" : fmt::format("{:+.1f}", s.bias * 100), tau_text(s.tau),
                       tau_text(s.tau_beyond_noise), s.slope ? number(*s.slope) : "");
  };
  std::string text =
      fmt::format("{:<{}} {:>5} {:>5} {:>6} {:>5} {:>5} {:>5} {:>4} {:>5} {:>5}\n", "errors in %", width,
                  "cases", "mean", "median", "p90", "max", "bias", "tau", "clear", "slope");
  for (const auto& [family, s] : report.families) text += line(family, s);
  text += "\nall scored families, each weighing the same\n";
  for (const auto& [kind, s] : report.totals) text += line(kind, s);
  if (!report.complete) return text;
  std::string misses;
  for (const auto& [family, s] : report.families) {
    const std::string what = missed(s);
    if (!what.empty()) misses += fmt::format("  {}: {}\n", family, what);
  }
  return text + (misses.empty() ? "\nevery bar held\n" : "\nbars and goals that are missed\n" + misses);
}

Json json_of(const Bar& bar) {
  Json json = Json::object();
  for (const Limit& limit : kLimits)
    if (const auto& value = bar.*limit.member) json[limit.name] = *value;
  if (bar.tau) json["tau"] = *bar.tau;
  return json;
}

Json json_of(const Summary& s, bool complete) {
  const auto figure = [&](double share) { return s.none() ? Json() : Json(share); };
  return {{"n", s.cases},
          {"mean_abs_error", figure(s.mean)},
          {"median_abs_error", figure(s.median)},
          {"percentile_90_abs_error", figure(s.percentile_90)},
          {"max_abs_error", figure(s.max)},
          {"bias", figure(s.bias)},
          {"kendall_tau", s.tau ? Json(*s.tau) : Json()},
          {"tau_pairs", s.pairs},
          {"kendall_tau_of_pairs", s.tau_of_pairs ? Json(*s.tau_of_pairs) : Json()},
          {"kendall_tau_beyond_noise", s.tau_beyond_noise ? Json(*s.tau_beyond_noise) : Json()},
          {"tau_pairs_beyond_noise", s.distinct_pairs},
          {"slope_error", s.slope ? Json(*s.slope) : Json()},
          {"scaling_series", s.series},
          {"not_simulated", s.failed},
          {"bar", json_of(s.bar)},
          {"goal", json_of(s.goal)},
          {"passed", complete ? Json(s.passed()) : Json()}};
}
}  // namespace

std::string to_text(const Report& report, bool cases, std::size_t columns) {
  std::string text = cases ? cases_text(report.predictions) + '\n' : "";
  std::size_t width = 6;
  for (const auto& [family, summary] : report.families) width = std::max(width, family.size());
  text += width + kWideColumns <= columns
              ? wide_table(report, width)
              : narrow_table(report, std::clamp<std::size_t>(columns - kNarrowColumns, 16, width));
  if (!cases) text += reasons(report.predictions, columns);
  if (!report.complete) text += "\ninterrupted: bars are of all cases, and not judged\n";
  for (const std::string& line : report::wrap("\ntau: agreement with the published order of a series (1: the "
                                              "same order), clear: of pairs that differ by "
                                              "more than noise; slope: drift of the error a doubling of "
                                              "accelerators; bar: what may not be exceeded",
                                              std::min<std::size_t>(columns, 98), 0))
    text += line + '\n';
  return text;
}

namespace {
// Finer than any measurement; ten more digits per case would be a sixth of the page's data.
double millionths(double share) {
  return std::round(share * 1e6) / 1e6 + 0.0;  // never -0
}
}  // namespace

std::string to_json(const Report& report) {
  Json json = {{"format", "topsim.validate/1"},
               {"complete", report.complete},
               {"cases", Json::array()},
               {"families", Json::object()}};
  for (const Prediction& p : report.predictions) {
    Json one = {
        {"name", p.name}, {"family", p.family}, {"figure", name_of(p.figure)}, {"published", p.published}};
    one["predicted"] = p.predicted ? Json(*p.predicted) : Json();
    one["error"] = p.predicted ? Json(millionths(p.error())) : Json();
    if (!p.problem.empty()) one["problem"] = p.problem;
    if (!p.fits) one["fits"] = false;
    one["source"] = p.source;
    json["cases"].push_back(std::move(one));
  }
  for (const auto& [family, summary] : report.families)
    json["families"][family] = json_of(summary, report.complete);
  for (const auto& [kind, summary] : report.totals) json["totals"][kind] = json_of(summary, report.complete);
  return json.dump(2) + '\n';
}
}  // namespace topsim::validation
