// What waits for a port when PFC stops its senders.
#include "sim/network/packet/pfc_queue.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/packet/setups.hpp"

namespace topsim::network::packet::pfc_queue_test {

std::vector<SwitchPort> leaf(std::size_t below, std::size_t above, BytesPerSecond up = 400_Gbitps) {
  std::vector<SwitchPort> ports(below, {400_Gbitps, 500_ns, 500_ns, false});
  ports.resize(below + above, {up, 500_ns, 500_ns, true});
  return ports;
}

// A port has 500 ns x 50 GB/s = 25 KB on its cable, three times that as headroom, and 4,096 B of its own:
// 79,096 B, times twelve 949,152 B. 10 MB remain to be shared. At 2:1 all eight below fill the four above:
// they hold 8/8 / (1 + 8/8) of it, 1.25 MB for each port above. At 1:1 four of them do: 4/8 / (1 + 4/8) =
// 1/3. In bytes of a port of half the rate it is half.
TEST(PfcQueue, IsTheShareOfTheBufferThatAllIngressesMayHold) {
  const PfcQueue queue(leaf(8, 4), PacketSpec{}, 50e9);
  const Bytes total(10'949'152);
  EXPECT_NEAR(queue.queue(total, 2, 400_Gbitps), 1.25e6, 1);
  EXPECT_NEAR(queue.queue(total, 1, 400_Gbitps), 10e6 / 12, 1);
  EXPECT_NEAR(queue.queue(total, 2, 200_Gbitps), 0.625e6, 1);
  EXPECT_NEAR(static_cast<double>(queue.total(1.25e6, 2, 400_Gbitps).value()), 10'949'152, 1);
  EXPECT_EQ(queue.queue(Bytes(100'000), 2, 400_Gbitps), 0);  // nothing is shared
}

// Ports above of twice the rate have twice as much on their cables (8 x 79,096 + 4 x 154,096 B are kept), and
// at load 1 all eight below fill them. Ports of twice the slowest rate have twice the alpha.
TEST(PfcQueue, CountsPortsByTheirRate) {
  const PfcQueue faster(leaf(8, 4, 800_Gbitps), PacketSpec{}, 50e9);
  EXPECT_NEAR(faster.queue(Bytes(11'249'152), 1, 800_Gbitps), 1.25e6, 1);
  EXPECT_NEAR(PfcQueue(leaf(8, 4), PacketSpec{}, 25e9).queue(Bytes(10'949'152), 2, 400_Gbitps), 10e6 / 6, 1);
}

TEST(PfcQueue, IsWithoutLimitWhereNothingIsKnown) {
  EXPECT_TRUE(std::isinf(PfcQueue().queue(Bytes(1), 2, 400_Gbitps)));
}

// Two leaves of sixteen at 2:1 under one another's eight spines, without congestion control: the longest
// queue of the packets is what the formula says, and a few packets that were on the cables.
TEST(PfcQueue, IsTheLongestQueueOfPackets) {
  const Fabric fabric = leaf_spine(2, 16, 8, {400_Gbitps, 500_ns});
  PacketSpec spec;
  spec.path = PathChoice::adaptive;
  spec.congestion_control.kind = CongestionControlKind::none;
  spec.ack_every = 4;
  std::vector<Flow> flows;
  for (std::size_t i = 0; i < 32; ++i) flows.push_back({i, (i + 16) % 32, 4_MiB});
  for (const std::int64_t megabytes : {10, 20}) {
    spec.buffer.total = Bytes(megabytes * 1'000'000);
    const Outcome outcome = run_flows(fabric, flows, spec);
    const double expected = PfcQueue(leaf(16, 8), spec, 50e9).queue(*spec.buffer.total, 2, 400_Gbitps);
    EXPECT_NEAR(static_cast<double>(outcome.most_waiting.value()) / expected, 1.05, 0.1);
  }
}
}  // namespace topsim::network::packet::pfc_queue_test
