// What a run reports about packet settings that have no effect where they stand.
#include "sim/scenario/findings/packet_findings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/scenario/read/read.hpp"
#include "topology/build.hpp"

namespace topsim::scenario::packet_findings_test {
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const topology::Catalogue& catalogue() {
  static const topology::Catalogue loaded = topology::Catalogue::load("configs");
  return loaded;
}

std::string words(const Scenario& scenario) {
  std::string all;
  for (const report::Finding& finding :
       packet_findings(scenario, topology::build(scenario.topology, catalogue())))
    all += finding.message + " -> " + finding.remedy + "\n";
  return all;
}

std::string words(const std::string& file, std::vector<std::string> changes) {
  const config::Library library({"configs"});
  for (std::string& change : changes) change = "network.packet." + change;
  changes.emplace_back("network.model=packet");
  return words(read_scenario(file, changes, library));
}
const std::string kInfiniband = "configs/8xH100-ib.json", kRoce = "configs/8xH100-roce.json";

TEST(PacketFindings, NothingWhereEveryKeyDoesSomething) {
  EXPECT_THAT(words(kInfiniband, {}), IsEmpty());
  EXPECT_THAT(words(kRoce, {}), IsEmpty());
  EXPECT_THAT(words(kRoce, {"pfc.alpha=0.25", "ecn.kmin=100 kB", "congestion_control.dcqcn.g=0.1",
                            "switch_buffer=64 MB", "mtu=1024 B", "loss.nack_interval=100 us"}),
              IsEmpty());
  EXPECT_THAT(words(kInfiniband, {"virtual_lanes.buffer=64 KiB", "switch_buffer.cut_through=false",
                                  "congestion_control=infiniband", "mtu=2048 B"}),
              IsEmpty());
  EXPECT_THAT(words(kInfiniband, {"flow_control=pfc", "pfc.alpha=0.25"}), HasSubstr("as if it had not"));
}

TEST(PacketFindings, KeysOfEthernetOnInfinibandAreSaid) {
  EXPECT_THAT(words(kInfiniband, {"pfc.alpha=0.25"}), HasSubstr("network.packet.pfc changes nothing"));
  EXPECT_THAT(words(kInfiniband, {"switch_buffer=64 MB"}), HasSubstr("switch_buffer changes nothing"));
  EXPECT_THAT(words(kInfiniband, {"ecn.kmin=10 kB"}), HasSubstr("ecn changes nothing"));
  EXPECT_THAT(
      words(kInfiniband, {"congestion_control.dcqcn.g=0.1"}),
      HasSubstr("congestion_control.dcqcn changes nothing: the congestion control that runs is none"));
  EXPECT_THAT(words(kInfiniband, {"congestion_control=hpcc"}), HasSubstr("which InfiniBand does not have"));
  EXPECT_THAT(words(kInfiniband, {"mtu=9000 B"}),
              HasSubstr("mtu is 9000 B, and InfiniBand's packets carry 256"));
}

// [DCQCN]: the sender cuts on every notification, and the receiver spaces them.
TEST(PacketFindings, APeriodOfCutsUnderThePapersRulesIsSaid) {
  const std::string period = "congestion_control.dcqcn.decrease_period";
  EXPECT_THAT(words(kRoce, {R"(congestion_control.dcqcn={"rules": "paper", "decrease_period": "1 ms"})"}),
              HasSubstr(period + " changes nothing: by the paper's rules"));
  EXPECT_THAT(words(kRoce, {R"(congestion_control.dcqcn={"rules": "paper"})"}), Not(HasSubstr(period)));
  EXPECT_THAT(words(kRoce, {period + "=1 ms"}), Not(HasSubstr(period)));
}

TEST(PacketFindings, KeysOfInfinibandAndOfWhatDoesNotRunAreSaidOnEthernet) {
  EXPECT_THAT(words(kRoce, {"virtual_lanes.buffer=64 KiB"}),
              HasSubstr("virtual_lanes.buffer changes nothing"));
  EXPECT_THAT(words(kRoce, {"congestion_control=infiniband"}), HasSubstr("which Ethernet does not have"));
  EXPECT_THAT(words(kRoce, {"congestion_control.hpcc.max_stage=5"}), HasSubstr("that runs is dcqcn"));
  EXPECT_THAT(words(kRoce, {"mtu=9000 B"}), HasSubstr("RDMA's packets carry 256"));
  EXPECT_THAT(words(kRoce, {"loss.reorder_window=3"}), HasSubstr("recovery is go-back-n"));
  EXPECT_THAT(words(kRoce, {"flowlet_gap=1 us"}), HasSubstr("flowlet_gap changes nothing"));
}

// The key is in line 6, column 6.
TEST(PacketFindings, SayLineAndColumnOfAKeyInTheFile) {
  const config::Library library({"configs"});
  const Scenario scenario = parse_scenario(R"({"topology": {"node": "hgx-h100", "nodes": 2,
     "fabric": {"kind": "rail", "link": "ib-ndr"}},
  "workload": {"model": "llama3-8b", "plan": {"tp": 8, "global_batch": 16}},
  "network": {"model": "packet",
    "packet": {
     "pfc": {"alpha": 0.25}}}})",
                                           "test.json", {}, library);
  EXPECT_THAT(words(scenario), HasSubstr("network.packet.pfc at 6:6 changes nothing"));
}

