#include "sim/report/compare.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "sim/report/compare_remarks.hpp"
#include "sim/report/compare_verdict.hpp"
#include "sim/report/per_step.hpp"
#include "sim/report/si.hpp"
#include "sim/report/text.hpp"

namespace topsim::report {
namespace {
using executor::Reason;
using topology::LinkKind;

// Collects the values of rows. `weight`: the effect of one unit of difference, in steps of the baseline.
class Rows {
 public:
  explicit Rows(std::size_t candidates) : candidates_(candidates) {}

  // `shared`: the row is kept only if every candidate has a value.
  void add(const std::string& metric, Unit unit, std::size_t candidate, double value, double weight,
           bool shared = false) {
    auto [at, fresh] = index_.try_emplace(metric, rows_.size());
    if (fresh) {
      ComparisonRow row;
      row.metric = metric;
      row.unit = unit;
      row.values.resize(candidates_, 0);
      rows_.push_back(std::move(row));
      weights_.push_back(0);
      lacking_.push_back(shared ? candidates_ : 0);
    }
    if (shared) --lacking_[at->second];
    rows_[at->second].values[candidate] = value;
    weights_[at->second] = std::max(weights_[at->second], weight);
  }
  ComparisonRow& of(const std::string& metric) { return rows_[index_.at(metric)]; }

  [[nodiscard]] std::vector<ComparisonRow> finish() && {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (lacking_[i] > 0) continue;
      if (i != kept) rows_[kept] = std::move(rows_[i]);
      weights_[kept++] = weights_[i];
    }
    rows_.resize(kept);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      ComparisonRow& row = rows_[i];
      const double base = row.values[0];
      row.relative.resize(candidates_, 0);
      for (std::size_t c = 1; c < candidates_; ++c) {
        const bool same = row.values[c] == base;
        row.relative[c] = same        ? 0
                          : base != 0 ? row.values[c] / base - 1
                                      : std::numeric_limits<double>::quiet_NaN();
        if (!same && weights_[i] > 0)
          row.effect = std::max(row.effect, std::abs(row.values[c] - base) * weights_[i]);
      }
      // Two rows of the same effect may differ in their last digits; rounding must not change their order.
      row.effect = std::round(row.effect * 1e12) / 1e12;
    }
    std::stable_sort(rows_.begin() + 1, rows_.end(),
                     [](const ComparisonRow& a, const ComparisonRow& b) { return a.effect > b.effect; });
    return std::move(rows_);
  }

 private:
  std::size_t candidates_;
  std::vector<ComparisonRow> rows_;
  std::vector<double> weights_;
  std::vector<std::size_t> lacking_;  // candidates without a value of a shared row
  std::map<std::string, std::size_t> index_;
};

std::vector<std::string> distinct_names(std::span<const Candidate> candidates) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const Candidate& each : candidates) {
    std::string name = each.result.name.empty() ? "scenario" : each.result.name;
    for (int n = 2; !taken.insert(name).second; ++n) name = fmt::format("{} #{}", each.result.name, n);
    names.push_back(std::move(name));
  }
  return names;
}

// Collectives of one group, kind and size; candidates may choose different algorithms for them.
void add_collectives(Rows& rows, std::size_t c, const Result& result, double per_step) {
  struct Sum {
    double seconds = 0, bus = 0, of_a_rank = 0;
  };
  std::map<std::string, Sum> sums;
  for (const CollectiveRow& each : result.collectives) {
    Sum& sum = sums[fmt::format("collectives.{}.{}.{}", each.group, each.kind, each.bytes.value())];
    const double time = seconds(each.each) * static_cast<double>(each.calls);
    sum.seconds += time;
    sum.bus += each.bus_bandwidth * time;
    sum.of_a_rank += seconds(each.each) * calls_of_a_rank_per_step(result, each);
  }
  for (const auto& [name, sum] : sums) {
    if (sum.seconds <= 0) continue;
    const double bus = sum.bus / sum.seconds;
    // The time that a rank spends in it per step changes in proportion to the bandwidth.
    rows.add(name + ".bus_bandwidth", Unit::bytes_per_second, c, bus,
             bus > 0 ? sum.of_a_rank * per_step / bus : 0, true);
  }
}

void add_links(Rows& rows, std::size_t c, const Result& result) {
  std::map<std::string, double> mean;
  for (const LinkRow& each : result.links) {
    // Fabrics of different kinds are compared with each other, so they share a row.
    const bool fabric =
        each.kind == LinkKind::infiniband || each.kind == LinkKind::ethernet || each.kind == LinkKind::torus;
    double& most = mean[fmt::format("links.{}.utilization", fabric ? "fabric" : name_of(each.kind))];
    most = std::max(most, each.utilization);
  }
  // A busier link is not a loss in itself: a hundredth, which ranks it below what costs time.
  for (const auto& [name, utilization] : mean) rows.add(name, Unit::share, c, utilization, 0.01);
}

