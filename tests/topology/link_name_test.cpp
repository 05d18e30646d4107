#include "topology/link_name.hpp"

#include <gtest/gtest.h>

namespace topsim::topology::link_name_test {
using namespace topsim::literals;

std::string name(LinkKind kind, const char* label, std::uint16_t cables, BytesPerSecond line_rate) {
  TopologyBuilder builder;
  builder.set_nodes(1);
  const auto type = builder.link_type({"a", label, "test"});
  const DeviceId a = builder.device({DeviceKind::accelerator, 0, 1, 0, 0, builder.model("gpu")});
  const DeviceId b = builder.device({DeviceKind::nic, 0, 1, 0, 0, builder.model("nic")});
  builder.cable({a, b, kind, cables, type, {}, line_rate, line_rate, 0_ns});
  const Topology topology = std::move(builder).finish();
  return name_with_speed(topology, topology.links().front());
}

// 18 NVLinks of 25 GB/s each way are 450 GB/s.
TEST(LinkName, SaysTheSpeedOfAllItsCablesTogether) {
  EXPECT_EQ(name(LinkKind::nvlink, "NVLink 4", 18, 450_GBps), "NVLink 4 x18, 450 GB/s");
  EXPECT_EQ(name(LinkKind::pcie, "PCIe Gen5 x16", 1, 64_GBps), "PCIe Gen5 x16, 64 GB/s");
}

TEST(LinkName, OfANetworkSaysTheSpeedOfACableAlready) {
  EXPECT_EQ(name(LinkKind::infiniband, "InfiniBand NDR 400 Gbit/s", 1, 50_GBps), "InfiniBand NDR 400 Gbit/s");
  EXPECT_EQ(name(LinkKind::ethernet, "RoCEv2 on 400GbE", 2, 100_GBps), "RoCEv2 on 400GbE x2");
}
}  // namespace topsim::topology::link_name_test
