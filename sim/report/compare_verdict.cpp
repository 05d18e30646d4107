#include "sim/report/compare_verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "sim/report/compare_work.hpp"
#include "sim/report/findings.hpp"
#include "sim/report/reason_text.hpp"
#include "sim/report/text.hpp"

namespace topsim::report {
namespace {
// `said`: the sentence already contains the middle of the interval.
std::string samples_text(const Comparison& comparison, const Interval& interval, bool said) {
  if (comparison.samples < 2) return "";
  return fmt::format(" ({}median of {} samples; 5th to 95th percentile {} to {})",
                     said ? "" : signed_percent_text(interval.usual) + " in the ", comparison.samples,
                     signed_percent_text(interval.low), signed_percent_text(interval.high));
}

bool significant(const Interval& relative) {
  return relative.low >= kResolution || relative.high <= -kResolution;
}

// The idle reasons (and busy time) that changed most in the direction of the difference: as few as explain
// half of it, at most three.
std::string cause(std::span<const Candidate> candidates, std::size_t c) {
  const Result& base = candidates[0].result;
  const Result& other = candidates[c].result;
  const double difference = seconds(other.step) - seconds(base.step);
  if (difference == 0) return "";
  std::vector<std::pair<double, std::string>> parts;  // share of the difference, of what
  const auto offer = [&](std::string_view what, Duration a, Duration b) {
    parts.emplace_back((seconds(b) - seconds(a)) / difference, what);
  };
  offer("computation", base.account.busy - base.account.slowed, other.account.busy - other.account.slowed);
  offer("kernels slowed beside communication", base.account.slowed, other.account.slowed);
  for (std::size_t i = 0; i < base.account.idle.size(); ++i) {
    offer(reason_text(static_cast<executor::Reason>(i)), base.account.idle[i], other.account.idle[i]);
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  constexpr std::size_t kMostNamed = 3;
  std::string text;
  double explained = 0;
  for (std::size_t i = 0; i < kMostNamed && explained < 0.5; ++i) {
    const auto& [share, what] = parts[i];
    explained += share;
    text += i == 0 ? fmt::format("; {} of the difference is {}",
                                 share > 1.0 ? "more than all" : percent_text(share), what)
                   : fmt::format(", {} {}", percent_text(share), what);
  }
  return explained < 0.5 ? "" : text;
}

// Of accelerators with more memory than there is: nobody can have these figures.
std::string unfit(const Comparison& comparison, std::span<const Candidate> candidates, std::size_t c) {
  const Memory& memory = candidates[c].result.memory;
  if (memory.fits) return "";
  return fmt::format("{} DOES NOT FIT the memory: {} of {}", comparison.names[c],
                     memory_text(memory.per_accelerator), capacity_text(memory));
}

std::string time_text(const Candidate& each, bool per_token) {
  const Result& result = each.result;
  return duration_text(
      from_seconds(per_token ? token_seconds(result, result.step) : step_seconds(result, result.step)));
}

std::string step_sentence(const Comparison& comparison, std::span<const Candidate> candidates,
                          std::size_t c) {
  const std::string& base = comparison.names[0];
  const std::string& other = comparison.names[c];
  const Interval& relative = comparison.step_relative[c];
  const char* work = comparison.per_token ? "token" : "step";
  if (relative == Interval{})
    return fmt::format("{} and {} take the same {}", base, other,
                       comparison.per_token ? "time a token" : "step time");
  if (!significant(relative)) {
    const bool overlap = relative.low <= 0 && relative.high >= 0;
    if (!overlap && std::abs(relative.usual) >= kResolution)
      return fmt::format(
          "{} takes {} per {} than {}{}: at the limit of what the models resolve, {} either way", other,
          percent_text(std::abs(relative.usual)) + (relative.usual > 0 ? " longer" : " less"), work, base,
          samples_text(comparison, relative, /*said=*/true), percent_text(kResolution));
    return fmt::format("no significant difference between {} and {}: {} per {}{}{}", base, other,
                       signed_percent_text(relative.usual), work,
                       samples_text(comparison, relative, /*said=*/true),
                       overlap ? ""
                               : fmt::format("; differences below {} are beneath what the models resolve",
                                             percent_text(kResolution)));
  }
  const bool slower = relative.usual > 0;
  const double factor = slower ? 1 + relative.usual : 1 / (1 + relative.usual);
  // Different work: its ratio says nothing of the clusters.
  if (const std::string apart = other_task(comparison, candidates, c); !apart.empty())
    return fmt::format("{}; a {} takes {} in {}, {} in {}", apart, work,
                       time_text(candidates[0], comparison.per_token), base,
                       time_text(candidates[c], comparison.per_token), other);
  return fmt::format("{} is {} times faster per {} than {}{}{}", slower ? base : other, three_digits(factor),
                     work, slower ? other : base, samples_text(comparison, relative, /*said=*/false),
                     cause(candidates, c));
}

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

// The table shows one sample, the first; the others have other seeds.
std::string first_sample(const Comparison& comparison, std::span<const Candidate> candidates, std::size_t c) {
  if (comparison.samples < 2) return "";
  const double median = comparison.step_relative[c].usual;
  const double first = relative_step(candidates[c], candidates[0], 0, comparison.per_token);
  if (signed_percent_text(first) == signed_percent_text(median)) return "";
  return fmt::format(
      "the table is of one sample, the scenarios' own seeds and usual figures: {} takes {} per {} there, {} "
      "in the median of {} samples, which the sentences count",
      comparison.names[c], signed_percent_text(first), comparison.per_token ? "token" : "step",
      signed_percent_text(median), comparison.samples);
}

const BomItem* server_of(const Candidate& each) {
  if (!each.cost) return nullptr;
  const auto& items = each.cost->bill.items;
  const auto server = std::find_if(items.begin(), items.end(), [](const BomItem& item) {
    return item.category == BomCategory::server && item.price;
  });
  return server == items.end() ? nullptr : &*server;
}

// List prices are higher than what is paid, so they compare badly with street offers.
std::string other_basis(std::span<const Candidate> candidates, std::size_t c) {
  const BomItem *a = server_of(candidates[0]), *b = server_of(candidates[c]);
  if (a == nullptr || b == nullptr || a->basis == b->basis) return "";
  const auto words = [](const BomItem& item) -> std::string {
    switch (item.basis.value_or(PriceBasis::estimate)) {
      case PriceBasis::list:
        return item.id + " stands at its list price";
      case PriceBasis::street:
        return item.id + " at what buyers were offered";
      case PriceBasis::quote:
        return item.id + " at your quote";
      case PriceBasis::estimate:
        break;
    }
    return item.id + " at estimates";
  };
  return fmt::format("prices of different kinds: {}, {}; quotes for both (cost.prices) would compare alike",
                     words(*a), words(*b));
}

bool reduces_in_switches(const Candidate& each) {
  static const nlohmann::json::json_pointer sharp("/topology/fabric/sharp");
  const nlohmann::json scenario =
      nlohmann::json::parse(each.result.scenario, nullptr, /*allow_exceptions=*/false);
  return scenario.contains(sharp) && scenario.at(sharp) == true;
}

// A setting of InfiniBand that the comparison leaves unchanged.
std::string sharp_hint(const Result& result) {
  const bool infiniband = std::any_of(result.links.begin(), result.links.end(), [](const LinkRow& l) {
    return l.kind == topology::LinkKind::infiniband;
  });
  if (!infiniband) return "";
  return " reduces in its NICs and accelerators: --with topology.fabric.sharp=true adds it with SHARP in the "
         "switches";
}

// Warnings of a candidate's run; those that hold for all candidates are stated once.
std::vector<std::string> warnings(const Comparison& comparison, std::span<const Candidate> candidates,
                                  std::size_t c) {
  const auto warns = [](const Result& result, const std::string& message) {
    return std::any_of(result.findings.begin(), result.findings.end(), [&](const Finding& each) {
      return each.severity == Severity::warning && each.message == message;
    });
  };
  std::vector<std::string> list;
  for (const Finding& each : candidates[c].result.findings) {
    if (!warns(candidates[c].result, each.message)) continue;
    const bool everybody = std::all_of(candidates.begin(), candidates.end(), [&](const Candidate& other) {
      return warns(other.result, each.message);
    });
    list.push_back(everybody ? each.message : comparison.names[c] + ": " + each.message);
  }
  return list;
}

std::string other_network(const Comparison& comparison, std::span<const Candidate> candidates,
                          std::size_t c) {
  const std::string &base = candidates[0].result.network_model, &other = candidates[c].result.network_model;
  if (base == other) return "";
  return fmt::format("{} is simulated with network model {}, {} with {}: a part of the difference is theirs",
                     comparison.names[0], base, comparison.names[c], other);
}

bool fabric_unused(const Result& result) {
  return std::any_of(result.findings.begin(), result.findings.end(),
                     [](const Finding& each) { return each.message == kFabricUnused; });
}
}  // namespace

std::string verdict(const Comparison& comparison, std::span<const Candidate> candidates) {
  std::string text;
  const auto add = [&](const std::string& sentence) {
    if (sentence.empty()) return;
    text += (text.empty() ? "" : "\n") + sentence;
  };
  for (std::size_t c = 0; c < candidates.size(); ++c) add(unfit(comparison, candidates, c));
  for (std::size_t c = 1; c < candidates.size(); ++c) {
    add(step_sentence(comparison, candidates, c));
    add(other_release(comparison, candidates, c));
    add(cost_sentence(comparison, candidates, c));
  }
  return text;
}

void say_single_runs(Comparison& comparison) {
  comparison.verdict +=
      "\nsingle runs, because a result has no samples: other seeds and uncertain figures may change this; "
      "compare the scenarios to know";
}

std::vector<std::string> remarks(const Comparison& comparison, std::span<const Candidate> candidates) {
  std::vector<std::string> list;
  std::set<std::string> said;
  const auto add = [&](const std::string& remark) {
    if (said.insert(remark).second) list.push_back(remark);
  };
  if (std::all_of(candidates.begin(), candidates.end(),
                  [](const Candidate& each) { return fabric_unused(each.result); })) {
    add(std::string(kFabricUnused));
  }
  for (std::size_t c = 1; c < candidates.size(); ++c)
    if (const std::string said_of = first_sample(comparison, candidates, c); !said_of.empty()) add(said_of);
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    const Candidate& each = candidates[c];
    if (!each.result.complete) add(comparison.names[c] + " was stopped before its end");
    for (const std::string& warning : warnings(comparison, candidates, c)) add(warning);
    if (const std::string said_of = other_work(comparison, candidates, c); !said_of.empty()) add(said_of);
    if (const std::string said_of = other_network(comparison, candidates, c); !said_of.empty()) add(said_of);
    if (const std::string said_of = other_basis(candidates, c); !said_of.empty()) add(said_of);
    if (each.result.accelerators != candidates[0].result.accelerators) {
      add(fmt::format("{} has {}, {} has {}", comparison.names[0],
                      plural(static_cast<double>(candidates[0].result.accelerators), "accelerator"),
                      comparison.names[c], each.result.accelerators));
    }
    if (std::none_of(candidates.begin(), candidates.end(), reduces_in_switches))
      if (const std::string hint = sharp_hint(each.result); !hint.empty()) add(comparison.names[c] + hint);
    for (const std::string& range : each.drawn) add("samples draw " + range);
    if (each.cost) {
      for (const std::string& remark : each.cost->bill.remarks) add(comparison.names[c] + ": " + remark);
    }
  }
  return list;
}
}  // namespace topsim::report
