#include "topology/host_memory.hpp"

#include <gtest/gtest.h>

#include "tests/topology/fixtures.hpp"

namespace topsim::topology::test {

// The box has two sockets with four accelerators and a memory each.
TEST(HostMemory, IsThatOfTheAcceleratorsOwnSocket) {
  const Topology topology = build(cluster("hgx-h100", 2), catalogue());
  const auto accelerators = topology.accelerators();
  ASSERT_EQ(accelerators.size(), 16u);
  for (std::size_t a = 0; a < accelerators.size(); ++a) {
    const auto memory = nearest_host_memory(topology, accelerators[a]);
    ASSERT_TRUE(memory);
    EXPECT_EQ(topology.device(*memory).kind, DeviceKind::host_memory);
    EXPECT_EQ(topology.device(*memory).node, a / 8);
    EXPECT_EQ(topology.device(*memory).local, a % 8 / 4);
  }
}
}  // namespace topsim::topology::test
