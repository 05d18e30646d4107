// The capacity that a port keeps where flows meet, whole or reduced by a fault.
#include "sim/executor/contention.hpp"

#include <gtest/gtest.h>

namespace topsim::executor::contention_test {

// Records the capacities that links are given.
class Capacities final : public network::Network {
 public:
  void start(const network::Transfer&, SimTime) override {}
  [[nodiscard]] SimTime next_event() override { return kNever; }
  void reroute(const network::Transfer&, SimTime) override {}
  void advance(SimTime, std::vector<network::Completion>&) override {}
  void set_capacity(network::LinkIndex link, double bytes_per_second, SimTime) override {
    of[link] = bytes_per_second;
  }
  [[nodiscard]] network::LinkRecord record(network::LinkIndex) const override { return {}; }
  [[nodiscard]] std::uint64_t events() const override { return 0; }
  std::vector<double> of = {50e9, 50e9, 50e9};
};

// Two NICs send to a third through one switch, over cables of 50 GB/s. In the congestion table two senders to
// one NIC leave 0.8 of its port, four leave 0.6.
class TwoSenders : public testing::Test {
 protected:
  explicit TwoSenders(topology::LinkKind kind = topology::LinkKind::ethernet, std::string transport = "roce",
                      const char* fabric = "roce") {
    topology::TopologyBuilder builder;
    topology::Device nic{topology::DeviceKind::nic};
    nic.model = builder.model("nic");
    std::vector<DeviceId> nics;
    for (std::uint32_t n = 0; n < 3; ++n) {
      nic.node = n;
      nics.push_back(builder.device(nic));
    }
    builder.set_nodes(3);
    topology::Device leaf{topology::DeviceKind::fabric_switch};
    leaf.tier = 1;
    leaf.model = builder.model("switch");
    const DeviceId at = builder.device(leaf);
    topology::Link cable;
    cable.kind = kind;
    cable.type = builder.link_type({"cable", "400 Gbit/s", "a test", std::move(transport)});
    cable.capacity = cable.line_rate = BytesPerSecond(50e9);
    for (std::uint32_t l = 0; l < 3; ++l) {
      cable.from = l < 2 ? nics[l] : at;
      cable.to = l < 2 ? at : nics[2];
      system_.links.push_back({{builder.link(cable)}, cable.capacity});
    }
    topology_ = std::move(builder).finish();
    for (std::uint32_t sender = 0; sender < 2; ++sender) {
      fold::Activity message;
      message.usage = message.own_usage =
          std::make_shared<std::vector<network::Usage>>(std::vector<network::Usage>{{sender, 1}, {2, 1}});
      system_.activities.push_back(message);
    }
    network::CongestionEntry two, four;
    two.fabric = four.fabric = fabric;
    two.routing = four.routing = "any";
    two.incast_degree = 2;
    two.efficiency = two.low = two.high = 0.8;
    four.incast_degree = 4;
    four.efficiency = four.low = four.high = 0.6;
    options_.congestion =
        std::make_shared<network::CongestionTable>(std::vector<network::CongestionEntry>{two, four});
  }

  // The share of its port that the receiver keeps when both send `mib`; the table: 4 MiB lose nothing, 16 MiB
  // half.
  double left_after(std::int64_t mib, const char* fabric) {
    std::vector<network::CongestionEntry> sizes(2);
    for (network::CongestionEntry& entry : sizes) {
      entry.fabric = fabric, entry.routing = "any", entry.incast_degree = 2;
      const bool small = &entry == &sizes[0];
      entry.bytes = Bytes(small ? 4 << 20 : 16 << 20);
      entry.efficiency = entry.low = entry.high = small ? 1 : 0.5;
    }
    options_.congestion = std::make_shared<network::CongestionTable>(sizes);
    for (fold::Activity& activity : system_.activities) activity.bytes = Bytes(mib << 20);
    Contention contention(system_, topology_, options_);
    network_.of = {50e9, 50e9, 50e9};
    contention.started(0);
    contention.started(1);
    contention.settle(network_, SimTime{});
    return network_.of[2] / 50e9;
  }

