#include "sim/report/compare_verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "sim/report/compare_cost.hpp"
#include "sim/report/compare_work.hpp"
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
std::string cause(std::span<const Candidate> candidates, std::size_t c, bool traces) {
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
    const auto reason = static_cast<executor::Reason>(i);
    offer(traces ? trace_reason_text(reason) : reason_text(reason), base.account.idle[i],
          other.account.idle[i]);
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
                     cause(candidates, c, comparison.traces));
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
}  // namespace topsim::report
