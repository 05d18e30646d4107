// Where the flow model uses what packets lose when flows meet, and where it leaves links alone.
#include <gtest/gtest.h>

#include "sim/config/reader.hpp"
#include "sim/report/text.hpp"
#include "sim/scenario/read/read.hpp"
#include "sim/scenario/run/simulate.hpp"

namespace topsim::scenario::contention_test {

report::Result run(const std::string& nodes, const std::string& link, const std::string& contention,
                   bool fold, bool interval = false, network::Bound bound = network::Bound::middle) {
  const config::Library library({"configs"});
  const int ranks = std::stoi(nodes) * 8;
  const Scenario scenario = parse_scenario(
      R"({"topology": {"node": "hgx-h100", "nodes": )" + nodes +
          R"(, "fabric": {"kind": "fat-tree", "link": ")" + link +
          R"(", "oversubscription": 2}}, "workload": {"model": "llama3-8b", "plan": {"tp": 1, "dp": )" +
          std::to_string(ranks) + R"(, "micro_batch": 1, "global_batch": )" + std::to_string(ranks) +
          R"(}, "sequence": 2048}, "network": {"contention": ")" + contention + R"("}, "run": {"steps": 1}})",
      "test.json", {}, library);
  static const topology::Catalogue catalogue = topology::Catalogue::load("configs");
  SimulateOptions options;
  options.fold = fold;
  options.further_runs = interval;
  options.contention = bound;
  return simulate(scenario, catalogue, options, nullptr).result;
}

bool says_where_flows_meet(const report::Result& result) {
  return std::any_of(result.findings.begin(), result.findings.end(),
                     [](const report::Finding& f) { return f.path == "network.contention"; });
}

// 48 nodes need several leaves: hashed rings meet on the ports between them.
TEST(Contention, SlowsHashedRocePathsThatMeetAndSaysSoWithAnInterval) {
  const report::Result ideal = run("48", "roce-400g", "ideal", true);
  const report::Result calibrated = run("48", "roce-400g", "calibrated", true, true);
  EXPECT_GT(calibrated.step, ideal.step);
  EXPECT_FALSE(says_where_flows_meet(ideal));
  ASSERT_TRUE(says_where_flows_meet(calibrated));
  const auto finding = std::find_if(calibrated.findings.begin(), calibrated.findings.end(),
                                    [](const report::Finding& f) { return f.path == "network.contention"; });
  EXPECT_NE(finding->message.find("the step takes"), std::string::npos);
}

// The interval is estimated from first steps; its ends must be what whole runs there give.
TEST(Contention, HasTheStepsOfRunsAtItsEndsAsInterval) {
  const auto text_at = [](network::Bound bound) {
    return report::duration_text(run("48", "roce-400g", "calibrated", true, false, bound).step);
  };
  const std::string low = text_at(network::Bound::high), high = text_at(network::Bound::low);
  ASSERT_NE(low, high);
  const report::Result calibrated = run("48", "roce-400g", "calibrated", true, true);
  const auto finding = std::find_if(calibrated.findings.begin(), calibrated.findings.end(),
                                    [](const report::Finding& f) { return f.path == "network.contention"; });
  ASSERT_NE(finding, calibrated.findings.end());
  EXPECT_NE(finding->message.find("the step takes " + low + " to " + high), std::string::npos)
      << finding->message;
}

// A quarter of a cable's rate is left on the way to one NIC. The rings go on sending four times that into it,
// which on InfiniBand only credits answer. Congestion control slows the senders; a whole fabric has no such
// port.
TEST(Contention, SaysWhichPortHasMoreSentToItThanItCarriesUnderCreditsAlone) {
  const config::Library library({"configs"});
  static const topology::Catalogue catalogue = topology::Catalogue::load("configs");
  const auto said = [&](const std::vector<std::string>& changes) {
    const Scenario scenario = read_scenario("configs/8xH100-ib.json", changes, library);
    for (const report::Finding& finding : simulate(scenario, catalogue, {}, nullptr).result.findings)
      if (finding.path == "network.model") return finding.message;
    return std::string();
  };
  const std::string slow =
      R"(faults=[{"kind": "link_degraded", "target": "node2/nic3 - leaf3", "factor": 0.25}])";
  EXPECT_NE(said({slow}).find("4 times as much for leaf3 -> node2/nic3 as it carries"), std::string::npos);
  EXPECT_EQ(said({slow, "network.packet.congestion_control=infiniband"}), "");
  EXPECT_EQ(said({}), "");
}

