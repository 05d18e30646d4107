#include "sim/study/sweep_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/base/suggest.hpp"
#include "sim/report/compare.hpp"
#include "sim/report/si.hpp"
#include "sim/report/text.hpp"

namespace topsim::study {
namespace {
using report::CostModel;
using report::Draws;
using report::Result;
using Value = std::optional<double>;

std::string seconds_text(double value) {
  return report::duration_text(from_seconds(value));
}
std::string number_text(double value) {
  return value >= 1000 ? report::count_text(value) : report::three_digits(value);
}

std::string gibibytes_text(double value) {
  return report::memory_text(Bytes(static_cast<std::int64_t>(value)));
}

double dollars_a_second(const CostModel& cost) {
  return cost.per_second(Draws(0));
}
bool priced(const CostModel& cost) {
  return cost.bill.capital(Draws(0)) > 0 && cost.bill.without_own_price().empty();
}
Value unless_zero(double value) {
  return value > 0 ? Value(value) : Value();
}

struct Column {
  SweepFigure figure;
  Value (*value)(const Result& result, const CostModel& cost);
};

// The idle reasons follow these, under their own names.
std::span<const Column> columns() {
  static const Column list[] = {
      {{"step_seconds", "step.seconds", "step time", false, seconds_text},
       [](const Result& r, const CostModel&) -> Value { return report::si(r.step); }},
      {{"tokens_per_second", "throughput.tokens_per_second", "tokens of all accelerators", true, number_text},
       [](const Result& r, const CostModel&) { return unless_zero(r.throughput.tokens_per_second); }},
      {{"samples_per_second", "throughput.samples_per_second", "sequences of all accelerators", true,
        number_text},
       [](const Result& r, const CostModel&) { return unless_zero(r.throughput.samples_per_second); }},
      {{"tokens_per_second_per_accelerator", "throughput.tokens_per_second_per_accelerator",
        "tokens of one accelerator", true, number_text},
       [](const Result& r, const CostModel&) {
         return unless_zero(r.throughput.tokens_per_second_per_accelerator);
       }},
      {{"model_tflops_per_accelerator", "throughput.model_tflops_per_accelerator",
        "model FLOP/s of one accelerator, 1e12", true, number_text},
       [](const Result& r, const CostModel&) {
         return unless_zero(r.throughput.model_tflops_per_accelerator);
       }},
      {{"mfu", "throughput.mfu", "model FLOPs utilisation, a share", true, report::percent_text},
       [](const Result& r, const CostModel&) { return unless_zero(r.throughput.mfu); }},
      {{"idle_fraction", "accelerators.idle_fraction", "share of the step that accelerators idle", false,
        report::percent_text},
       [](const Result& r, const CostModel&) -> Value {
         return r.step > Duration{} ? Value(report::si(r.account.idle_total()) / report::si(r.step))
                                    : Value();
       }},
      {{"memory_bytes", "memory.per_accelerator_bytes", "of the fullest accelerator", false, gibibytes_text},
       [](const Result& r, const CostModel&) {
         return unless_zero(static_cast<double>(r.memory.per_accelerator.value()));
       }},
      {{"memory_capacity_bytes", "memory.capacity_bytes", "of one accelerator", true, gibibytes_text},
       [](const Result& r, const CostModel&) {
         return unless_zero(static_cast<double>(r.memory.capacity.value()));
       }},
      {{"memory_usable_bytes", "memory.usable_bytes", "of that, what engines that serve fill; else all of it",
        true, gibibytes_text},
       [](const Result& r, const CostModel&) {
         const Bytes usable = r.memory.usable > Bytes{} ? r.memory.usable : r.memory.capacity;
         return unless_zero(static_cast<double>(usable.value()));
       }},
      {{"accelerators", "accelerators.count", "that the job uses", false, number_text},
       [](const Result& r, const CostModel&) -> Value { return r.accelerators; }},
      {{"capital_usd", "", "purchase of the cluster", false, report::dollars_text},
       [](const Result&, const CostModel& c) {
         return priced(c) ? Value(c.bill.capital(Draws(0))) : Value();
       }},
      {{"watts", "", "of every part at full load, with the building", false, number_text},
       [](const Result&, const CostModel& c) {
         return unless_zero(c.bill.watts() * c.pue.at(Draws(0)("pue")));
       }},
      {{"usd_per_hour", "", "purchase written off, and electricity", false, report::dollars_text},
       [](const Result&, const CostModel& c) {
         return priced(c) ? Value(dollars_a_second(c) * 3600) : Value();
       }},
      {{"usd_per_million_tokens", "", "the same for a million tokens", false, report::dollars_text},
       [](const Result& r, const CostModel& c) {
         const double token = report::token_seconds(r, r.step);
         return priced(c) && token > 0 && std::isfinite(token) ? Value(dollars_a_second(c) * token * 1e6)
                                                               : Value();
       }},
  };
  return list;
}

std::vector<SweepFigure> all_figures() {
  std::vector<SweepFigure> figures;
  for (const Column& column : columns()) figures.push_back(column.figure);
  figures.push_back(
      {"busy_seconds", "accelerators.busy_seconds", "of one accelerator, a step", true, seconds_text});
  for (std::size_t reason = 0; reason < executor::kReasons; ++reason) {
    const std::string name = fmt::format("idle_seconds.{}", name_of(static_cast<executor::Reason>(reason)));
    figures.push_back({name, "accelerators." + name, "idle for this reason, a step", false, seconds_text});
  }
  return figures;
}
}  // namespace

std::span<const SweepFigure> sweep_figures() {
  static const std::vector<SweepFigure> figures = all_figures();
  return figures;
}

const SweepFigure* find_figure(std::string_view name) {
  for (const ShortName& each : kShortNames)
    if (name == each.name) name = each.figure;
  const auto figures = sweep_figures();
  const auto found = std::find_if(figures.begin(), figures.end(), [&](const SweepFigure& each) {
    return each.name == name || (!each.key.empty() && each.key == name);
  });
  return found == figures.end() ? nullptr : &*found;
}

std::size_t sweep_figure(const std::string& name) {
  const auto figures = sweep_figures();
  if (const SweepFigure* found = find_figure(name)) return static_cast<std::size_t>(found - figures.data());
  std::vector<std::string> names;
  for (const SweepFigure& each : figures) names.push_back(each.name);
  const auto close = closest(name, names);
  throw ConfigError("no figure \"" + name + '"',
                    (close ? "did you mean " + *close + "? " : std::string()) + "figures: " + join(names));
}

std::vector<std::optional<double>> figures_of(const report::Result& result, const report::CostModel& cost) {
  std::vector<std::optional<double>> values;
  for (const Column& column : columns()) values.push_back(column.value(result, cost));
  values.emplace_back(report::si(result.account.busy));
  for (const Duration idle : result.account.idle) values.emplace_back(report::si(idle));
  return values;
}
}  // namespace topsim::study
