// NVLSTree step by step: what crosses the NICs, and how long it takes beside the pipelined form.
#include <gtest/gtest.h>

#include <map>

#include "sim/collective/collective.hpp"
#include "sim/config/reader.hpp"
#include "sim/scenario/bench.hpp"
#include "topology/build.hpp"

namespace topsim::scenario::nvls_tree_packets_test {

Scenario four_boxes(const char* network, const char* form) {
  const config::Library library({"configs"});
  return parse_scenario(
      std::string(R"({"topology": {"node": "hgx-h100", "nodes": 4, "fabric": {"kind": "rail",
              "link": "ib-ndr", "switch": "qm9700"}},
            "workload": {"model": "llama3-8b", "plan": {"tp": 8}, "sequence": 2048},
            "network": {"model": ")") +
          network + R"(", "collectives": ")" + form + R"(", "nccl": {"algorithm": "nvls-tree"}}})",
      "test.json", {}, library);
}

const topology::Catalogue& catalogue() {
  static const topology::Catalogue loaded = topology::Catalogue::load("configs");
  return loaded;
}

// Of the eight heads' shares, 64 MiB together, half goes over either of two trees: 0 - 2 with 1 and 3 below,
// and its mirror, 3 - 1 with 2 and 0 below. An end of the first sends 32 MiB down as a root and 32 MiB up as
// a leaf of the other; an inner box sends 32 MiB up and 2 x 32 MiB down, and 32 MiB up as a leaf.
TEST(NvlsTree, sends_half_of_every_share_over_either_of_two_trees) {
  const Scenario scenario = four_boxes("packet", "steps");
  const topology::Topology topology = topology::build(scenario.topology, catalogue(), {});
  const topology::Router router(topology, 1);
  const collective::NcclModel nccl(router, scenario.network.nccl);
  const collective::StepPlan plan =
      nccl.steps(collective::CollectiveKind::all_reduce, Bytes(64 << 20), topology.accelerators());
  EXPECT_EQ(plan.choice.algorithm, collective::Algorithm::nvls_tree);
  std::map<std::uint32_t, std::int64_t> sent, received;  // by box
  for (const collective::StepMessage& message : plan.messages) {
    if (!message.from_nic.valid()) continue;
    sent[topology.device(message.from_nic).node] += message.bytes.value();
    received[topology.device(message.to_nic).node] += message.bytes.value();
  }
  constexpr std::int64_t kShare = 64 << 20;
  for (const std::uint32_t end : {0U, 3U}) EXPECT_EQ(sent[end], kShare) << end;
  for (const std::uint32_t inner : {1U, 2U}) EXPECT_EQ(sent[inner], 2 * kShare) << inner;
  EXPECT_EQ(sent, received);
}

// Every GPU of every box has the sum last, over the NVSwitch: 64 MiB come down to each.
TEST(NvlsTree, brings_every_byte_of_the_sum_to_every_gpu) {
  const Scenario scenario = four_boxes("packet", "steps");
  const topology::Topology topology = topology::build(scenario.topology, catalogue(), {});
  const topology::Router router(topology, 1);
  const collective::NcclModel nccl(router, scenario.network.nccl);
  const collective::StepPlan plan =
      nccl.steps(collective::CollectiveKind::all_reduce, Bytes(64 << 20), topology.accelerators());
  const auto ranks = static_cast<std::uint32_t>(topology.accelerators().size());
  std::vector<bool> waited_for(plan.messages.size(), false);
  for (const std::uint32_t message : plan.after) waited_for[message] = true;
  std::vector<std::int64_t> come(ranks, 0);
  for (std::size_t m = 0; m < plan.messages.size(); ++m)
    if (!waited_for[m] && plan.messages[m].to < ranks)
      come[plan.messages[m].to] += plan.messages[m].bytes.value();
  for (std::uint32_t rank = 0; rank < ranks; ++rank) EXPECT_EQ(come[rank], 64 << 20) << rank;
}

// The pipelined form moves at the tuner's rate from the first byte; a piece of 64 KiB (1.4 us on a NIC) is
// sent on when it has come, over three levels there and back and twice in the box: 5 %.
TEST(NvlsTree, takes_as_long_in_packets_as_in_the_fluid) {
  const auto time = [&](const char* network, const char* form) {
    const Bytes bytes(64 << 20);
    return microseconds(bench(four_boxes(network, form), catalogue(), collective::CollectiveKind::all_reduce,
                              {bytes, bytes, 2})
                            .at(0)
                            .time);
  };
  const double packets = time("packet", "steps"), steps = time("flow", "steps"),
               whole = time("flow", "pipelined");
  EXPECT_NEAR(steps, whole, 0.05 * whole);
  EXPECT_NEAR(packets, steps, 0.03 * steps);
}
}  // namespace topsim::scenario::nvls_tree_packets_test