void add_result(Rows& rows, std::size_t c, const Result& result, double per_step) {
  rows.add("step.seconds", Unit::seconds, c, si(result.step), per_step);
  // A trace says nothing of tokens, models and memory.
  if (!result.trace) {
    rows.add("throughput.tokens_per_second", Unit::count, c, result.throughput.tokens_per_second, 0, true);
    rows.add("throughput.mfu", Unit::share, c, result.throughput.mfu, 0, true);
  }
  rows.add("accelerators.busy_seconds", Unit::seconds, c, si(result.account.busy), per_step);
  rows.add("accelerators.slowed_seconds", Unit::seconds, c, si(result.account.slowed), per_step);
  // Communication that is hidden costs nothing, and what is not is among the idle seconds.
  rows.add("accelerators.communication_seconds", Unit::seconds, c, si(result.account.communication), 0);
  rows.add("accelerators.hidden_communication_seconds", Unit::seconds, c,
           si(result.account.hidden_communication), 0);
  for (std::size_t i = 0; i < result.account.idle.size(); ++i) {
    rows.add(fmt::format("accelerators.idle_seconds.{}", name_of(static_cast<Reason>(i))), Unit::seconds, c,
             si(result.account.idle[i]), per_step);
  }
  if (result.goodput) {
    const double share = result.goodput->share.usual;
    rows.add("reliability.goodput", Unit::share, c, share, 1, true);
    rows.add("reliability.interruptions_per_day", Unit::count, c, result.goodput->interruptions_per_day.usual,
             0, true);
    rows.add("reliability.step_seconds", Unit::seconds, c, step_seconds(result, result.step), per_step, true);
  }
  if (!result.trace)
    rows.add("memory.per_accelerator_bytes", Unit::bytes, c,
             static_cast<double>(result.memory.per_accelerator.value()), 0, true);
  add_collectives(rows, c, result, per_step);
  add_links(rows, c, result);
}

std::vector<double> over_samples(const Candidate& candidate,
                                 double (*figure)(const Candidate&, std::size_t)) {
  std::vector<double> values;
  for (std::size_t s = 0; s < candidate.steps.size(); ++s) values.push_back(figure(candidate, s));
  return values;
}

constexpr const char* kPerRun = "cost.usd_per_run";  // there only where cost.tokens asks for it

struct CostFigure {
  const char* metric;
  Unit unit;
  bool needs_tokens;
  bool takes_time;  // so the cost of failures, where counted, affects it
  bool of_servers;  // and of accelerators, which must have prices
  double (*of)(const Candidate&, std::size_t sample);
};

constexpr CostFigure kCostFigures[] = {
    {"cost.capital_usd", Unit::dollars, false, false, true,
     [](const Candidate& each, std::size_t s) { return each.cost->bill.capital(Draws(s)); }},
    {"cost.fabric_usd", Unit::dollars, false, false, false,
     [](const Candidate& each, std::size_t s) { return each.cost->bill.capital(Draws(s), true); }},
    {"cost.watts", Unit::watts, false, false, false,
     [](const Candidate& each, std::size_t s) {
       return each.cost->bill.watts() * each.cost->pue.at(Draws(s)("pue"));
     }},
    {"cost.usd_per_step", Unit::dollars, false, true, true,
     [](const Candidate& each, std::size_t s) {
       return each.cost->per_second(Draws(s)) * step_seconds(each.result, each.steps[s]);
     }},
    {"cost.usd_per_million_tokens", Unit::dollars, true, true, true,
     [](const Candidate& each, std::size_t s) {
       return each.cost->per_second(Draws(s)) * token_seconds(each.result, each.steps[s]) * 1e6;
     }},
    {kPerRun, Unit::dollars, true, true, true,
     [](const Candidate& each, std::size_t s) {
       return each.cost->per_second(Draws(s)) * token_seconds(each.result, each.steps[s]) *
              each.cost->tokens.value_or(0);
     }},
};

void add_costs(Rows& rows, std::span<const Candidate> candidates) {
  const auto all = [&](auto&& has) { return std::all_of(candidates.begin(), candidates.end(), has); };
  if (!all([](const Candidate& each) { return each.cost && each.cost->bill.capital(Draws(0)) > 0; })) return;
  const bool alike = all([&](const Candidate& each) {
    return each.cost->bill.has_servers() == candidates[0].cost->bill.has_servers();
  });
  if (!alike) return;  // where no server is known its NICs count as fabric, and its hosts not at all
  const bool whole = all([](const Candidate& each) { return each.cost->bill.without_own_price().empty(); });
  const bool tokens = all([](const Candidate& each) { return each.result.throughput.tokens_per_second > 0; });
  const bool run = all([](const Candidate& each) { return each.cost->tokens.has_value(); });
  const bool failures_alike = all([&](const Candidate& each) {
    return each.result.goodput.has_value() == candidates[0].result.goodput.has_value();
  });
  for (const CostFigure& figure : kCostFigures) {
    if ((figure.needs_tokens && !tokens) || (figure.takes_time && !failures_alike)) continue;
    if (figure.of_servers && !whole) continue;
    if (std::string_view(figure.metric) == kPerRun && !run) continue;
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      const auto values = over_samples(candidates[c], figure.of);
      // A dollar counts as its share of the baseline's bill, a tenth of the step's weight.
      const double base = figure.of(candidates[0], 0);
      rows.add(figure.metric, figure.unit, c, values[0], base > 0 ? 0.1 / base : 0);
      rows.of(figure.metric).ranges.push_back(spread(values));
    }
  }
}

