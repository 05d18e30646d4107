// Shares of flows that meet: parking lot and victim flow as ns-3 runs them (two switches, one trunk of
// 100 Gbit/s).
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "tests/packet/setups.hpp"

namespace topsim::network::packet::sharing_test {
double gbit(const FlowOutcome& flow) {
  return flow.goodput * 8 / 1e9;
}

// Goodput of a 100 Gbit/s link: C = 100 x 1000 / 1052 = 95.06 Gbit/s.
constexpr double kC = 95.06;

// InfiniBand lanes as deep as credits can advertise: 2047 blocks of 64 bytes.
PacketSpec deep_lanes(int count) {
  PacketSpec spec = ns3_spec(CongestionControlKind::none);
  spec.lanes.count = count;
  spec.lanes.buffer = Bytes(2047 * 64);
  return spec;
}

// The receiver's port serves the trunk and the local sender alike, C / 2 each. Three remote flows share the
// trunk's half: C / 6 = 15.8 Gbit/s each.
TEST(ParkingLot, GivesEachIncomingPortTheSameShare) {
  for (const FlowControl control : {FlowControl::pfc, FlowControl::credit}) {
    const Outcome outcome = parking_lot(ns3_link(control), deep_lanes(1), 8_ms);
    for (int remote = 0; remote < 3; ++remote) {
      EXPECT_NEAR(gbit(outcome.flows[static_cast<std::size_t>(remote)]), 15.86, 0.06 * 15.86);
    }
    EXPECT_NEAR(gbit(outcome.flows[3]), 47.6, 0.06 * 47.6);
  }
}

// Five ports feed the congested one, so each of four local flows and the trunk get C / 5. The trunk is one
// queue with two of the congested flows and the victim in it. So the victim, which goes to an idle port,
// moves at the pace of the flows before it, C / 5 / 2.
TEST(VictimFlow, BehindPausedFlowsGetsNoMoreThanThey) {
  for (const FlowControl control : {FlowControl::pfc, FlowControl::credit}) {
    SCOPED_TRACE(static_cast<int>(control));
    const Outcome outcome = victim_flow(ns3_link(control), deep_lanes(1), 20_ms);
    // Published for PFC: 10.04, which still holds some of the first millisecond, before the trunk was paused.
    EXPECT_NEAR(gbit(outcome.flows[6]), kC / 10, 0.06 * kC / 10);
    if (control == FlowControl::pfc) {
      EXPECT_NEAR(gbit(outcome.flows[6]), 10.04, 0.06 * 10.04);
    }
    EXPECT_NEAR(gbit(outcome.flows[0]), 9.4, 0.06 * 9.4);
    EXPECT_NEAR(gbit(outcome.flows[1]), 9.4, 0.06 * 9.4);
    for (std::size_t local = 2; local < 6; ++local)
      EXPECT_NEAR(gbit(outcome.flows[local]), 19.1, 0.06 * 19.1);
  }
}

// Both flow controls hold bytes at the congested switch: PFC pauses by what a port has stored, credits limit
// what may come. When the trunk has stopped for the first time (with PFC after a millisecond, whose
// thresholds are deeper; so only 10 to 20 ms are compared), one lane of 2047 blocks must serve each flow as
// PFC does. What remains is the credit loop (25 KB of 131 on their way, which leave the victim 9.36 of
// 9.51 Gbit/s by the formula below) and half a percent of PFC's hysteresis.
TEST(VictimFlow, HasOfOneDeepLaneWhatItHasOfAPausedPort) {
  const auto settled = [](FlowControl control) {
    std::vector<double> rates;
    const Outcome begin = victim_flow(ns3_link(control), deep_lanes(1), 10_ms);
    const Outcome whole = victim_flow(ns3_link(control), deep_lanes(1), 20_ms);
    for (std::size_t flow = 0; flow < 7; ++flow)
      rates.push_back(2 * gbit(whole.flows[flow]) - gbit(begin.flows[flow]));
    return rates;
  };
  const std::vector<double> paused = settled(FlowControl::pfc), credits = settled(FlowControl::credit);
  for (std::size_t flow = 0; flow < 7; ++flow)
    EXPECT_NEAR(credits[flow], paused[flow], 0.025 * paused[flow]) << flow;
}

// A lane's buffer of B packets (17 blocks each). What is on its way to the congested port, or on its way back
// as credit, share x C x 2 us, does not wait there. The port serves in order of arrival, so shares are as
// what waits. The trunk also carries the victim, so it has 3/2 of its share on its way, and less of it waits:
//   s_t / s_l = (B - 3/2 s_t C 2 us) / (B - s_l C 2 us),  s_t + 4 s_l = 1,  victim: s_t C / 2.
// With the default buffer, rate x round trip and sixteen packets (41.8 KB here), the victim gets 9.05 Gbit/s,
// 5 % below C / 10.
TEST(VictimFlow, BehindShallowLanesHasLessByWhatTheCreditLoopHolds) {
  for (const std::int64_t buffer : {30'000, 0, 60'000, 80'000, 131'008}) {
    SCOPED_TRACE(buffer);
    PacketSpec spec = ns3_spec(CongestionControlKind::none);
    if (buffer > 0) spec.lanes.buffer = Bytes(buffer);
    const double packets = static_cast<double>((buffer > 0 ? buffer : 2 * 12'500 + 16 * 1052) / 64) / 17;
    const double loop = 12.5e9 / 1052 * 2e-6;  // packets of a whole link
    double trunk = 0.2;
    for (int i = 0; i < 50; ++i) {
      const double local = (1 - trunk) / 4;
      const double ratio = (packets - 1.5 * trunk * loop) / (packets - local * loop);
      trunk = ratio / (4 + ratio);
    }
    const Outcome outcome = victim_flow(ns3_link(FlowControl::credit), spec, 20_ms);
    EXPECT_NEAR(gbit(outcome.flows[6]), kC * trunk / 2, 0.01 * kC / 10);
    if (buffer == 0) {
      EXPECT_NEAR(gbit(outcome.flows[6]), kC / 10, 0.06 * kC / 10);
    }
  }
}

// In a lane of its own the victim gets what the two congested flows leave of the trunk: C - C / 5 = 76 Gbit/s
// (80 on the wire).
TEST(VictimFlow, InAVirtualLaneOfItsOwnIsFree) {
  const Outcome outcome = victim_flow(ns3_link(FlowControl::credit), deep_lanes(2), 8_ms, 1);
  EXPECT_NEAR(gbit(outcome.flows[6]), kC * 4 / 5, 0.02 * kC);
}

TEST(VictimFlow, IsRescuedByCongestionControl) {
  const std::pair<PacketSpec, double> published[] = {{ns3_dcqcn(Dcqcn::hpcc_vendor()), 55.7},
                                                     {ns3_dcqcn(ns3_paper()), 58.7},
                                                     {ns3_spec(CongestionControlKind::hpcc), 69.4},
                                                     {ns3_spec(CongestionControlKind::dctcp), 69.8}};
  for (const auto& [spec, gbps] : published)
    EXPECT_NEAR(gbit(victim_flow(ns3_link(), spec, 8_ms).flows[6]), gbps, 0.15 * gbps);
}

// InfiniBand's congestion control with the settings of Mellanox's manager, two links of 400 Gbit/s. Without
// it the victim gets C / 10 (above). The trunk waits for credits, so it does not mark. The congested port
// marks, its six senders slow down, and the trunk becomes free. If they kept exactly their C / 5 of it, the
// victim would have 4/5 of 397 = 318 Gbit/s. They are cut and recover in steps of 154 us, which leaves the
// port 90 % busy.
TEST(VictimFlow, IsRescuedByTheCongestionControlOfInfiniband) {
  PacketSpec spec;
  spec.congestion_control.kind = CongestionControlKind::infiniband;
  const Outcome outcome = victim_flow({400_Gbitps, 500_ns, FlowControl::credit}, spec, 8_ms);
  double congested = 0;
  for (std::size_t flow = 0; flow < 6; ++flow) congested += gbit(outcome.flows[flow]);
  EXPECT_GT(gbit(outcome.flows[6]), 4 * 397.4 / 10);
  EXPECT_GT(congested, 0.85 * 397.4);
}

// Lanes that always have a packet share a port by their weights.
TEST(VirtualLanes, ShareAPortByWeight) {
  PacketSpec spec = deep_lanes(2);
  spec.lanes.weight = {96, 32};
  const Fabric fabric = star(3, ns3_link(FlowControl::credit));
  const Outcome outcome =
      run_flows(fabric, {{0, 2, Bytes(100'000'000), 0}, {1, 2, Bytes(100'000'000), 1}}, spec, 2_ms);
  EXPECT_NEAR(gbit(outcome.flows[0]), kC * 3 / 4, 0.03 * kC);
  EXPECT_NEAR(gbit(outcome.flows[1]), kC / 4, 0.03 * kC);
}

// The first and the last of fifteen data lanes (VL0-14) have weights of 64 units, the default, and of 192: a
// quarter of C and three quarters.
TEST(VirtualLanes, AreFifteenAtMost) {
  PacketSpec spec = deep_lanes(15);
  spec.lanes.weight.assign(15, 64);
  spec.lanes.weight[14] = 192;
  const Fabric fabric = star(3, ns3_link(FlowControl::credit));
  const Outcome outcome =
      run_flows(fabric, {{0, 2, Bytes(100'000'000), 0}, {1, 2, Bytes(100'000'000), 14}}, spec, 2_ms);
  EXPECT_NEAR(gbit(outcome.flows[0]), kC / 4, 0.03 * kC);
  EXPECT_NEAR(gbit(outcome.flows[1]), kC * 3 / 4, 0.03 * kC);
  EXPECT_THROW(static_cast<void>(run_flows(fabric, {}, deep_lanes(16), 1_us)), ConfigError);
}

TEST(VirtualLanes, OfTheHighTableGoFirst) {
  PacketSpec spec = deep_lanes(2);
  spec.lanes.high_priority = 0b10;
  const Fabric fabric = star(3, ns3_link(FlowControl::credit));
  const Outcome outcome =
      run_flows(fabric, {{0, 2, Bytes(100'000'000), 0}, {1, 2, Bytes(100'000'000), 1}}, spec, 2_ms);
  EXPECT_GT(gbit(outcome.flows[1]), 0.95 * kC);
  EXPECT_LT(gbit(outcome.flows[0]), 0.05 * kC);
}

// Two lanes at one port, of which the second is in the high table.
Outcome under_high_limit(int limit) {
  PacketSpec spec = deep_lanes(2);
  spec.lanes.high_priority = 0b10;
  spec.lanes.high_limit = limit;
  return run_flows(star(3, ns3_link(FlowControl::credit)),
                   {{0, 2, Bytes(100'000'000), 0}, {1, 2, Bytes(100'000'000), 1}}, spec, 2_ms);
}

// A high limit of 1 lets the high table send 4 KiB, here four packets of 1052 B, before one of the low table:
// the low lane gets one packet in five.
TEST(VirtualLanes, OfTheLowTableAreNotStarvedUnderAHighLimit) {
  EXPECT_NEAR(gbit(under_high_limit(1).flows[0]), kC / 5, 0.02 * kC);
}

// A high limit of 0 lets one packet of the high table go before the low table has its turn (IBTA 7.6.9): half
// of C each, in turn.
TEST(VirtualLanes, OfBothTablesTakeTurnsUnderAHighLimitOfZero) {
  const Outcome outcome = under_high_limit(0);
  EXPECT_NEAR(gbit(outcome.flows[0]), kC / 2, 0.02 * kC);
  EXPECT_NEAR(gbit(outcome.flows[1]), kC / 2, 0.02 * kC);
}

// A buffer of nine packets (65 blocks each) behind links of 5 us. A packet takes P = 82.44 ns. The switch
// sends nine packets and then waits: their blocks come back 5 us + P + 5 us after each began to leave. So
// packet 90, the ninth of the tenth nine, leaves the switch at 5 us + 9 (10 us + P) + 8 P, and has arrived
// 5 us + P later: 100 us + 18 P.
TEST(Credits, OfASmallBufferLetAFlowSendOneBufferARoundTrip) {
  PacketSpec spec;
  spec.lanes.buffer = Bytes(9 * 65 * 64);
  const Fabric fabric = star(2, {50_GBps, 5_us, FlowControl::credit});
  const Outcome outcome = run_flows(fabric, {{0, 1, Bytes(90 * 4096)}}, spec);
  EXPECT_EQ(outcome.flows[0].delivered, Duration(100'000'000 + 18 * 82'440));
}

// Four cables of 50 GB/s as one port of 200 GB/s: 4 x 8 MB take a little over 160 us. With the credits of one
// cable only, 2047 x 64 B = 131 kB could be on their way in a round trip of 1.1 us, 120 GB/s: 270 us.
TEST(Credits, ABundleOfCablesHasThoseOfAll) {
  Fabric fabric;
  const DeviceIndex left = fabric.graph.device(), right = fabric.graph.device();
  const PortIndex trunk = fabric.graph.cable(left, right, 200_GBps, 500_ns, FlowControl::credit);
  fabric.graph.ports[trunk].cables = fabric.graph.ports[fabric.graph.ports[trunk].reverse].cables = 4;
  for (int i = 0; i < 8; ++i) {
    fabric.hosts.push_back(fabric.graph.device());
    fabric.graph.cable(fabric.hosts.back(), i < 4 ? left : right, 50_GBps, 500_ns, FlowControl::credit);
  }
  fabric.switches = {left, right};
  std::vector<Flow> flows;
  for (std::size_t i = 0; i < 4; ++i) flows.push_back({i, i + 4, Bytes(8'000'000)});
  EXPECT_LT(run_flows(fabric, flows, PacketSpec{}).last_delivered, 168_us);
}
}  // namespace topsim::network::packet::sharing_test
