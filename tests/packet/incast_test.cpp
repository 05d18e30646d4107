// Incast N:1 compared with the closed form and with published runs of ns-3 (README.md): 100 Gbit/s, links of
// 1 us, 1000 B of payload in 1052 B, ACK 60 B, 10 MB a flow, store and forward, buffer of 32 MB.
#include <gtest/gtest.h>

#include "tests/packet/setups.hpp"

namespace topsim::network::packet::incast_test {

class Incast : public testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Senders, Incast, testing::Values(1U, 2U, 4U, 8U, 16U));

// 10 MB are 10^4 packets of 1052 B, each 84.16 ns at 12.5 GB/s. The receiver's link sends N x 10^4 of them
// one after the other. To this come 84.16 ns on the first packet's own link, 4.8 ns twice for the last ACK of
// 60 B, and four times 1 us of propagation.
TEST_P(Incast, WithPfcAloneTakesWhatTheLastLinkNeeds) {
  const double n = GetParam();
  const double expected_us = n * 1e4 * 0.08416 + 0.08416 + 2 * 0.0048 + 4;
  const Outcome outcome =
      incast(GetParam(), Bytes(10'000'000), ns3_link(), ns3_spec(CongestionControlKind::none));
  EXPECT_NEAR(microseconds(outcome.last), expected_us, expected_us * 1e-4);
  // The published form counts whole nanoseconds, 84 instead of 84.16.
  const double published_us = n * 1e4 * 0.084 + 0.084 + 0.008 + 4;
  EXPECT_NEAR(microseconds(outcome.last), published_us, published_us * 3e-3);
  EXPECT_EQ(outcome.counters.drops, 0U);
  EXPECT_GT(outcome.fairness, 0.999);
}

TEST(Incast, OfOnePacketTakesTwoSerialisationsTwoAcknowledgementsAndFourPropagations) {
  // 2 x 84.16 + 2 x 4.8 + 4 x 1000 ns = 4177.92 ns (ns-3 in whole nanoseconds: 4176).
  const Outcome outcome = incast(1, 1000_B, ns3_link(), ns3_spec(CongestionControlKind::none));
  EXPECT_EQ(outcome.last, Duration(4'177'920));
}

