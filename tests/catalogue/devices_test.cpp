#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/catalogue/world.hpp"

namespace topsim::topology::devices_test {
using namespace topsim::literals;

TEST(Switches, APortSplitsWhereTheBoxAllowsIt) {
  EXPECT_EQ(shipped().network_switch("sn5600").radix(800_Gbitps), 64);
  EXPECT_EQ(shipped().network_switch("sn5600").radix(400_Gbitps), 128);
  EXPECT_EQ(shipped().network_switch("qm9700").radix(400_Gbitps), 64);
  EXPECT_EQ(shipped().network_switch("qm8700").radix(100_Gbitps), 80);
  EXPECT_EQ(shipped().network_switch("sb7800").radix(100_Gbitps), 36);
}

TEST(Switches, TheNdrDefaultLiesInsideTheClaims) {
  const SwitchEntry& box = shipped().network_switch("qm9700");
  EXPECT_EQ(box.port_to_port_low, 130_ns);
  EXPECT_EQ(box.port_to_port_high, 350_ns);
  EXPECT_GT(box.port_to_port, box.port_to_port_low);
  EXPECT_LT(box.port_to_port, box.port_to_port_high);
}

TEST(Switches, InfiniBandHoldsBackByCreditsAndEthernetByPause) {
  EXPECT_TRUE(shipped().network_switch("qm9700").credit_flow_control);
  EXPECT_TRUE(shipped().network_switch("qm9700").sharp);
  EXPECT_FALSE(shipped().network_switch("sn5600").credit_flow_control);
  EXPECT_FALSE(shipped().network_switch("sn5600").sharp);
}

// Leaves have 64 ports, 32 down and 32 up, so an SU of 32 nodes with 8 NICs has 8 leaves. The counts of the
// published table follow from that.
TEST(Fabrics, SuperPodHasTheSwitchCountsOfItsReferenceArchitecture) {
  const FabricRecipe& pod = shipped().fabric("dgx-superpod");
  EXPECT_EQ(pod.kind, FabricKind::rail);
  EXPECT_EQ(pod.unit_nodes, 32);
  const int radix = shipped().network_switch(pod.tiers.at(0).switch_id).radix(400_Gbitps);
  ASSERT_FALSE(pod.published.empty());
  for (const FabricRecipe::Size& size : pod.published) {
    const int ports_down = size.nodes * 8;
    EXPECT_EQ(size.leaf, ports_down / (radix / 2)) << size.nodes;
    EXPECT_EQ(size.core == 0 ? size.spine : size.core, ports_down / radix) << size.nodes;
  }
}

TEST(Fabrics, TorusRecipesHaveOneNodeForEachBlock) {
  for (const std::string& id : ids_of("fabric")) {
    const FabricRecipe& fabric = shipped().fabric(id);
    if (fabric.kind != FabricKind::torus) continue;
    int chips = 1;
    for (const int size : fabric.dims) chips *= size;
    EXPECT_EQ(chips, fabric.nodes * shipped().node(fabric.node).accelerators) << id;
  }
}

TEST(Fabrics, SwitchesSpeakTheLinkTheirTierCarries) {
  for (const std::string& id : ids_of("fabric")) {
    const FabricRecipe& fabric = shipped().fabric(id);
    for (std::size_t tier = 0; tier < fabric.tiers.size(); ++tier) {
      if (id == "100k-hybrid" && tier == 2) continue;  // its third tier is another network, see its note
      if (id == "ec2-ultracluster") continue;          // names no link, and its switches are assumed
      const std::string& up = fabric.uplink.empty() ? fabric.link : fabric.uplink;
      const auto& links = shipped().network_switch(fabric.tiers[tier].switch_id).links;
      EXPECT_THAT(links, testing::Contains(up)) << id << ' ' << fabric.tiers[tier].name;
      if (tier == 0 && fabric.uplink.empty()) {
        EXPECT_THAT(links, testing::Contains(fabric.link)) << id;
      }
    }
  }
}

TEST(Fabrics, NodesSpeakTheLinkOfTheirFabric) {
  for (const std::string& id : ids_of("fabric")) {
    const FabricRecipe& fabric = shipped().fabric(id);
    if (fabric.link.empty() || fabric.kind == FabricKind::torus) continue;
    const NodeRecipe& node = shipped().node(fabric.node);
    EXPECT_THAT(shipped().nic(node.nics.at(0).nic).links, testing::Contains(fabric.link)) << id;
  }
}

TEST(Prices, TheDefaultIsTheMedianInsideItsRange) {
  const PriceEntry* price = shipped().price("qm9700");  // offers of 32, 36, 38 and 50 thousand USD
  ASSERT_NE(price, nullptr);
  EXPECT_DOUBLE_EQ(price->use, 37000);
  EXPECT_DOUBLE_EQ(price->low, 32000);
  EXPECT_DOUBLE_EQ(price->high, 50000);
  EXPECT_EQ(price->offers.size(), 4U);
  EXPECT_FALSE(price->offers[0].source.empty());
  EXPECT_EQ(shipped().price("no-such-thing"), nullptr);
}

TEST(Prices, TheCostModelFindsItsRatios) {
  ASSERT_NE(shipped().price("electricity"), nullptr);
  EXPECT_DOUBLE_EQ(shipped().price("electricity")->use, 0.078);
  ASSERT_NE(shipped().ratio("pue"), nullptr);
  EXPECT_DOUBLE_EQ(shipped().ratio("pue")->use, 1.3);
  ASSERT_NE(shipped().ratio("years"), nullptr);
}

// A 400G DR4 connection of 20 m is fibre, 60 + 20 x 1.6 USD, and two transceivers of 900 USD, not four.
TEST(Cables, AConnectionCostsItsPartsAndItsLength) {
  EXPECT_DOUBLE_EQ(shipped().cable("dr4-400").price(Metres(20)), 60 + 32 + 1800);
  EXPECT_DOUBLE_EQ(shipped().cable("dac-400").price(Metres(2)), 150 + 110);
  EXPECT_LE(shipped().cable("dr8-800").cheapest, 1);
  EXPECT_GE(shipped().cable("dr8-800").dearest, 1);
}

// Llama 3: 419 unexpected interruptions in 54 days on 16,384 GPUs are 0.173 per GPU and year.
TEST(Reliability, TheWholeJobFailsAsLlama3Did) {
  const FailureRate* rate = shipped().failure_rate("accelerator-any-cause");
  ASSERT_NE(rate, nullptr);
  EXPECT_NEAR(rate->per_year, 419 / 54.0 * 365.25 / 16384, 1e-4);
}
}  // namespace topsim::topology::devices_test
