// Bills of the shipped scenarios, compared with a count by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "sim/report/bill_of_materials.hpp"
#include "sim/scenario/read/read.hpp"
#include "sim/scenario/run/simulate.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/build.hpp"

namespace topsim::scenario::bill_test {
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using Counts = std::map<std::string, std::int64_t>;

struct Bill {
  Counts switches, cables;
  std::vector<std::string> remarks;
};

Bill bill_of(const std::string& name) {
  const config::Library library({"configs"});
  static const topology::Catalogue catalogue = topology::Catalogue::load("configs");
  const Scenario scenario = read_scenario("configs/" + name + ".json", {}, library);
  const report::BillOfMaterials bill = report::bill_of_materials(
      topology::build(scenario.topology, catalogue), scenario.topology, catalogue, scenario.cost);
  Bill counted;
  counted.remarks = bill.remarks;
  for (const report::BomItem& item : bill.items) {
    if (item.category == report::BomCategory::network_switch) counted.switches[item.id] += item.count;
    if (item.category == report::BomCategory::cable) counted.cables[item.id] += item.count;
  }
  return counted;
}

// One result has no prices: where they are is said to those who gave the tokens of a run, of `run` alone.
TEST(BillOfMaterials, ARunSaysWhereTheCostOfItsTokensIs) {
  const config::Library library({"configs"});
  const topology::Catalogue catalogue = topology::Catalogue::load("configs");
  const auto says = [&](const std::string& cost, bool further_runs) {
    const Scenario scenario = parse_scenario(
        R"({"topology": {"node": "hgx-h100"}, "workload": {"model": "llama3-8b", "plan": {"tp": 8},
 "sequence": 2048}, "cost": )" +
            cost + "}",
        "test.json", {}, library);
    SimulateOptions options;
    options.further_runs = further_runs;
    for (const report::Finding& each : simulate(scenario, catalogue, options, nullptr).result.findings)
      if (each.path == "cost.tokens") return each.message.find("topsim compare") != std::string::npos;
    return false;
  };
  EXPECT_TRUE(says(R"({"tokens": 1e12})", true));
  EXPECT_FALSE(says(R"({"tokens": 1e12})", false));
  EXPECT_FALSE(says("{}", true));
}

// Quotes: a qm9700 is in the bill; a GPU is part of its server's price; no sn5600 is in the cluster.
TEST(BillOfMaterials, SaysWhereQuotesStandThatChangeNothing) {
  const config::Library library({"configs"});
  const topology::Catalogue catalogue = topology::Catalogue::load("configs");
  const Scenario scenario = parse_scenario(R"({"topology": {"node": "hgx-h100", "nodes": 8,
 "fabric": {"kind": "rail", "link": "ib-ndr", "switch": "qm9700"}},
 "workload": {"model": "llama3-8b", "plan": {"tp": 8}, "sequence": 2048},
 "cost": {"prices": {"qm9700": "30000 USD",
  "sn5600": "40000 USD", "h100-sxm5": "25000 USD"}}})",
                                           "bill.json", {}, library);
  const auto remarks = report::bill_of_materials(
                           topology::build(scenario.topology, catalogue), scenario.topology, catalogue,
                           scenario.cost, [&](const std::string& path) { return place_text(scenario, path); })
                           .remarks;
  EXPECT_THAT(remarks,
              Contains(HasSubstr(
                  "the quote for sn5600 at 5:3 changes nothing: nothing in the bill is priced by it")));
  EXPECT_THAT(remarks,
              Contains(HasSubstr("the quote for h100-sxm5 at 5:26 changes nothing: it is part of the "
                                 "server's price")));
  EXPECT_THAT(remarks, Not(Contains(HasSubstr("the quote for qm9700"))));
}

// InfiniBand rails with switches of 64 ports of 400 Gbit/s.
//   8xH100-ib: eight rails of 8 nodes, 8 leaves; 64 uplinks on one spine.
//   superpod-h100: 64 nodes, two units of 8 leaves; 512 uplinks on 8 spines. deepseek-v3: 256 nodes, 8 units,
//     32 spines.
//   gb200-nvl72: 36 trays of four NICs; rails of 36 ports need two leaves each, their 144 uplinks three
//     spines.
TEST(BillOfMaterials, OfInfinibandRails) {
  EXPECT_EQ(bill_of("8xH100-ib").switches, (Counts{{"qm9700", 8 + 1}}));
  EXPECT_EQ(bill_of("8xH100-ib").cables, (Counts{{"aoc-400", 64 + 64}}));
  EXPECT_EQ(bill_of("superpod-h100").switches, (Counts{{"qm9700", 16 + 8}}));
  EXPECT_EQ(bill_of("superpod-h100").cables, (Counts{{"aoc-400", 512}, {"sr4-400", 512}}));
  EXPECT_EQ(bill_of("deepseek-v3-2048xH800").switches, (Counts{{"qm9700", 64 + 32}}));
  EXPECT_EQ(bill_of("rail-only").switches, (Counts{{"qm9700", 8}}));
  EXPECT_EQ(bill_of("gb200-nvl72").switches, (Counts{{"qm9700", 8 + 3}}));
  EXPECT_EQ(bill_of("gb200-nvl72").cables, (Counts{{"aoc-400", 144}, {"sr4-400", 144}}));
}

