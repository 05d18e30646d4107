// NVLSTree step by step: what crosses the NICs, and how long it takes beside the pipelined form.
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

// Of the eight heads' shares, 64 MiB together, half goes over either of two trees: 0 - 2 with 1 and 3 below,
// and its mirror, 3 - 1 with 2 and 0 below. An end of the first sends 32 MiB down as a root and 32 MiB up as
// a leaf of the other; an inner box sends 32 MiB up and 2 x 32 MiB down, and 32 MiB up as a leaf.
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

// Every GPU of every box has the sum last, over the NVSwitch: 64 MiB come down to each.
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

// The pipelined form moves at the tuner's rate from the first byte; a piece of 64 KiB (1.4 us on a NIC) is
// sent on when it has come, over three levels there and back and twice in the box: 5 %.
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
