// What a topology written by hand asks of parts that their data sheets do not allow.
#include "sim/scenario/findings/described_parts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace topsim::scenario::described_parts_test {
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using topology::DeviceKind;
using topology::LinkKind;

// `nics` of one cable each into one switch; rates in Gbit/s.
topology::Topology star(int nics, double line_rate, double capacity, const char* nic, const char* box) {
  topology::TopologyBuilder builder;
  builder.set_nodes(static_cast<std::uint32_t>(nics));
  const auto type = builder.link_type({"eth", "Ethernet", "test"});
  const auto nic_model = builder.model(nic), box_model = builder.model(box);
  const DeviceId leaf = builder.device({DeviceKind::fabric_switch, 1, 1, Id<void>::kNone, 0, box_model});
  for (std::uint32_t node = 0; node < static_cast<std::uint32_t>(nics); ++node) {
    const DeviceId port = builder.device({DeviceKind::nic, 0, 1, node, 0, nic_model});
    builder.cable({port,
                   leaf,
                   LinkKind::ethernet,
                   1,
                   type,
                   {},
                   BytesPerSecond(capacity / 8 * 1e9),
                   BytesPerSecond(line_rate / 8 * 1e9),
                   Duration{}});
  }
  return std::move(builder).finish();
}

std::vector<std::string> said(int nics, double line_rate, double capacity, const char* nic, const char* box) {
  static const topology::Catalogue catalogue = topology::Catalogue::load("configs");
  std::vector<std::string> messages;
  for (const report::Finding& each : described_parts(star(nics, line_rate, capacity, nic, box), catalogue))
    messages.push_back(each.message);
  return messages;
}

// A ConnectX-7 has 400 Gbit/s; an SN5600 has 64 ports of 800 Gbit/s, each of which splits in two.
TEST(DescribedParts, CablesFasterThanAPortAndMoreThanThereArePortsAreSaid) {
  EXPECT_THAT(said(2, 400, 392, "connectx-7", "sn5600"), IsEmpty());
  EXPECT_THAT(said(128, 400, 392, "connectx-7", "sn5600"), IsEmpty());
  EXPECT_THAT(said(2, 800, 784, "connectx-7", "sn5600"),
              ElementsAre(testing::AllOf(HasSubstr("ConnectX-7"), HasSubstr("runs at 400 Gbit/s"),
                                         HasSubstr("described with 800"))));
  EXPECT_THAT(said(129, 400, 392, "connectx-7", "sn5600"),
              ElementsAre(HasSubstr("has 129 cables, and 128 ports of 400 Gbit/s at most")));
  // Parts with unknown names are not checked.
  EXPECT_THAT(said(300, 800, 784, "our-nic", "our-switch"), IsEmpty());
}

TEST(DescribedParts, LinksThatCarryMoreThanTheirLineRateAreSaid) {
  EXPECT_THAT(described_rates(star(2, 400, 400, "connectx-7", "sn5600")), IsEmpty());
  const auto found = described_rates(star(2, 400, 410, "connectx-7", "sn5600"));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].message, HasSubstr("more capacity than line rate"));
}
}  // namespace topsim::scenario::described_parts_test