// Ethernet fabrics.
//   HPN 7.0: 512 NICs with a port of 200 Gbit/s on each of a rail's two ToRs. Up go 64 x 200 / 1.067 = 12
//     Tbit/s, 30 ports of 400; a plane's 8 x 30 uplinks need two switches of 128 ports.
//   MegaScale: ports of 400 split in two; a leaf has 64 NICs and 32 uplinks; 8 leaves, 256 uplinks on 4
//     spines.
//   Llama 3: 18 racks of 16 GPUs with 32 uplinks each; one chassis per pod with 192 / 7 = 27.4, so 28
//     uplinks; one chassis above.
TEST(BillOfMaterials, OfEthernetInPlanesAndPods) {
  const Bill hpn = bill_of("alibaba-hpn7");
  EXPECT_EQ(hpn.switches, (Counts{{"th5-64x800", 16 + 4}}));
  EXPECT_EQ(hpn.cables, (Counts{{"sr4-200", 1024}, {"sr4-400", 480}}));
  EXPECT_THAT(hpn.remarks, Contains(HasSubstr("1024 cables of 200 Gbit/s end in ports of th5-64x800 that are "
                                              "split in 4")));
  const Bill megascale = bill_of("megascale");
  EXPECT_EQ(megascale.switches, (Counts{{"th4-64x400", 8 + 4}}));
  EXPECT_EQ(megascale.cables, (Counts{{"sr4-200", 512}, {"sr4-400", 256}}));
  EXPECT_THAT(megascale.remarks, Contains(HasSubstr("split in 2")));
  const Bill llama = bill_of("llama3-roce");
  EXPECT_EQ(llama.switches, (Counts{{"arista-7800r3", 3 + 1}, {"th4-64x400", 18}}));
  EXPECT_EQ(llama.cables, (Counts{{"dac-400", 288}, {"sr4-400", 18 * 32 + 3 * 28}}));
}

// 98,304 ports: 1,536 leaves with 64 down and 64 up, as many spines. 24 pods of 64 spines; each spine has
// four cables to each of 16 cores, so a core uses 24 x 4 = 96 of 128 ports. 98,304 / 128 = 768 cores would
// hold all cables.
TEST(BillOfMaterials, SaysWhereCoresStayPartlyEmpty) {
  const Bill bill = bill_of("spectrum-x-100k");
  EXPECT_EQ(bill.switches, (Counts{{"sn5600", 1536 + 1536 + 1024}}));
  EXPECT_EQ(bill.cables, (Counts{{"aoc-400", 98304}, {"sr4-400", 2 * 98304}}));
  EXPECT_THAT(bill.remarks, Contains(HasSubstr("the 1024 cores of sn5600 use 75 % of their ports")));
  EXPECT_THAT(bill.remarks, Contains(HasSubstr("768 would hold all cables")));
}

// Three ports leave each of 8 x 16 cards: 384 Ethernet cables, not InfiniBand ones of the same rate.
TEST(BillOfMaterials, OfGaudiHasEthernetCables) {
  const Bill bill = bill_of("gaudi2");
  EXPECT_EQ(bill.switches, (Counts{{"th4-64x400", 3}}));
  EXPECT_EQ(bill.cables, (Counts{{"aoc-100", 384}}));
}

// Two groups of 16 switches and 256 NICs. Two cables between any two switches of a group: 2 x 120 x 2 = 480.
// Each switch has 17 cables to the other group: 16 x 17 = 272.
TEST(BillOfMaterials, OfADragonfly) {
  const Bill bill = bill_of("dragonfly");
  EXPECT_EQ(bill.switches, (Counts{{"rosetta", 32}}));
  EXPECT_EQ(bill.cables, (Counts{{"sr4-200", 256 + 480 + 272}}));
}

// A cube of 4 x 4 x 4 has 3 x 64 links: 64 on the hosts' boards, 3 x 16 around the axes through optical
// switches, 80 in copper. 4 x 4 x 8 are two cubes with 3 x 128 links: 128 on boards; through optical switches
// 2 x 32 around the short axes and 2 x 16 between the cubes along the long one; 160 in copper. Both have 3 x
// 16 switches.
TEST(BillOfMaterials, OfTpuCubesHasOpticalCircuitSwitches) {
  const Bill cube = bill_of("tpu-v4");
  EXPECT_EQ(cube.switches, (Counts{{"palomar-ocs", 48}}));
  EXPECT_EQ(cube.cables, (Counts{{"dac-400", 80}, {"aoc-400", 48}}));
  const Bill slice = bill_of("tpu-v5p");
  EXPECT_EQ(slice.switches, (Counts{{"palomar-ocs", 48}}));
  EXPECT_EQ(slice.cables, (Counts{{"acc-800", 160}, {"lpo-800", 2 * 32 + 32}}));
  EXPECT_THAT(slice.remarks, Contains(HasSubstr("48 of them, each with two ports a cube")));
  EXPECT_THAT(slice.remarks, Not(Contains(HasSubstr(" 0 W"))));
}
}  // namespace topsim::scenario::bill_test
