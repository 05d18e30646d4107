// Accelerators that reach only a NIC of their own, because no bus joins them.
#include <gtest/gtest.h>

#include "tests/topology/fixtures.hpp"

namespace topsim::topology::test::own_nics_test {
using namespace topsim::literals;

// Two nodes; each accelerator's only way out is its NIC, and all four NICs are on one switch.
Topology apart() {
  TopologyBuilder builder;
  builder.set_nodes(2);
  const auto slot = builder.link_type({"pcie", "PCIe", "test"}),
             wire = builder.link_type({"eth", "Ethernet", "test"});
  const auto gpu = builder.model("gpu"), nic = builder.model("nic"), box = builder.model("box");
  const DeviceId leaf = builder.device({DeviceKind::fabric_switch, 1, 1, Id<void>::kNone, 0, box});
  for (std::uint32_t node = 0; node < 2; ++node) {
    for (std::uint32_t i = 0; i < 2; ++i) {
      const DeviceId a = builder.device({DeviceKind::accelerator, 0, 1, node, i, gpu});
      const DeviceId port = builder.device({DeviceKind::nic, 0, 1, node, i, nic});
      builder.cable({a, port, LinkKind::pcie, 1, slot, {}, 55_GBps, 64_GBps, 0_ns});
      builder.cable({port, leaf, LinkKind::ethernet, 1, wire, {}, 49_GBps, 50_GBps, 0_ns});
    }
  }
  return std::move(builder).finish();
}

// A ring's channel names nic0 for every accelerator of a node. gpu1 cannot reach nic0, so its own NIC takes
// over.
TEST(OwnNics, TakeOverFromThoseThatAnAcceleratorCannotReach) {
  const Topology t = apart();
  const Router router(t, 1);
  const Route r = route_by(router, {"node0/gpu1", "node1/gpu0"}, {"node0/nic0", "node1/nic0"});
  EXPECT_TRUE(r.reachable());
  EXPECT_EQ(path_of(t, r), "gpu1 nic1 leaf0 node1/nic0 node1/gpu0");
}
}  // namespace topsim::topology::test::own_nics_test
