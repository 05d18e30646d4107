// Samples of a comparison: what they draw, and that candidates share it.
#include "sim/study/ensemble.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/config/reader.hpp"

namespace topsim::study {
namespace {

std::vector<report::Candidate> run(int jobs) {
  const config::Library library({"configs"});
  const topology::Catalogue catalogue = topology::Catalogue::load("configs");
  std::vector<scenario::Scenario> scenarios;
  for (const char* link : {"ib-ndr", "roce-400g"}) {
    scenarios.push_back(scenario::parse_scenario(
        std::string(R"({"topology": {"node": "hgx-h100", "nodes": 2, "fabric": {"kind": "rail", "link": ")") +
            link + R"("}}, "workload": {"model": "llama3-8b", "plan": {"tp": 8, "dp": 2, "micro_batch": 1,
            "global_batch": 2}, "sequence": 4096}, "run": {"steps": 1, "warmup": 1}})",
        "test.json", {}, library));
  }
  EnsembleOptions options;
  options.samples = 16;
  options.jobs = jobs;
  return run_ensembles(scenarios, catalogue, options);
}

// The catalogue's two rates of an H100's best bf16 product are 730 and 794.5 TFLOP/s, 8.8 % apart, so steps
// spread by percents; both candidates compute on it, so their ratio does not: it spreads by less than a
// fifth of that.
TEST(Ensemble, draws_what_sources_disagree_about_the_same_for_all_candidates) {
  const auto candidates = run(0);
  ASSERT_EQ(candidates.size(), 2U);
  ASSERT_EQ(candidates[0].steps.size(), 16U);
  std::vector<double> steps, ratios;
  for (std::size_t s = 0; s < 16; ++s) {
    steps.push_back(seconds(candidates[0].steps[s]) / seconds(candidates[0].steps[0]));
    ratios.push_back(seconds(candidates[1].steps[s]) / seconds(candidates[0].steps[s]));
  }
  const auto width = [](const std::vector<double>& values) {
    return report::quantile(values, 0.95) - report::quantile(values, 0.05);
  };
  EXPECT_GT(width(steps), 0.01);
  EXPECT_LT(width(steps), 2 * 0.088);
  EXPECT_LT(width(ratios), width(steps) / 5);
  EXPECT_GT(width(ratios), 0);  // switches and NICs are not the same
}

TEST(Ensemble, says_what_it_draws) {
  const auto candidates = run(0);
  const auto says = [&](std::size_t c, const std::string& words) {
    const auto& drawn = candidates[c].drawn;
    return std::any_of(drawn.begin(), drawn.end(),
                       [&](const std::string& each) { return each.find(words) != std::string::npos; });
  };
  EXPECT_TRUE(says(0, "NICs and hosts of ib-ndr"));     // 2.35 us or 1.27
  EXPECT_TRUE(says(1, "NICs and hosts of roce-400g"));  // 2.6 us or 1.8
  EXPECT_TRUE(says(0, "matrix products on h100-sxm5"));
}

TEST(Ensemble, does_not_depend_on_how_many_run_at_once) {
  const auto one = run(1), two = run(2);
  for (std::size_t c = 0; c < 2; ++c) EXPECT_EQ(one[c].steps, two[c].steps);
}
}  // namespace
}  // namespace topsim::study
