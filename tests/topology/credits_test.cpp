#include "topology/credits.hpp"

#include <gtest/gtest.h>

namespace topsim::topology::credits_test {
using namespace topsim::literals;

// Packets of 4096 + 26 B take 65 blocks of 64 B, so 2047 credits are 31 packets, 126,976 B. Over 2 us there
// and 3 us back that is 25.4 GB/s a cable in both directions, whichever is the slower one, twice that with
// two cables. Packets of 1 KiB take 17 blocks: 120 packets, 122,880 B.
TEST(Credits, BoundTheRateByTheWayThereAndBack) {
  TopologyBuilder builder;
  builder.set_nodes(1);
  const auto usual = builder.link_type({"ib-ndr", "NDR", "test"});
  const auto small =
      builder.link_type({"ib-small", "small packets", "test", "", payload_on_the_way(1_KiB, 26_B)});
  const Topology topology = std::move(builder).finish();
  Link there, back;
  there.type = back.type = usual;
  there.latency = 2_us, back.latency = 3_us;
  EXPECT_NEAR(credit_bound(topology, there, back).value(), 126'976 / 5e-6, 1);
  EXPECT_NEAR(credit_bound(topology, back, there).value(), 126'976 / 5e-6, 1);
  there.count = back.count = 2;
  EXPECT_NEAR(credit_bound(topology, there, back).value(), 2 * 126'976 / 5e-6, 1);
  there.type = small;
  EXPECT_NEAR(credit_bound(topology, there, back).value(), 2 * 122'880 / 5e-6, 1);
}

TEST(Credits, AreWaitedForWhereTheyAreTheCapacityOfInfiniband) {
  TopologyBuilder builder;
  builder.set_nodes(1);
  Link there, back;
  there.type = back.type = builder.link_type({"ib-ndr", "NDR", "test"});
  const Topology topology = std::move(builder).finish();
  there.kind = back.kind = LinkKind::infiniband;
  there.latency = 2_us, back.latency = 3_us;
  there.capacity = BytesPerSecond(126'976 / 5e-6);
  EXPECT_TRUE(waits_for_credits(topology, there, back));
  there.capacity = 25_GBps;
  EXPECT_FALSE(waits_for_credits(topology, there, back));
  there.capacity = 50_GBps, there.kind = LinkKind::ethernet;
  EXPECT_FALSE(waits_for_credits(topology, there, back));
  // At 50 GB/s 126,976 B last 2.54 us: half of that, 1.27 us one way, may be too long.
  there.kind = LinkKind::infiniband, there.line_rate = 50_GBps, there.latency = 1280_ns;
  EXPECT_TRUE(may_wait_for_credits(topology, there));
  there.latency = 1260_ns;
  EXPECT_FALSE(may_wait_for_credits(topology, there));
}
}  // namespace topsim::topology::credits_test
