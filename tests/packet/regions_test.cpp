// Regions that never rest, that recover late, that meet, and whose links change. The answer must be that of
// one engine without regions and records.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/packet/play.hpp"

namespace topsim::network::packet::regions_test {

// 4 MiB at 49 GB/s take 86 us, so everything is idle when the messages at 10 and 30 ms begin.
TEST(Regions, ThatRestLateOrNeverGoOnAfterAnIdleMoment) {
  const Fabric fabric = star(3, {400_Gbitps, 500_ns});
  std::vector<PacketSpec> slow_to_rest;
  for (const CongestionControlKind kind :
       {CongestionControlKind::hpcc, CongestionControlKind::timely, CongestionControlKind::dctcp}) {
    slow_to_rest.emplace_back().congestion_control.kind = kind;
  }
  slow_to_rest.emplace_back().loss.probability = 1e-3;
  for (const PacketSpec& spec : slow_to_rest) {
    SCOPED_TRACE(testing::Message() << "loss " << spec.loss.probability << ", algorithm "
                                    << static_cast<int>(spec.congestion_control.kind.value_or(
                                           CongestionControlKind::none)));
    const Ran ran = play(fabric.graph, fabric.hosts, spec,
                         {{at(0_us), 0, 2, 4_MiB},
                          {at(0_us), 1, 2, 4_MiB},
                          {at(10_ms), 0, 2, 4_MiB},
                          {at(30_ms), 1, 2, 4_MiB}},
                         true);
    ASSERT_EQ(ran.told.size(), 4U);
    EXPECT_GT(ran.told[2].time, at(10_ms + 86_us));
    EXPECT_GT(ran.told[3].time, at(30_ms + 86_us));
    EXPECT_LT(ran.told[3].time, at(35_ms));
  }
}

// Windows and averages are forgotten after 320 us without an acknowledgement. Rounds 1 ms apart repeat the
// first, both where a region begins anew and in one engine, where each pair does. A round 200 us after
// another does not.
TEST(Regions, AreAtRestATimeoutAfterControlsThatKeepAveragesHeardSomething) {
  for (const CongestionControlKind kind :
       {CongestionControlKind::hpcc, CongestionControlKind::timely, CongestionControlKind::dctcp}) {
    for (const FlowControl control : {FlowControl::pfc, FlowControl::credit}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(kind) << ' ' << static_cast<int>(control));
      PacketSpec spec;
      spec.congestion_control.kind = kind;
      const Fabric fabric = star(3, {400_Gbitps, 500_ns, control});
      std::vector<Sent> sent;
      for (const Duration begin : {0_us, 1'000_us, 2'000_us, 2'200_us, 3'200_us}) {
        sent.push_back({at(begin), 0, 2, 1_MiB});
        sent.push_back({at(begin + 1_us), 1, 2, 1_MiB});
      }
      const Ran skipped = play(fabric.graph, fabric.hosts, spec, sent, true);
      EXPECT_EQ(skipped.told, simulate_whole(fabric, spec, sent, {}));
      EXPECT_EQ(skipped.skipped, 2U);  // the rounds at 1 ms and at 3.2 ms; the one at 2 ms goes on at 2.2 ms
    }
  }
}