  topology::Topology topology_;
  fold::System system_;
  RunOptions options_;
  Capacities network_;
};

// What counts for InfiniBand is the link's kind, whatever an explicit topology calls its cables; Ethernet
// counts if its transport is RoCE.
class TwoSendersOnInfiniband : public TwoSenders {
 protected:
  TwoSendersOnInfiniband() : TwoSenders(topology::LinkKind::infiniband, "", "infiniband") {}
};
class TwoSendersOverTcp : public TwoSenders {
 protected:
  TwoSendersOverTcp() : TwoSenders(topology::LinkKind::ethernet, "tcp") {}
};

TEST_F(TwoSendersOnInfiniband, LeaveTheirReceiverWhatTheTableSaysOfInfiniband) {
  Contention contention(system_, topology_, options_);
  contention.started(0);
  contention.started(1);
  contention.settle(network_, SimTime{});
  EXPECT_NEAR(network_.of[2], 0.8 * 50e9, 100);
}

// 4 MiB each lose nothing, 16 MiB as much time again. A port of the table's carries 4096 / 4122 of 50 GB/s,
// so that 16 MiB here take as long as 15.90 there: (15.90 - 4) x 16 / 12 = 15.87 are lost, and 15.90 / (15.90
// + 15.87) = 0.5005 is left.
TEST_F(TwoSendersOnInfiniband, LoseByHowLongTheySend) {
  EXPECT_EQ(left_after(2, "infiniband"), 1);
  EXPECT_NEAR(left_after(16, "infiniband"), 0.5005, 1e-4);
}

// At a NIC of half their speed, one sender has twice what its port carries, which counts only with a fault,
// and both have four times that, here for 3 us. A fault that leaves half of it makes four of the two, for the
// 2 us until the run ends. No congestion control slows them.
TEST_F(TwoSendersOnInfiniband, CrowdTheirReceiverWhichCreditsAnswerWithStops) {
  using namespace topsim::literals;
  system_.links[2].capacity = BytesPerSecond(25e9);
  Contention contention(system_, topology_, options_);
  contention.started(0);
  contention.settle(network_, SimTime(1_us));
  EXPECT_FALSE(contention.longest_crowd(SimTime(2_us)));
  contention.started(1);
  contention.settle(network_, SimTime(2_us));
  contention.ended(0);
  contention.settle(network_, SimTime(5_us));
  ASSERT_TRUE(contention.longest_crowd(SimTime(9_us)));
  EXPECT_EQ(contention.longest_crowd(SimTime(9_us))->port, LinkId(2));
  EXPECT_EQ(contention.longest_crowd(SimTime(9_us))->time, 3_us);
  EXPECT_DOUBLE_EQ(contention.longest_crowd(SimTime(9_us))->load, 4);
  contention.scale(2, 0.5);
  contention.settle(network_, SimTime(7_us));
  EXPECT_EQ(contention.longest_crowd(SimTime(9_us))->time, 5_us);
}

// InfiniBand's congestion control slows senders if it is on; RoCE has DCQCN if nobody turns it off. Without
// PFC packets are lost instead of stopped.
TEST_F(TwoSendersOnInfiniband, CrowdNobodyUnderCongestionControl) {
  system_.links[2].capacity = BytesPerSecond(25e9);
  options_.packet.congestion_control.kind = network::packet::CongestionControlKind::infiniband;
  Contention contention(system_, topology_, options_);
  for (const std::uint32_t sender : {0U, 1U}) contention.started(sender);
  contention.settle(network_, SimTime{});
  EXPECT_FALSE(contention.longest_crowd(SimTime(Duration(1'000'000))));
}
TEST_F(TwoSenders, CrowdTheirReceiverWhereDcqcnIsOffAndPfcIsOn) {
  system_.links[2].capacity = BytesPerSecond(25e9);
  const auto crowded = [&] {
    Contention contention(system_, topology_, options_);
    for (const std::uint32_t sender : {0U, 1U}) contention.started(sender);
    contention.settle(network_, SimTime{});
    return contention.longest_crowd(SimTime(Duration(1'000'000))).has_value();
  };
  EXPECT_FALSE(crowded());
  options_.packet.congestion_control.kind = network::packet::CongestionControlKind::none;
  EXPECT_TRUE(crowded());
  options_.packet.pfc.enabled = false;
  EXPECT_FALSE(crowded());
}

TEST_F(TwoSendersOverTcp, HaveNoRowsInTheTable) {
  Contention contention(system_, topology_, options_);
  contention.started(0);
  contention.started(1);
  contention.settle(network_, SimTime{});
  EXPECT_EQ(network_.of[2], 50e9);
}

TEST_F(TwoSenders, LeaveTheirReceiverWhatTheTableSays) {
  Contention contention(system_, topology_, options_);
  contention.started(0);
  contention.settle(network_, SimTime{});
  EXPECT_EQ(network_.of[2], 50e9);
  contention.started(1);
  contention.settle(network_, SimTime{});
  EXPECT_NEAR(network_.of[2], 0.8 * 50e9, 100);
  contention.ended(0);
  contention.settle(network_, SimTime{});
  EXPECT_EQ(network_.of[2], 50e9);
}

// The same, with 4096 / 4178 of 50 GB/s: 16 MiB take as long as 15.69 there, (15.69 - 4) x 16 / 12 = 15.58
// are lost, and 15.69 / (15.69 + 15.58) = 0.5017 is left.
TEST_F(TwoSenders, LoseByHowLongTheySend) {
  EXPECT_EQ(left_after(2, "roce"), 1);
  EXPECT_NEAR(left_after(16, "roce"), 0.5017, 1e-4);
}

// A fault halves the port: two senders then offer four times its capacity, which leaves 0.6 of 25 GB/s.
// Restored: 0.8 of 50.
TEST_F(TwoSenders, MeetOnAPortThatAFaultHasHalvedToo) {
  options_.capacity_changes = {{SimTime{}, LinkId(2), 0.5}, {SimTime(Duration(1)), LinkId(2), 1}};
  Contention contention(system_, topology_, options_);
  EXPECT_TRUE(contention.governs(2));
  contention.started(0);
  contention.started(1);
  contention.scale(2, 0.5);
  contention.settle(network_, SimTime{});
  EXPECT_NEAR(network_.of[2], 0.6 * 25e9, 100);
  contention.scale(2, 1);
  contention.settle(network_, SimTime{});
  EXPECT_NEAR(network_.of[2], 0.8 * 50e9, 100);
  contention.scale(2, 0);
  contention.settle(network_, SimTime{});
  EXPECT_EQ(network_.of[2], 0);
}

// Three messages from the first NIC together offer no more than that NIC can send. With one from the second
// NIC two capacities meet on the port, as with one message each. Three from one NIC alone meet nobody.
TEST_F(TwoSenders, OfferWhatTheirNicsCanSendHoweverManyMessagesShareOne) {
  for (int more = 0; more < 2; ++more) system_.activities.push_back(system_.activities[0]);
  Contention contention(system_, topology_, options_);
  for (const std::uint32_t of_the_first : {0U, 2U, 3U}) contention.started(of_the_first);
  contention.settle(network_, SimTime{});
  EXPECT_EQ(network_.of[2], 50e9);
  contention.started(1);
  contention.settle(network_, SimTime{});
  EXPECT_NEAR(network_.of[2], 0.8 * 50e9, 100);
  for (const std::uint32_t of_the_first : {0U, 2U}) contention.ended(of_the_first);
  contention.settle(network_, SimTime{});
  EXPECT_NEAR(network_.of[2], 0.8 * 50e9, 100);
  contention.ended(3);
  contention.settle(network_, SimTime{});
  EXPECT_EQ(network_.of[2], 50e9);
}
}  // namespace topsim::executor::contention_test
