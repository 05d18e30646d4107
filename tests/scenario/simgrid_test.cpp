// SimGrid runs the shipped scenarios (with single-path routing) and must agree with the flow model on the
// same messages.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/base/error.hpp"
#include "sim/network/simgrid_network.hpp"
#include "sim/scenario/read/read.hpp"
#include "sim/scenario/run/simulate.hpp"

namespace topsim::scenario::simgrid_test {

report::Result run(const std::string& file, const std::string& network, std::vector<std::string> assignments,
                   const std::string& collectives = "hops") {
  static const topology::Catalogue catalogue = topology::Catalogue::load(TOPSIM_SOURCE_DIR "/configs");
  assignments.insert(assignments.end(), {"topology.fabric.routing=static",
                                         "network.collectives=" + collectives, "network.model=" + network});
  const Scenario scenario = read_scenario(std::string(TOPSIM_SOURCE_DIR "/configs/") + file, assignments,
                                          config::Library({TOPSIM_SOURCE_DIR "/configs"}));
  SimulateOptions options;
  options.allow_oom = true;
  return simulate(scenario, catalogue, options, nullptr).result;
}

class SimGrid : public testing::Test {
 protected:
  void SetUp() override {
    try {
      const std::vector<double> capacities{1e9};
      network::SimGridNetwork network(capacities);
    } catch (const ConfigError& error) {
      // Without SimGrid (install.sh --without-simgrid) there is nothing to compare; test.sh installs it.
      GTEST_SKIP() << error.problems().front().message;
    }
  }
};

void expect_equal(const std::string& file, const std::vector<std::string>& assignments) {
  SCOPED_TRACE(file);
  const report::Result flow = run(file, "flow", assignments), simgrid = run(file, "simgrid", assignments);
  // One picosecond for each event of the longest chain; a step has fewer than 1e5 in a row.
  EXPECT_LE(std::abs((flow.step - simgrid.step).count()), 100'000);
  EXPECT_EQ(flow.flows, simgrid.flows);
  ASSERT_EQ(flow.links.size(), simgrid.links.size());
  double total[2] = {0, 0};
  for (const report::LinkRow& link : flow.links) total[0] += static_cast<double>(link.bytes.value());
  for (const report::LinkRow& link : simgrid.links) total[1] += static_cast<double>(link.bytes.value());
  EXPECT_NEAR(total[0], total[1], 1e-6 * total[0]);
}

TEST_F(SimGrid, SaysWhatTheFluidModelSaysOfOneAccelerator) {
  expect_equal("1xH100.json", {});
}

TEST_F(SimGrid, SaysWhatTheFluidModelSaysOfPcie) {
  expect_equal("8xRTX4090-pcie.json", {});
}

TEST_F(SimGrid, SaysWhatTheFluidModelSaysOfEightNodes) {
  // Two micro-batches and four layers instead of 32 and 80: 4,000 messages of the same kinds.
  expect_equal("8xH100-ib.json",
               {"workload.plan.global_batch=8", "workload.model.layers=4", "run.steps=1", "run.warmup=0"});
}

// SimGrid carries messages. A scenario that leaves the form open is repeated as it was, so that the flow
// model can take it up again; the result says what ran.
TEST_F(SimGrid, IsRecordedWithTheFormInWhichItCarriedCollectives) {
  const topology::Catalogue catalogue = topology::Catalogue::load(TOPSIM_SOURCE_DIR "/configs");
  for (const auto& [network, form] : {std::pair("simgrid", "hops"), std::pair("flow", "pipelined")}) {
    const std::vector<std::string> assignments{std::string("network.model=") + network, "run.steps=1"};
    const Scenario scenario = read_scenario(TOPSIM_SOURCE_DIR "/configs/8xRTX4090-pcie.json", assignments,
                                            config::Library({TOPSIM_SOURCE_DIR "/configs"}));
    const report::Result result = simulate(scenario, catalogue, {}, nullptr).result;
    EXPECT_EQ(result.collective_form, form);
    EXPECT_EQ(result.scenario.find("pipelined"), std::string::npos) << network;
  }
}

// A hop that carries its bytes at the rate of all channels takes as long as the whole collective. Left are
// whole bytes per hop and calls that end apart from their siblings: a few nanoseconds per call in 2.65 s.
TEST(Hops, TakeWhatThePipelinedCollectiveTakes) {
  const report::Result hops = run("8xRTX4090-pcie.json", "flow", {});
  const report::Result pipelined = run("8xRTX4090-pcie.json", "flow", {}, "pipelined");
  EXPECT_NEAR(seconds(hops.step), seconds(pipelined.step), 1e-7 * seconds(pipelined.step));
}
}  // namespace topsim::scenario::simgrid_test
