// How NCCL would see the NICs of nodes in the catalogue, and the paths to them.
#include <gtest/gtest.h>

#include <numeric>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/stack.hpp"
#include "sim/collective/nccl/search.hpp"
#include "sim/collective/nccl/system.hpp"
#include "tests/topology/fixtures.hpp"

namespace topsim::collective::nccl::system_test {

System system_of(const char* node) {
  const topology::Topology t = topology::build(topology::test::cluster(node, 2, topology::FabricKind::rail),
                                               topology::test::catalogue());
  const std::uint32_t first = 0;
  return {t, std::span(&first, 1), t.accelerators().subspan(0, t.accelerators().size() / 2), true, {}};
}

// A network port on the accelerator's die has the rate of its cable. The link between the two on the die is
// not a second cable, which would double the rate, and no PCIe slot, of which NCCL counts only three
// quarters.
TEST(System, APortOnAnAcceleratorsDieHasTheRateOfItsCable) {
  // GB/s: Gaudi 2 and 3 have 24 ports of 100 and 200 Gbit/s, MI250X Slingshot and Ascend 910B RoCE of
  // 200 Gbit/s.
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

// A NIC behind PCIe has its 25 GB/s (HDR), but its path only the 24 GB/s that NCCL assumes for Gen4 x16.
TEST(System, APortBehindPcieIsReachedAtTheSlotsRate) {
  const System system = system_of("dgx-a100");
  EXPECT_EQ(system.net(0).bandwidth, 25);
  EXPECT_EQ(system.gpu_to_net(0, 0).bandwidth, 24);
}

// Two GPUs under each PCIe switch, two switches a socket (NCCL 2.30 graph/paths.cc, ncclTopoCheckP2p: by
// itself PXB, so never through a processor; GKE sets NCCL_P2P_LEVEL to PHB and SYS for such boxes).
TEST(System, GpusWriteToEachOtherAsFarAsTheLevelSays) {
  const topology::Topology t =
      topology::build(topology::test::cluster("rtx-pro-6000-8gpu", 1), topology::test::catalogue());
  const std::uint32_t first = 0;
  const auto staged = [&](std::size_t gpus, std::optional<PeerLevel> level) {
    return System(t, std::span(&first, 1), t.accelerators().subspan(0, gpus), false, {.peers = level})
        .through_host_memory();
  };
  for (const auto& [gpus, reach] :
       {std::pair(std::size_t{2}, PeerLevel::pix), std::pair(std::size_t{4}, PeerLevel::phb),
        std::pair(std::size_t{8}, PeerLevel::sys)}) {
    EXPECT_FALSE(staged(gpus, reach)) << gpus;
    EXPECT_TRUE(staged(gpus, static_cast<PeerLevel>(static_cast<int>(reach) - 1))) << gpus;
    EXPECT_EQ(staged(gpus, {}), gpus > 2) << gpus;
  }
}

// A domain of more GPUs than NCCL takes, 576, has the rings of one at the limit, and keeps off PCIe. 72 nodes
// of 8 NPUs with 392 GB/s each: 26 channels of 15 GB/s (the search's next lower rate with more together).
TEST(System, ADomainBeyondTheLimitHasTheRingsOfOneAtIt) {
  const auto rings = [](const char* node, std::uint32_t nodes) {
    topology::TopologySpec spec =
        topology::test::cluster(node, static_cast<int>(nodes), topology::FabricKind::none);
    spec.scale_up_domain = static_cast<int>(nodes);
    const topology::Topology t = topology::build(spec, topology::test::catalogue());
    std::vector<std::uint32_t> all(nodes);
    std::iota(all.begin(), all.end(), 0);
    return search({t, all, t.accelerators(), false, {}}, {});
  };
  for (const auto& [node, at_limit] : {std::pair("cloudmatrix-384", 72U), std::pair("gb200-nvl72", 144U)}) {
    const ChannelGraph searched = rings(node, at_limit), beyond = rings(node, at_limit + 1);
    EXPECT_GT(searched.count(), 2) << node;
    EXPECT_EQ(beyond.count(), searched.count()) << node;
    EXPECT_EQ(beyond.bandwidth_intra, searched.bandwidth_intra) << node;
    EXPECT_EQ(beyond.type_intra, PathType::nvl) << node;
  }
}

// The search visits all GPUs of all channels one inside the other: 576 in 26 channels took more than 4 MiB.
TEST(System, TheRingsOfALargeDomainAreFoundOnASmallStack) {
  constexpr int kNodes = 72;
  topology::TopologySpec spec =
      topology::test::cluster("cloudmatrix-384", kNodes, topology::FabricKind::none);
  spec.scale_up_domain = kNodes;
  const topology::Topology t = topology::build(spec, topology::test::catalogue());
  std::vector<std::uint32_t> all(kNodes);
  std::iota(all.begin(), all.end(), 0);
  const System system(t, all, t.accelerators(), false, {});
  int channels = 0;
  on_stack_of(1 << 20, [&] { channels = search(system, {}).count(); });
  EXPECT_EQ(channels, 26);
}
}  // namespace topsim::collective::nccl::system_test