// Every lane of every port keeps headroom and reserve: 5 ports x (20 + 5 kB) = 125 kB a lane. A second lane
// without data needs a buffer that is larger by 125 kB for the same result; with 75 kB less the shared pool
// is smaller.
TEST(Incast, KeepsHeadroomAndReserveForEveryLane) {
  const auto with_lanes = [](int lanes, std::int64_t total) {
    PacketSpec spec = ns3_spec(CongestionControlKind::none);
    spec.lanes.count = lanes;
    spec.buffer.total = Bytes(total), spec.buffer.headroom = Bytes(20'000),
    spec.buffer.reserve = Bytes(5'000);
    return incast(4, Bytes(1'000'000), ns3_link(), spec);
  };
  const Outcome one = with_lanes(1, 225'000), two = with_lanes(2, 350'000), less = with_lanes(2, 275'000);
  EXPECT_EQ(one.most_waiting, two.most_waiting);
  EXPECT_EQ(one.counters.pauses, two.counters.pauses);
  EXPECT_LT(less.most_waiting, two.most_waiting);
}

// Queues with PFC. Each of N ingress ports may hold x, alpha = 1/8 of what is free: x = (B - N x) / 8, so the
// queue is N x = B N / (8 + N), with B = 32 MB less headroom and reserve. Published, in kB, below.
TEST(Incast, FillsTheSharedBufferToTheDynamicThreshold) {
  const double published_kb[] = {6603, 11042, 16635, 22351};
  const std::uint32_t senders[] = {2, 4, 8, 16};
  for (int i = 0; i < 4; ++i) {
    const Outcome outcome =
        incast(senders[i], Bytes(10'000'000), ns3_link(), ns3_spec(CongestionControlKind::none));
    EXPECT_NEAR(static_cast<double>(outcome.most_waiting.value()) / 1e3, published_kb[i],
                0.06 * published_kb[i]);
  }
}

// The same equation with two senders: N x = B / 5. A buffer of 64 MB of the switch's own holds 12.8 MB; where
// the specification says 32 MB, 6.4.
TEST(Incast, FillsTheBufferOfItsOwnSwitchUnlessTheSpecificationSaysAnother) {
  Fabric fabric = star(3, ns3_link());
  fabric.graph.buffers.assign(fabric.graph.devices, Bytes{});
  fabric.graph.buffers[fabric.switches[0]] = Bytes(64'000'000);
  const auto longest = [&](std::optional<Bytes> total) {
    PacketSpec spec = ns3_spec(CongestionControlKind::none);
    spec.buffer.total = total;
    const std::vector<Flow> flows{{0, 2, Bytes(20'000'000)}, {1, 2, Bytes(20'000'000)}};
    return static_cast<double>(run_flows(fabric, flows, spec).most_waiting.value());
  };
  EXPECT_NEAR(longest({}), 12.8e6, 0.03 * 12.8e6);
  EXPECT_NEAR(longest(Bytes(32'000'000)), 6.4e6, 0.03 * 6.4e6);
}

// A chassis with 2^32 B and a megabyte: counters of 32 bits would see the megabyte alone.
TEST(Incast, ABufferOfMoreThanFourGigabytesIsNoSmallOne) {
  Fabric fabric = star(3, ns3_link());
  fabric.graph.buffers.assign(fabric.graph.devices, Bytes((std::int64_t{1} << 32) + 1'000'000));
  const Outcome outcome = run_flows(fabric, {{0, 2, Bytes(10'000'000)}, {1, 2, Bytes(10'000'000)}},
                                    ns3_spec(CongestionControlKind::none));
  EXPECT_EQ(outcome.counters.pauses, 0U);
  EXPECT_EQ(outcome.counters.drops, 0U);
}

struct Published {
  const char* name;
  PacketSpec spec;
  double last_us[5];   // 1, 2, 4, 8, 16 senders
  double queue_kb[5];  // 0: not given
};

TEST(Incast, UnderCongestionControlEndsWithinATenthOfThePublishedNs3Runs) {
  const Published rows[] = {
      {"DCQCN vendor",
       ns3_dcqcn(Dcqcn::hpcc_vendor()),
       {844.1, 2265, 4077, 8027, 15107},
       {0, 756, 1119, 2090, 5624}},
      {"DCQCN paper", ns3_dcqcn(ns3_paper()), {844.1, 1947, 3948, 7822, 14688}, {0, 978, 3168, 7751, 17694}},
      {"DCQCN SimAI", ns3_dcqcn(Dcqcn::simai()), {844.1, 1684, 3364, 6724, 13457}, {0, 58, 167, 386, 823}},
      {"HPCC",
       ns3_spec(CongestionControlKind::hpcc),
       {924.8, 1849, 3696, 7398, 14815},
       {0, 33, 132, 364, 828}},
      {"DCTCP",
       ns3_spec(CongestionControlKind::dctcp),
       {844.1, 1684, 3364, 6726, 13461},
       {0, 58, 167, 380, 795}},
  };
  const std::uint32_t senders[] = {1, 2, 4, 8, 16};
  for (const Published& row : rows) {
    for (int i = 0; i < 5; ++i) {
      SCOPED_TRACE(testing::Message() << row.name << ", " << senders[i] << " senders");
      const Outcome outcome = incast(senders[i], Bytes(10'000'000), ns3_link(), row.spec);
      EXPECT_NEAR(microseconds(outcome.last), row.last_us[i], 0.1 * row.last_us[i]);
      if (row.queue_kb[i] == 0) continue;
      const double queue_kb = static_cast<double>(outcome.most_waiting.value()) / 1e3;
      EXPECT_GT(queue_kb, row.queue_kb[i] / 2);
      EXPECT_LT(queue_kb, row.queue_kb[i] * 2);
    }
  }
}
}  // namespace topsim::network::packet::incast_test
