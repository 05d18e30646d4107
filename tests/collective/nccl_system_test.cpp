// What NCCL would read of a box of the catalogue.
#include <gtest/gtest.h>

#include <span>
#include <tuple>

#include "sim/collective/nccl/system.hpp"
#include "tests/topology/fixtures.hpp"

namespace topsim::collective::nccl::system_test {

System system_of(const char* node) {
  const topology::Topology t =
      topology::build(topology::test::cluster(node, 2, "rail"), topology::test::catalogue());
  const std::uint32_t first = 0;
  return {t, std::span(&first, 1), t.accelerators().subspan(0, t.accelerators().size() / 2), true, true};
}

// A port is as fast as its cable, once; what joins it to the accelerator on whose die it sits is no second
// cable, and no PCIe slot that would cost a quarter.
TEST(System, APortOnAnAcceleratorsDieHasTheRateOfItsCable) {
  // Gaudi 2 and 3: 24 ports of 100 and 200 Gbit/s; MI250X and Ascend 910B: 200 Gbit/s Slingshot and RoCE.
  for (const auto& [node, ports, rate] :
       {std::tuple("gaudi2-8", 24, 12.5F), std::tuple("gaudi3-8", 24, 25.F), std::tuple("mi250x-4", 4, 25.F),
        std::tuple("ascend-910b-8", 8, 25.F)}) {
    const System system = system_of(node);
    ASSERT_EQ(system.nets(), ports) << node;
    for (int n = 0; n < ports; ++n) {
      EXPECT_EQ(system.net(n).bandwidth, rate) << node;
      EXPECT_LE(system.net(n).wire, rate) << node;
    }
    EXPECT_EQ(system.gpu_to_net(0, 0).bandwidth, rate) << node;
  }
}

// Beyond PCIe it is what it was: NCCL takes Gen4 x16 to carry 24 GB/s.
TEST(System, APortBehindPcieIsReachedAtTheSlotsRate) {
  const System system = system_of("dgx-a100");
  EXPECT_EQ(system.net(0).bandwidth, 25);
  EXPECT_EQ(system.gpu_to_net(0, 0).bandwidth, 24);
}
}  // namespace topsim::collective::nccl::system_test
