// Recovery from losses and outages, and detection of deadlocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"
#include "tests/packet/patterns.hpp"
#include "tests/packet/setups.hpp"

namespace topsim::network::packet::loss_test {
PacketSpec losing(double probability, Recovery recovery) {
  PacketSpec spec = ns3_spec(CongestionControlKind::none);
  spec.loss.probability = probability;
  spec.recovery = recovery;
  return spec;
}

// A packet passes two links and survives with (1 - p)^2, so q = 1 - (1 - p)^2 are lost. Go-back-N wastes the
// W = 4.16 us / 84.16 ns = 49 packets on their way for each loss: efficiency (1 - q) / (1 - q + q W).
TEST(GoBackN, LosesARoundTripOfPacketsForEveryLoss) {
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

// Three equal senders overflow a switch that drops. Acknowledgements have a class before all data and need no
// space of its buffer, so none are lost, and only lost packets are sent again. Each sender loses the end of
// its message, which only the timer notices, so both ways of recovery take equally long.
TEST(Recovery, SendsAgainWhatWasLostWhereDataAloneFindNoBuffer) {
  std::vector<Duration> last;
  for (const Recovery recovery : {Recovery::go_back_n, Recovery::selective_repeat}) {
    PacketSpec spec;
    spec.congestion_control.kind = CongestionControlKind::none;
    spec.buffer.total = Bytes(4'000'000);
    spec.recovery = recovery;
    const Outcome outcome = incast(3, 16_MiB, {400_Gbitps, 500_ns, FlowControl::none}, spec);
    EXPECT_GT(outcome.counters.drops, 1000U);
    EXPECT_EQ(outcome.counters.repeats, outcome.counters.drops);
    last.push_back(outcome.last_delivered);
  }
  EXPECT_EQ(last[0], last[1]);
}

// Each of 10,000 packets is lost q / (1 - q) times, give or take four standard deviations: 203 +- 57 times of
// all where p = 1e-2.
TEST(SelectiveRepeat, LosesLittleMoreThanWhatIsLost) {
  for (const double p : {1e-4, 1e-3, 1e-2}) {
    const Outcome outcome = incast(1, Bytes(10'000'000), ns3_link(), losing(p, Recovery::selective_repeat));
    const double q = 1 - (1 - p) * (1 - p);
    // If the end of the flow is lost it waits for a timer: 320 us, where the flow takes 845.
    EXPECT_GT(outcome.flows[0].goodput, 12.5e9 / 1.052 * (1 - q) * 0.7) << p;
    EXPECT_LE(outcome.counters.repeats, outcome.counters.drops + 110) << p;
    const double lost = 1e4 * q / (1 - q);
    EXPECT_NEAR(static_cast<double>(outcome.counters.drops), lost, 4 * std::sqrt(lost)) << p;
  }
}

// A message of one packet is sent again once for each loss, by the timer: its round trip of 4 us is over long
// before the 100 us. A timeout may send each of eight packets again, but no more.
TEST(SelectiveRepeat, SendsWhatATimerCallsLostOnceATimeout) {
  std::uint64_t drops = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    PacketSpec spec = losing(0.3, Recovery::selective_repeat);
    spec.seed = seed;
    const Counters one = incast(1, 1000_B, ns3_link(), spec).counters;
    EXPECT_EQ(one.repeats, one.drops) << seed;
    drops += one.drops;
    const Counters eight = incast(1, 8000_B, ns3_link(), spec).counters;
    EXPECT_GE(eight.repeats, eight.drops) << seed;
    EXPECT_LE(eight.repeats, eight.drops + 8 * eight.timeouts) << seed;
  }
  EXPECT_GT(drops, 20U);  // 40 x q / (1 - q) = 42 expected, q = 1 - 0.7^2
}

// 100 messages of 1 MB, of which each packet chooses its path, so that only the timer tells a loss. It runs
// from the last progress, whatever is sent meanwhile: a lost packet waits for 320 us, twice as long where a
// hole before it had the timer started anew, and for each time that it is lost again (2 x 1e-3 of some 200
// losses) as long once more. The messages would else wait for the end of all, after 8.4 ms.
TEST(Timer, BringsBackWhatIsLostWhileMoreIsSent) {
  Fabric fabric = star(2, ns3_link());
  PacketSpec spec = losing(1e-3, Recovery::selective_repeat);
  spec.path = PathChoice::adaptive;
  Engine engine(fabric.graph, spec);
  const PairIndex pair = engine.connect({fabric.hosts[0], fabric.hosts[1]});
  for (std::uint64_t i = 0; i < 100; ++i) engine.send(pair, 1'000'000_B, SimTime{}, i);
  engine.run();
  ASSERT_EQ(engine.delivered().size(), 100U);
  double latest = 0;
  for (const Completion& done : engine.delivered()) {
    const double sent = static_cast<double>(done.tag + 1) * 84.16;  // us: 1000 packets of 1052 B
    latest = std::max(latest, microseconds(done.time.time_since_epoch()) - sent);
  }
  EXPECT_GT(latest, 320);
  EXPECT_LT(latest, 3 * 330);
  // What is on its way at a timeout is not sent again: 2 of 1,000 packets are lost, and no more repeated but
  // at the end of all (up to the packets of a timeout, 320 us / 84 ns).
  EXPECT_LE(engine.counters().repeats, engine.counters().drops + 50);
  EXPECT_GT(engine.counters().timeouts, 8'416 / 660U);
}

// One ACK a message of 20 MB, 1.68 ms: the timer waits for the packet that asks for it, not 320 us.
TEST(Timer, WaitsForThePacketThatAsksForAnAcknowledgement) {
  for (const Recovery recovery : {Recovery::go_back_n, Recovery::selective_repeat}) {
    PacketSpec spec = losing(1e-9, recovery);
    spec.ack_every = 0;
    const Outcome outcome = incast(1, 20'000'000_B, ns3_link(), spec);
    EXPECT_EQ(outcome.counters.timeouts, 0U);
    EXPECT_EQ(outcome.counters.repeats, 0U);
  }
}

// A message of one packet on links that lose half of all packets: only the timer notices a loss, 100 us or
// more after the packet was sent. Over two links q = 1 - 0.5^2 = 0.75 of all are lost, so a message loses
// q / (1 - q) = 3 on average, with a variance of q / (1 - q)^2 = 12: 60 +- 15.5 of 20 messages.
TEST(Timer, BringsBackALostTail) {
  double drops = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    PacketSpec spec = losing(0.5, Recovery::go_back_n);
    spec.seed = seed;
    const Outcome outcome = incast(1, 1000_B, ns3_link(), spec);
    const auto lost = static_cast<std::int64_t>(outcome.counters.drops);
    EXPECT_GT(outcome.flows[0].delivered, lost * spec.loss.timeout_low) << seed;
    EXPECT_LT(outcome.flows[0].delivered, lost * spec.loss.timeout + 10_us) << seed;
    drops += static_cast<double>(lost);
  }
  EXPECT_NEAR(drops, 60, 2 * 15.5);
}

TEST(Buffers, WithoutFlowControlDropAndRecover) {
  PacketSpec spec = ns3_spec(CongestionControlKind::none);
  spec.buffer.total = Bytes(200'000);
  spec.recovery = Recovery::selective_repeat;
  const Outcome outcome = incast(4, Bytes(1'000'000), ns3_link(FlowControl::none), spec);
  EXPECT_GT(outcome.counters.drops, 0U);
  for (const FlowOutcome& flow : outcome.flows) EXPECT_GT(flow.delivered, Duration{});
}

// Seven senders share 5 MB of a switch's pool. Eight ports keep 4,096 B and 75,000 B of headroom (3 x 50 GB/s
// x 500 ns) each, so 5,632,768 B leave 5 MB, of which a static threshold allows each sender 4 MB. The
// receiver's queue holds the pool, the senders' reserves and headroom, and no more; nothing is lost, as PFC
// stops those that find the pool full.
TEST(Buffers, HoldNoMoreThanTheyHaveUnderAStaticThreshold) {
  PacketSpec spec;
  spec.congestion_control.kind = CongestionControlKind::none;
  spec.buffer.total = 5'632'768_B;
  spec.pfc.xoff = 4'000'000_B;
  const Outcome outcome = incast(7, 8_MiB, {400_Gbitps, 500_ns}, spec);
  EXPECT_GT(outcome.most_waiting, 5'000'000_B);
  EXPECT_LE(outcome.most_waiting, 5'000'000_B + Bytes(7 * (4096 + 75'000)));
  EXPECT_GT(outcome.counters.pauses, 0U);
  EXPECT_EQ(outcome.counters.drops, 0U);
  // Without headroom what does not fit is lost: the queue holds the pool and the reserves at most.
  spec.buffer.headroom = 0_B;
  spec.buffer.total = Bytes(5'000'000 + 8 * 4096);
  const Outcome lossy = incast(7, 8_MiB, {400_Gbitps, 500_ns}, spec);
  EXPECT_LE(lossy.most_waiting, Bytes(5'000'000 + 7 * 4096));
  EXPECT_GT(lossy.counters.drops, 0U);
}

// alpha 4: a sender may have four times what is free, and no more than is.
TEST(Buffers, HoldNoMoreThanTheyHaveUnderALargeAlpha) {
  PacketSpec spec;
  spec.congestion_control.kind = CongestionControlKind::none;
  spec.buffer.total = 5'632'768_B;
  spec.pfc.alpha = 4;
  const Outcome outcome = incast(7, 8_MiB, {400_Gbitps, 500_ns}, spec);
  EXPECT_LE(outcome.most_waiting, 5'000'000_B + Bytes(7 * (4096 + 75'000)));
  EXPECT_EQ(outcome.counters.drops, 0U);
}

// A packet is 4,096 + 62 = 4,158 B.
TEST(Buffers, WithoutRoomForAPacketAreRefused) {
  const auto runs = [](FlowControl control, std::int64_t total, std::int64_t reserve, std::int64_t headroom) {
    PacketSpec spec;
    spec.congestion_control.kind = CongestionControlKind::none;
    spec.buffer.total = Bytes(total), spec.buffer.reserve = Bytes(reserve),
    spec.buffer.headroom = Bytes(headroom);
    spec.pfc.alpha = 1;
    try {
      return incast(1, 100'000_B, {400_Gbitps, 500_ns, control}, spec).flows[0].delivered > Duration{};
    } catch (const ConfigError&) {
      return false;
    }
  };
  EXPECT_FALSE(runs(FlowControl::none, 4157, 0, 0));
  EXPECT_TRUE(runs(FlowControl::none, 4158, 0, 0));
  EXPECT_FALSE(runs(FlowControl::pfc, 4157, 0, 0));
  EXPECT_TRUE(runs(FlowControl::pfc, 4158, 0, 0));
  EXPECT_TRUE(runs(FlowControl::pfc, 2 * 4158, 4158, 0));      // two ports come in: all is theirs
  EXPECT_TRUE(runs(FlowControl::pfc, 2 * 4158, 0, 4158));      // every packet waits in headroom
  EXPECT_FALSE(runs(FlowControl::pfc, 2 * 4158, 2079, 2079));  // no packet is in two parts
  EXPECT_FALSE(runs(FlowControl::pfc, 2 * 4158, 4159, 0));     // more than there is
}

// A cable of the message's path, before or behind the switch, carries nothing for 100 us in one direction.
// The message takes 100 us longer, within one packet (82 ns) and what was buffered behind the cable.
TEST(Outage, DelaysAMessageByItsLength) {
  for (const FlowControl control : {FlowControl::pfc, FlowControl::credit}) {
    const Fabric fabric = star(2, {400_Gbitps, 500_ns, control});
    PacketSpec spec;
    spec.congestion_control.kind = CongestionControlKind::none;
    const auto took = [&](PortIndex port, bool fails) {
      Engine engine(fabric.graph, spec);
      engine.send(engine.connect({fabric.hosts[0], fabric.hosts[1]}), 10_MiB, SimTime{}, 0);
      engine.run_until(SimTime(50_us));
      if (fails) engine.set_rate(port, BytesPerSecond(0), SimTime(50_us));
      engine.run_until(SimTime(150_us));
      EXPECT_TRUE(engine.delivered().empty());
      if (fails) engine.set_rate(port, 400_Gbitps, SimTime(150_us));
      engine.run();
      EXPECT_EQ(engine.leak(), "");
      return engine.delivered().at(0).time.time_since_epoch();
    };
    for (PortIndex port = 0; port < fabric.graph.ports.size(); ++port) {
      const PortSpec& row = fabric.graph.ports[port];
      if (row.from != fabric.hosts[0] && row.to != fabric.hosts[1]) continue;  // not on the way
      EXPECT_NEAR(static_cast<double>((took(port, true) - took(port, false)).count()), 100e6, 0.25e6) << port;
    }
  }
}

// One of four spines fails. Adaptive routing takes the other three: 4 x 8 MB take 4/3 of the 163.2 us.
TEST(Outage, IsPassedByWhereEveryPacketChooses) {
  for (const FlowControl control : {FlowControl::pfc, FlowControl::credit}) {
    const Fabric fabric = leaf_spine(2, 4, 4, {400_Gbitps, 500_ns, control});
    PacketSpec spec;
    spec.congestion_control.kind = CongestionControlKind::none;
    spec.path = PathChoice::adaptive;
    Engine engine(fabric.graph, spec);
    for (std::size_t i = 0; i < 4; ++i)
      engine.send(engine.connect({fabric.hosts[i], fabric.hosts[4 + i], i, 0, {}, {}, {}}), 8'000'000_B,
                  SimTime{}, i);
    for (PortIndex port = 0; port < fabric.graph.ports.size(); ++port) {
      const PortSpec& row = fabric.graph.ports[port];
      if (row.from == fabric.switches[4] && row.to == fabric.switches[0])
        engine.set_rate(port, BytesPerSecond(0), SimTime{});
    }
    engine.run();
    ASSERT_EQ(engine.delivered().size(), 4U);
    EXPECT_NEAR(microseconds(engine.delivered().back().time.time_since_epoch()), 163.2 * 4 / 3, 10);
  }
}

// Three switches in a ring, every host sends to the host two switches on: every ring link waits for the next.
TEST(Deadlock, OfARingOfSwitchesIsFoundAndNamed) {
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

TEST(Deadlock, IsNotSeenInMereCongestion) {
  EXPECT_TRUE(
      incast(16, Bytes(10'000'000), ns3_link(), ns3_spec(CongestionControlKind::none)).deadlocks.empty());
  EXPECT_TRUE(victim_flow(ns3_link(FlowControl::credit), ns3_spec(CongestionControlKind::none), 8_ms)
                  .deadlocks.empty());
}
}  // namespace topsim::network::packet::loss_test
