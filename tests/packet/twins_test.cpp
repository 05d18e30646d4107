// Regions that begin alike at the same instant, of which one is simulated. The answer must be that of one
// engine that simulates all.
#include <gtest/gtest.h>

#include <random>

#include "tests/packet/play.hpp"

namespace topsim::network::packet::twins_test {

// Stars of three hosts without a common port, as rails are.
Fabric rails(std::uint32_t count, FlowControl control) {
  Fabric all;
  for (std::uint32_t r = 0; r < count; ++r) {
    const Fabric one = star(3, {400_Gbitps, 500_ns, control});
    const auto ports = static_cast<PortIndex>(all.graph.ports.size());
    for (PortSpec port : one.graph.ports) {
      port.from += all.graph.devices, port.to += all.graph.devices, port.reverse += ports;
      all.graph.ports.push_back(port);
    }
    for (const DeviceIndex host : one.hosts) all.hosts.push_back(host + all.graph.devices);
    all.graph.devices += one.graph.devices;
  }
  return all;
}

// On every rail two senders to one receiver.
std::vector<Sent> incasts(std::uint32_t rails) {
  std::vector<Sent> sent;
  for (std::size_t r = 0; r < rails; ++r) {
    sent.push_back({at(0_us), 3 * r, 3 * r + 2, 1'000'000_B});
    sent.push_back({at(0_us), 3 * r + 1, 3 * r + 2, 1'000'000_B});
  }
  return sent;
}

PacketSpec without_control() {
  PacketSpec spec;
  spec.congestion_control.kind = CongestionControlKind::none;
  return spec;
}

// Eight rails at once: the events of one, and the other seven count as skipped.
TEST(Twins, AreSimulatedOnce) {
  for (const FlowControl control : {FlowControl::credit, FlowControl::pfc}) {
    const Fabric eight = rails(8, control), one = rails(1, control);
    const Ran ran = play(eight.graph, eight.hosts, without_control(), incasts(8), true);
    EXPECT_EQ(ran.told, simulate_whole(eight, without_control(), incasts(8), {}));
    EXPECT_EQ(ran.skipped, 7U);
    EXPECT_EQ(ran.simulated, play(one.graph, one.hosts, without_control(), incasts(1), true).simulated);
    EXPECT_EQ(ran.counters.data_packets, 8U * 2 * 245);  // 1 MB in packets of 4096 B
  }
}

// Every port draws its own random numbers, so rails on which packets are marked at random are not alike.
TEST(Twins, PartWhenRandomNumbersAreDrawn) {
  PacketSpec spec;
  spec.congestion_control.kind = CongestionControlKind::dcqcn;
  spec.ecn.kmin = 20_KiB, spec.ecn.kmax = 800_KiB;
  const Fabric fabric = rails(4, FlowControl::pfc);
  const Ran ran = play(fabric.graph, fabric.hosts, spec, incasts(4), true);
  EXPECT_EQ(ran.told, simulate_whole(fabric, spec, incasts(4), {}));
  EXPECT_GT(ran.counters.draws, 0U);
  EXPECT_EQ(ran.skipped, 0U);
  EXPECT_NE(ran.told[0].time - at(0_us), ran.told[2].time - at(0_us));  // of two rails
}

// Two cables have two lanes of buffer, one of their sum's speed has one: with shallow lanes not the same.
TEST(Twins, HaveAsManyCables) {
  Fabric two = rails(2, FlowControl::credit);
  for (PortIndex p = 0; p < two.graph.ports.size() / 2; ++p) two.graph.ports[p].cables = 2;
  PacketSpec spec = without_control();
  spec.lanes.buffer = 12_KiB;  // of a round trip's 50 KB and sixteen packets
  const Ran ran = play(two.graph, two.hosts, spec, incasts(2), true);
  EXPECT_EQ(ran.told, simulate_whole(two, spec, incasts(2), {}));
  EXPECT_EQ(ran.skipped, 0U);
}

// Rails that begin alike and then do, or do not, get a further message. Some of them repeat each other later.
TEST(Twins, PartWhenTheirMessagesDo) {
  std::mt19937_64 random(11);
  std::uint64_t skipped = 0;
  for (int i = 0; i < 200; ++i) {
    const FlowControl control = random() % 2 == 0 ? FlowControl::pfc : FlowControl::credit;
    const auto count = static_cast<std::uint32_t>(2 + random() % 4);
    const Fabric fabric = rails(count, control);
    PacketSpec spec;
    const CongestionControlKind kinds[] = {CongestionControlKind::none, CongestionControlKind::dcqcn,
                                           CongestionControlKind::hpcc, CongestionControlKind::infiniband};
    spec.congestion_control.kind = kinds[random() % 4];
    spec.ecn.kmin = 20_KiB, spec.ecn.kmax = 800_KiB;
    std::vector<Sent> sent;
    SimTime time{};
    for (int k = 0; k < 12; ++k) {
      const std::size_t from = random() % 3, to = (from + 1 + random() % 2) % 3;
      const Bytes bytes(static_cast<std::int64_t>(1 + random() % 300'000));
      for (std::size_t r = 0; r < count; ++r)
        if (random() % 10 != 0) sent.push_back({time, 3 * r + from, 3 * r + to, bytes});
      // Within an instant, while they are busy, and at rest.
      if (random() % 2 == 0) time += Duration(static_cast<std::int64_t>(random() % 9'000'000));
      if (random() % 5 == 0) time += 2_ms;
    }
    SCOPED_TRACE(testing::Message() << "case " << i);
    const Ran ran = play(fabric.graph, fabric.hosts, spec, sent, true);
    ASSERT_EQ(ran.told, play(fabric.graph, fabric.hosts, spec, sent, false).told);
    skipped += ran.skipped;
  }
  EXPECT_GT(skipped, 200U);
}

// Three rails repeat the first of two messages, leave the record together when the second does not come, and
// part when one of them gets another one. Before, each is answered at the instant in which it is complete,
// when its last acknowledgement leaves, too: an engine that had the answer early would send it first.
TEST(Twins, ThatLeaveARecordTogetherHaveOneEngine) {
  PacketSpec spec;
  spec.congestion_control.kind = CongestionControlKind::hpcc;
  const Fabric fabric = rails(3, FlowControl::pfc);
  const std::vector<Told> alone = simulate_whole(fabric, spec, {{at(0_us), 0, 2, 1'000'000_B}}, {});
  const SimTime again = at(3'000_us), answer = again + alone.front().time.time_since_epoch();
  std::vector<Sent> sent;
  const auto send = [&](SimTime time, std::size_t from, std::size_t to) {
    for (std::size_t r = 0; r < 3; ++r) sent.push_back({time, 3 * r + from, 3 * r + to, 1'000'000_B});
  };
  send(at(0_us), 0, 2);
  send(at(1_us), 1, 2);
  send(again, 0, 2);
  send(answer, 2, 0);
  sent.push_back({answer + 5_us, 3 + 1, 3 + 2, 500'000_B});
  const Ran ran = play(fabric.graph, fabric.hosts, spec, sent, true);
  EXPECT_EQ(ran.told, play(fabric.graph, fabric.hosts, spec, sent, false).told);
}
}  // namespace topsim::network::packet::twins_test
