// NVLSTree step by step: what crosses the NICs, and its time against the pipelined form.
#include <gtest/gtest.h>

#include <map>

#include "tests/scenario/step_plans.hpp"

namespace topsim::scenario::nvls_tree_packets_test {
using step_plans::Planned;

constexpr Bytes kSum(64 << 20);

Scenario four_boxes(const std::string& network, const std::string& form) {
  return step_plans::boxes("hgx-h100", 4, R"("kind": "rail", "link": "ib-ndr", "switch": "qm9700")", network,
                           form, "nvls-tree");
}

Planned planned() {
  return step_plans::planned_all_reduce(four_boxes("packet", "steps"), kSum);
}

// The eight heads send half of their 64 MiB over each of two trees: 0 - 2 with 1 and 3 below 2, and its
// mirror, 3 - 1 with 2 and 0 below 1. A box at an end (0, 3) sends 32 MiB down as the root of one tree and 32
// MiB up as a leaf of the other. An inner box (1, 2) sends 32 MiB up and 2 x 32 MiB down in one tree, and 32
// MiB up as a leaf of the other.
TEST(NvlsTree, SendsHalfOfEveryShareOverEitherOfTwoTrees) {
  const auto [topology, plan] = planned();
  EXPECT_EQ(plan.choice.algorithm, collective::Algorithm::nvls_tree);
  std::map<std::uint32_t, std::int64_t> sent, received;  // by box
  for (const collective::StepMessage& message : plan.messages) {
    if (!message.from_nic.valid()) continue;
    sent[topology.device(message.from_nic).node] += message.bytes.value();
    received[topology.device(message.to_nic).node] += message.bytes.value();
  }
  for (const std::uint32_t end : {0U, 3U}) EXPECT_EQ(sent[end], kSum.value()) << end;
  for (const std::uint32_t inner : {1U, 2U}) EXPECT_EQ(sent[inner], 2 * kSum.value()) << inner;
  EXPECT_EQ(sent, received);
}

// The last messages bring the sum over the NVSwitches to every GPU of every box: 64 MiB each.
TEST(NvlsTree, BringsEveryByteOfTheSumToEveryGpu) {
  const auto [topology, plan] = planned();
  const auto ranks = static_cast<std::uint32_t>(topology.accelerators().size());
  std::vector<bool> waited_for(plan.messages.size(), false);
  for (const std::uint32_t message : plan.after) waited_for[message] = true;
  std::vector<std::int64_t> come(ranks, 0);
  for (std::size_t m = 0; m < plan.messages.size(); ++m)
    if (!waited_for[m] && plan.messages[m].to < ranks)
      come[plan.messages[m].to] += plan.messages[m].bytes.value();
  for (std::uint32_t rank = 0; rank < ranks; ++rank) EXPECT_EQ(come[rank], kSum.value()) << rank;
}

// The pipelined form runs at the tuner's rate from the first byte. In steps a piece of 64 KiB (1.4 us on a
// NIC) goes on only when it has arrived, over three levels up and down and twice in the box: within 5 %.
TEST(NvlsTree, TakesAsLongInPacketsAsInTheFluid) {
  const auto time = [&](const char* network, const char* form) {
    return step_plans::all_reduce_microseconds(four_boxes(network, form), kSum);
  };
  const double packets = time("packet", "steps"), steps = time("flow", "steps"),
               whole = time("flow", "pipelined");
  EXPECT_NEAR(steps, whole, 0.05 * whole);
  EXPECT_NEAR(packets, steps, 0.03 * steps);
}
}  // namespace topsim::scenario::nvls_tree_packets_test
