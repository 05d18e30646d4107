#include "sim/report/cost.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "sim/report/text.hpp"
#include "tests/report/sample.hpp"
#include "topology/build.hpp"

namespace topsim::report::cost_test {
using namespace topsim::testing;
using ::testing::HasSubstr;

Interval exactly(double value) {
  return {value, value, value};
}

CostModel model(double server, double fabric, double watts) {
  CostModel cost;
  cost.bill.items = {{BomCategory::server, "box", "box", 1, exactly(server), "quote", watts},
                     {BomCategory::network_switch, "switch", "switch", 2, exactly(fabric / 2), "quote", 0}};
  cost.electricity = exactly(0.1);
  cost.pue = exactly(1.5);
  cost.years = exactly(1);
  return cost;
}

TEST(Interval, IsMetAtItsEndsAndItsMiddle) {
  const Interval range{10, 12, 20};
  EXPECT_DOUBLE_EQ(range.at(0), 10);
  EXPECT_DOUBLE_EQ(range.at(0.5), 12);
  EXPECT_DOUBLE_EQ(range.at(0.75), 16);
  EXPECT_DOUBLE_EQ(range.at(1), 20);
}

TEST(Draws, TheFirstSampleIsUsualAndTheSameThingIsDrawnOnce) {
  EXPECT_EQ(Draws(0)("anything"), 0.5);
  EXPECT_EQ(Draws(3)("qm9700"), Draws(3)("qm9700"));
  EXPECT_NE(Draws(3)("qm9700"), Draws(3)("sn5600"));
  double sum = 0;
  for (std::uint64_t s = 1; s <= 4000; ++s) sum += Draws(s)("qm9700");
  EXPECT_NEAR(sum / 4000, 0.5, 0.02);  // standard error 1/sqrt(12 x 4000) = 0.0046
}

TEST(Quantile, InterpolatesBetweenOrderStatistics) {
  const double values[] = {4, 1, 3, 2, 5};
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 3);
  EXPECT_DOUBLE_EQ(quantile(values, 0.05), 1.2);
  EXPECT_DOUBLE_EQ(spread(values).high, 4.8);
}

