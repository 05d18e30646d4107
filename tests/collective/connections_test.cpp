// How many connections a message between boxes is divided over.
#include <gtest/gtest.h>

#include <utility>

#include "sim/collective/usage.hpp"
#include "tests/collective/lowering_fixtures.hpp"

namespace topsim::collective::connections_test {

using namespace fixtures;
using topology::DeviceKind;

// A connection for every 14 GB/s: of 400 Gbit/s four (50 / 14), of 200 two, of 100 one. Among 64 ranks each
// of 16 channels would have 4 x 8 sends, so two; among 512 one. Where no path depends on it, one says it all.
TEST(Connections, AreAsManyAsNcclOpensWherePathsAreHashed) {
  const auto parts = [](const char* node, const char* link) {
    const Cluster two(boxes(node, 2, link));
    const auto gpus = two.topology.accelerators();
    return two.nccl.message_parts(Bytes(1 << 20), gpus[0], gpus[8]).size();
  };
  EXPECT_EQ(parts("hgx-h100", "roce-400g"), 4U);
  EXPECT_EQ(parts("hgx-h100", "roce-200g"), 2U);
  EXPECT_EQ(parts("hgx-h100", "roce-100g"), 1U);
  EXPECT_EQ(parts("hgx-h100", "ib-ndr"), 1U);
  const Cluster two(boxes("hgx-h100", 2, "roce-400g"));
  UsageBuilder usage(two.router);
  const auto gpus = two.topology.accelerators();
  for (const auto& [ranks, connections] : {std::pair{2U, 4U}, {32U, 4U}, {64U, 2U}, {512U, 1U}}) {
    usage.share_channels(ranks, 16);
    EXPECT_EQ(usage.connections(gpus[0], gpus[8]), connections) << ranks;
  }
}

// Each NIC of Alibaba HPN has a port in either of two planes: a stage's answer takes both.
TEST(Connections, TakeBothPortsOfANicOnTwoLeaves) {
  topology::TopologySpec spec = boxes("hgx-h800", 64);
  spec.fabric = {};
  spec.fabric.use = "alibaba-hpn7";
  const Cluster cluster(spec);
  const auto gpus = cluster.topology.accelerators();
  Activity activity;
  cluster.nccl.lower_message(gpus[0], gpus[8], 0, activity);
  int ports = 0;
  for (const topology::LinkShare& use : activity.usage)
    if (cluster.topology.device(cluster.topology.link(use.link).from).kind == DeviceKind::nic &&
        cluster.topology.device(cluster.topology.link(use.link).to).kind == DeviceKind::fabric_switch) {
      EXPECT_NEAR(use.share, 0.5, 1e-9);
      ++ports;
    }
  EXPECT_EQ(ports, 2);
}
// Two sockets of four H200 each with NVLink only inside a socket: from GPU 3 to GPU 4 NCCL goes through host
// memory, at 25.1 GB/s over two sockets (ring_rates.cpp), unless it is told to write.
TEST(Connections, OverPcieAMessagePassesThroughHostMemory) {
  const auto cap = [](std::size_t to, Overrides overrides) {
    const Cluster box(boxes("h200-nvl-8", 1), overrides);
    const auto gpus = box.topology.accelerators();
    Activity activity;
    box.nccl.lower_message(gpus[3], gpus[to], 0, activity);
    EXPECT_FALSE(activity.host_copies);  // of sockets
    return activity.cap.value() / 1e9;
  };
  EXPECT_NEAR(cap(4, {}), 25.1, 1e-9);
  EXPECT_EQ(cap(2, {}), 0);
  Overrides writes;
  writes.p2p_level = PeerLevel::sys;
  EXPECT_EQ(cap(4, writes), 0);
}
}  // namespace topsim::collective::connections_test
