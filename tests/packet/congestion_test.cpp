// Congestion control by its own rules, one queue pair, no network.
#include "sim/network/packet/congestion.hpp"

#include <gtest/gtest.h>

#include <cmath>

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

// Rc *= 1 - a/2 with a = 1: half the line. Fast recovery: (Rt + Rc) / 2 every 55 us, five times.
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

// What the sender posts at most is no rate of the NIC: congestion control begins at the line rate, and
// halving it twice to a quarter changes nothing for who posts an eighth; the fourth cut leaves a sixteenth.
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

// a = (1 - g) a + g keeps 1 at the notification; then (1 - g) a every 55 us without one: 20 periods later a
// second cut takes a / 2 = (1 - 1/256)^20 / 2 of what the rate is then.
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

// A flag is set; the cut comes at the next 4 us tick after the first notification, whatever came in between.
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
  Dcqcn rules = Dcqcn::connectx();
  rules.max_cut = 0.5;
  Pair pair(CongestionControlKind::dcqcn, dcqcn(rules));
  for (int i = 0; i < 10'000; ++i) pair.notify(i * 4_us);
  EXPECT_NEAR(pair.rate(40_ms), rules.min_rate.value(), rules.min_rate.value() * 1e-3);
  EXPECT_DOUBLE_EQ(pair.rate(2'000'000_ms), kLine);
}

// The mean of two neighbouring doubles may be the lower one: halving the distance alone never ends at such a
// line (that of a collective that NCCL paces), and the recovery must. 600 us of timers take a cut of a half
// to within 1e-9.
TEST(Dcqcn, ArrivesAtALineThatHalvingTheDistanceNeverReaches) {
  constexpr double kOdd = 11559727495.453501;
  ASSERT_LT((kOdd + std::nextafter(kOdd, 0)) / 2, kOdd);
  for (Dcqcn rules : {Dcqcn::paper(), Dcqcn::connectx()}) {
    rules.byte_counter = 0_B;
    Pair pair(CongestionControlKind::dcqcn, dcqcn(rules), kOdd);
    pair.notify(100_us);
    EXPECT_LT(pair.recovers_at(), Duration(10'000_ms).count());
  }
}

// A flow cut to a rate at which one packet takes milliseconds goes on as soon as its rate has risen, not when
// the packet's time at the low rate is over: three 4 MB flows into one 400 Gbit/s port fight, and no pause of
// the port is longer than the timer's 300 us.
TEST(Dcqcn, LetsASlowSenderGoOnOnceItsRateHasRisen) {
  PacketSpec spec;
  spec.congestion_control.dcqcn.min_rate = BytesPerSecond(0.125e6);  // 1 Mbit/s: 33 ms for 4096 bytes
  const Outcome outcome = incast(3, Bytes(4'000'000), {400_Gbitps, 500_ns}, spec);
  EXPECT_GT(outcome.counters.notifications, 10U);
  EXPECT_LT(outcome.last_delivered, 2_ms);  // 245 us without congestion control
}

// Evaluated late or early, timers give the same rate: asking every microsecond changes nothing.
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

// U = txRate / B = 1 at the only hop, no queue: W = Wc / (1 / 0.95) + W_ai.
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

// The ports of two spines have sent 900 and 100 packets: their difference is nobody's rate. The hop that both
// packets passed carried nothing in between, so the rate stays at the line.
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

// Above t_high the rate falls by beta (1 - t_high / rtt): 1 - 0.8 (1 - 500 / 1000) = 0.6.
TEST(Timely, CutsByTheExcessOverItsUpperLimit) {
  Pair pair(CongestionControlKind::timely, {});
  pair.row().next = 50;
  pair.acknowledge({10, false, 0, nullptr}, 1_ms);
  pair.row().next = 100;
  pair.acknowledge({60, false, Duration(1_ms).count(), nullptr}, 2_ms);
  EXPECT_NEAR(pair.rate(2_ms) / kLine, 0.6, 1e-6);
}

// Every packet of every window marked: alpha stays 1, one cut by half a window.
TEST(Dctcp, HalvesOnceAWindowWhenAllIsMarked) {
  CongestionControl spec;
  spec.dctcp.additive_increase = BytesPerSecond(0);
  Pair pair(CongestionControlKind::dctcp, spec);
  pair.row().next = 50;
  for (std::uint32_t n = 1; n <= 50; ++n) pair.acknowledge({n, true, 0, nullptr}, 1_us);
  EXPECT_NEAR(pair.rate(1_us) / kLine, 0.5, 1e-6);
}

// CCTI rises by one a notification and falls by one every 153.6 us. Entry i of the table is 7 i^2 / 95^2 /
// 0.218 packet times, cut: 0.91 for 16, 1.03 for 17, 2.05 for 24, 57.4 for 127, above which it does not rise.
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
}  // namespace topsim::network::packet::congestion_test