TEST(Cost, IsThePurchaseWrittenOffPlusTheEnergy) {
  // 31,557,600 USD over one year of 31,557,600 s are 1 USD/s. 24 kW x 1.5 x 0.1 USD/kWh = 3.6 USD/h = 0.001
  // USD/s.
  const CostModel cost = model(31'557'600, 0, 24'000);
  EXPECT_DOUBLE_EQ(cost.energy_per_second(Draws(0)), 0.001);
  EXPECT_DOUBLE_EQ(cost.per_second(Draws(0)), 1.001);
}

TEST(Cost, BreakEvenIsThePriceAtWhichTokensCostTheSame) {
  // Servers 80, fabric 20, no energy. The other takes 10 % longer, so it may cost 100 / 1.1 = 90.909 in all
  // and 10.909 for its fabric: 54.5 % of the reference's.
  const CostModel reference = model(80, 20, 0);
  const CostModel other = model(80, 15, 0);
  const auto share = break_even_fabric_share(reference, 1.0, other, 1.1, Draws(0));
  ASSERT_TRUE(share);
  EXPECT_NEAR(*share, (100 / 1.1 - 80) / 20, 1e-12);
  // At exactly that price both cost the same per token.
  const CostModel flipped = model(80, *share * 20, 0);
  EXPECT_NEAR(flipped.per_second(Draws(0)) * 1.1, reference.per_second(Draws(0)) * 1.0, 1e-15);
}

TEST(Cost, ThereIsNoBreakEvenWithoutAFabric) {
  EXPECT_FALSE(break_even_fabric_share(model(80, 0, 0), 1, model(80, 15, 0), 1, Draws(0)));
}

class Bill : public ::testing::Test {
 protected:
  static const topology::Catalogue& catalogue() {
    static const topology::Catalogue loaded = topology::Catalogue::load(TOPSIM_SOURCE_DIR "/configs");
    return loaded;
  }
  static const BomItem* find(const BillOfMaterials& bill, BomCategory category) {
    for (const BomItem& item : bill.items) {
      if (item.category == category) return &item;
    }
    return nullptr;
  }
};

TEST_F(Bill, CountsServersSwitchesAndEachCableOnce) {
  topology::TopologySpec spec;
  spec.node.use = "dgx-h100";
  spec.fabric.length = {Metres(20)};
  const BillOfMaterials bill = bill_of_materials(two_nodes(), spec, catalogue(), {});
  ASSERT_NE(find(bill, BomCategory::server), nullptr);
  EXPECT_EQ(find(bill, BomCategory::server)->count, 2);
  ASSERT_NE(find(bill, BomCategory::network_switch), nullptr);
  EXPECT_EQ(find(bill, BomCategory::network_switch)->id, "qm9700");
  EXPECT_EQ(find(bill, BomCategory::network_switch)->count, 3);
  std::int64_t cables = 0;
  for (const BomItem& item : bill.items) cables += item.category == BomCategory::cable ? item.count : 0;
  EXPECT_EQ(cables, 4);  // two NICs, two uplinks
  ASSERT_NE(find(bill, BomCategory::cable), nullptr);
  EXPECT_TRUE(find(bill, BomCategory::cable)->price) << find(bill, BomCategory::cable)->id;
  EXPECT_TRUE(find(bill, BomCategory::network_switch)->price);
  EXPECT_GT(find(bill, BomCategory::network_switch)->watts, 0);
  ASSERT_NE(find(bill, BomCategory::nic), nullptr);
  EXPECT_TRUE(find(bill, BomCategory::nic)->included) << "a server's price contains its NICs";
}

// 400 Gbit/s over 2 m is copper; over 200 m it takes two transceivers and fibre.
TEST_F(Bill, ACableOfAFileIsAsLongAsItsLinkSays) {
  topology::TopologySpec spec;
  const auto device = [&](const char* name, const char* kind, const char* model, std::optional<int> node) {
    topology::DeviceSpec& added = spec.devices.emplace_back();
    added.name = name, added.kind = kind, added.model = model, added.node = node;
  };
  device("leaf", "switch", "qm9700", std::nullopt);
  device("far", "nic", "connectx-7", 0);
  device("near", "nic", "connectx-7", 1);
  for (const auto& [nic, metres] : {std::pair("far", 200.0), {"near", 2.0}}) {
    topology::LinkSpec& link = spec.links.emplace_back();
    link.from = nic, link.to = "leaf", link.link.use = "ib-ndr", link.length = Metres(metres);
  }
  const BillOfMaterials bill = bill_of_materials(topology::build(spec, catalogue()), spec, catalogue(), {});
  std::vector<std::string> cables;
  for (const BomItem& item : bill.items)
    if (item.category == BomCategory::cable) cables.push_back(item.name);
  EXPECT_THAT(cables,
              ::testing::UnorderedElementsAre(HasSubstr("DAC, 2 m"), HasSubstr(", 200 m, 2 modules")));
}

// A topology from a file has no servers to look up, but its accelerators are in the catalogue: 700 W each.
TEST_F(Bill, AcceleratorsOfAFileDrawTheirPower) {
  const BillOfMaterials bill = bill_of_materials(two_nodes(), topology::TopologySpec{}, catalogue(), {});
  ASSERT_NE(find(bill, BomCategory::accelerator), nullptr);
  EXPECT_EQ(find(bill, BomCategory::accelerator)->id, "h100-sxm5");
  EXPECT_DOUBLE_EQ(find(bill, BomCategory::accelerator)->watts, 700);
}

TEST_F(Bill, AServerMadeFromAnotherRecipeIsPricedAsThatOne) {
  topology::TopologySpec spec;
  spec.node.use = "hgx-h100";
  const BillOfMaterials bill = bill_of_materials(two_nodes(), spec, catalogue(), {});
  ASSERT_NE(find(bill, BomCategory::server), nullptr);
  EXPECT_THAT(find(bill, BomCategory::server)->price_source, HasSubstr("of a dgx-h100"));
}

// The H100 box has a street price, asked of buyers; the H200 one NVIDIA's list price. A B300 box is priced as
// a B200's, which is another machine; an HGX priced as the DGX of the same accelerators is not.
TEST_F(Bill, WhatAPriceIsAndOfWhichMachineIsSaid) {
  const auto server = [](const char* node) {
    topology::TopologySpec spec;
    spec.node.use = node;
    return bill_of_materials(two_nodes(), spec, catalogue(), {});
  };
  const auto says_another = [](const BillOfMaterials& bill) {
    return std::any_of(bill.remarks.begin(), bill.remarks.end(), [](const std::string& each) {
      return each.find("another machine") != std::string::npos;
    });
  };
  EXPECT_EQ(find(server("hgx-h100"), BomCategory::server)->basis, topology::PriceBasis::street);
  EXPECT_FALSE(says_another(server("hgx-h100")));
  EXPECT_EQ(find(server("dgx-h200"), BomCategory::server)->basis, topology::PriceBasis::list);
  EXPECT_EQ(find(server("dgx-b300"), BomCategory::server)->priced_as, "dgx-b200");
  EXPECT_TRUE(says_another(server("dgx-b300")));
}

// An HGX H200 whose accelerators are replaced by B200 costs what a server with eight B200 costs, and draws
// 8 x (1000 - 700) W more. A quote for the server itself comes first.
TEST_F(Bill, OtherAcceleratorsChangePriceAndPowerOfTheServer) {
  topology::TopologySpec usual, replaced, b200;
  usual.node.use = replaced.node.use = "hgx-h200", b200.node.use = "hgx-b200";
  replaced.node.accelerator = "b200";
  const auto server = [&](const topology::TopologySpec& spec, const CostSpec& cost = {}) {
    const BillOfMaterials bill = bill_of_materials(two_nodes(), spec, catalogue(), cost);
    return *find(bill, BomCategory::server);
  };
  EXPECT_EQ(server(replaced).price->usual, server(b200).price->usual);
  EXPECT_THAT(bill_of_materials(two_nodes(), replaced, catalogue(), {}).remarks,
              ::testing::Contains("the price of a hgx-h200 with b200 is that of a hgx-b200; a quote "
                                  "(cost.prices.hgx-h200) replaces it"));
  EXPECT_DOUBLE_EQ(server(replaced).watts, server(usual).watts + 8 * 300);
  topology::TopologySpec fewer = replaced;  // four of them: the price with all, as of other servers
  fewer.node.accelerators = 4;
  EXPECT_EQ(server(fewer).price->usual, server(b200).price->usual);
  CostSpec quoted;
  quoted.prices["hgx-h200"] = {500'000};
  EXPECT_EQ(server(replaced, quoted).price->usual, 500'000);
  // Nobody's price of a server with B300 is known, so that those of B200 do not stand for it.
  replaced.node.accelerator = "b300";
  EXPECT_EQ(find(bill_of_materials(two_nodes(), replaced, catalogue(), {}), BomCategory::server), nullptr);
}

TEST_F(Bill, AQuoteReplacesTheCataloguesRange) {
  topology::TopologySpec spec;
  spec.node.use = "dgx-h100";
  CostSpec quotes;
  quotes.prices["qm9700"] = {20'000, 30'000};
  const BillOfMaterials bill = bill_of_materials(two_nodes(), spec, catalogue(), quotes);
  EXPECT_EQ(find(bill, BomCategory::network_switch)->price, (Interval{20'000, 25'000, 30'000}));
  EXPECT_EQ(find(bill, BomCategory::network_switch)->price_source, "quote");
  EXPECT_LT(bill.capital_range().low, bill.capital_range().high);
}

// The example of configs' sources: 128 nodes of 8 H100, 1,024 cables to the leaves and as many up. Quantum-2
// (64 ports): 1,024 / 32 = 32 leaves and 1,024 / 64 = 16 spines. Tomahawk 5 (128 ports of 400 Gbit/s): 16 and
// 8.
TEST_F(Bill, AThousandAcceleratorsNeedTheSwitchesAndMoneyThatWasPublished) {
  const auto fabric_of = [](const char* node, const char* recipe) {
    topology::TopologySpec spec;
    spec.node.use = node;
    spec.nodes = 128;
    spec.fabric.use = recipe;
    return bill_of_materials(topology::build(spec, catalogue()), spec, catalogue(), {});
  };
  const BillOfMaterials ib = fabric_of("dgx-h100", "dgx-superpod");
  const BillOfMaterials ethernet = fabric_of("hgx-h100-roce", "100k-tomahawk5");
  EXPECT_EQ(find(ib, BomCategory::network_switch)->count, 48);
  EXPECT_EQ(find(ethernet, BomCategory::network_switch)->count, 24);
  for (const BillOfMaterials* bill : {&ib, &ethernet}) {
    std::int64_t cables = 0;
    for (const BomItem& item : bill->items) cables += item.category == BomCategory::cable ? item.count : 0;
    EXPECT_EQ(cables, 2048);
  }
  // Published: a cost sheet of August 2024, without NICs, 4.35 to 5.02 million USD on InfiniBand; a planner's
  // and merchants' offers on Tomahawk 5, 1.85 to 3.14. The catalogue's ranges must overlap these, and
  // Ethernet must cost less.
  EXPECT_LT(ib.capital_range(true).low, 5.02e6);
  EXPECT_GT(ib.capital_range(true).high, 4.35e6);
  EXPECT_LT(ethernet.capital_range(true).low, 3.14e6);
  EXPECT_LT(ethernet.capital_range(true).usual, ib.capital_range(true).usual);
}

TEST_F(Bill, SwitchesThatAreMostlyEmptyAreARemark) {
  topology::TopologySpec spec;  // eight rails of eight nodes: 8 cables down and 8 up on 128 ports
  spec.node.use = "hgx-h100";
  spec.nodes = 8;
  spec.fabric.kind = topology::FabricKind::rail;
  spec.fabric.link.use = "roce-400g";
  spec.fabric.switch_model.use = "sn5600";
  const BillOfMaterials bill = bill_of_materials(topology::build(spec, catalogue()), spec, catalogue(), {});
  EXPECT_THAT(bill.remarks, ::testing::Contains(HasSubstr("the 8 leaves of sn5600 use 12 % of their ports")));
}

// The catalogue's only offer for a QM8700 has no known source.
TEST_F(Bill, PricesWithoutASourceAreSaid) {
  topology::TopologySpec spec;
  spec.node.use = "dgx-a100";
  spec.nodes = 2;
  spec.fabric.kind = topology::FabricKind::rail;
  spec.fabric.link.use = "ib-hdr";
  spec.fabric.switch_model.use = "qm8700";
  const topology::Topology topology = topology::build(spec, catalogue());
  const auto remark = ::testing::Contains(HasSubstr("no source was found for the price of qm8700"));
  EXPECT_THAT(bill_of_materials(topology, spec, catalogue(), {}).remarks, remark);
  CostSpec quoted;
  quoted.prices["qm8700"] = {21'000};
  EXPECT_THAT(bill_of_materials(topology, spec, catalogue(), quoted).remarks, ::testing::Not(remark));
}

// An SN5600's price is guessed by two planners; a QM9700 has such guesses and offers of a shop and of NVIDIA.
TEST_F(Bill, PricesThatAreEstimatesAloneAreSaid) {
  const auto remarks = [&](const char* link, const char* model, const CostSpec& cost) {
    topology::TopologySpec spec;
    spec.node.use = "hgx-h100";
    spec.nodes = 2;
    spec.fabric.kind = topology::FabricKind::rail;
    spec.fabric.link.use = link;
    spec.fabric.switch_model.use = model;
    return bill_of_materials(topology::build(spec, catalogue()), spec, catalogue(), cost).remarks;
  };
  const auto remark = ::testing::Contains(HasSubstr("the price of sn5600 is planners' estimates"));
  EXPECT_THAT(remarks("roce-400g", "sn5600", {}), remark);
  EXPECT_THAT(remarks("ib-ndr", "qm9700", {}), ::testing::Not(::testing::Contains(HasSubstr("estimates"))));
  CostSpec quoted;
  quoted.prices["sn5600"] = {60'000};
  EXPECT_THAT(remarks("roce-400g", "sn5600", quoted), ::testing::Not(remark));
}

// Two trays of an NVL72 with four NICs each, each on a leaf of its own rail: eight cables down and eight up
// to a spine. The 144 NVLinks between trays and switches belong to the rack.
TEST_F(Bill, NvlinksOfARackAreNoCablesOfTheFabric) {
  topology::TopologySpec spec;
  spec.node.use = "gb200-nvl72";
  spec.nodes = 2;
  spec.fabric.kind = topology::FabricKind::rail;
  const topology::Topology topology = topology::build(spec, catalogue());
  std::int64_t cables = 0;
  for (const BomItem& item : bill_of_materials(topology, spec, catalogue(), {}).items)
    if (item.category == BomCategory::cable) cables += item.count;
  EXPECT_EQ(cables, 8 + 8);
}

TEST_F(Bill, AQuoteForAPartOfAPricedServerIsSaidToChangeNothing) {
  topology::TopologySpec spec;
  spec.node.use = "hgx-h100";
  spec.nodes = 2;
  spec.fabric.kind = topology::FabricKind::rail;
  CostSpec quoted;
  quoted.prices["connectx-7"] = {9e6};
  EXPECT_THAT(bill_of_materials(topology::build(spec, catalogue()), spec, catalogue(), quoted).remarks,
              ::testing::Contains(HasSubstr("the quote for connectx-7 changes nothing")));
}

TEST_F(Bill, LongNamesGoOnInTheNextLine) {
  BillOfMaterials bill;
  bill.items = {{BomCategory::server, "box", "A box of a name that no narrow column has room for", 12,
                 Interval{1e6, 2e6, 3e6}, "quote", 0}};
  const std::string table = bom_table(bill, 80);
  EXPECT_THAT(table, HasSubstr("     12  A box of a name that no"));
  EXPECT_THAT(table, HasSubstr("narrow column has room\n"));
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(width(line), 80U) << line;
}

TEST_F(Bill, WhatHasNoPriceIsSaidNotGuessed) {
  topology::TopologySpec spec;  // explicit devices: accelerators and NICs one by one
  const BillOfMaterials bill = bill_of_materials(two_nodes(), spec, catalogue(), {});
  EXPECT_EQ(find(bill, BomCategory::accelerator)->count, 2);
  EXPECT_EQ(find(bill, BomCategory::nic)->count, 2);
  topology::TopologyBuilder builder;
  builder.set_nodes(1);
  builder.device({DeviceKind::accelerator, 0, 1, 0, 0, builder.model("no-such-chip")});
  const BillOfMaterials unknown = bill_of_materials(std::move(builder).finish(), spec, catalogue(), {});
  EXPECT_THAT(unknown.remarks.at(0), HasSubstr("no price known of no-such-chip"));
  EXPECT_THAT(bom_table(unknown), HasSubstr("no-such-chip"));
}
}  // namespace topsim::report::cost_test
