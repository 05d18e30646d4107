#include "sim/validation/ranking.hpp"

#include <gtest/gtest.h>

namespace topsim::validation::ranking_test {

Prediction step(const char* ranking, double published, double predicted, double accelerators = 8) {
  Prediction p;
  p.ranking = ranking;
  p.series = "one series";
  p.published = published;
  p.predicted = predicted;
  p.accelerators = accelerators;
  p.samples = 64;
  return p;
}

Summary ranked(const std::vector<Prediction>& steps) {
  std::vector<const Prediction*> pointers;
  for (const Prediction& p : steps) pointers.push_back(&p);
  Summary summary;
  rank(pointers, summary);
  return summary;
}

// Published 1 < 2 < 3, predicted 1 < 3 < 2: two of three pairs agree, tau = (2 - 1) / 3. Steps of another job
// form no pairs with these.
TEST(Ranking, TauCountsPairsOfOneJob) {
  const Summary one = ranked({step("a", 1, 1), step("a", 2, 3), step("a", 3, 2)});
  EXPECT_EQ(one.pairs, 3u);
  EXPECT_NEAR(*one.tau, 1.0 / 3, 1e-12);
  const Summary two = ranked({step("a", 1, 1), step("a", 2, 3), step("a", 3, 2), step("b", 9, 1)});
  EXPECT_EQ(two.pairs, 3u);
  EXPECT_FALSE(ranked({step("a", 1, 1), step("b", 2, 3)}).tau);
}

// Family f has one pair, in order: tau 1. Family g has three, of which only the pair of published 2 and 3 is
// in order: (1 - 2) / 3. The mean over families is 1/3; over all four pairs (2 - 2) / 4 = 0.
TEST(Ranking, EveryFamilyWeighsTheSame) {
  std::vector<Prediction> steps = {step("a", 1, 1), step("a", 2, 2), step("b", 1, 3), step("b", 2, 1),
                                   step("b", 3, 2)};
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i].family = i < 2 ? "f" : "g";
  const Summary summary = ranked(steps);
  EXPECT_NEAR(*summary.tau, 1.0 / 3, 1e-12);
  EXPECT_NEAR(*summary.tau_of_pairs, 0, 1e-12);
}

// 1.05 is within 6 % of 1, so that pair is within the noise; 1.2 is clear of both. All three pairs: two
// agree, 1/3. Clear pairs: one of two agrees, 0.
TEST(Ranking, PairsWithinTheNoiseAreNotClear) {
  const Summary summary = ranked({step("a", 1, 2.2), step("a", 1.05, 2.3), step("a", 1.2, 2.25)});
  EXPECT_NEAR(*summary.tau, 1.0 / 3, 1e-12);
  EXPECT_EQ(summary.distinct_pairs, 2u);
  EXPECT_NEAR(*summary.tau_beyond_noise, 0, 1e-12);
}

// A comparison is a pair: cheaper and cheaper agree, cheaper and dearer do not. 1.03 is within the noise.
TEST(Ranking, ComparisonsAreCountedByTheirSign) {
  std::vector<Prediction> ratios = {step("", 0.8, 0.9), step("", 1.03, 0.97), step("", 1.5, 2)};
  for (Prediction& p : ratios) p.figure = Figure::ratio;
  const Summary summary = ranked(ratios);
  EXPECT_EQ(summary.pairs, 3u);
  EXPECT_NEAR(*summary.tau, 1.0 / 3, 1e-12);
  EXPECT_EQ(summary.distinct_pairs, 2u);
  EXPECT_NEAR(*summary.tau_beyond_noise, 1, 1e-12);
}

// The same batch on 8, 16 and 32 accelerators. Published 1, 0.5 and 0.25 s scale perfectly; predicted 1, 0.55
// and 0.3025 s cost 1.1 times the accelerator seconds with every doubling.
TEST(Ranking, SlopeIsTheErrorThatADoublingAdds) {
  const Summary summary = ranked({step("a", 1, 1, 8), step("b", 0.5, 0.55, 16), step("c", 0.25, 0.3025, 32)});
  EXPECT_EQ(summary.series, 1u);
  EXPECT_NEAR(*summary.slope, 0.1, 1e-9);
  EXPECT_FALSE(ranked({step("a", 1, 1, 8), step("b", 1, 1, 16)}).slope);
}

Case row(std::vector<std::string> assignments) {
  Case c;
  c.family = "f";
  c.assignments = std::move(assignments);
  return c;
}

TEST(Ranking, LayoutsOfOneJobShareAKeyAndSizesOfOneLayoutAnother) {
  const Case a = row({"topology.nodes=2", "workload.plan.tp=2", "workload.plan.global_batch=64"});
  const Case b = row({"topology.nodes=2", "workload.plan.tp=4", "workload.plan.global_batch=64"});
  const Case bigger = row({"topology.nodes=4", "workload.plan.tp=2", "workload.plan.global_batch=128"});
  EXPECT_EQ(ranking_of(a), ranking_of(b));
  EXPECT_NE(ranking_of(a), ranking_of(bigger));
  EXPECT_EQ(series_of(a), series_of(bigger));
  Case newer = b;
  newer.release = "25.04";
  EXPECT_NE(ranking_of(b), ranking_of(newer));
  EXPECT_NE(series_of(a), series_of(b));
}
}  // namespace topsim::validation::ranking_test
