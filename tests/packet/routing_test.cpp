// Paths: hashing, flowlets, spraying, adaptive routing.
#include <gtest/gtest.h>

#include <set>

#include "tests/packet/patterns.hpp"
#include "tests/packet/setups.hpp"

namespace topsim::network::packet::routing_test {
Fabric four_spines(FlowControl control) {
  return leaf_spine(2, 4, 4, {50_GBps, 500_ns, control});
}
std::vector<Flow> across() {
  return {
      {0, 4, Bytes(8'000'000)}, {1, 5, Bytes(8'000'000)}, {2, 6, Bytes(8'000'000)}, {3, 7, Bytes(8'000'000)}};
}
PacketSpec with(PathChoice path) {
  PacketSpec spec;
  spec.congestion_control.kind = CongestionControlKind::none;
  spec.path = path;
  return spec;
}

// How many of the four spines the first leaf has sent to.
int spines_used(const Fabric& fabric, const Engine& engine) {
  int used = 0;
  for (PortIndex p = 0; p < fabric.graph.ports.size(); ++p) {
    const bool up = fabric.graph.ports[p].from == fabric.switches[4] && fabric.graph.ports[p].to < 4;
    if (up && engine.record(p).bytes > 0) ++used;
  }
  return used;
}

// Four flows hashed over four spines: 4! of 4^4 equally likely cases are without collision, 9.4 %.
TEST(Ecmp, CollidesByChanceAndAnotherSeedHashesOtherwise) {
  std::set<std::int64_t> times;
  int clean = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    PacketSpec spec = with(PathChoice::flow_hash);
    spec.seed = seed;
    const Outcome outcome = run_flows(four_spines(FlowControl::pfc), across(), spec);
    times.insert(outcome.last.count());
    if (outcome.last_delivered < 165_us) ++clean;  // 8 MB at 49.02 GB/s = 163.2 us
  }
  EXPECT_GE(times.size(), 3U);  // one, two, three or four on one spine
  EXPECT_LT(clean, 12);         // 40 x 9.4 % = 4 expected; 12 would be four standard deviations above
}

TEST(Static, SendsAllFlowsToOneDestinationTheSameWay) {
  const Fabric fabric = four_spines(FlowControl::credit);
  Engine engine(fabric.graph, with(PathChoice::destination));
  for (std::size_t from = 0; from < 4; ++from) {
    engine.send(engine.connect({fabric.hosts[from], fabric.hosts[4], from}), 1_MiB, SimTime{}, from);
  }
  engine.run();
  EXPECT_EQ(spines_used(fabric, engine), 1);
}

// The connection lists several paths. Each switch chooses by the destination, so packets keep one path and
// none is overtaken.
TEST(Static, ChoosesOneOfSeveralGivenPathsByTheDestination) {
  const Fabric fabric = four_spines(FlowControl::credit);
  Engine engine(fabric.graph, with(PathChoice::destination));
  Connection connection{fabric.hosts[0], fabric.hosts[4], 0};
  for (PortIndex p = 0; p < fabric.graph.ports.size(); ++p) {
    const PortSpec& port = fabric.graph.ports[p];
    const bool ours = (port.from == fabric.hosts[0]) || (port.to == fabric.hosts[4]) ||
                      (port.from == fabric.switches[4] && port.to < 4) ||
                      (port.from < 4 && port.to == fabric.switches[5]);
    (ours ? connection.path : connection.back).push_back(p);
  }
  connection.back.clear();
  engine.send(engine.connect(connection), 1_MiB, SimTime{}, 7);
  engine.run();
  EXPECT_EQ(spines_used(fabric, engine), 1);
  EXPECT_EQ(engine.counters().repeats, 0U);
}

// Each packet goes to the emptiest of equal ports, so no collision lasts. Packets overtake each other, but
// none is sent again.
TEST(Adaptive, KeepsFourFlowsOverFourSpinesAtFullRate) {
  for (const FlowControl control : {FlowControl::pfc, FlowControl::credit}) {
    const Outcome outcome = run_flows(four_spines(control), across(), with(PathChoice::adaptive));
    EXPECT_GT(outcome.last_delivered, 163_us);  // full rate
    EXPECT_LT(outcome.last_delivered, 168_us);
    EXPECT_EQ(outcome.counters.repeats, 0U);
  }
}

