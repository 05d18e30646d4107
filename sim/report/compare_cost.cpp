#include "sim/report/compare_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/report/text.hpp"

namespace topsim::report {
namespace {
// The parts without a price of their own that make costs incomparable: those of which the two have different
// numbers, and accelerators and servers, which dominate the cost.
std::set<std::string> incomparable(const BillOfMaterials& a, const BillOfMaterials& b) {
  std::map<std::string, std::int64_t> counts;
  std::set<std::string> parts;
  for (const auto& [bill, sign] : {std::pair{&a, 1}, {&b, -1}}) {
    for (const BomItem* item : bill->unpriced()) {
      counts[item->id] += sign * item->count;
      if (!item->is_fabric()) parts.insert(item->id);
    }
  }
  for (const auto& [id, difference] : counts)
    if (difference != 0) parts.insert(id);
  for (const BillOfMaterials* bill : {&a, &b}) {
    for (const BomItem* item : bill->without_own_price()) parts.insert(item->id);
    if (a.has_servers() != b.has_servers() && !bill->has_servers())
      for (const BomItem& item : bill->items)
        if (item.category == BomCategory::accelerator) parts.insert("servers of " + item.id);
  }
  return parts;
}

// Why costs cannot be compared; empty if they can.
std::string costs_apart(const Comparison& comparison, std::span<const Candidate> candidates, std::size_t c) {
  const Candidate &base = candidates[0], &other = candidates[c];
  if (const auto parts = incomparable(base.cost->bill, other.cost->bill); !parts.empty())
    return fmt::format(
        "costs of {} and {} are not compared: no price is known of {}; cost.prices takes quotes",
        comparison.names[0], comparison.names[c], fmt::join(parts, ", "));
  if (const bool counts = base.result.goodput.has_value(); counts != other.result.goodput.has_value())
    return fmt::format(
        "costs of {} and {} are not compared: those of {} count failures (its section reliability)",
        comparison.names[0], comparison.names[c], comparison.names[counts ? 0 : c]);
  return "";
}

// The relative cost of another candidate's token (or step), over draws of prices and samples.
struct CostDifference {
  bool tokens = false;             // of a token; else of a step
  Interval relative;               // 0.1: a tenth more
  double at_usual_prices = 0;      // of the first sample, as in the table
  std::vector<double> break_even;  // share of the baseline's fabric cost below which the other wins
};

// `times`: by how much steps (or tokens) take longer without it meaning anything: left out of the cost.
std::optional<CostDifference> cost_difference(const Candidate& base, const Candidate& other, double times) {
  CostDifference difference;
  difference.tokens =
      base.result.throughput.tokens_per_second > 0 && other.result.throughput.tokens_per_second > 0;
  const auto time_of = [&](const Candidate& each, std::size_t s) {
    return difference.tokens ? token_seconds(each.result, each.steps[s])
                             : step_seconds(each.result, each.steps[s]);
  };
  if (time_of(base, 0) <= 0 || time_of(other, 0) <= 0) return std::nullopt;
  std::vector<double> relative;
  // Enough draws of prices for percentiles even if there was only one simulation.
  constexpr std::size_t kPriceSamples = 256;
  for (std::size_t s = 0; s < kPriceSamples; ++s) {
    const std::size_t run = s % base.steps.size();
    const Draws draws(s);
    const double here = time_of(base, run), there = time_of(other, run) / (1 + times);
    relative.push_back(other.cost->per_second(draws) * there / (base.cost->per_second(draws) * here) - 1);
    if (const auto share = break_even_fabric_share(*base.cost, here, *other.cost, there, draws))
      difference.break_even.push_back(*share);
  }
  difference.relative = spread(relative);
  difference.at_usual_prices = relative[0];
  return difference;
}

std::string fabric_sentence(const Comparison& comparison, std::span<const Candidate> candidates,
                            std::size_t c, std::span<const double> break_even) {
  if (break_even.empty()) return "";
  const Interval share = spread(break_even);
  if (share.high <= 0) return fmt::format("; {} would not win with a free fabric", comparison.names[c]);
  if (share.usual <= 0) return fmt::format("; {} would hardly win with a free fabric", comparison.names[c]);
  return fmt::format("; {} wins if its fabric costs less than {} of {}'s ({} to {}), now it is {}",
                     comparison.names[c], percent_text(share.usual), comparison.names[0],
                     percent_text(std::max(0.0, share.low)), percent_text(share.high),
                     percent_text(candidates[c].cost->bill.capital(Draws(0), true) /
                                  candidates[0].cost->bill.capital(Draws(0), true)));
}

}  // namespace

std::string cost_sentence(const Comparison& comparison, std::span<const Candidate> candidates,
                          std::size_t c) {
  for (const Candidate* each : {&candidates[0], &candidates[c]})
    if (!each->cost || each->cost->bill.capital(Draws(0)) <= 0) return "";
  if (const std::string apart = costs_apart(comparison, candidates, c); !apart.empty()) return apart;
  for (const std::size_t each : {std::size_t{0}, c}) {
    if (std::isinf(step_seconds(candidates[each].result, candidates[each].result.step)))
      return fmt::format("failures leave {} no time to train: it has no cost per token",
                         comparison.names[each]);
  }
  const double step = comparison.step_relative[c].usual;
  const bool resolved = std::abs(step) >= kResolution;
  const auto difference = cost_difference(candidates[0], candidates[c], resolved ? 0 : step);
  if (!difference) return "";
  const Interval& cost = difference->relative;
  const char* work = difference->tokens ? "token" : "step";
  constexpr double kAlike = 5e-4;
  if (std::abs(cost.low) < kAlike && std::abs(cost.high) < kAlike)
    return fmt::format("{} and {} cost the same per {}", comparison.names[0], comparison.names[c], work);
  // At usual prices, as in the table, unless the table's sample is unusual: then the median.
  const bool unusual = std::abs(difference->at_usual_prices - cost.usual) >= kResolution;
  const double usual = unusual ? cost.usual : difference->at_usual_prices;
  const char* over = unusual ? "in the median, {} to {} over samples and ranges of prices"
                             : "{} to {} over the ranges of prices";
  const std::string range =
      fmt::format(fmt::runtime(over), signed_percent_text(cost.low), signed_percent_text(cost.high)) +
      (resolved || step == 0 ? ""
                             : fmt::format("; the {}'s {} not counted", work, signed_percent_text(step)));
  const bool either = cost.low <= 0 && cost.high >= 0;
  // Relative to the baseline's cost, as in the table: at usual prices, and over the ranges of prices.
  const std::string text =
      either ? fmt::format("cost per {}: no significant difference, {} against {} {} ({})", work,
                           comparison.names[c], comparison.names[0], signed_percent_text(usual), range)
             : fmt::format("cost per {}: {} costs {} {} than {} ({})", work, comparison.names[c],
                           signed_percent_text(std::abs(usual)).substr(1), usual > 0 ? "more" : "less",
                           comparison.names[0], range);
  // At equal times a fabric is worth what the other costs, and these cost the same.
  const auto fabric = [&](std::size_t each) { return candidates[each].cost->bill.capital(Draws(0), true); };
  if (!resolved && fabric(0) == fabric(c)) return text;
  return text + fabric_sentence(comparison, candidates, c, difference->break_even);
}
}  // namespace topsim::report
