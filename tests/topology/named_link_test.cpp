#include "topology/named_link.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"

namespace topsim::topology::named_link_test {
using namespace topsim::literals;
using ::testing::HasSubstr;

// A leaf with two cables to each of four spines; each spine has two cores of its own. Spines and cores are
// merged into one device each, of four and of eight switches.
Topology merged() {
  TopologyBuilder builder;
  builder.set_nodes(1);
  const auto type = builder.link_type({"ib-ndr", "NDR", "test"});
  const auto box = builder.model("qm9700");
  const DeviceId nic = builder.device({DeviceKind::nic, 0, 1, 0, 0, builder.model("nic")});
  const auto tier = [&](std::uint8_t number, std::uint16_t count) {
    return builder.device({DeviceKind::fabric_switch, number, count, Id<void>::kNone, 0, box});
  };
  const DeviceId leaf = tier(1, 1), spines = tier(2, 4), cores = tier(3, 8);
  builder.cable({nic, leaf, LinkKind::infiniband, 1, type, {}, 50_GBps, 50_GBps, 0_ns});
  builder.cable({leaf, spines, LinkKind::infiniband, 8, type, {}, 400_GBps, 400_GBps, 0_ns});
  builder.cable({spines, cores, LinkKind::infiniband, 8, type, {}, 400_GBps, 400_GBps, 0_ns});
  return std::move(builder).finish();
}

std::string refusal(const std::string& name) {
  const Topology topology = merged();
  try {
    (void)named_links(topology, name);
  } catch (const ConfigError& error) {
    return error.problems().front().message + "; " + error.problems().front().help;
  }
  return "";
}

NamedLink only(const Topology& topology, const std::string& name) {
  const std::vector<NamedLink> links = named_links(topology, name);
  EXPECT_EQ(links.size(), 1U) << name;
  return links.front();
}

TEST(NamedLink, IsTheWholeLinkWhereBothEndsAreDevices) {
  const Topology topology = merged();
  const NamedLink link = only(topology, "leaf0 -> spine0");
  EXPECT_EQ(topology.name(link.link), "leaf0 -> spine0");
  EXPECT_EQ(link.of, 1U);
}

TEST(NamedLink, ToOneOfFourSpinesIsAQuarter) {
  const Topology topology = merged();
  for (const char* name : {"leaf0 -> spine0[3]", "spine0[0] -> leaf0"})
    EXPECT_EQ(only(topology, name).of, 4U) << name;
}

// With two cores a spine, cores 4 and 5 belong to spine 2.
TEST(NamedLink, FromASpineToACoreIsThereWhereTheTwoAreCabled) {
  const Topology topology = merged();
  EXPECT_EQ(only(topology, "spine0 -> core0[5]").of, 8U);
  EXPECT_EQ(only(topology, "spine0[2] -> core0[5]").of, 8U);
  EXPECT_EQ(only(topology, "core0 -> spine0[2]").of, 4U);
  EXPECT_THAT(refusal("spine0[2] -> core0[6]"), HasSubstr("no link"));
}

// Cables count over all spines: the second cable to the fourth spine is number 7 of eight, and there is no
// third.
TEST(NamedLink, IsASingleCableOfABundleByItsNumber) {
  const Topology topology = merged();
  const NamedLink cable = only(topology, "leaf0 -> spine0[3] #1");
  EXPECT_EQ(cable.of, 8U);
  EXPECT_EQ(cable.part, 7U);
  EXPECT_EQ(only(topology, "spine0 -> leaf0 #5").part, 5U);
  EXPECT_THAT(refusal("leaf0 -> spine0[3] #2"), HasSubstr("no link"));
  EXPECT_THAT(refusal("leaf0 -> spine0 #8"), HasSubstr("no link"));
}

// Where a message keeps to one of several cables, each cable is a link. Without a number a name means all.
TEST(NamedLink, WithoutANumberIsEveryCableBetweenItsEnds) {
  TopologyBuilder builder;
  builder.set_nodes(1);
  const auto type = builder.link_type({"roce-400g", "RoCE", "test"});
  const auto box = builder.model("sn5600");
  const DeviceId leaf = builder.device({DeviceKind::fabric_switch, 1, 1, Id<void>::kNone, 0, box});
  const DeviceId spine = builder.device({DeviceKind::fabric_switch, 2, 1, Id<void>::kNone, 0, box});
  for (int i = 0; i < 3; ++i)
    builder.cable({leaf, spine, LinkKind::ethernet, 1, type, {}, 50_GBps, 50_GBps, 0_ns});
  const Topology topology = std::move(builder).finish();
  EXPECT_EQ(named_links(topology, "leaf0 -> spine0").size(), 3U);
  EXPECT_EQ(topology.name(only(topology, "leaf0 -> spine0 #2").link), "leaf0 -> spine0 #2");
  EXPECT_TRUE(find_links(topology, "leaf0 -> spine0 #3").empty());
}

TEST(NamedLink, MayHaveItsArrowAsTablesPrintItAndWithoutSpaces) {
  const Topology topology = merged();
  const LinkId link = only(topology, "leaf0 -> spine0").link;
  for (const char* name : {"leaf0->spine0", "leaf0 > spine0", "leaf0>spine0", "leaf0 -> spine0"})
    EXPECT_EQ(only(topology, name).link, link) << name;
  EXPECT_EQ(only(topology, "leaf0>spine0[1] #1").cable, " #1");
  for (const char* name : {">", "leaf0 >", "> spine0", "->", "leaf0"})
    EXPECT_TRUE(find_links(topology, name).empty()) << name;
}

TEST(NamedLink, WithADashIsBothDirections) {
  const Topology topology = merged();
  const auto both = named_links(topology, "leaf0 - spine0[3] #1");
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(topology.name(both[0].link), "leaf0 -> spine0");
  EXPECT_EQ(topology.name(both[1].link), "spine0 -> leaf0");
  for (const NamedLink& each : both) {
    EXPECT_EQ(each.of, 8U);
    EXPECT_EQ(each.part, 7U);
  }
  EXPECT_THAT(refusal("leaf0 - spine3"), HasSubstr("no link"));
}

TEST(NamedLink, ThatIsNoneIsRefusedWithThoseThatThereAre) {
  const std::string refused = refusal("leaf0 -> spine3");
  EXPECT_THAT(refused, HasSubstr("no link \"leaf0 -> spine3\""));
  EXPECT_THAT(refused, HasSubstr("leaf0 -> spine0"));
  EXPECT_THAT(refused, HasSubstr("spine0 stands for 4 switches"));
  EXPECT_THAT(refused, HasSubstr("spine0[0] to spine0[3]"));
  EXPECT_THAT(refusal("leaf0 -> spine0[4]"), HasSubstr("no link"));
  EXPECT_THAT(refusal("leaf0 -> spine0[x]"), HasSubstr("no link"));
  EXPECT_THAT(refusal("node0/nic0[0] -> leaf0"), HasSubstr("no link"));
}
}  // namespace topsim::topology::named_link_test
