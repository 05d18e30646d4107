// Which ports a pattern uses, and to which of them each sends.
#include <gtest/gtest.h>

#include "sim/config/reader.hpp"
#include "sim/scenario/bench/traffic.hpp"
#include "sim/scenario/read/read.hpp"
#include "tests/scenario/traffic_clusters.hpp"

namespace topsim::scenario::traffic_ports_test {
using namespace topsim::literals;
using namespace traffic_clusters;

// Two nodes of eight NICs: each of 16 ports sends to the 15 others; on rails each reaches one other.
TEST(TrafficPorts, AllToAllAndPermutationKnowTheSamePorts) {
  const struct {
    topology::FabricKind fabric;
    std::size_t all_to_all;
  } rows[] = {{topology::FabricKind::fat_tree, 16U * 15}, {topology::FabricKind::rail, 16}};
  for (const auto& row : rows) {
    Scenario scenario = scenario_of("2", R"("ib-ndr")", "{}");
    scenario.topology.fabric.kind = row.fabric;
    scenario.network.model = "flow";
    TrafficOptions options;
    options.sizes = {1_MiB};
    EXPECT_EQ(run_traffic(scenario, catalogue(), TrafficPattern::all_to_all, options).flows.size(),
              row.all_to_all);
    EXPECT_EQ(run_traffic(scenario, catalogue(), TrafficPattern::permutation, options).flows.size(), 16U);
  }
}

// Gaudi 2's three ports are on three separate switches, so no port sends to one of another switch.
TEST(TrafficPorts, PatternsKeepToTheFabricThatAPortIsOn) {
  const config::Library library({"configs"});
  const Scenario gaudi =
      parse_scenario(R"({"topology": {"node": "gaudi2-8", "nodes": 2, "fabric": "gaudi2-cluster"},
      "workload": {"model": "llama3-8b", "plan": {"tp": 8}, "sequence": 2048}, "network": {"model": "packet"}})",
                     "test.json", {}, library);
  TrafficOptions options;
  options.sizes = {64_KiB};
  for (const TrafficPattern pattern : {TrafficPattern::permutation, TrafficPattern::incast}) {
    const Traffic traffic = run_traffic(gaudi, catalogue(), pattern, options);
    EXPECT_TRUE(traffic.complete);
    EXPECT_GT(traffic.flows.size(), 1U);
    for (const TrafficFlow& flow : traffic.flows) EXPECT_GT(flow.delivered, Duration{});
  }
}

TEST(TrafficPorts, MoreSendersThanPortsIsAnErrorWithTheWayOut) {
  TrafficOptions options;
  options.sizes = {1_MiB};
  options.senders = 99;
  try {
    static_cast<void>(
        run_traffic(scenario_of("2", R"("ib-ndr")", "{}"), catalogue(), TrafficPattern::incast, options));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("99 senders"), std::string::npos);
  }
}

// Four senders of 4 MiB on InfiniBand under PFC, which does not bring DCQCN: 1,024 packets of 4,122 B each at
// 50 GB/s are 338 us, to which the way adds some.
TEST(Traffic, PfcOnInfinibandLeavesCongestionControlOff) {
  for (const bool textbook : {false, true}) {
    TrafficOptions options;
    options.sizes = {4_MiB};
    options.senders = 4;
    options.textbook = textbook;
    const Traffic traffic = run_traffic(scenario_of("5", R"("ib-ndr")", R"({"flow_control": "pfc"})"),
                                        catalogue(), TrafficPattern::incast, options);
    EXPECT_EQ(traffic.queues->marks, 0U);
    EXPECT_NEAR(microseconds(traffic.last), 4 * 1024 * 4122 / 50e3, 5);
  }
}
}  // namespace topsim::scenario::traffic_ports_test
