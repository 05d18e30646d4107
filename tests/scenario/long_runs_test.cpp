#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "sim/config/reader.hpp"
#include "sim/scenario/read/read.hpp"
#include "sim/scenario/run/simulate.hpp"

namespace topsim::scenario::long_runs_test {

// 8e8 sequences of 4,096 tokens, 8e9 parameters, eight H100 of 1e15 FLOP/s: 6 x 8e9 x 3.3e12 / 8e15 s are 228
// days, more than the clock holds. In a folded run ranks in lock-step are walked without the event queue, so
// that counts time too.
TEST(ARunOfMoreThan106Days, IsRefusedWhoeverCountsItsTime) {
  const config::Library library({"configs"});
  const topology::Catalogue catalogue = topology::Catalogue::load("configs");
  for (const char* model : {"flow", "analytic"}) {
    for (const bool fold : {true, false}) {
      const Scenario scenario = parse_scenario(
          std::string(R"({"topology": {"node": "hgx-h100", "nodes": 1}, "network": {"model": ")") + model +
              R"("},
            "workload": {"model": "llama3-8b", "sequence": 4096,
              "plan": {"tp": 1, "micro_batch": 1000000, "global_batch": 800000000}},
            "run": {"steps": 1, "warmup": 1}})",
          "test.json", {}, library);
      SimulateOptions how;
      how.fold = fold;
      how.allow_oom = true;
      try {
        (void)simulate(scenario, catalogue, how, nullptr);
        ADD_FAILURE() << model << (fold ? ", folded" : "");
      } catch (const ConfigError& error) {
        EXPECT_NE(error.problems().front().message.find("longer than 106 days"), std::string::npos) << model;
      }
    }
  }
}
}  // namespace topsim::scenario::long_runs_test
