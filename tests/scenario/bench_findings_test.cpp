// What `topsim bench` says beside its rows.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "sim/base/error.hpp"
#include "sim/scenario/bench/bench_text.hpp"
#include "tests/topology/fixtures.hpp"

namespace topsim::scenario::bench_findings_test {
using collective::CollectiveKind;

// What a setting asks for and the cluster has not is said with the rows.
TEST(Bench, WarnsOfSettingsForWhichTheClusterHasNoPart) {
  Scenario scenario;
  scenario.topology = topology::test::cluster("hgx-a100", 2, topology::FabricKind::rail);
  scenario.topology.fabric.link.use = "ib-hdr";
  const auto findings = [&] {
    return bench(scenario, topology::test::catalogue(), CollectiveKind::all_reduce,
                 {Bytes(1 << 20), Bytes(1 << 20), 2})
        .findings;
  };
  EXPECT_TRUE(findings().empty());
  scenario.network.nccl.sharp = true;
  ASSERT_EQ(findings().size(), 1u);
  EXPECT_EQ(findings()[0].path, "network.nccl.sharp");
  scenario.topology.fabric.sharp = true;
  EXPECT_TRUE(findings().empty());
}

// Between two EPYCs NCCL counts 16 GB/s (AMD_BW), and from Blackwell on its search starts no lower than 18
// (sm100SpeedArrayIntra): without peer-to-peer every ring of eight crosses the sockets. Ada's search goes
// down to 3.
TEST(Bench, SaysWhereNcclsSearchFindsNoChannel) {
  const auto said = [](const char* node) {
    Scenario scenario;
    scenario.topology = topology::test::cluster(node, 1, topology::FabricKind::none);
    std::string all;
    for (const report::Finding& each : bench(scenario, topology::test::catalogue(),
                                             CollectiveKind::all_reduce, {Bytes(4096), Bytes(4096), 2})
                                           .findings)
      all += each.message;
    return all;
  };
  EXPECT_NE(said("srv-8x5090-direct").find("search finds no channel"), std::string::npos);
  EXPECT_EQ(said("srv-8x4090-direct").find("search finds no channel"), std::string::npos);
  EXPECT_EQ(said("hgx-h100").find("search finds no channel"), std::string::npos);
}

// Alps' and Polaris' collectives of middle sizes are slower than anything published explains.
TEST(Bench, SaysWhereAFabricsSoftwareIsKnownToTakeLonger) {
  Scenario scenario;
  scenario.topology = topology::test::cluster("gh200x4-slingshot", 2, topology::FabricKind::rail);
  const auto findings = [&] {
    return bench(scenario, topology::test::catalogue(), CollectiveKind::all_reduce,
                 {Bytes(1 << 20), Bytes(1 << 20), 2})
        .findings;
  };
  scenario.topology.fabric.link.use = "slingshot-200";
  ASSERT_EQ(findings().size(), 1u);
  EXPECT_NE(findings()[0].message.find("over Slingshot"), std::string::npos);
  EXPECT_EQ(findings()[0].severity, report::Severity::note);
  scenario.topology.fabric.link.use = "ib-hdr";
  for (const report::Finding& each : findings()) EXPECT_EQ(each.message.find("took"), std::string::npos);
}

// The table's comments are what the rows mean, so the JSON has them, too.
TEST(Bench, TheJsonHasTheRemarksOfTheTable) {
  Scenario scenario;
  scenario.topology = topology::test::cluster("trn2", 1, topology::FabricKind::rail);
  scenario.network.collectives = CollectiveForm::steps;
  const auto rows = bench(scenario, topology::test::catalogue(), CollectiveKind::all_reduce,
                          {Bytes(1 << 20), Bytes(1 << 20), 2})
                        .rows;
  const auto notes = nlohmann::json::parse(bench_json(rows))["notes"].get<std::vector<std::string>>();
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ("# " + notes[0] + '\n',
            bench_table(bench_collective("all_reduce"), rows).substr(0, notes[0].size() + 3));
  EXPECT_EQ(nlohmann::json::parse(bench_json({}))["notes"].size(), 0U);
}

Problem refusal(const Scenario& scenario) {
  try {
    (void)bench(scenario, topology::test::catalogue(), CollectiveKind::all_reduce,
                {Bytes(1 << 30), Bytes(1 << 30), 2});
  } catch (const ConfigError& error) {
    return error.problems().front();
  }
  return {};
}

TEST(Bench, NamesAFaultThatLeavesRanksWithoutAPath) {
  Scenario scenario;
  scenario.topology = topology::test::cluster("h100x1", 4, topology::FabricKind::fat_tree);
  scenario.topology.fabric.link.use = "ib-ndr";
  FaultSpec fault;
  fault.kind = FaultKind::nic_down;
  fault.target = "node0/nic0";
  scenario.faults = {fault};
  const Problem said = refusal(scenario);
  EXPECT_EQ(said.path, "faults");
  EXPECT_NE(said.help.find("no other path is left"), std::string::npos) << said.help;
}

TEST(Bench, NamesTheNodesOwnLinkWhereNothingJoinsThem) {
  Scenario scenario;
  scenario.topology = topology::test::cluster("p5", 4);
  EXPECT_NE(refusal(scenario).help.find(R"("fabric": {"kind": "rail", "link": "efa-100g"})"),
            std::string::npos)
      << refusal(scenario).help;
}

// The channels of every second node are swapped: 0-1 and 1-2 stay on their rails, 2-0 does not.
TEST(Bench, NamesAnOddNumberOfNodesOnRailsApart) {
  Scenario scenario;
  scenario.topology = topology::test::cluster("hgx-h100", 3, topology::FabricKind::rail_only);
  scenario.topology.fabric.link.use = "ib-ndr";
  scenario.network.nccl.algorithm = collective::Algorithm::ring;
  EXPECT_NE(refusal(scenario).help.find("over an even number of nodes"), std::string::npos)
      << refusal(scenario).help;
  scenario.topology.nodes = 4;
  EXPECT_EQ(refusal(scenario).help, "");
}

// When RCCL would have switches sum is not known, so that it never does here: NCCL may.
TEST(Bench, SaysThatSharpDoesNothingForAnotherLibraryThanNccl) {
  const auto said = [](const char* node, bool sharp) {
    Scenario scenario;
    scenario.topology = topology::test::cluster(node, 2, topology::FabricKind::rail);
    scenario.topology.fabric.link.use = "ib-ndr";
    scenario.topology.fabric.sharp = sharp;
    std::string all;
    for (const report::Finding& each : bench(scenario, topology::test::catalogue(),
                                             CollectiveKind::all_reduce, {Bytes(1 << 20), Bytes(1 << 20), 2})
                                           .findings)
      all += each.message;
    return all;
  };
  EXPECT_NE(said("azure-nd-mi300x-v5", true).find("RCCL is simulated without"), std::string::npos);
  EXPECT_EQ(said("azure-nd-mi300x-v5", false).find("RCCL"), std::string::npos);
  EXPECT_EQ(said("hgx-h100", true).find("is simulated without"), std::string::npos);
  const auto time = [](bool sharp) {
    Scenario scenario;
    scenario.topology = topology::test::cluster("mi250x-4", 4, topology::FabricKind::rail);
    scenario.topology.fabric.link.use = "ib-hdr";
    scenario.topology.fabric.sharp = sharp;
    return bench(scenario, topology::test::catalogue(), CollectiveKind::all_reduce,
                 {Bytes(1 << 20), Bytes(1 << 20), 2})
        .rows.front()
        .time;
  };
  EXPECT_EQ(time(true), time(false));
}
}  // namespace topsim::scenario::bench_findings_test