// The four that hold for every model do something; a value set is a warning, one in the file a note.
TEST(PacketFindings, KeysThatOnlyPacketsHaveAreSaidUnderOtherModels) {
  const config::Library library({"configs"});
  const auto found = [&](const std::string& file, const std::vector<std::string>& changes) {
    const Scenario scenario = read_scenario(file, changes, library);
    return packet_findings(scenario, topology::build(scenario.topology, catalogue()));
  };
  EXPECT_THAT(found(kRoce, {"network.packet.queue_pairs=2", "network.packet.mtu=4096 B"}), IsEmpty());
  EXPECT_THAT(found("configs/alibaba-hpn7.json", {}), IsEmpty());
  const auto set = found(kRoce, {"network.packet.pfc.alpha=0.25", "network.packet.ecn.kmin=10 kB"});
  ASSERT_EQ(set.size(), 1);
  EXPECT_EQ(set[0].message, "network.packet.pfc, ecn change nothing: network.model is flow");
  EXPECT_EQ(set[0].severity, report::Severity::warning);
  // Where packets choose their path, the flow model asks when PFC stops senders.
  const auto chosen = found(kRoce, {"topology.fabric.routing=adaptive", "network.packet.pfc.alpha=0.25",
                                    "network.packet.ecn.kmin=10 kB", "network.packet.switch_buffer=64 MB"});
  ASSERT_EQ(chosen.size(), 1);
  EXPECT_EQ(chosen[0].message, "network.packet.ecn changes nothing: network.model is flow");
  const Scenario file = parse_scenario(R"({"topology": {"node": "hgx-h100", "nodes": 2,
     "fabric": {"kind": "rail", "link": "roce-400g"}},
  "workload": {"model": "llama3-8b", "plan": {"tp": 8, "global_batch": 16}},
  "network": {"packet": {"congestion_control": "hpcc"}}})",
                                       "test.json", {}, library);
  const auto held = packet_findings(file, topology::build(file.topology, catalogue()));
  ASSERT_EQ(held.size(), 1);
  EXPECT_EQ(
      held[0].message,
      "network.packet.congestion_control changes nothing: network.model is flow, whose calibrated losses are "
      "those of DCQCN with its default parameters");
  EXPECT_THAT(held[0].remedy, HasSubstr("network.contention=ideal"));
  Scenario ideal = file;
  ideal.network.contention = ContentionForm::ideal;
  EXPECT_THAT(packet_findings(ideal, topology::build(file.topology, catalogue()))[0].message,
              testing::EndsWith("network.model is flow"));
  EXPECT_EQ(held[0].severity, report::Severity::note);
}

TEST(PacketFindings, ASwitchWhoseBufferIsNotKnownIsSaid) {
  const std::string cluster = "configs/dragonfly.json";
  EXPECT_THAT(words(cluster, {}), HasSubstr("the packet buffer of rosetta is not known: 32 MB is assumed"));
  EXPECT_THAT(words(cluster, {"switch_buffer=64 MB"}), Not(HasSubstr("the packet buffer")));
  EXPECT_THAT(words(cluster, {"flow_control=credit"}), Not(HasSubstr("the packet buffer")));
}

// Slingshot's own congestion control is not public.
TEST(PacketFindings, OtherTransportsRunAsRoceAndItIsSaid) {
  EXPECT_THAT(words("configs/dragonfly.json", {}), HasSubstr("go as RoCE's do, with PFC and under DCQCN"));
}
}  // namespace topsim::scenario::packet_findings_test
