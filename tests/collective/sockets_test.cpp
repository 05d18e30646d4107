// NCCL over TCP: threads of the hosts copy every byte, and their rate bounds every collective, whatever the
// cables carry. One thread receives 5.25 GB/s and sends 11.125 GB/s (42 and 89 Gbit/s, sources in
// sockets.hpp).
#include "sim/collective/sockets.hpp"

#include <gtest/gtest.h>

#include "tests/collective/lowering_fixtures.hpp"

namespace topsim::collective::sockets_test {

using namespace fixtures;

constexpr DeviceId kA(0), kB(1), kC(2);

TEST(Sockets, OneThreadOfAnAcceleratorCopiesWhatItSendsAndReceives) {
  // A sends all bytes to B, which sends half of them on to C. The busiest thread is B's: it receives 1 GB in
  // 1 / 5.25 s and sends 0.5 GB in 0.5 / 11.125 s.
  EXPECT_NEAR(socket_cap({{kA, kB, 1, 1}, {kB, kC, 0.5, 1}}, 0) / 1e9, 1 / (1 / 5.25 + 0.5 / 11.125), 1e-9);
  EXPECT_EQ(socket_cap({}, 0), 0);
}

TEST(Sockets, HelpersCopyForOneConnectionEach) {
  // The byte is shared by two connections with two threads each: 4 x 5.25 GB/s = 21 GB/s.
  EXPECT_NEAR(socket_cap({{kA, kB, 1, 2}}, 2) / 1e9, 21, 1e-9);
}

// NCCL uses sockets where the NICs speak TCP, not over RoCE and not inside one node.
TEST(Sockets, AreNcclsWayOverTcpAlone) {
  EXPECT_TRUE(over_tcp(Cluster(boxes("hgx-h100", 2, "eth-200g")).topology));
  EXPECT_FALSE(over_tcp(Cluster(boxes("hgx-h100", 2, "roce-200g")).topology));
  EXPECT_FALSE(over_tcp(Cluster(boxes("hgx-h100", 1)).topology));
}

// Polaris, two nodes of four A100 and two NICs, all-reduce of S. A node's two rings enter and leave by
// different accelerators. Each ring carries S/2, of which 2 x 7/8 pass every edge, so one accelerator's
// thread receives 7/8 S: at most 5.25 / 0.875 = 6 GB/s, that is 2 x 7/8 x 6 = 10.5 GB/s of bus bandwidth. Its
// owners measured 9.5 and 8.4 (NCCL 2.18; in no constant), where the cables carry 47.
TEST(Sockets, BoundARingByWhatOneThreadReceives) {
  const Cluster polaris(boxes("polaris-a100", 2, "eth-200g"), forced(Algorithm::ring));
  const Activity activity = lowered(polaris, CollectiveKind::all_reduce, 8, std::int64_t{1} << 30);
  EXPECT_TRUE(activity.host_copies);
  EXPECT_NEAR(activity.cap.value() / 1e9, 6, 1e-6);
  const Cluster roce(boxes("polaris-a100", 2, "roce-200g"), forced(Algorithm::ring));
  EXPECT_FALSE(lowered(roce, CollectiveKind::all_reduce, 8, std::int64_t{1} << 30).host_copies);
}

// Four trays of one NVLink domain exchange all bytes over NVLink, none over a socket.
TEST(Sockets, LeaveTraysOfOneDomainAlone) {
  const Cluster trays(boxes("gb200-nvl72", 4, "eth-200g"));
  const Activity activity = lowered(trays, CollectiveKind::all_gather, 16, std::int64_t{1} << 30);
  EXPECT_FALSE(activity.host_copies);
  EXPECT_EQ(activity.cap, lowered(Cluster(boxes("gb200-nvl72", 4, "roce-200g")), CollectiveKind::all_gather,
                                  16, std::int64_t{1} << 30)
                              .cap);
}

TEST(Sockets, NeedHostMemorySoThatNcclHasNoLL128BetweenNodes) {
  const Bytes size(1 << 20);
  Overrides ll128;
  ll128.protocol = Protocol::ll128;
  const Cluster tcp(boxes("hgx-h100", 2, "eth-200g"), ll128), roce(boxes("hgx-h100", 2, "roce-200g"), ll128);
  EXPECT_NE(tcp.nccl.choose(CollectiveKind::all_reduce, size, tcp.topology.accelerators()).protocol,
            Protocol::ll128);
  EXPECT_EQ(roce.nccl.choose(CollectiveKind::all_reduce, size, roce.topology.accelerators()).protocol,
            Protocol::ll128);
}

// A single message is bound by the thread that receives it, 5.25 GB/s. With two helper threads per connection
// eight receive: over Ethernet NCCL opens a connection for every 14 of 50 GB/s.
TEST(Sockets, BoundMessagesOfAPipeline) {
  for (const int threads : {0, 2}) {
    Overrides overrides;
    overrides.socket_threads = threads;
    const Cluster two(boxes("h100x1", 2, "eth-400g"), overrides);
    Activity activity;
    two.nccl.lower_message(two.topology.accelerators()[0], two.topology.accelerators()[1], 0, activity);
    EXPECT_NEAR(activity.cap.value() / 1e9, threads == 2 ? 8 * 5.25 : 5.25, 1e-9);
  }
}

TEST(Sockets, BoundTheMessageFormAlike) {
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                    CollectiveKind::all_to_all, CollectiveKind::send_recv}) {
    const bool direct = kind == CollectiveKind::all_to_all || kind == CollectiveKind::send_recv;
    const Form form{"polaris-a100",   2,    "eth-200g", direct ? Algorithm::direct : Algorithm::ring,
                    Protocol::simple, 0.03, kind};
    const Bytes size(std::int64_t{256} << 20);
    const auto whole = bench(form, false, {size, size, 2}), steps = bench(form, true, {size, size, 2});
    EXPECT_TRUE(whole[0].host_copies);
    EXPECT_NEAR(seconds(steps[0].time) / seconds(whole[0].time), 1, form.tolerance) << static_cast<int>(kind);
  }
}

}  // namespace topsim::collective::sockets_test
