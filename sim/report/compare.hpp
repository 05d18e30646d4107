// Candidates side by side, the first is the baseline: what differs, ordered by its effect on the step, and a
// sentence that says whether the difference is significant.
//
// Each candidate was simulated `samples` times: sample 0 with everything at its usual value, the others with
// their own ECMP seed and with a draw of every figure on which sources disagree. Equal sample numbers mean
// equal draws for all candidates, so common effects cancel. Relative figures are judged by the 5th to 95th
// percentile over the samples of (candidate / baseline - 1). A step time differs when that interval lies
// beyond kResolution, below which the models do not resolve differences.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/report/cost.hpp"
#include "sim/report/result.hpp"

namespace topsim::report {

inline constexpr double kResolution = 0.01;

struct Candidate {
  Result result;                // sample 0
  std::vector<Duration> steps;  // by sample; [0] = result.step
  std::optional<CostModel> cost;
  std::vector<std::string> drawn = {};  // what the other samples vary, with ranges, for people
};

enum class Unit : std::uint8_t { seconds, bytes_per_second, share, count, watts, dollars, bytes };
struct ComparisonRow {
  std::string metric;  // dotted, as in result.json: step.seconds, accelerators.idle_seconds.host
  Unit unit = Unit::seconds;
  std::vector<double> values;    // by candidate; infinite: of a job that never trains
  std::vector<Interval> ranges;  // by candidate where sampled; else empty
  std::vector<double> relative;  // value / baseline - 1; 0 for the baseline; NaN where the baseline is 0
  double effect = 0;             // the largest difference as a share of the baseline's step
};

struct Comparison {
  std::vector<std::string> names;  // distinct
  std::size_t samples = 1;
  std::vector<ComparisonRow> rows;  // step time first, then by effect
  // By candidate, over the samples: time per token where candidates do not process the same tokens in a step.
  std::vector<Interval> step_relative;
  bool per_token = false;
  std::vector<std::string> limits;  // by candidate: what limits most of the step
  std::string verdict;              // the closing sentence (or sentences, one per line)
  std::vector<std::string> remarks;
  bool traces = false;   // all replay traces, whose waits have names of their own
  bool complete = true;  // false: interrupted, candidates or samples are missing
};

// How much longer a step (or token) of the candidate takes than the baseline's in a sample: 0.01 is 1 %.
[[nodiscard]] double relative_step(const Candidate& candidate, const Candidate& baseline, std::size_t sample,
                                   bool per_token);
// Of a step, and of a token: with what failures and checkpoints take where the scenario says how often
// (reliability). Infinite where they leave no time to train; a token's is 0 where a step has no tokens.
[[nodiscard]] double step_seconds(const Result& result, Duration step);
[[nodiscard]] double token_seconds(const Result& result, Duration step);

// REQUIRES: at least two candidates, all with the same number of steps.
[[nodiscard]] Comparison compare(std::span<const Candidate> candidates);

// Step time, and rows that differ by kResolution or more somewhere and by at least 0.1 % of a step; of
// collectives the five with the largest effect.
[[nodiscard]] std::vector<const ComparisonRow*> rows_that_differ(const Comparison& comparison);

// Metrics that a comparison adds to those of a result: cost.usd_per_step, ...
[[nodiscard]] std::vector<std::string> comparison_keys();

// As tables print it: "17.7 s", "412 GB/s", "41.2 %"; and the unit of plain numbers: "s", "B/s", "1".
[[nodiscard]] std::string value_text(double value, Unit unit);
[[nodiscard]] std::string unit_name(Unit unit);

// "step time", "busbw data all_reduce 128 MiB": a metric as people say it; `traces`: of replayed traces.
[[nodiscard]] std::string metric_label(const std::string& metric, bool traces = false);
[[nodiscard]] std::string compare_table(const Comparison& comparison, bool all_rows, int columns);
[[nodiscard]] std::string compare_markdown(const Comparison& comparison,
                                           std::span<const Candidate> candidates, bool all_rows);
[[nodiscard]] std::string compare_json(const Comparison& comparison);  // topsim.compare/1
}  // namespace topsim::report
