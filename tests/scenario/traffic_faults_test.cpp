// Patterns of messages on clusters with faults.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/scenario/bench/bench.hpp"
#include "sim/scenario/bench/traffic.hpp"
#include "tests/scenario/traffic_clusters.hpp"

namespace topsim::scenario::traffic_faults_test {
using namespace topsim::literals;
using namespace traffic_clusters;

// Two nodes on eight rails: every port sends to its like, 16 flows of 1 MiB at 49.7 GB/s of payload. A cable
// at half its rate doubles the time of its flow; a NIC that is down neither sends nor receives.
TEST(Traffic, PatternsHaveTheFaultsThatHoldThroughout) {
  Scenario scenario = scenario_of("2", R"("ib-ndr")", "{}");
  TrafficOptions options;
  options.sizes = {1_MiB};
  const auto run = [&] { return run_traffic(scenario, catalogue(), TrafficPattern::permutation, options); };
  const Duration whole = run().last;
  FaultSpec fault;
  fault.kind = FaultKind::link_degraded;
  fault.target = "node0/nic0 -> leaf0";
  fault.factor = 0.5;
  for (const char* model : {"packet", "flow"}) {
    scenario.network.model = model;
    scenario.faults = {fault};
    EXPECT_NEAR(microseconds(run().last - whole), 21.1, 1.5) << model;  // 1 MiB at 49.7 GB/s once more
  }
  fault.kind = FaultKind::nic_down;
  fault.target = "node0/nic0";
  scenario.faults = {fault};
  const Traffic without = run();
  EXPECT_EQ(without.flows.size(), 14U);
  EXPECT_EQ(std::count_if(
                without.flows.begin(), without.flows.end(),
                [](const TrafficFlow& flow) { return flow.from == "node0/nic0" || flow.to == "node0/nic0"; }),
            0);
  // The flow to it and the one from it, of 16.
  EXPECT_NE(std::find(without.findings.begin(), without.findings.end(),
                      "2 of 16 flows are left out: a fault cuts node0/nic0 off"),
            without.findings.end());
}

// All senders of an incast on rails send to node0/nic0. Without it, or without its leaf, nobody can.
TEST(Traffic, NamesThePortThatAFaultCutsOff) {
  Scenario scenario = scenario_of("4", R"("ib-ndr")", "{}");
  TrafficOptions options;
  options.sizes = {1_MiB};
  const auto refusal = [&](FaultKind kind, const std::string& target) {
    FaultSpec fault;
    fault.kind = kind, fault.target = target, fault.factor = 0;
    scenario.faults = {fault};
    try {
      (void)run_traffic(scenario, catalogue(), TrafficPattern::incast, options);
    } catch (const ConfigError& error) {
      return error.problems().front().path + ": " + error.problems().front().message;
    }
    return std::string();
  };
  EXPECT_EQ(refusal(FaultKind::nic_down, "node0/nic0"),
            "faults: nobody can send: a fault cuts node0/nic0 off");
  EXPECT_EQ(refusal(FaultKind::link_degraded, "node0/nic0 - leaf0"),
            "faults: nobody can send: a fault cuts node0/nic0 off");
  EXPECT_EQ(refusal(FaultKind::switch_down, "leaf0"), "faults: nobody can send: a fault cuts node0/nic0 off");
}

// Two leaves under four spines, oblivious: a cable at a tenth of its rate has a quarter of the messages
// between the leaves, whatever flows lose where they meet. What congestion takes comes on top: never faster
// than ideal.
TEST(Traffic, ADegradedCableBetweenSwitchesSlowsCollectivesUnderCalibratedContention) {
  const config::Library library({"configs"});
  const auto time = [&](const std::string& contention, const std::string& faults) {
    const Scenario scenario = parse_cluster(
        R"({"topology": {"node": "hgx-h100", "nodes": 4, "fabric": {"kind": "fat-tree", "link": "ib-ndr",
            "switch": {"use": "qm9700", "ports": 32}, "tiers": 2, "routing": "spray"}},
            "network": {"model": "flow", "contention": ")" +
            contention + R"("}, "faults": [)" + faults + "]}",
        "test.json", {}, library);
    const Bench rows =
        bench(scenario, catalogue(), collective::CollectiveKind::all_to_all, {256_MiB, 256_MiB, 2});
    return rows.rows.at(0).time;
  };
  const std::string fault = R"({"kind": "link_degraded", "target": "leaf0 - spine0", "factor": 0.02})";
  const Duration ideal = time("ideal", fault);
  EXPECT_GT(ideal, 2 * time("ideal", ""));
  EXPECT_GE(time("calibrated", fault), ideal);
}

// Rails of two leaves under four spines, with half as many uplinks as ports, which an all-to-all fills. A
// cable at a quarter of its rate leaves a leaf 3.25 of 4 cables, which adaptive routing uses fully on the
// fluid: 1 / 0.8125 of the time, where a quarter of the bytes on it would take four times as long. Packet by
// packet, those that wait for the slow cable hold up others (1.36).
TEST(Traffic, AdaptiveRoutingUsesWhatADegradedUplinkLeavesOfAllPaths) {
  Scenario scenario = scenario_of("16", R"("ib-ndr", "tiers": 2, "nodes_per_leaf": 8, "oversubscription": 2,
      "switch": {"use": "qm9700", "ports": 16}, "routing": "adaptive")",
                                  "{}");
  scenario.network.contention = ContentionForm::ideal;
  TrafficOptions options;
  options.sizes = {256_KiB};
  FaultSpec fault;
  fault.kind = FaultKind::link_degraded;
  fault.target = "leaf0 - spine0";
  fault.factor = 0.25;
  for (const char* model : {"flow", "packet"}) {
    scenario.network.model = model;
    scenario.faults = {};
    const Duration whole = run_traffic(scenario, catalogue(), TrafficPattern::all_to_all, options).last;
    scenario.faults = {fault};
    const Duration slow = run_traffic(scenario, catalogue(), TrafficPattern::all_to_all, options).last;
    EXPECT_NEAR(seconds(slow) / seconds(whole), 1 / 0.8125, std::string(model) == "flow" ? 0.01 : 0.2)
        << model;
  }
}
}  // namespace topsim::scenario::traffic_faults_test
