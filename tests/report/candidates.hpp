// Candidates of comparisons: the sample result with another step time.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/report/compare.hpp"
#include "tests/report/sample.hpp"

namespace topsim::testing {

inline report::Candidate candidate(const std::string& name, Duration step,
                                   std::vector<Duration> samples = {}) {
  report::Candidate each;
  each.result = sample_result();
  each.result.name = name;
  // All of the difference to the sample's 10 ms is exposed data-parallel communication.
  each.result.account.idle[static_cast<std::size_t>(Reason::data_parallel)] += step - each.result.step;
  each.result.throughput.tokens_per_second *= seconds(each.result.step) / seconds(step);
  each.result.step = step;
  each.steps = std::move(samples);
  each.steps.insert(each.steps.begin(), step);
  return each;
}

inline report::Comparison of(std::vector<report::Candidate> candidates) {
  return report::compare(candidates);
}
}  // namespace topsim::testing
