// What sets the pace of trees inside boxes and between them.
#include <gtest/gtest.h>

#include "tests/collective/lowering_fixtures.hpp"

namespace topsim::collective::time_tree_test {
using namespace fixtures;

// 64 MiB of a tree. Over PCIe every inner GPU of a chain sends a byte up and down whatever the number of
// boxes, so two are no faster than one.
TEST(TimeTree, ATreeOverPcieBoxesIsNotFasterThanInOne) {
  const auto took = [](std::uint32_t nodes) {
    const Form form{"rtx-pro-6000-8gpu", nodes, "ib-ndr", Algorithm::tree, Protocol::simple, 0};
    return seconds(bench(form, false, {Bytes(64 << 20), Bytes(64 << 20), 2})[0].time);
  };
  EXPECT_GE(took(2), took(1));
  EXPECT_LT(took(2), 1.2 * took(1));
}

// A chain of eight A100 behind one NIC: pieces of 512 KiB and two channels at 1 MiB. Only the two hops
// between the boxes wait for the NIC, each 0.75 x 1 MiB / 0.985 of its rate, so at 25 Gbit/s (3.125 GB/s)
// instead of 100 they take 2 x (0.255 - 0.064) = 0.382 ms longer.
TEST(TimeTree, ASlowNicDoesNotSlowTheHopsInsideABox) {
  const auto took = [](const char* link) {
    scenario::Scenario scenario;
    scenario.topology = boxes("hgx-a100", 2, link);
    scenario.topology.node.nics = 1;
    scenario.network.model = "flow";
    scenario.network.nccl = forced(Algorithm::tree, Protocol::simple);
    return seconds(scenario::bench(scenario, topology::test::catalogue(), CollectiveKind::all_reduce,
                                   {Bytes(1 << 20), Bytes(1 << 20), 2})
                       .rows[0]
                       .time);
  };
  EXPECT_NEAR(took("roce-25g") - took("roce-100g"), 0.382e-3, 0.03e-3);
}
}  // namespace topsim::collective::time_tree_test
