#include "sim/cli/fail_if.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/suggest.hpp"
#include "sim/config/document.hpp"
#include "sim/config/quantity.hpp"
#include "sim/report/compare.hpp"
#include "sim/report/json.hpp"
#include "sim/study/sweep_figures.hpp"

namespace topsim::cli {
namespace {
using config::Dimension;
using report::Unit;

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

ConfigError no_condition(std::string_view text, const std::string& why) {
  return ConfigError(
      "--fail-if \"" + std::string(text) + "\": " + why,
      "write a key of the result, a comparison and a figure, e.g. --fail-if 'step_time > 500 ms'");
}

// The kind of a key's figures, by a word in it; other keys cannot be tested here.
struct Kind {
  std::string_view word, name;
  std::optional<Dimension> dimension;
  report::Unit unit;
};
constexpr std::array kKinds = {
    Kind{"bytes_per_second", "a bandwidth", Dimension::bandwidth, Unit::bytes_per_second},
    Kind{"bandwidth", "a bandwidth", Dimension::bandwidth, Unit::bytes_per_second},
    Kind{"per_second", "a plain number", {}, Unit::count},
    Kind{"seconds", "a time", Dimension::time, Unit::seconds},
    Kind{"bytes", "a size", Dimension::size, Unit::bytes},
    Kind{"].capacity", "a bandwidth", Dimension::bandwidth, Unit::bytes_per_second},
    Kind{"usd", "a price", Dimension::money, Unit::dollars},
    Kind{"watts", "a power", Dimension::power, Unit::watts},
    Kind{"mfu", "a share", {}, Unit::share},
    Kind{"fraction", "a share", {}, Unit::share},
    Kind{"share", "a share", {}, Unit::share},
    Kind{"goodput", "a share", {}, Unit::share},
    Kind{"utilization", "a share", {}, Unit::share}};

const Kind* kind_of(std::string_view key) {
  const auto kind = std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& each) {
    return key.find(each.word) != std::string_view::npos;
  });
  return kind == kKinds.end() ? nullptr : &*kind;
}

// `short_name`: the key contains no unit, unlike step.seconds.
double parse_limit(std::string_view whole, const std::string& key, std::string_view text, Percent percent,
                   bool short_name) {
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit = trim(text.substr(static_cast<std::size_t>(result.ptr - text.data())));
  const Kind* kind = kind_of(key);
  if (result.ec == std::errc{} && std::isfinite(value)) {
    const bool known_share = kind != nullptr && kind->name == std::string_view("a share");
    const bool share = kind == nullptr || known_share;
    if (unit.empty() && known_share && value > 1)
      throw no_condition(whole, fmt::format("{} is a share, at most 1: write {} %", key, text));
    if (unit.empty() && short_name && kind != nullptr && kind->dimension && value != 0)
      throw no_condition(whole, fmt::format("{} is {}, and \"{}\" has no unit", key, kind->name, text));
    if (unit.empty()) return value;
    if (unit == "%" && (share || percent == Percent::of_baseline)) return value / 100;
  }
  for (const Dimension dimension : {Dimension::time, Dimension::size, Dimension::bandwidth,
                                    Dimension::flop_rate, Dimension::money, Dimension::power}) {
    const config::ParsedQuantity parsed = config::parse_quantity(dimension, text);
    if (parsed.error) continue;
    if (kind != nullptr && kind->dimension != dimension)
      throw no_condition(whole,
                         fmt::format("\"{}\" is no figure for {}, which is {}", text, key, kind->name));
    return dimension == Dimension::time ? parsed.value * 1e-12 : parsed.value;
  }
  if (unit == "%" && kind != nullptr)
    throw no_condition(
        whole, fmt::format("{} is {}, and \"{}\" is no figure of that; topsim compare judges differences",
                           key, kind->name, text));
  throw no_condition(whole, '"' + std::string(text) + "\" is no figure with a unit");
}

void collect_numbers(const config::Node& node, std::vector<std::string>& paths) {
  if (node.is_number()) paths.push_back(node.path());
  if (!node.is(config::Kind::object)) return;
  for (std::size_t i = 0; i < node.size(); ++i) {
    if (node[i].key() != "scenario") collect_numbers(node[i], paths);
  }
}
}  // namespace