// The second round follows the record of the first until 10 us, when the first had a third message and it has
// not. Then it is simulated from its beginning. The first message, which had arrived by then, completes at
// 23 us, and the caller answers it. A region that had run ahead of that would send the answer late.
TEST(Regions, DoNotGoAheadOfWhatTheirFirstMessagesComplete) {
  std::vector<std::vector<SimTime>> answered;
  for (const bool skip : {true, false}) {
    const Fabric fabric = star(3, {400_Gbitps, 500_ns, FlowControl::credit});
    Episodes episodes(fabric.graph, PacketSpec{}, skip);
    const Channel& a = episodes.open({{fabric.hosts[0], fabric.hosts[1], 0, 0, {}, {}, {}}});
    const Channel& b = episodes.open({{fabric.hosts[2], fabric.hosts[1], 1, 0, {}, {}, {}}});
    std::vector<SimTime>& times = answered.emplace_back();
    std::uint64_t order = 0;
    std::vector<Episodes::Done> waiting;
    const auto run = [&](SimTime horizon, bool answers) {
      for (;;) {
        waiting.insert(waiting.end(), episodes.done().begin(), episodes.done().end());
        episodes.done().clear();
        std::sort(waiting.begin(), waiting.end(), [](const Episodes::Done& x, const Episodes::Done& y) {
          return std::pair(x.time, x.order) < std::pair(y.time, y.order);
        });
        const SimTime known = waiting.empty() ? kNever : waiting.front().time;
        const std::size_t before = episodes.done().size();
        episodes.run_ahead(std::min(known, horizon));
        if (episodes.done().size() > before) continue;
        const SimTime next = std::min({known, episodes.next_event(), horizon});
        episodes.advance(next);
        if (next == known) {
          times.push_back(next);
          if (answers && waiting.front().tag == 0) episodes.start(a, 64_KiB, 0_us, 9, order++, next);
          waiting.erase(waiting.begin());
        } else if (next == horizon) {
          return;
        }
      }
    };
    for (const bool second : {false, true}) {
      const SimTime begin = second ? at(1'000_us) : at(0_us);
      episodes.start(a, 4_KiB, 20_us, 0, order++, begin);
      episodes.start(b, 4_MiB, 0_us, 1, order++, begin);
      run(begin + 10_us, second);
      if (!second) episodes.start(a, 4_KiB, 0_us, 2, order++, begin + 10_us);
      run(begin + 900_us, second);
    }
  }
  EXPECT_EQ(answered[0], answered[1]);
  EXPECT_EQ(answered[0].size(), 6U);
}

// DCQCN slows two flows into one port. Their rates rise by 50 Mbit/s x 400 / 25 = 0.8 Gbit/s every 300 us
// (hyper increase), 150 ms for all 400 Gbit/s. Rounds 300 ms apart repeat the first; a round 1 ms after
// another does not.
TEST(Regions, AreNotAtRestBeforeCongestionControlHasRecovered) {
  for (const bool infiniband : {false, true}) {
    PacketSpec spec;
    spec.congestion_control.kind =
        infiniband ? CongestionControlKind::infiniband : CongestionControlKind::dcqcn;
    spec.ecn.kmin = 20_KiB, spec.ecn.kmax = 80_KiB;
    const Fabric fabric = star(3, {400_Gbitps, 500_ns, infiniband ? FlowControl::credit : FlowControl::pfc});
    std::vector<Sent> sent;
    for (const Duration begin : {0_ms, 300_ms, 600_ms, 601_ms, 602_ms, 1'000_ms}) {
      sent.push_back({at(begin), 0, 2, 2_MiB});
      sent.push_back({at(begin), 1, 2, 2_MiB});
    }
    const Ran skipped = play(fabric.graph, fabric.hosts, spec, sent, true);
    EXPECT_EQ(skipped.told, play(fabric.graph, fabric.hosts, spec, sent, false).told);
    EXPECT_GE(skipped.skipped, 1U);  // the round at 300 ms
  }
}

// Flows below two leaves share no port until one crosses at 60 us; before that a link has changed its rate
// twice. Times must be those of one engine that knows no regions. Two flows of 4 MB into one port take 160 us
// and more, so all regions that meet are busy.
TEST(Regions, ThatMeetKeepTheirPast) {
  for (const FlowControl control : {FlowControl::credit, FlowControl::pfc}) {
    for (const CongestionControlKind kind :
         {CongestionControlKind::none, CongestionControlKind::dcqcn, CongestionControlKind::infiniband,
          CongestionControlKind::hpcc, CongestionControlKind::timely, CongestionControlKind::dctcp}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(control) << ' ' << static_cast<int>(kind));
      const Fabric fabric = leaf_spine(2, 3, 1, {400_Gbitps, 500_ns, control});
      PacketSpec spec;
      spec.congestion_control.kind = kind;
      spec.ecn.kmin = 20_KiB, spec.ecn.kmax = 800_KiB;
      const std::vector<Sent> sent{{at(0_us), 3, 5, 4'000'000_B}, {at(1_us), 0, 2, 4'000'000_B},
                                   {at(2_us), 1, 2, 4'000'000_B}, {at(3_us), 4, 5, 4'000'000_B},
                                   {at(60_us), 0, 3, 100'000_B},  {at(61_us), 5, 1, 100'000_B}};
      const PortIndex up = port_from(fabric.graph, fabric.hosts[0]);
      const std::vector<Changed> changed{{at(11_us), up, 100_Gbitps}, {at(40_us), up, 200_Gbitps}};
      const Ran ran = play(fabric.graph, fabric.hosts, spec, sent, true, changed);
      EXPECT_EQ(ran.told.size(), 6U);
      EXPECT_EQ(ran.told, simulate_whole(fabric, spec, sent, changed));
    }
  }
}

// Random messages over links whose rates change: the same with and without records.
TEST(Regions, OfRandomTrafficOverChangingLinksEndAtTheSamePicosecond) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 60; ++i) {
    const FlowControl control = random() % 2 == 0 ? FlowControl::pfc : FlowControl::credit;
    const Fabric fabric = leaf_spine(3, 3, 2, {400_Gbitps, 500_ns, control});
    PacketSpec spec;
    const CongestionControlKind kinds[] = {CongestionControlKind::none,       CongestionControlKind::dcqcn,
                                           CongestionControlKind::infiniband, CongestionControlKind::hpcc,
                                           CongestionControlKind::timely,     CongestionControlKind::dctcp};
    spec.congestion_control.kind = kinds[random() % 6];
    spec.ecn.kmin = 20_KiB, spec.ecn.kmax = 200_KiB;
    const PathChoice paths[] = {PathChoice::flow_hash, PathChoice::spray, PathChoice::adaptive};
    spec.path = paths[random() % 3];
    std::vector<Sent> sent;
    std::vector<Changed> changed;
    SimTime time{};
    for (int k = 0; k < 30; ++k) {
      time += Duration(static_cast<std::int64_t>(random() % 60) * 1'000'000);
      if (random() % 8 == 0) time += 500_us;  // some pairs begin anew
      const std::size_t from = random() % 9, to = (from + 1 + random() % 8) % 9;
      sent.push_back({time, from, to, Bytes(static_cast<std::int64_t>(1 + random() % 600'000))});
      if (random() % 6 == 0)
        changed.push_back({time + 1_us, static_cast<PortIndex>(random() % fabric.graph.ports.size()),
                           BytesPerSecond(50e9 / static_cast<double>(1 + random() % 4))});
    }
    SCOPED_TRACE(testing::Message() << "case " << i);
    const Ran skipped = play(fabric.graph, fabric.hosts, spec, sent, true, changed);
    ASSERT_EQ(skipped.told.size(), sent.size());
    ASSERT_EQ(skipped.told, play(fabric.graph, fabric.hosts, spec, sent, false, changed).told);
  }
}

// Two equal trees, the second with its cables in the opposite order. What is due at the same picosecond
// happens in the order of a device's ports, so the second tree must not be read from the first one's record.
TEST(Regions, AreAlikeOnlyWhenTheirDevicesHaveTheirPortsInTheSameOrder) {
  constexpr std::uint32_t kLeaves = 3, kHosts = 4;
  std::mt19937_64 random(3);
  for (int i = 0; i < 300; ++i) {
    Graph graph;
    std::vector<DeviceIndex> hosts;
    for (const bool turned : {false, true}) {
      const DeviceIndex spine = graph.device();
      std::vector<std::pair<DeviceIndex, DeviceIndex>> cables;
      for (std::uint32_t l = 0; l < kLeaves; ++l) {
        const DeviceIndex leaf = graph.device();
        cables.emplace_back(spine, leaf);
        for (std::uint32_t h = 0; h < kHosts; ++h) {
          hosts.push_back(graph.device());
          cables.emplace_back(leaf, hosts.back());
        }
      }
      if (turned) std::reverse(cables.begin(), cables.end());
      for (const auto& [a, b] : cables) graph.cable(a, b, 400_Gbitps, 500_ns, FlowControl::credit);
    }
    PacketSpec spec;
    spec.path = PathChoice::flow_hash;
    spec.lanes.buffer = Bytes(3 * 4122);  // hardly any credits: everybody waits for somebody
    std::vector<Sent> sent;
    constexpr std::size_t kMessages = 40, kAll = kLeaves * kHosts;
    for (std::size_t k = 0; k < kMessages; ++k) {
      const std::size_t from = random() % kAll, to = (from + 1 + random() % (kAll - 1)) % kAll;
      sent.push_back({at(0_us), from, to, Bytes(static_cast<std::int64_t>(4096 * (1 + random() % 8)))});
    }
    for (std::size_t k = 0; k < kMessages; ++k)
      sent.push_back({at(10_ms), sent[k].from + kAll, sent[k].to + kAll, sent[k].bytes});
    SCOPED_TRACE(testing::Message() << "case " << i);
    ASSERT_EQ(play(graph, hosts, spec, sent, true).told, play(graph, hosts, spec, sent, false).told);
  }
}
}  // namespace topsim::network::packet::regions_test