// Calls meet on the NICs between the racks and leave 0.57 to 0.70 of what NCCL could drive. So their part of
// the critical path waits for the cable, not for NCCL.
TEST(CriticalPath, NamesTheLinkOnWhichCallsMeet) {
  const config::Library library({"configs"});
  const topology::Catalogue catalogue = topology::Catalogue::load("configs");
  const Scenario scenario = read_scenario("configs/gb200-nvl72.json", {}, library);
  double full = 0, paced = 0;
  for (const auto& row : simulate(scenario, catalogue, {}, nullptr).result.critical_path_links) {
    if (row.what == "InfiniBand NDR 400 Gbit/s") full += row.share;
    if (row.what == "InfiniBand NDR 400 Gbit/s, as NCCL drives it") paced += row.share;
  }
  EXPECT_GT(full, 0.005);
  EXPECT_EQ(paced, 0);
}

// All members of a class carry the same load, so a folded run gives exactly the same.
TEST(Contention, IsTheSameFoldedAndUnfolded) {
  const report::Result folded = run("48", "roce-400g", "calibrated", true);
  const report::Result unfolded = run("48", "roce-400g", "calibrated", false);
  EXPECT_NEAR(seconds(folded.step) / seconds(unfolded.step), 1, 1e-9);
}

// Under one leaf every ring has its ports to itself.
TEST(Contention, LeavesPathsAloneWhereNothingMeets) {
  const report::Result ideal = run("4", "roce-400g", "ideal", true);
  const report::Result calibrated = run("4", "roce-400g", "calibrated", true);
  EXPECT_EQ(ideal.step, calibrated.step);
  EXPECT_FALSE(says_where_flows_meet(calibrated));
}

// One node per leaf, rings over all accelerators, every port above a leaf full. Four nodes have one spine, so
// packets have no choice. Eight have two, and what several leaves send by the same spine meets on its way
// down.
TEST(Contention, OfPacketsThatChooseNeedsSeveralSwitchesAbove) {
  const config::Library library({"configs"});
  static const topology::Catalogue catalogue = topology::Catalogue::load("configs");
  for (const int nodes : {4, 8}) {
    const std::vector<std::string> changes = {
        "topology.nodes=" + std::to_string(nodes),
        R"(topology.fabric={"kind": "fat-tree", "link": "ib-edr", "switch": "sb7800", "nodes_per_leaf": 1})",
        "workload.plan=" + std::string(R"({"tp": 2, "dp": )") + std::to_string(4 * nodes) +
            R"(, "micro_batch": 1})",
        "workload.model=\"llama3-8b\"", "run.steps=1"};
    const Scenario scenario = read_scenario("configs/8xH100-ib.json", changes, library);
    SimulateOptions options;
    options.allow_oom = true;
    EXPECT_EQ(says_where_flows_meet(simulate(scenario, catalogue, options, nullptr).result), nodes == 8);
  }
}

// Expert groups of two nodes (8 ranks x tp 2), each node on a leaf of its own below several spines.
bool says_all_to_alls_are_hashed(const std::vector<std::string>& more) {
  const config::Library library({"configs"});
  static const topology::Catalogue catalogue = topology::Catalogue::load("configs");
  std::vector<std::string> changes = {
      R"(topology.fabric={"kind": "fat-tree", "link": "roce-400g", "switch": "sn5600", "nodes_per_leaf": 1,
          "routing": "ecmp"})",
      R"(workload.plan={"tp": 2, "pp": 4, "dp": 8, "ep": 8, "etp": 2, "micro_batch": 1, "global_batch": 8})",
      "run.steps=1", "run.warmup=0"};
  changes.insert(changes.end(), more.begin(), more.end());
  const Scenario scenario = read_scenario("configs/mixtral-8x7b-64xH100.json", changes, library);
  const report::Result result = simulate(scenario, catalogue, {}, nullptr).result;
  return std::any_of(result.findings.begin(), result.findings.end(), [](const report::Finding& f) {
    return f.message.find("all-to-alls cross hashed paths") != std::string::npos;
  });
}

// Nothing is hashed where packets choose their way, where all nodes share a leaf, or where experts stay in a
// box.
TEST(Contention, SaysThatAllToAllsCrossHashedPathsWhereTheyDo) {
  EXPECT_TRUE(says_all_to_alls_are_hashed({}));
  EXPECT_TRUE(says_all_to_alls_are_hashed({"network.contention=ideal"}));
  EXPECT_FALSE(says_all_to_alls_are_hashed({"topology.fabric.routing=adaptive"}));
  EXPECT_FALSE(says_all_to_alls_are_hashed({"topology.fabric.nodes_per_leaf=8"}));
  EXPECT_FALSE(says_all_to_alls_are_hashed({"workload.plan.etp=1"}));
  EXPECT_FALSE(says_all_to_alls_are_hashed({"network.model=analytic"}));
}

// InfiniBand's credits keep shared ports full: less than one per cent is lost.
TEST(Contention, CostsInfinibandNextToNothing) {
  const report::Result ideal = run("48", "ib-ndr", "ideal", true);
  const report::Result calibrated = run("48", "ib-ndr", "calibrated", true);
  EXPECT_NEAR(seconds(calibrated.step) / seconds(ideal.step), 1, 0.01);
}
}  // namespace topsim::scenario::contention_test
