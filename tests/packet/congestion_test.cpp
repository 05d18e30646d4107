// Congestion control by its own rules, one queue pair, no network.
#include "sim/network/packet/congestion.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/network/packet/core.hpp"
#include "tests/packet/setups.hpp"

namespace topsim::network::packet::congestion_test {
constexpr double kLine = 5e9;  // 40 Gbit/s
constexpr double kPace = 1e12 * (1 << 20);

class Pair {
 public:
  Pair(CongestionControlKind kind, const CongestionControl& spec, double line = kLine)
      : congestion_(kind, spec, line, 1000, 320'000'000) {
    congestion_.add(pair_, line, 10'000'000);
  }
  Picoseconds recovers_at() { return congestion_.recovers_at(0); }
  double rate(Duration at) {
    congestion_.before_send(0, pair_, 0, at.count());
    return pair_.pace == 0 ? kLine : kPace / static_cast<double>(pair_.pace);
  }
  void notify(Duration at) { congestion_.notified(0, pair_, at.count()); }
  void acknowledge(const Acknowledgement& ack, Duration at) {
    congestion_.acknowledged(0, pair_, ack, at.count());
  }
  QueuePair& row() { return pair_; }

 private:
  Congestion congestion_;
  QueuePair pair_;
};

CongestionControl dcqcn(const Dcqcn& rules) {
  CongestionControl spec;
  spec.dcqcn = rules;
  return spec;
}

// On the first notification Rc *= 1 - a/2 with a = 1: half the line rate. Then fast recovery, Rc = (Rt +
// Rc)/2 every 55 us, five times.
TEST(DcqcnPaper, HalvesOnTheFirstNotificationAndRecoversInHalves) {
  Dcqcn rules = Dcqcn::paper();
  rules.byte_counter = 0_B;
  Pair pair(CongestionControlKind::dcqcn, dcqcn(rules));
  EXPECT_DOUBLE_EQ(pair.rate(0_us), kLine);
  pair.notify(100_us);
  EXPECT_NEAR(pair.rate(101_us) / kLine, 0.5, 1e-6);
  EXPECT_NEAR(pair.rate(156_us) / kLine, 0.75, 1e-6);
  EXPECT_NEAR(pair.rate(211_us) / kLine, 0.875, 1e-6);
  EXPECT_NEAR(pair.rate(376_us) / kLine, 1 - std::pow(0.5, 6), 1e-6);
}

// After a cut the target is the line rate, to which fast recovery leads by halves: 2^-30 is within the 1e-9
// that is taken for nothing. A second cut in the first period makes the target half the line
// rate; 5 stages of fast recovery later it rises by the additive step, or by nothing: then the pair never
// recovers. With 1/1000 of the line rate a step the target is there after 5 + 500 periods, with a step of 1
// B/s after 2.5e9 of them (4 days), which is not waited for.
TEST(DcqcnPaper, RecoversNeverWithoutAStep) {
  for (const double step : {0.0, 1.0, kLine / 1000}) {
    Dcqcn rules = Dcqcn::paper();
    rules.byte_counter = 0_B;
    rules.additive_increase = rules.hyper_increase = BytesPerSecond(step);
    Pair pair(CongestionControlKind::dcqcn, dcqcn(rules));
    pair.notify(0_us);
    EXPECT_LE(pair.recovers_at(), 30 * 55'000'000LL);
    pair.notify(1_us);
    if (step < 10) {
      EXPECT_EQ(pair.recovers_at(), kForever) << step;
    } else {
      EXPECT_NEAR(static_cast<double>(pair.recovers_at()) / 55e6, 505 + 20, 3);
    }
    rules.threshold = 2'000'000'000;  // fast recovery for 30 hours
    Pair patient(CongestionControlKind::dcqcn, dcqcn(rules));
    patient.notify(0_us);
    patient.notify(1_us);
    EXPECT_EQ(patient.recovers_at(), kForever);
  }
}

// ConnectX' rules take the additive step once and the hyper step from then on.
TEST(DcqcnConnectx, RecoversNeverWithoutAHyperStep) {
  Dcqcn rules;
  rules.hyper_increase = BytesPerSecond(0);
  Pair pair(CongestionControlKind::dcqcn, dcqcn(rules));
  pair.notify(0_us);
  EXPECT_LT(pair.recovers_at(), kForever);  // the target is still the line rate
  pair.rate(400_us);                        // a raise, so that the next cut moves the target
  pair.notify(401_us);
  EXPECT_EQ(pair.recovers_at(), kForever);
}

// A sender that posts at most 1/8 of the line rate. Congestion control still begins at the line rate, so two
// cuts to 1/4 do not slow it; the fourth, to 1/16, does.
TEST(DcqcnPaper, SlowsAPairThatPostsLittleOnlyOnceItsRateIsBelowThat) {
  Dcqcn rules = Dcqcn::paper();
  rules.byte_counter = 0_B;
  Pair pair(CongestionControlKind::dcqcn, dcqcn(rules));
  pair.row().pace_cap = static_cast<std::uint64_t>(kPace / (kLine / 8));
  for (const Duration at : {1_us, 2_us}) pair.notify(at);
  EXPECT_NEAR(pair.rate(3_us) / kLine, 1.0 / 8, 1e-6);
  for (const Duration at : {3_us, 4_us}) pair.notify(at);
  EXPECT_NEAR(pair.rate(5_us) / kLine, 1.0 / 16, 1e-6);
}

// At a notification a = (1 - g) a + g, which keeps a at 1; every 55 us without one a = (1 - g) a. After 20
// periods, with g = 1/256, a second cut takes a/2 = (1 - 1/256)^20 / 2 of the rate at that time.
TEST(DcqcnPaper, CutsLessAfterAQuietTime) {
  Dcqcn rules = Dcqcn::paper();
  rules.byte_counter = 0_B;
  Pair pair(CongestionControlKind::dcqcn, dcqcn(rules));
  pair.notify(0_us);
  const Duration later = 20 * 55_us + 1_us;
  const double before = pair.rate(later);
  pair.notify(later);
  const double alpha = std::pow(1 - 1.0 / 256, 20);
  EXPECT_NEAR(pair.rate(later) / before, 1 - alpha / 2, 1e-4);
}

// A notification only sets a flag. The cut comes at the next tick of 4 us after the first notification,
// however many follow in between.
TEST(DcqcnConnectX, CutsAtItsMonitorTicksOnly) {
  Dcqcn rules = Dcqcn::hpcc_vendor();
  Pair pair(CongestionControlKind::dcqcn, dcqcn(rules));
  pair.notify(0_us);
  EXPECT_DOUBLE_EQ(pair.rate(3_us), kLine);
  // alpha decays at 1, 2, 3, 4 us without a second notification: (1 - 1/256)^4.
  EXPECT_NEAR(pair.rate(5_us) / kLine, 1 - std::pow(1 - 1.0 / 256, 4) / 2, 1e-4);
  pair.notify(5_us);
  pair.notify(6_us);
  const double once = pair.rate(7_us);
  EXPECT_NEAR(once / kLine, 1 - std::pow(1 - 1.0 / 256, 4) / 2, 1e-4);
  EXPECT_LT(pair.rate(9_us), once);
}

TEST(DcqcnConnectX, NeverFallsBelowItsMinimumOrRisesAboveTheLine) {
  Dcqcn rules;
  rules.max_cut = 0.5;
  Pair pair(CongestionControlKind::dcqcn, dcqcn(rules));
  for (int i = 0; i < 10'000; ++i) pair.notify(i * 4_us);
  EXPECT_NEAR(pair.rate(40_ms), rules.min_rate.value(), rules.min_rate.value() * 1e-3);
  EXPECT_DOUBLE_EQ(pair.rate(2'000'000_ms), kLine);
}

// The mean of two neighbouring doubles may round to the lower one, so halving the distance alone never
// reaches some line rates (this one is of a collective that NCCL paces). The recovery must end: 29 periods of
// the timer close a cut of a half to 1e-9, 1.6 ms with the paper's 55 us and 8.7 ms with ConnectX's 300 us.
TEST(Dcqcn, ArrivesAtALineThatHalvingTheDistanceNeverReaches) {
  constexpr double kOdd = 11559727495.453501;
  ASSERT_LT((kOdd + std::nextafter(kOdd, 0)) / 2, kOdd);
  for (Dcqcn rules : {Dcqcn::paper(), Dcqcn()}) {
    rules.byte_counter = 0_B;
    Pair pair(CongestionControlKind::dcqcn, dcqcn(rules), kOdd);
    pair.notify(100_us);
    EXPECT_LT(pair.recovers_at(), Duration(10'000_ms).count());
  }
}

// A flow that was cut to 1 Mbit/s must go on when its rate has risen, not when its packet is due at the low
// rate. Three flows of 4 MB into one port of 400 Gbit/s: the port is never idle for longer than the timer's
// 300 us.
TEST(Dcqcn, LetsASlowSenderGoOnOnceItsRateHasRisen) {
  PacketSpec spec;
  spec.congestion_control.dcqcn.min_rate = BytesPerSecond(0.125e6);  // 1 Mbit/s: 33 ms for 4096 bytes
  const Outcome outcome = incast(3, Bytes(4'000'000), {400_Gbitps, 500_ns}, spec);
  EXPECT_GT(outcome.counters.notifications, 10U);
  EXPECT_LT(outcome.last_delivered, 2_ms);  // 245 us without congestion control
}

// Timers are evaluated when a rate is asked for. Asking every microsecond gives the same rate as asking at
// the end.
TEST(Dcqcn, IsIndifferentToHowOftenItIsAsked) {
  for (const Dcqcn& rules : {Dcqcn::hpcc_vendor(), Dcqcn::simai()}) {
    Pair often(CongestionControlKind::dcqcn, dcqcn(rules)),
        seldom(CongestionControlKind::dcqcn, dcqcn(rules));
    for (int us = 0; us < 3000; ++us) {
      if (us % 700 == 13) often.notify(us * 1_us), seldom.notify(us * 1_us);
      static_cast<void>(often.rate(us * 1_us + 1_ns));
    }
    EXPECT_NEAR(often.rate(3_ms) / seldom.rate(3_ms), 1, 1e-9);
  }
}

// One hop without a queue, U = txRate / B. W = Wc / (U / 0.95) + W_ai with W_ai = 0 settles at 0.95 of the
// line.
TEST(Hpcc, SteersToItsTargetUtilisation) {
  CongestionControl spec;
  spec.hpcc.additive_increase = BytesPerSecond(0);
  Pair pair(CongestionControlKind::hpcc, spec);
  Telemetry telemetry;
  telemetry.hops = 1;
  for (int trip = 0; trip < 20; ++trip) {
    const Duration now = trip * 10_us;
    const double sent =
        static_cast<double>(telemetry.entry[0].sent) + (trip == 0 ? 0 : pair.rate(now) * 10e-6);
    telemetry.entry[0] = {now.count(), static_cast<std::uint64_t>(sent), 0, 0, kLine};
    pair.row().next += 50;
    pair.acknowledge({pair.row().next - 25, false, 0, &telemetry}, now);
  }
  EXPECT_NEAR(pair.rate(200_us) / kLine, 0.95, 0.01);
}

// Acknowledgements alternate between two spines, whose ports have sent 900 and 100 packets of 1000 B. Their
// difference is no port's rate. The hop that all packets pass has carried nothing in between, so the rate
// stays at the line.
TEST(Hpcc, ComparesAPortWithItselfAlone) {
  Pair pair(CongestionControlKind::hpcc, {});
  Telemetry telemetry;
  telemetry.hops = 2;
  telemetry.entry[1] = {0, 0, 0, 9, kLine};
  for (int trip = 0; trip < 20; ++trip) {
    const Duration now = trip * 10_us;
    const auto spine = static_cast<PortIndex>(trip % 2);
    telemetry.entry[0] = {now.count(), spine == 0 ? 900'000U : 100'000U, 0, spine, kLine};
    telemetry.entry[1].time = now.count();
    pair.row().next += 50;
    pair.acknowledge({pair.row().next - 25, false, 0, &telemetry}, now);
  }
  EXPECT_DOUBLE_EQ(pair.rate(200_us), kLine);
}

// Above t_high = 500 us the rate is multiplied by 1 - beta (1 - t_high / rtt) = 1 - 0.8 (1 - 500 / 1000) =
// 0.6.
TEST(Timely, CutsByTheExcessOverItsUpperLimit) {
  Pair pair(CongestionControlKind::timely, {});
  pair.row().next = 50;
  pair.acknowledge({10, false, 0, nullptr}, 1_ms);
  pair.row().next = 100;
  pair.acknowledge({60, false, Duration(1_ms).count(), nullptr}, 2_ms);
  EXPECT_NEAR(pair.rate(2_ms) / kLine, 0.6, 1e-6);
}

// One round trip a window of 50 packets, sent at the beginning of a millisecond; the rate behind it, of the
// line's.
class TimelyTrips : public Pair {
 public:
  TimelyTrips() : Pair(CongestionControlKind::timely, {}) {}
  double trip(Duration takes) {
    const Duration sent = window_ * 1_ms;
    row().next = 50 * (window_ + 1);
    acknowledge({50 * window_ + 1, false, sent.count(), nullptr}, sent + takes);
    ++window_;
    return rate(sent + takes) / kLine;
  }

 private:
  std::uint32_t window_ = 0;
};

// Between the limits of 50 and 500 us the slope g of the round trips decides: g <- (1 - 0.875) g + 0.875 (rtt
// - last). 4 us more give g = 3.5 us, of the least round trip of 20 us 0.175: the rate is multiplied by 1 -
// 0.8 x 0.175 = 0.86. The same again: g = 0.4375 us, 1 - 0.8 x 0.021875 = 0.9825. 4 us less: g < 0, so the
// rate rises by 10 Mbit/s for each 10 Gbit/s of the line.
TEST(Timely, FollowsTheSlopeBetweenItsLimits) {
  TimelyTrips pair;
  pair.trip(100_us);
  EXPECT_NEAR(pair.trip(104_us), 0.86, 1e-6);
  EXPECT_NEAR(pair.trip(104_us), 0.86 * 0.9825, 1e-6);
  EXPECT_NEAR(pair.trip(100_us), 0.86 * 0.9825 + 0.001, 1e-6);
}

// Below 50 us nothing but the number of rises counts: after five of 0.001 they are 0.005 each.
TEST(Timely, RisesFasterFromTheSixthTimeOn) {
  TimelyTrips pair;
  pair.trip(1_ms);
  EXPECT_NEAR(pair.trip(1_ms), 0.6, 1e-6);
  for (int rise = 1; rise <= 5; ++rise) EXPECT_NEAR(pair.trip(40_us), 0.6 + 0.001 * rise, 1e-6);
  EXPECT_NEAR(pair.trip(40_us), 0.610, 1e-6);
  EXPECT_NEAR(pair.trip(1_ms), 0.610 * 0.6, 1e-6);
  EXPECT_NEAR(pair.trip(40_us), 0.610 * 0.6 + 0.001, 1e-6);  // counted anew
}

// Windows of 50 packets, of which every second is marked in the first three. What is acknowledged beyond the
// end of a window ends it (RFC 8257, section 3.3), and counts for it: the first has the packets 1 to 51, of
// which 25 are marked, the others 50 each. alpha <- 15/16 alpha + 1/16 of the marked share, from 1; the first
// mark of a window cuts by alpha / 2. Every window adds 615 Mbit/s, 0.015375 of the line, if it is not cut.
TEST(Dctcp, CutsByTheShareOfMarkedPacketsAndRisesOnceAWindow) {
  Pair pair(CongestionControlKind::dctcp, {});
  const auto window = [&](std::uint32_t w, bool marks) {
    std::vector<double> rates;
    pair.row().next = 50 * (w + 1);
    for (std::uint32_t n = 50 * w + 1; n <= 50 * (w + 1); ++n) {
      pair.acknowledge({n, marks && n % 2 == 0, 0, nullptr}, 1_us);
      rates.push_back(pair.rate(1_us) / kLine);
    }
    EXPECT_NEAR(rates[1], rates.back(), 1e-6);  // nothing changes after the second
    return std::pair(rates.front(), rates.back());
  };
  constexpr double kRise = 0.615 / 40;
  EXPECT_NEAR(window(0, true).second, 0.5, 1e-6);
  double alpha = 15.0 / 16 + 25.0 / 51 / 16, rate = (0.5 + kRise) * (1 - alpha / 2);
  EXPECT_NEAR(window(1, true).second, rate, 1e-6);
  alpha = 15.0 / 16 * alpha + 0.5 / 16, rate = (rate + kRise) * (1 - alpha / 2);
  EXPECT_NEAR(window(2, true).second, rate, 1e-6);
  for (std::uint32_t w = 3; w < 6; ++w) {
    const auto [first, last] = window(w, false);
    rate += kRise;
    EXPECT_NEAR(first, rate, 1e-6);
    EXPECT_NEAR(last, rate, 1e-6);
  }
}

// Every packet is marked, so alpha stays 1: one cut per window, by half, and no rise.
TEST(Dctcp, HalvesOnceAWindowWhenAllIsMarked) {
  Pair pair(CongestionControlKind::dctcp, {});
  for (std::uint32_t w = 0; w < 3; ++w) {
    pair.row().next = 50 * (w + 1);
    for (std::uint32_t n = 50 * w + 1; n <= 50 * (w + 1); ++n) pair.acknowledge({n, true, 0, nullptr}, 1_us);
    EXPECT_NEAR(pair.rate(1_us) / kLine, std::pow(0.5, w + 1), 1e-6);
  }
}

// CCTI rises by one with each notification and falls by one every 153.6 us. At index i a packet is followed
// by trunc(7 i^2 / 95^2 / 0.218) packet times without sending, so the rate is 1 / (1 + that): i = 16 gives 0
// (0.91), 17 gives 1 (1.03), 24 gives 2 (2.05), and 127, the highest, 57 (57.4).
TEST(InfinibandCc, DelaysByTheEntryOfItsTableAndForgetsWithTime) {
  Pair pair(CongestionControlKind::infiniband, {});
  for (int i = 0; i < 16; ++i) pair.notify(0_us);
  EXPECT_DOUBLE_EQ(pair.rate(1_us), kLine);
  pair.notify(0_us);
  EXPECT_NEAR(pair.rate(1_us) / kLine, 1.0 / 2, 1e-6);
  for (int i = 17; i < 24; ++i) pair.notify(1_us);
  EXPECT_NEAR(pair.rate(2_us) / kLine, 1.0 / 3, 1e-6);
  EXPECT_NEAR(pair.rate(154_us) / kLine, 1.0 / 2, 1e-6);
  EXPECT_DOUBLE_EQ(pair.rate(153_us * 9), kLine);
  for (int i = 0; i < 500; ++i) pair.notify(4000_us);
  EXPECT_NEAR(pair.rate(4001_us) / kLine, 1.0 / 58, 1e-6);
}

// The base round trip of HPCC and DCTCP is that of the path, not of a port that is slow for the moment: a
// pair that is connected meanwhile sends as one that was there before.
TEST(Hpcc, HasTheBaseRoundTripOfThePathAlsoWhereAPortIsSlow) {
  const Fabric fabric = star(3, {400_Gbitps, 500_ns});
  PacketSpec spec;
  spec.congestion_control.kind = CongestionControlKind::hpcc;
  std::vector<SimTime> first;
  for (const bool before : {true, false}) {
    Engine engine(fabric.graph, spec);
    const auto connect = [&](std::uint32_t k) {
      return engine.connect({fabric.hosts[k], fabric.hosts[2], k, 0, {}, {}, {}});
    };
    PairIndex pairs[2]{};
    for (std::uint32_t k = 0; before && k < 2; ++k) pairs[k] = connect(k);
    for (PortIndex p = 0; p < fabric.graph.ports.size(); ++p) engine.set_rate(p, 40_Gbitps, SimTime{});
    for (std::uint32_t k = 0; !before && k < 2; ++k) pairs[k] = connect(k);
    for (const PairIndex pair : pairs) engine.send(pair, 1'000'000_B, SimTime{}, pair);
    engine.run();
    first.push_back(engine.delivered().front().time);
  }
  EXPECT_EQ(first[0], first[1]);
}

// At 400 Gbit/s 100 and 400 KB x 16 = 1.6 and 6.4 MB, unless one that is given lies beyond the other.
TEST(Ecn, LevelsAreTheOnesThatAreGiven) {
  PortSpec port;
  port.rate = 400_Gbitps;
  const auto levels = [&](std::optional<Bytes> kmin, std::optional<Bytes> kmax) {
    PacketSpec spec;
    spec.ecn.kmin = kmin, spec.ecn.kmax = kmax;
    const MarkLevels found = ecn_levels(port, spec, CongestionControlKind::dcqcn);
    return std::pair(found.from, found.all);
  };
  EXPECT_EQ(levels({}, {}), std::pair(1'600'000U, 6'400'000U));
  EXPECT_EQ(levels({}, 2'000'000_B), std::pair(1'600'000U, 2'000'000U));
  EXPECT_EQ(levels({}, 400'000_B), std::pair(400'000U, 400'000U));
  EXPECT_EQ(levels(8'000'000_B, {}), std::pair(8'000'000U, 8'000'000U));
}

// Congestion control is the fabric's, whatever flow control is tried on it: none on InfiniBand, where four
// senders of 1,024 packets of 4,122 B take 338 us at 50 GB/s, and DCQCN on Ethernet. Marks begin at 100 KB,
// for credits let a port have no more than the lanes of its four inputs, 116 KB each.
TEST(CongestionControl, IsThatOfTheFabricUnderAnotherFlowControl) {
  PacketSpec spec;
  spec.ecn.kmin = 100'000_B;
  const Outcome infiniband = incast(4, 4_MiB, {400_Gbitps, 500_ns, FlowControl::pfc, true}, spec);
  EXPECT_EQ(infiniband.counters.marks, 0U);
  EXPECT_NEAR(microseconds(infiniband.last_delivered), 4 * 1024 * 4122 / 50e3 + 1, 1);
  const Outcome ethernet = incast(4, 4_MiB, {400_Gbitps, 500_ns, FlowControl::credit, false}, spec);
  EXPECT_GT(ethernet.counters.marks, 0U);
}
}  // namespace topsim::network::packet::congestion_test
