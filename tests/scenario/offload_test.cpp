// Copies to host memory beside collectives that go message by message.
#include <gtest/gtest.h>

#include "sim/config/reader.hpp"
#include "sim/scenario/read/read.hpp"
#include "sim/scenario/run/simulate.hpp"

namespace topsim::scenario::offload_test {

report::Result run(const std::string& network) {
  const config::Library library({"configs"});
  static const topology::Catalogue catalogue = topology::Catalogue::load("configs");
  const Scenario scenario = parse_scenario(R"({"topology": {"node": "hgx-h100", "nodes": 1}, "workload": {
      "model": {"layers": 4, "hidden": 2048, "heads": 16, "ffn": 8192, "vocab": 4096},
      "plan": {"tp": 1, "dp": 8, "micro_batch": 1, "global_batch": 8, "offload": "cpu"}, "sequence": 1024},
      "network": )" + network + R"(, "run": {"steps": 1}})",
                                           "test.json", {}, library);
  return simulate(scenario, catalogue, {}, nullptr).result;
}

// A copy is one message over PCIe in every model and takes the same time. Steps differ by the 2 % that
// collectives in steps may differ by, and part of the step waits for host memory.
TEST(Offload, GoesWithCollectivesInStepsAndInPackets) {
  const report::Result fluid = run(R"({"model": "flow"})");
  const auto waits = [](const report::Result& result) {
    return seconds(result.account.idle[static_cast<std::size_t>(executor::Reason::offload)]);
  };
  ASSERT_GT(waits(fluid), 0.01 * seconds(fluid.step));
  for (const char* network : {R"({"model": "flow", "collectives": "steps"})", R"({"model": "packet"})"}) {
    SCOPED_TRACE(network);
    const report::Result other = run(network);
    EXPECT_NEAR(waits(other) / waits(fluid), 1, 0.05);
    EXPECT_NEAR(seconds(other.step) / seconds(fluid.step), 1, 0.02);
  }
}
}  // namespace topsim::scenario::offload_test