Condition parse_condition(std::string_view text, Percent percent) {
  const std::size_t at = text.find_first_of("<>=");
  if (at == std::string_view::npos) throw no_condition(text, "there is no comparison in it");
  Condition condition;
  condition.text = text;
  std::string_view rest = text.substr(at + 1);
  const bool or_equal = !rest.empty() && rest.front() == '=';
  if (or_equal) rest.remove_prefix(1);
  switch (text[at]) {
    case '<':
      condition.comparison = or_equal ? Comparison::at_most : Comparison::less;
      break;
    case '>':
      condition.comparison = or_equal ? Comparison::at_least : Comparison::greater;
      break;
    default:
      condition.comparison = Comparison::equal;
      break;
  }
  condition.key = trim(text.substr(0, at));
  if (condition.key.empty()) throw no_condition(text, "there is no key before the comparison");
  if (condition.key.back() == '!') throw no_condition(text, "comparisons are <, <=, >, >= and ==");
  const std::string typed = condition.key;
  // Short names and columns of a sweep; any other key is a path in the result.
  if (const study::SweepFigure* figure = study::find_figure(typed); figure != nullptr && !figure->key.empty())
    condition.key = figure->key;
  // step_time and memory say no unit; step_seconds does.
  const Kind* kind = kind_of(typed);
  const bool short_name = typed != condition.key && (kind == nullptr || !kind->dimension);
  condition.limit = parse_limit(text, condition.key, trim(rest), percent, short_name);
  return condition;
}

bool is_share(std::string_view key) {
  return std::any_of(kKinds.begin(), kKinds.end(), [&](const Kind& each) {
    return each.name == std::string_view("a share") && key.find(each.word) != std::string_view::npos;
  });
}

std::string value_text(std::string_view key, double value) {
  const Kind* kind = kind_of(key);
  if (kind == nullptr) return fmt::format("{}", value);
  std::string text = report::value_text(value, kind->unit);
  for (const std::string_view each : {"tokens", "samples"})
    if (key.find(std::string(each) + "_per_second") != std::string_view::npos)
      text += ' ' + std::string(each) + "/s";
  return text;
}

std::string figures_text(const Condition& condition, double value) {
  std::string is = value_text(condition.key, value), limit = value_text(condition.key, condition.limit);
  if (is == limit && value != condition.limit) {  // rounded they look equal, and the condition false
    const Kind* kind = kind_of(condition.key);
    const bool has_unit = kind != nullptr && kind->unit != Unit::share && kind->unit != Unit::count;
    const std::string unit = has_unit ? ' ' + report::unit_name(kind->unit) : "";
    is = fmt::format("{}{}", value, unit), limit = fmt::format("{}{}", condition.limit, unit);
  }
  return fmt::format("{}, the limit {}", is, limit);
}

bool holds(const Condition& condition, double value) {
  switch (condition.comparison) {
    case Comparison::less:
      return value < condition.limit;
    case Comparison::at_most:
      return value <= condition.limit;
    case Comparison::greater:
      return value > condition.limit;
    case Comparison::at_least:
      return value >= condition.limit;
    case Comparison::equal:
      break;
  }
  return value == condition.limit;
}

namespace {
[[noreturn]] void no_such_key(const std::string& key, std::vector<std::string> known) {
  for (const study::ShortName& each : study::kShortNames) known.emplace_back(each.name);
  for (const study::SweepFigure& each : study::sweep_figures())
    if (!each.key.empty()) known.push_back(each.name);
  const auto close = closest(key, known);
  throw ConfigError("--fail-if: the result has no number \"" + key + '"',
                    (close ? "did you mean \"" + *close + "\"? " : std::string()) + "keys: " + join(known));
}
}  // namespace

void check_key(const Condition& condition, std::span<const std::string> more) {
  const std::string& key = condition.key;
  constexpr std::array kOpen = {
      "ranks[",        "links[",       "collectives[",   "critical_path[", "critical_path_links[",
      "memory.parts.", "reliability.", "step.per_step[", "scenario."};
  for (const std::string_view open : kOpen)
    if (key.starts_with(open)) return;
  std::vector<std::string> known(more.begin(), more.end());
  collect_numbers(config::Document::parse(report::to_json(report::Result{}), "result").root(), known);
  if (std::find(known.begin(), known.end(), key) == known.end()) no_such_key(key, std::move(known));
}

Verdict judge(const Condition& condition, std::string_view result_json) {
  const config::Document document = config::Document::parse(std::string(result_json), "result");
  const config::Node node = document.root().at_path(condition.key);
  if (!node || !node.is_number()) {
    std::vector<std::string> known;
    collect_numbers(document.root(), known);
    no_such_key(condition.key, std::move(known));
  }
  Verdict verdict;
  verdict.value = node.number();
  verdict.holds = holds(condition, verdict.value);
  return verdict;
}
}  // namespace topsim::cli
