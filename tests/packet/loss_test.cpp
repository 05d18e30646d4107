// Repair of losses, and deadlock.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/packet/setups.hpp"

namespace topsim::network::packet {
namespace {
PacketSpec losing(double probability, Recovery recovery) {
  PacketSpec spec = ns3_spec(CongestionControlKind::none);
  spec.loss.probability = probability;
  spec.recovery = recovery;
  return spec;
}

// Two links a packet, so a packet survives with (1 - p)^2. Go-back-N wastes the W = 49 packets (4.16 us
// / 84.16 ns) that were on the way: efficiency (1 - q) / (1 - q + q W) with q = 1 - (1 - p)^2.
TEST(GoBackN, loses_a_round_trip_of_packets_for_every_loss) {
  for (const double p : {1e-4, 1e-3, 1e-2}) {
    double total = 0;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      PacketSpec spec = losing(p, Recovery::go_back_n);
      spec.seed = seed;
      spec.loss.nack_interval = 6_us;
      total += incast(1, Bytes(10'000'000), ns3_link(), spec).flows[0].goodput / 8;
    }
    const double q = 1 - (1 - p) * (1 - p), window = 49;
    const double expected = 12.5e9 / 1.052 * (1 - q) / (1 - q + q * window);
    EXPECT_NEAR(total, expected, 0.15 * expected) << p;
  }
}

TEST(SelectiveRepeat, loses_little_more_than_what_is_lost) {
  for (const double p : {1e-4, 1e-3, 1e-2}) {
    const Outcome outcome = incast(1, Bytes(10'000'000), ns3_link(), losing(p, Recovery::selective_repeat));
    const double q = 1 - (1 - p) * (1 - p);
    // The end of the flow may wait for a timer: 320 us of 845 at most.
    EXPECT_GT(outcome.flows[0].goodput, 12.5e9 / 1.052 * (1 - q) * 0.7) << p;
    EXPECT_LE(outcome.counters.repeats, outcome.counters.drops + 110) << p;
  }
}

TEST(Timer, brings_back_a_lost_tail) {
  // One packet, one link loses half of all: only the timer notices.
  PacketSpec spec = losing(0.5, Recovery::go_back_n);
  const Outcome outcome = incast(1, 1000_B, ns3_link(), spec);
  EXPECT_GT(outcome.flows[0].delivered, Duration{});
}

TEST(Buffers, without_flow_control_drop_and_recover) {
  PacketSpec spec = ns3_spec(CongestionControlKind::none);
  spec.buffer.total = Bytes(200'000);
  spec.recovery = Recovery::selective_repeat;
  const Outcome outcome = incast(4, Bytes(1'000'000), ns3_link(FlowControl::none), spec);
  EXPECT_GT(outcome.counters.drops, 0U);
  for (const FlowOutcome& flow : outcome.flows) EXPECT_GT(flow.delivered, Duration{});
}

// Three switches in a ring, every host sends to the host two switches on: every ring link waits for the next
// one.
TEST(Deadlock, of_a_ring_of_switches_is_found_and_named) {
  for (const FlowControl control : {FlowControl::pfc, FlowControl::credit}) {
    Fabric fabric = ring(3, ns3_link(control));
    PacketSpec spec = ns3_spec(CongestionControlKind::none);
    spec.buffer.total = Bytes(1'000'000);
    Engine engine(fabric.graph, spec);
    for (std::uint32_t i = 0; i < 3; ++i) {
      // Host i -> switch i -> i + 1 -> i + 2 -> host i + 2; ring cables are ports 0, 2, 4; host cables
      // follow.
      const std::uint32_t j = (i + 1) % 3, k = (i + 2) % 3;
      Connection connection{fabric.hosts[i], fabric.hosts[k]};
      connection.path = {6 + 2 * i, 2 * i, 2 * j, 6 + 2 * k + 1};
      for (const PortIndex port : connection.path)
        connection.back.push_back(fabric.graph.ports[port].reverse);
      engine.send(engine.connect(connection), 100_MiB, SimTime{}, i);
    }
    engine.run_until(SimTime(50_ms));
    ASSERT_EQ(engine.deadlocks().size(), 1U);
    auto cycle = engine.deadlocks()[0].cycle;
    std::sort(cycle.begin(), cycle.end());
    EXPECT_EQ(cycle, (std::vector<PortIndex>{0, 2, 4}));
    EXPECT_LT(engine.delivered().size(), 3U);
  }
}

TEST(Deadlock, is_not_seen_in_mere_congestion) {
  EXPECT_TRUE(
      incast(16, Bytes(10'000'000), ns3_link(), ns3_spec(CongestionControlKind::none)).deadlocks.empty());
  EXPECT_TRUE(victim_flow(ns3_link(FlowControl::credit), ns3_spec(CongestionControlKind::none), 8_ms)
                  .deadlocks.empty());
}
}  // namespace
}  // namespace topsim::network::packet
