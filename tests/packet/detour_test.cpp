// Queue pairs that are moved to another path when theirs has stopped: every message completes, nothing leaks.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/network/packet/episodes.hpp"
#include "tests/packet/setups.hpp"

namespace topsim::network::packet::detour_test {

PortIndex port_between(const Graph& graph, DeviceIndex from, DeviceIndex to) {
  for (PortIndex p = 0; p < graph.ports.size(); ++p)
    if (graph.ports[p].from == from && graph.ports[p].to == to) return p;
  return kNone;
}

// Two leaves with two hosts each and two spines (first in `switches`). `over` is the path between hosts below
// different leaves over one of the spines.
struct World {
  explicit World(FlowControl control) : fabric(leaf_spine(2, 2, 2, {400_Gbitps, 500_ns, control})) {}
  [[nodiscard]] Connection over(std::size_t from, std::size_t to, std::size_t spine) const {
    const DeviceIndex leaf_a = fabric.switches[2 + from / 2], leaf_b = fabric.switches[2 + to / 2],
                      top = fabric.switches[spine];
    Connection connection{fabric.hosts[from], fabric.hosts[to], from, 0, {}, {}, {}};
    const std::vector<DeviceIndex> way{fabric.hosts[from], leaf_a, top, leaf_b, fabric.hosts[to]};
    for (std::size_t i = 0; i + 1 < way.size(); ++i) {
      connection.path.push_back(port_between(fabric.graph, way[i], way[i + 1]));
      connection.back.push_back(port_between(fabric.graph, way[i + 1], way[i]));
    }
    return connection;
  }
  Fabric fabric;
};

std::vector<PacketSpec> specs() {
  std::vector<PacketSpec> all(5);
  all[1].congestion_control.kind = CongestionControlKind::dcqcn;
  all[2].recovery = Recovery::selective_repeat;
  all[3].congestion_control.kind = CongestionControlKind::hpcc;
  all[4].loss.probability = 1e-3;
  return all;
}

// 10 MB at 49 GB/s take 204 us. The path over the first spine stops at 50 us, and the pair moves to the
// second at 150 us, so the message takes at least 204 + 100 = 304 us. Packets on their way are sent again.
TEST(Detour, AMessageArrivesWholeOverTheOtherSpine) {
  for (const FlowControl control : {FlowControl::pfc, FlowControl::credit}) {
    for (const PacketSpec& spec : specs()) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(control) << ", recovery "
                                      << static_cast<int>(spec.recovery.value_or(Recovery::go_back_n))
                                      << ", loss " << spec.loss.probability);
      const World world(control);
      Engine engine(world.fabric.graph, spec);
      const Connection first = world.over(0, 2, 0), second = world.over(0, 2, 1);
      const PairIndex pair = engine.connect(first);
      // This pair uses only the second spine.
      const PairIndex other = engine.connect(world.over(1, 3, 1));
      engine.send(pair, 10'000'000_B, SimTime{}, 1);
      engine.send(other, 10'000'000_B, SimTime{}, 2);
      engine.run_until(SimTime(50_us));
      engine.set_rate(first.path[1], BytesPerSecond(0), SimTime(50_us));
      engine.set_rate(first.path[2], BytesPerSecond(0), SimTime(50_us));
      engine.run_until(SimTime(150_us));
      engine.move(pair, second, SimTime(150_us));
      engine.run();
      ASSERT_EQ(engine.delivered().size(), 2U);
      EXPECT_EQ(engine.received(pair).value(), 2442 * 4096) << "10 MB in packets of 4096 bytes";
      EXPECT_EQ(engine.leak(), "");
      if (spec.loss.probability > 0 || spec.congestion_control.kind) continue;
      EXPECT_EQ(engine.delivered()[0].tag, 2U);
      // From 150 us on the pair shares the second spine's cables with the other pair, which has 54 us of its
      // 204 left.
      EXPECT_GT(engine.delivered()[1].time, SimTime(304_us));
      EXPECT_LT(engine.delivered()[1].time, SimTime(304_us + 54_us + 20_us));
    }
  }
}

// Three moves between two working paths. The message takes its 204 us, at most 4 us of latency, and at most
// 30 us for what was on its way and is sent again.
TEST(Detour, AMoveBetweenWaysThatWorkCostsAtMostWhatIsSentAgain) {
  for (const FlowControl control : {FlowControl::pfc, FlowControl::credit}) {
    const World world(control);
    Engine engine(world.fabric.graph, PacketSpec{});
    const PairIndex pair = engine.connect(world.over(0, 2, 0));
    engine.send(pair, 10'000'000_B, SimTime{}, 1);
    for (int i = 1; i <= 3; ++i) {
      engine.run_until(SimTime(i * 40_us));
      engine.move(pair, world.over(0, 2, static_cast<std::size_t>(i % 2)), SimTime(i * 40_us));
    }
    engine.run();
    ASSERT_EQ(engine.delivered().size(), 1U);
    EXPECT_LT(engine.delivered()[0].time, SimTime(204_us + 4_us + 30_us));
    EXPECT_EQ(engine.leak(), "");
  }
}
// Two messages share no port until one is moved to the other's spine; a third follows later. Times must be
// those of one engine that knows no regions, with and without records.
TEST(Detour, RegionsThatAMoveJoinsKeepTheirPast) {
  for (const FlowControl control : {FlowControl::pfc, FlowControl::credit}) {
    const World world(control);
    const Connection first = world.over(0, 2, 0), second = world.over(0, 2, 1), other = world.over(1, 3, 1);
    const SimTime stop(50_us), moves(150_us), later(400_us);
    Engine engine(world.fabric.graph, PacketSpec{});
    const PairIndex pair = engine.connect(first), beside = engine.connect(other);
    engine.send(pair, 10'000'000_B, SimTime{}, 0);
    engine.send(beside, 10'000'000_B, SimTime(10_us), 1);
    engine.run_until(stop);
    engine.set_rate(first.path[1], BytesPerSecond(0), stop);
    engine.run_until(moves);
    engine.move(pair, second, moves);
    engine.run_until(later);
    engine.send(pair, 1'000'000_B, later, 2);
    engine.run();
    for (const bool skip : {true, false}) {
      Episodes episodes(world.fabric.graph, PacketSpec{}, skip);
      const Channel& a = episodes.open({first});
      const Channel& b = episodes.open({other});
      const auto until = [&](SimTime time) {
        while (episodes.next_event() <= time && episodes.next_event() != kNever)
          episodes.advance(episodes.next_event());
        if (time != kNever) episodes.advance(time);
      };
      episodes.start(a, 10'000'000_B, 0_us, 0, 0, SimTime{});
      until(SimTime(10_us));
      episodes.start(b, 10'000'000_B, 0_us, 1, 1, SimTime(10_us));
      until(stop);
      episodes.set_rate(first.path[1], BytesPerSecond(0), stop);
      until(moves);
      episodes.move(a, {second}, moves);
      until(later);
      episodes.start(a, 1'000'000_B, 0_us, 2, 2, later);
      until(kNever);
      ASSERT_EQ(episodes.done().size(), engine.delivered().size());
      for (const Episodes::Done& done : episodes.done()) {
        const auto told = std::find_if(engine.delivered().begin(), engine.delivered().end(),
                                       [&](const Completion& c) { return c.tag == done.tag; });
        EXPECT_EQ(told->time, done.time) << done.tag;
      }
    }
  }
}
}  // namespace topsim::network::packet::detour_test
