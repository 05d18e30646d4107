// Random fabrics, traffic and settings: every message completes, and no byte, buffer or credit is lost.
// TOPSIM_FULL runs 10,000 cases, else 1,000.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "tests/packet/patterns.hpp"
#include "tests/packet/setups.hpp"

namespace topsim::network::packet::conservation_test {

struct Case {
  Fabric fabric;
  PacketSpec spec;
  std::vector<Flow> flows;
};

Case random_case(std::uint64_t seed, bool lossy) {
  std::mt19937_64 random(seed);
  const auto pick = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
  Case c;
  const double rates[] = {12.5e9, 25e9, 50e9, 100e9};
  const FlowControl controls[] = {FlowControl::pfc, FlowControl::credit, FlowControl::none};
  const LinkFigures link{BytesPerSecond(rates[pick(4)]),
                         Duration(50'000 + static_cast<std::int64_t>(pick(2'000'000))),
                         controls[pick(lossy ? 3 : 2)]};
  switch (pick(4)) {
    case 0:
      c.fabric = star(2 + pick(8), link);
      break;
    case 1:
      c.fabric = dumbbell(1 + pick(4), 1 + pick(4), link);
      break;
    case 2:
      c.fabric = leaf_spine(2 + pick(3), 1 + pick(4), 1 + pick(4), link);
      break;
    default:
      c.fabric = fat_tree(4, link);
  }
  c.spec.seed = seed;
  c.spec.buffer.cut_through = pick(2) == 0;
  c.spec.buffer.total = Bytes(1'000'000 + pick(8'000'000));
  c.spec.lanes.count = 1 + static_cast<int>(pick(3));
  if (pick(2) == 0) c.spec.lanes.buffer = Bytes(3 * 4178 + pick(60'000));
  c.spec.ack_every = static_cast<int>(1 + pick(4));
  const PathChoice paths[] = {PathChoice::flow_hash, PathChoice::destination, PathChoice::flowlet,
                              PathChoice::spray, PathChoice::adaptive};
  c.spec.path = paths[pick(5)];
  c.spec.recovery = pick(2) == 0 ? Recovery::go_back_n : Recovery::selective_repeat;
  if (!lossy && (c.spec.path == PathChoice::spray || c.spec.path == PathChoice::adaptive ||
                 c.spec.path == PathChoice::flowlet)) {
    c.spec.recovery = Recovery::selective_repeat;
  }
  const CongestionControlKind kinds[] = {CongestionControlKind::none,  CongestionControlKind::dcqcn,
                                         CongestionControlKind::hpcc,  CongestionControlKind::timely,
                                         CongestionControlKind::dctcp, CongestionControlKind::infiniband};
  c.spec.congestion_control.kind = kinds[pick(6)];
  if (c.spec.congestion_control.kind == CongestionControlKind::dcqcn && pick(2) == 0) {
    c.spec.congestion_control.dcqcn = pick(2) == 0 ? Dcqcn::paper() : Dcqcn::simai();
  }
  if (lossy) {
    c.spec.loss.probability = std::pow(10, -4 + 2 * std::generate_canonical<double, 53>(random));
    c.spec.loss.nack_interval = 20_us;
  }
  const auto hosts = c.fabric.hosts.size();
  for (std::uint32_t i = 1 + pick(20); i > 0; --i) {
    const std::size_t from = pick(hosts);
    const std::size_t to = pick(3) == 0 ? 0 : pick(hosts);  // some incast
    if (from == to) continue;
    const std::int64_t bytes = pick(4) == 0 ? pick(100) : 1 + pick(300'000);
    c.flows.push_back({from, to, Bytes(bytes), static_cast<int>(pick(3)) % c.spec.lanes.count,
                       SimTime(Duration(static_cast<std::int64_t>(pick(20'000'000))))});
  }
  return c;
}

int cases() {
  return std::getenv("TOPSIM_FULL") != nullptr ? 10'000 : 1'000;
}

// Adds what was dropped.
void expect_conserved(std::uint64_t seed, bool lossy, std::uint64_t& drops) {
  const Case c = random_case(seed, lossy);
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Engine engine(c.fabric.graph, c.spec);
  for (std::size_t i = 0; i < c.flows.size(); ++i) {
    const Flow& flow = c.flows[i];
    const PairIndex pair =
        engine.connect({c.fabric.hosts[flow.from], c.fabric.hosts[flow.to], i, flow.lane, {}, {}, {}});
    engine.send(pair, flow.bytes, flow.start, i);
    if (i % 3 == 0)
      engine.send(pair, flow.bytes, flow.start, c.flows.size() + i);  // a second message behind it
  }
  engine.run_until(SimTime(2'000_ms));
  const std::size_t messages = c.flows.size() + (c.flows.size() + 2) / 3;
  ASSERT_EQ(engine.delivered().size(), messages);
  ASSERT_EQ(engine.acknowledged().size(), messages);
  std::vector<int> seen(c.flows.size() * 2, 0);
  for (const Completion& done : engine.delivered()) ASSERT_EQ(seen[done.tag]++, 0);
  ASSERT_EQ(engine.leak(), "");
  drops += engine.counters().drops;
  if (!lossy) {
    ASSERT_EQ(engine.counters().drops, 0U);
    ASSERT_EQ(engine.counters().repeats, 0U);
  }
}

TEST(Conservation, HoldsWithPfcOrCreditsInRandomCases) {
  std::uint64_t drops = 0;
  for (int seed = 0; seed < cases(); ++seed) {
    expect_conserved(static_cast<std::uint64_t>(seed), false, drops);
    if (HasFatalFailure()) return;
  }
}

TEST(Conservation, EveryMessageCompletesWhateverIsLost) {
  std::uint64_t drops = 0;
  for (int seed = 0; seed < cases(); ++seed) {
    expect_conserved(static_cast<std::uint64_t>(seed) + 1'000'000, true, drops);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(drops, 1000U);
}

// Queue pairs that share their first two links and part behind them, like those of a NIC with one port in
// each of two planes: a bus of random rate without latency, two hops of it, then a switch for each pair.
TEST(Conservation, HoldsWhereWaysPartBehindASharedBus) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const auto rate = [&] {
      return BytesPerSecond(20e9 + 10 * static_cast<double>(random() % 6'000'000'000));
    };
    Graph graph;
    std::vector<DeviceIndex> ends;
    for (int i = 0; i < 6; ++i) ends.push_back(graph.device());
    std::vector<PortIndex> before, behind;
    const auto bus = [&](DeviceIndex from, DeviceIndex to) {
      const PortIndex port = graph.cable(from, to, rate(), Duration{}, FlowControl::credit);
      for (const PortIndex p : {port, graph.ports[port].reverse})
        graph.ports[p].framed = graph.ports[p].marks = false;
      return port;
    };
    before = {bus(ends[0], ends[1]), bus(ends[1], ends[2])};
    behind = {bus(ends[3], ends[4]), bus(ends[4], ends[5])};
    const FlowControl control = random() % 2 == 0 ? FlowControl::pfc : FlowControl::credit;
    PacketSpec spec;
    spec.congestion_control.kind = CongestionControlKind::none;
    Fabric fabric{graph, {}, {}};
    std::vector<Connection> connections;
    for (std::uint64_t k = 0; k < 2 + random() % 3; ++k) {
      const DeviceIndex plane = fabric.graph.device();
      Connection c{ends[0], ends[5], k, 0, {}, before, {}};
      const BytesPerSecond line = rate();
      const Duration latency(static_cast<std::int64_t>(random() % 600'000));
      c.path.push_back(fabric.graph.cable(ends[2], plane, line, latency, control));
      c.path.push_back(fabric.graph.cable(plane, ends[3], line, latency, control));
      c.path.insert(c.path.end(), behind.begin(), behind.end());
      for (std::size_t i = c.path.size(); i-- > 0;) c.back.push_back(fabric.graph.ports[c.path[i]].reverse);
      connections.push_back(c);
    }
    Engine engine(fabric.graph, spec);
    for (const Connection& c : connections) engine.send(engine.connect(c), 1'000'000_B, SimTime{}, c.number);
    engine.run();
    ASSERT_EQ(engine.acknowledged().size(), connections.size());
    ASSERT_EQ(engine.leak(), "");
  }
}

TEST(Determinism, TheSameSeedGivesTheSameRunAndAnotherSeedAnother) {
  const auto run = [](std::uint64_t seed) {
    const Fabric fabric = fat_tree(4, {50_GBps, 500_ns, FlowControl::pfc});
    PacketSpec spec;
    spec.seed = seed;
    std::vector<std::int64_t> times;
    for (const FlowOutcome& flow : run_flows(fabric, permutation(fabric, Bytes(2'000'000), 3), spec).flows) {
      times.push_back(flow.acknowledged.count());
    }
    return times;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}
}  // namespace topsim::network::packet::conservation_test