double tokens_of(const Candidate& each) {
  return each.result.throughput.tokens_per_second * seconds(each.result.step);
}

// Whether all report tokens, but not all the same number (rates are rounded: to a millionth).
bool tokens_differ(std::span<const Candidate> candidates) {
  const double base = tokens_of(candidates[0]);
  bool differ = false;
  for (const Candidate& each : candidates) {
    if (tokens_of(each) <= 0) return false;
    differ = differ || std::abs(tokens_of(each) / base - 1) > 1e-6;
  }
  return differ;
}

std::string limit_of(const Result& result) {
  constexpr std::size_t kNamed = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(kNamed, result.critical_path_links.size()); ++i) {
    const metrics::PathShare& each = result.critical_path_links[i];
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", percent_text(each.share), each.what);
  }
  return text.empty() ? "nothing was told" : text;
}

std::vector<Interval> relative_steps(std::span<const Candidate> candidates, bool per_token) {
  std::vector<Interval> intervals;
  for (const Candidate& each : candidates) {
    std::vector<double> relative;
    for (std::size_t s = 0; s < each.steps.size(); ++s)
      relative.push_back(relative_step(each, candidates[0], s, per_token));
    intervals.push_back(spread(relative));
  }
  return intervals;
}

// Whether values differ by more than the models resolve, and not only trivially: a row without a weight
// (tokens, memory) has no effect at all.
bool differs(const ComparisonRow& row) {
  constexpr double kTrifle = 1e-3;  // of the baseline's step
  if (row.effect > 0 && row.effect < kTrifle) return false;
  return std::any_of(row.relative.begin(), row.relative.end(),
                     [](double each) { return std::isnan(each) || std::abs(each) >= kResolution; });
}
}  // namespace

double relative_step(const Candidate& candidate, const Candidate& baseline, std::size_t sample,
                     bool per_token) {
  const double work = per_token ? tokens_of(candidate) / tokens_of(baseline) : 1;
  return seconds(candidate.steps[sample]) / seconds(baseline.steps[sample]) / work - 1;
}

double step_seconds(const Result& result, Duration step) {
  const double share = result.goodput ? result.goodput->share.usual : 1;
  return share > 0 ? seconds(step) / share : std::numeric_limits<double>::infinity();
}

double token_seconds(const Result& result, Duration step) {
  const double tokens = result.throughput.tokens_per_second * seconds(result.step);
  return tokens > 0 ? step_seconds(result, step) / tokens : 0;
}

Comparison compare(std::span<const Candidate> candidates) {
  Comparison result;
  result.names = distinct_names(candidates);
  result.samples = candidates[0].steps.size();
  result.traces = std::all_of(candidates.begin(), candidates.end(),
                              [](const Candidate& each) { return each.result.trace; });
  const double base_step = seconds(candidates[0].result.step);
  Rows rows(candidates.size());
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    add_result(rows, c, candidates[c].result, base_step > 0 ? 1 / base_step : 0);
  }
  add_costs(rows, candidates);
  if (result.samples > 1) {
    for (const Candidate& each : candidates) {
      rows.of("step.seconds")
          .ranges.push_back(spread(over_samples(
              each, [](const Candidate& candidate, std::size_t s) { return seconds(candidate.steps[s]); })));
    }
  }
  result.rows = std::move(rows).finish();
  // A row in which all values are zero is left out.
  std::erase_if(result.rows, [](const ComparisonRow& row) {
    return row.metric != "step.seconds" &&
           std::all_of(row.values.begin(), row.values.end(), [](double value) { return value == 0; });
  });
  result.per_token = tokens_differ(candidates);
  result.step_relative = relative_steps(candidates, result.per_token);
  for (const Candidate& each : candidates) result.limits.push_back(limit_of(each.result));
  result.verdict = verdict(result, candidates);
  result.remarks = remarks(result, candidates);
  return result;
}

std::vector<std::string> comparison_keys() {
  std::vector<std::string> keys = {"reliability.step_seconds"};
  for (const CostFigure& figure : kCostFigures) keys.emplace_back(figure.metric);
  return keys;
}

std::vector<const ComparisonRow*> rows_that_differ(const Comparison& comparison) {
  constexpr std::size_t kCollectives = 5;  // the most expensive ones; more would repeat them
  std::vector<const ComparisonRow*> rows;
  std::size_t collectives = 0;
  for (const ComparisonRow& row : comparison.rows) {
    const bool asked = row.metric == "step.seconds" || row.metric == kPerRun;
    if (!asked && !differs(row)) continue;
    if (row.metric.starts_with("collectives.") && ++collectives > kCollectives) continue;
    rows.push_back(&row);
  }
  return rows;
}
}  // namespace topsim::report
