#include <gtest/gtest.h>

#include "sim/config/reader.hpp"
#include "sim/report/json.hpp"
#include "sim/scenario/read/read.hpp"
#include "sim/scenario/run/simulate.hpp"

namespace topsim::scenario::timeline_limit_test {

// What a run prints must not depend on what else it writes.
TEST(Timeline, OneThatIsTooLongIsLeftOutAndTheResultIsTheSame) {
  const config::Library library({"configs"});
  const topology::Catalogue catalogue = topology::Catalogue::load("configs");
  const Scenario scenario = parse_scenario(
      R"({"topology": {"node": "hgx-h100", "nodes": 1},
          "workload": {"model": "llama3-8b", "plan": {"tp": 8, "global_batch": 4}}})",
      "test.json", {}, library);
  SimulateOptions how;
  const Simulated without = simulate(scenario, catalogue, how, nullptr);
  how.timeline = true;
  const Simulated whole = simulate(scenario, catalogue, how, nullptr);
  ASSERT_TRUE(whole.timeline);
  EXPECT_EQ(whole.slices_left_out, 0u);
  how.most_slices = whole.timeline->slices.size() / 2;
  const Simulated limited = simulate(scenario, catalogue, how, nullptr);
  EXPECT_FALSE(limited.timeline);
  EXPECT_TRUE(limited.picture);
  // All ops are slices.
  EXPECT_EQ(limited.slices_left_out, whole.timeline->slices.size());
  for (const Simulated* each : {&whole, &limited})
    EXPECT_EQ(report::to_json(each->result), report::to_json(without.result));
}
}  // namespace topsim::scenario::timeline_limit_test
