// Ranks of a plan on the chips of a torus.
#include "sim/scenario/cluster/torus_ranks.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "sim/scenario/read/read.hpp"
#include "sim/scenario/run/simulate.hpp"

namespace topsim::scenario::torus_ranks_test {
using testing::HasSubstr;

const topology::Catalogue& catalogue() {
  static const topology::Catalogue loaded = topology::Catalogue::load("configs");
  return loaded;
}

SimulateOptions whatever_fits(bool fold = true) {
  SimulateOptions options;
  options.allow_oom = true;
  options.fold = fold;
  return options;
}

// TPU v4 chips, four to a host of 2 x 2 x 1.
Scenario on_torus(const std::vector<int>& dims, const std::string& plan, const std::string& more = "") {
  int chips = 1;
  std::string listed;
  for (const int size : dims) chips *= size, listed += (listed.empty() ? "" : ", ") + std::to_string(size);
  return parse_scenario(
      R"({"topology": {"node": "tpu-v4-host", "nodes": )" + std::to_string(chips / 4) +
          R"(, "fabric": {"use": "tpu-v4-cube", "rings": true, "dimensions": [)" + listed + "]}" + more +
          R"(}, "workload": {"model": "megatron-18b", "sequence": 2048, "framework": "megatron",
                             "plan": {"micro_batch": 1, "global_batch": 64, "zero": 1, )" +
          plan + R"(}}, "run": {"steps": 1, "warmup": 0}})",
      "test", {}, config::Library({"configs"}));
}

// How many values the coordinates of the first ranks take along each dimension.
std::vector<std::size_t> extent(const topology::Topology& t, std::size_t ranks) {
  const std::vector<int>& dims = t.torus_dimensions;
  std::vector<std::set<std::size_t>> values(dims.size());
  for (std::size_t r = 0; r < ranks; ++r) {
    auto place = static_cast<std::size_t>(
        std::find(t.torus_chips.begin(), t.torus_chips.end(), t.accelerators()[r]) - t.torus_chips.begin());
    for (std::size_t d = dims.size(); d-- > 0; place /= static_cast<std::size_t>(dims[d]))
      values[d].insert(place % static_cast<std::size_t>(dims[d]));
  }
  std::vector<std::size_t> sizes;
  for (const auto& each : values) sizes.push_back(each.size());
  return sizes;
}

std::vector<std::size_t> first_group(const std::vector<int>& dims, const std::string& plan, std::size_t ranks,
                                     const std::string& more = "") {
  return extent(prepare(on_torus(dims, plan, more), catalogue(), whatever_fits()).topology, ranks);
}
using Sizes = std::vector<std::size_t>;

// JAX's own example (mesh_utils.py): on 4 x 4 x 16 a model axis of 16 takes the 4 x 4 square.
TEST(TorusRanks, AnAxisOfThePlanTakesWholeAxesRatherSeveralThanOne) {
  EXPECT_EQ(first_group({4, 4, 16}, R"("tp": 16, "dp": 16)", 16), (Sizes{4, 4, 1}));
  EXPECT_EQ(first_group({2, 4, 8}, R"("tp": 4, "dp": 16)", 4), (Sizes{1, 4, 1}));
  EXPECT_EQ(first_group({4, 2, 8}, R"("tp": 4, "dp": 16)", 4), (Sizes{4, 1, 1}));
}

// tp 8 on 2 x 4 would leave dp 2 only a part of the axis of eight. So tp 8 takes the ring of eight, dp the
// two, pp the four.
TEST(TorusRanks, AllAxesOfThePlanComeBeforeTheFirstOnesLiking) {
  EXPECT_EQ(first_group({2, 4, 8}, R"("tp": 8, "dp": 2, "pp": 4)", 8), (Sizes{1, 1, 8}));
  EXPECT_EQ(first_group({2, 4, 8}, R"("tp": 8, "dp": 2, "pp": 4)", 16), (Sizes{2, 1, 8}));
}

// A rank order or placement given by the user is kept.
TEST(TorusRanks, AnOrderOrPlacementOfOnesOwnStays) {
  EXPECT_EQ(first_group({4, 2, 8}, R"("tp": 4, "dp": 16, "rank_order": ["tp", "cp", "ep", "dp", "pp"])", 4),
            (Sizes{1, 1, 4}));
  EXPECT_EQ(first_group({4, 2, 8}, R"("tp": 4, "dp": 16)", 4, R"(, "placement": "spread")"),
            (Sizes{2, 2, 1}));
}

// The order of dimensions only names the same cables differently: the step is the same, folded or not.
TEST(TorusRanks, TheOrderOfDimensionsSaysNothing) {
  for (const char* plan : {R"("tp": 4, "dp": 16)", R"("tp": 2, "dp": 8, "pp": 4)", R"("tp": 16, "dp": 4)"}) {
    SCOPED_TRACE(plan);
    std::set<Duration> steps;
    std::vector<int> dims{2, 4, 8};
    do {
      const Scenario scenario = on_torus(dims, plan);
      for (const bool fold : {true, false})
        steps.insert(simulate(scenario, catalogue(), whatever_fits(fold), nullptr).result.step);
    } while (std::next_permutation(dims.begin(), dims.end()));
    // Within a nanosecond: sums of shares and transfers are rounded to a picosecond.
    EXPECT_LE(*steps.rbegin() - *steps.begin(), Duration(1000));
  }
}

TEST(TorusRanks, PartsOfAxesAreSaid) {
  const auto said = [](const std::string& plan) {
    std::string all;
    for (const report::Finding& finding :
         simulate(on_torus({4, 4, 4}, plan), catalogue(), whatever_fits(), nullptr).result.findings)
      all += finding.message + '\n';
    return all;
  };
  EXPECT_THAT(said(R"("tp": 4, "dp": 8, "pp": 2)"), HasSubstr("dp 8 on a torus of 4 x 4 x 4"));
  EXPECT_THAT(said(R"("tp": 4, "dp": 16)"), testing::Not(HasSubstr("parts of axes")));
}
}  // namespace topsim::scenario::torus_ranks_test
