// Keys beside a trace, which replaces what they describe.
#include "sim/scenario/run/replayed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/scenario/read/read.hpp"

namespace topsim::scenario::replayed_test {

std::vector<std::string> idle_paths(const std::string& workload) {
  const config::Library library({"configs"});
  const std::string text = R"({"topology": {"node": "hgx-h100", "nodes": 1}, "workload": )" + workload + "}";
  std::vector<std::string> paths;
  for (const report::Finding& finding : idle_beside_trace(parse_scenario(text, "test", {}, library)))
    paths.push_back(finding.path);
  return paths;
}

TEST(IdleBesideTrace, EveryKeyButTheTraceAndSlowRanks) {
  EXPECT_THAT(idle_paths(R"({"trace": {"format": "goal", "path": "x.goal"}, "model": "llama2-7b",
                             "plan": {"tp": 2}, "// why": "a remark",
                             "compute": {"clock": 0.5, "slow_ranks": {"3": 1.1}}})"),
              testing::ElementsAre("workload.model", "workload.plan", "workload.compute.clock"));
}

TEST(IdleBesideTrace, NothingOfAModel) {
  EXPECT_THAT(idle_paths(R"({"model": "llama2-7b", "plan": {"tp": 2}})"), testing::IsEmpty());
}
}  // namespace topsim::scenario::replayed_test
