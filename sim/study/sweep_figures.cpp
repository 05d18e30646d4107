#include "sim/study/sweep_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/base/suggest.hpp"
#include "sim/report/reason_text.hpp"
#include "sim/report/si.hpp"

namespace topsim::study {
namespace {
using report::CostModel;
using report::Draws;
using report::Result;
using report::Unit;
using Value = std::optional<double>;

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
      {{"step_seconds", "step.seconds", "step time", "of one step", Unit::seconds, false, "step time"},
       [](const Result& r, const CostModel&) -> Value { return report::si(r.step); }},
      {{"tokens_per_second", "throughput.tokens_per_second", "tokens per second", "of all accelerators",
        Unit::count, true, "tokens/s"},
       [](const Result& r, const CostModel&) { return unless_zero(r.throughput.tokens_per_second); }},
      {{"samples_per_second", "throughput.samples_per_second", "samples per second",
        "sequences of all accelerators", Unit::count, true},
       [](const Result& r, const CostModel&) { return unless_zero(r.throughput.samples_per_second); }},
      {{"tokens_per_second_per_accelerator", "throughput.tokens_per_second_per_accelerator",
        "tokens per second and accelerator", "their mean", Unit::count, true},
       [](const Result& r, const CostModel&) {
         return unless_zero(r.throughput.tokens_per_second_per_accelerator);
       }},
      {{"model_tflops_per_accelerator", "throughput.model_tflops_per_accelerator",
        "model TFLOP/s of an accelerator", "1e12 of the model's own operations a second", Unit::count, true},
       [](const Result& r, const CostModel&) {
         return unless_zero(r.throughput.model_tflops_per_accelerator);
       }},
      {{"mfu", "throughput.mfu", "model FLOPs utilisation",
        "the model's own operations as a share of the accelerators' peak", Unit::share, true, "MFU"},
       [](const Result& r, const CostModel&) { return unless_zero(r.throughput.mfu); }},
      {{"idle_fraction", "accelerators.idle_fraction", "idle", "share of the step that accelerators idle",
        Unit::share, false, "idle"},
       [](const Result& r, const CostModel&) -> Value {
         return r.step > Duration{} ? Value(report::si(r.account.idle_total()) / report::si(r.step))
                                    : Value();
       }},
      {{"memory_bytes", "memory.per_accelerator_bytes", "memory of the fullest",
        "that the fullest accelerator fills", Unit::bytes, false, "memory"},
       [](const Result& r, const CostModel&) {
         return unless_zero(static_cast<double>(r.memory.per_accelerator.value()));
       }},
      {{"memory_capacity_bytes", "memory.capacity_bytes", "memory of one accelerator", "all that it has",
        Unit::bytes, true},
       [](const Result& r, const CostModel&) {
         return unless_zero(static_cast<double>(r.memory.capacity.value()));
       }},
      {{"memory_usable_bytes", "memory.usable_bytes", "memory that may be filled",
        "what engines that serve fill of one accelerator's; else all of it", Unit::bytes, true},
       [](const Result& r, const CostModel&) {
         const Bytes usable = r.memory.usable > Bytes{} ? r.memory.usable : r.memory.capacity;
         return unless_zero(static_cast<double>(usable.value()));
       }},
      {{"accelerators", "accelerators.count", "accelerators", "that the job uses", Unit::count, false},
       [](const Result& r, const CostModel&) -> Value { return r.accelerators; }},
      {{"capital_usd", "", "price of everything", "purchase of the cluster", Unit::dollars, false},
       [](const Result&, const CostModel& c) {
         return priced(c) ? Value(c.bill.capital(Draws(0))) : Value();
       }},
      {{"watts", "", "power with cooling", "of every part at full load, with the building", Unit::watts,
        false},
       [](const Result&, const CostModel& c) {
         return unless_zero(c.bill.watts() * c.pue.at(Draws(0)("pue")));
       }},
      {{"usd_per_hour", "", "cost per hour", "purchase written off, and electricity", Unit::dollars, false},
       [](const Result&, const CostModel& c) {
         return priced(c) ? Value(dollars_a_second(c) * 3600) : Value();
       }},
      {{"usd_per_million_tokens", "", "cost per million tokens", "purchase written off, and electricity",
        Unit::dollars, false, "per Mtoken"},
       [](const Result& r, const CostModel& c) {
         const double token = report::token_seconds(r, r.step);
         return priced(c) && token > 0 && std::isfinite(token) ? Value(dollars_a_second(c) * token * 1e6)
                                                               : Value();
       }},
  };
  return list;
}

std::string name_of_idle(executor::Reason reason) {
  return fmt::format("idle_seconds.{}", name_of(reason));
}

std::vector<SweepFigure> all_figures() {
  std::vector<SweepFigure> figures;
  for (const Column& column : columns()) figures.push_back(column.figure);
  figures.push_back({"busy_seconds", "accelerators.busy_seconds", "accelerator busy",
                     "of one accelerator, a step", Unit::seconds, true});
  for (std::size_t i = 0; i < executor::kReasons; ++i) {
    const auto reason = static_cast<executor::Reason>(i);
    const std::string name = name_of_idle(reason);
    figures.push_back({name, "accelerators." + name, report::reason_text(reason),
                       "of one accelerator, idle for this reason, a step", Unit::seconds, false});
  }
  return figures;
}
}  // namespace

std::span<const SweepFigure> sweep_figures() {
  static const std::vector<SweepFigure> figures = all_figures();
  return figures;
}

std::string label_of(const SweepFigure& figure, bool traces) {
  if (traces)
    for (std::size_t i = 0; i < executor::kReasons; ++i)
      if (const auto reason = static_cast<executor::Reason>(i); figure.name == name_of_idle(reason))
        return report::trace_reason_text(reason);
  return figure.label;
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