// Without collisions HPCC only keeps its target of 95 %: 8 MB at 0.95 x 48.5 GB/s (50 GB/s x 4096 / 4220
// bytes with gap and telemetry) take 173 us. It comes within a tenth of that.
TEST(Adaptive, LeavesHpccNearItsTarget) {
  PacketSpec spec = with(PathChoice::adaptive);
  spec.congestion_control.kind = CongestionControlKind::hpcc;
  const Outcome outcome = run_flows(four_spines(FlowControl::pfc), across(), spec);
  EXPECT_GT(outcome.last_delivered, 172_us);
  EXPECT_LT(outcome.last_delivered, 173_us * 1.1);
}

// Spraying at random fills the queues a little more than adaptive routing and loses little: 163 us would be
// full rate.
TEST(Spray, ComesCloseToFullRate) {
  const Outcome outcome = run_flows(four_spines(FlowControl::pfc), across(), with(PathChoice::spray));
  EXPECT_GT(outcome.last_delivered, 163_us);
  EXPECT_LT(outcome.last_delivered, 180_us);
  EXPECT_EQ(outcome.counters.repeats, 0U);
}

// Go-back-N takes every overtaken packet for a loss.
TEST(Spray, WithGoBackNSendsMuchAgain) {
  PacketSpec spec = with(PathChoice::spray);
  spec.recovery = Recovery::go_back_n;
  const Outcome outcome = run_flows(four_spines(FlowControl::pfc), across(), spec);
  EXPECT_GT(outcome.counters.repeats, 100U);
}

// Messages with pauses longer than the flowlet gap (50 us) take new paths; without pauses all take one.
TEST(Flowlets, ChangeTheirWayOnlyAfterAGap) {
  for (const bool pauses : {true, false}) {
    const Fabric fabric = four_spines(FlowControl::pfc);
    Engine engine(fabric.graph, with(PathChoice::flowlet));
    const PairIndex pair = engine.connect({fabric.hosts[0], fabric.hosts[4]});
    for (int i = 0; i < 20; ++i) {
      engine.send(pair, 64_KiB, SimTime(pauses ? i * 100_us : Duration{}), static_cast<std::uint64_t>(i));
    }
    engine.run();
    int used = 0;
    for (PortIndex p = 0; p < fabric.graph.ports.size(); ++p) {
      const bool up = fabric.graph.ports[p].from == fabric.switches[4] && fabric.graph.ports[p].to < 4;
      if (up && engine.record(p).bytes > 0) ++used;
    }
    EXPECT_EQ(engine.delivered().size(), 20U);
    EXPECT_EQ(used > 1, pauses);
  }
}

TEST(Permutation, OverAFullBisectionFatTreeIsNearLineRateWhenAdaptive) {
  const Fabric fabric = fat_tree(4, {50_GBps, 500_ns, FlowControl::credit});
  const Outcome outcome =
      run_flows(fabric, permutation(fabric, Bytes(2'000'000), 1), with(PathChoice::adaptive));
  // 2 MB at 49.68 GB/s = 40.3 us, six links of 500 ns: 43.3 us, and now and then a packet waits for another.
  EXPECT_GT(outcome.last_delivered, 43_us);
  EXPECT_LT(outcome.last_delivered, 43.3 * 1.1 * 1_us);
}

TEST(RingAllReduce, OnAnIdleSwitchTakesTwoNMinusOneSteps) {
  const std::uint32_t n = 8;
  const Fabric fabric = star(n, {50_GBps, 500_ns, FlowControl::credit});
  std::vector<std::size_t> ring;
  for (std::size_t i = 0; i < n; ++i) ring.push_back(i);
  const Outcome outcome = ring_all_reduce(fabric, {ring}, 16_MiB, with(PathChoice::flow_hash));
  // A step: 16 MiB / 8 = 512 packets of 4122 B and, in the same lane, ACKs of 30 B for those received, at
  // 50 GB/s; two links of 500 ns, cut through.
  const double step_us = 512 * 0.08304 + 1.0;
  EXPECT_NEAR(microseconds(outcome.last_delivered), 14 * step_us, 14 * step_us * 1e-3);
}
}  // namespace topsim::network::packet::routing_test
