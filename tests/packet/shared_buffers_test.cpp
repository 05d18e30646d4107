// Flows that share nothing but a switch's buffer are simulated apart until a threshold could be reached. The
// answer must be that of one engine for all.
#include <gtest/gtest.h>

#include <random>

#include "tests/packet/play.hpp"

namespace topsim::network::packet::shared_buffers_test {

PacketSpec with_buffer(Bytes total) {
  PacketSpec spec;
  spec.congestion_control.kind = CongestionControlKind::none;
  spec.buffer.total = total;
  return spec;
}

// Two flows through one switch, 10 messages of 1 MB (21 us) every 100 us and every 130 us, the second 40 us
// later: each repeats its first message, and the second flow the first one's. A buffer of which 0.5 MB are
// shared is too small to be certain: 0.2 MB may come in within 1 us, and 0.05 MB by one port, for which 8
// times as much must be free. That makes no difference to what happens, as nothing waits, but more events.
TEST(SharedBuffers, ThatNobodyFillsLeaveFlowsApart) {
  const Fabric fabric = star(4, {400_Gbitps, 500_ns});
  std::vector<Sent> sent;
  for (int k = 0; k < 10; ++k) {
    sent.push_back({at(k * 100_us), 0, 1, 1'000'000_B});
    sent.push_back({at(40_us + k * 130_us), 2, 3, 1'000'000_B});
  }
  std::stable_sort(sent.begin(), sent.end(), [](const Sent& a, const Sent& b) { return a.time < b.time; });
  const Ran apart = play(fabric.graph, fabric.hosts, with_buffer(32_MiB), sent, true);
  const Ran joined = play(fabric.graph, fabric.hosts, with_buffer(800'000_B), sent, true);
  EXPECT_EQ(apart.told, simulate_whole(fabric, with_buffer(32_MiB), sent, {}));
  EXPECT_EQ(apart.skipped, 19U);
  EXPECT_EQ(joined.told, apart.told);
  EXPECT_GT(joined.simulated, apart.simulated);
}

// Three senders to host 0 fill the buffer, so that the flow from 4 to 5 gets less of it: what it has there
// counts in the senders' threshold. Simulated apart, they would be paused later.
TEST(SharedBuffers, ThatFillUpJoinTheirFlows) {
  const Fabric fabric = star(8, {400_Gbitps, 500_ns});
  const PacketSpec spec = with_buffer(4_MiB);
  std::vector<Sent> sent{
      {at(0_us), 1, 0, 2'000'000_B}, {at(0_us), 2, 0, 2'000'000_B}, {at(0_us), 3, 0, 2'000'000_B}};
  const std::vector<Told> alone = simulate_whole(fabric, spec, sent, {});
  for (const std::size_t from : {4U, 5U, 6U}) sent.push_back({at(1_us), from, 7, 2'000'000_B});
  const Ran ran = play(fabric.graph, fabric.hosts, spec, sent, true);
  const std::vector<Told> whole = simulate_whole(fabric, spec, sent, {});
  EXPECT_EQ(ran.told, whole);
  EXPECT_GT(ran.counters.pauses, 0U);
  EXPECT_NE(alone.front().time, whole.front().time);  // it does make a difference
}

// Buffers of all sizes, with dynamic thresholds, a static one, and without flow control.
TEST(SharedBuffers, OfRandomTrafficEndItAsOneEngineDoes) {
  std::mt19937_64 random(5);
  std::uint64_t pauses = 0, drops = 0, skipped = 0;
  for (int i = 0; i < 300; ++i) {
    const FlowControl control = random() % 4 == 0 ? FlowControl::none : FlowControl::pfc;
    const LinkFigures link{400_Gbitps, 500_ns, control};
    const Fabric fabric = random() % 2 == 0 ? star(9, link) : leaf_spine(3, 3, 2, link);
    const std::int64_t least = control == FlowControl::none ? 300'000 : 2'000'000;
    PacketSpec spec = with_buffer(Bytes(least + static_cast<std::int64_t>(random() % 8) * least / 2));
    if (random() % 4 == 0) spec.pfc.xoff = Bytes(static_cast<std::int64_t>(20'000 + random() % 200'000));
    if (random() % 3 == 0) spec.congestion_control.kind = CongestionControlKind::dcqcn;
    spec.path = PathChoice::flow_hash;
    std::vector<Sent> sent;
    SimTime time{};
    for (int k = 0; k < 30; ++k) {
      if (random() % 2 == 0) time += Duration(static_cast<std::int64_t>(random() % 30'000'000));
      if (random() % 8 == 0) time += 3_ms;
      const std::size_t from = random() % 9, to = (from + 1 + random() % (random() % 2 == 0 ? 8 : 1)) % 9;
      sent.push_back({time, from, to, Bytes(static_cast<std::int64_t>(200'000 * (1 + random() % 4)))});
    }
    SCOPED_TRACE(testing::Message() << "case " << i);
    const Ran ran = play(fabric.graph, fabric.hosts, spec, sent, true);
    ASSERT_EQ(ran.told, simulate_whole(fabric, spec, sent, {}));
    pauses += ran.counters.pauses, drops += ran.counters.drops, skipped += ran.skipped;
  }
  EXPECT_GT(pauses, 0U);
  EXPECT_GT(drops, 0U);
  EXPECT_GT(skipped, 0U);
}

// Hashed ways there and back differ, so leaves and spines send XOFF by ports that carry nothing else of the
// flow. They belong to it all the same: to its region, and to its record.
TEST(SharedBuffers, SendXoffByPortsOffTheWay) {
  const Fabric fabric = leaf_spine(3, 3, 4, {400_Gbitps, 500_ns});
  PacketSpec spec = with_buffer(3'000'000_B);
  spec.path = PathChoice::flow_hash;
  std::vector<Sent> sent;
  for (int k = 0; k < 3; ++k)
    for (std::size_t from = 3; from < 9; ++from) sent.push_back({at(k * 10_ms), from, 0, 2'000'000_B});
  const Ran ran = play(fabric.graph, fabric.hosts, spec, sent, true);
  EXPECT_EQ(ran.told, simulate_whole(fabric, spec, sent, {}));
  EXPECT_GT(ran.counters.pauses, 0U);
  EXPECT_EQ(ran.skipped, 2U);
}
}  // namespace topsim::network::packet::shared_buffers_test
