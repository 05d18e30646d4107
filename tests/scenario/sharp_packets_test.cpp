// Sums in the fabric's switches: in packets, in steps of the flow model, and in the pipelined form.
#include <gtest/gtest.h>

#include <map>

#include "tests/scenario/step_plans.hpp"

namespace topsim::scenario::sharp_packets_test {
using step_plans::Planned;

Scenario with_sharp(const std::string& fabric, const char* network, const char* form, const char* algorithm) {
  return step_plans::boxes("hgx-h100", 4, R"("link": "ib-ndr", "switch": "qm9700", "sharp": true, )" + fabric,
                           network, form, algorithm);
}

// Bytes on every link from the messages that name their way.
std::map<LinkId, std::int64_t> bytes_by_link(const collective::StepPlan& plan) {
  std::map<LinkId, std::int64_t> bytes;
  for (const collective::StepMessage& message : plan.messages)
    if (message.names_links())
      for (const LinkId link : plan.ways.at(message.way)) bytes[link] += message.bytes.value();
  return bytes;
}

// Each endpoint sends its rail's eighth of S into the fabric once and receives it once, whatever the number
// of nodes: 8 of 64 MiB on every NIC's cable, each way.
TEST(Sharp, SendsEveryByteOnceUpAndOnceDownEachCable) {
  for (const char* fabric : {R"("kind": "rail")", R"("kind": "fat-tree", "tiers": 2)"}) {
    const auto [topology, plan] = step_plans::planned_all_reduce(
        with_sharp(fabric, "packet", "steps", "collnet-direct"), Bytes(64 << 20));
    ASSERT_FALSE(plan.devices.empty());
    std::map<LinkId, std::int64_t> bytes = bytes_by_link(plan);
    int cables = 0;
    for (std::size_t l = 0; l < topology.links().size(); ++l) {
      const topology::Link& link = topology.links()[l];
      if (topology.device(link.from).kind != topology::DeviceKind::nic &&
          topology.device(link.to).kind != topology::DeviceKind::nic)
        continue;
      if (link.kind != topology::LinkKind::infiniband) continue;
      EXPECT_EQ(bytes[LinkId(l)], 8 << 20) << topology.name(LinkId(l));
      ++cables;
    }
    EXPECT_EQ(cables, 4 * 8 * 2);
  }
}

Scenario two_leaves(int nodes, const char* network, const char* form) {
  return step_plans::boxes(
      "hgx-a100", nodes,
      R"("kind": "fat-tree", "tiers": 2, "link": "ib-hdr", "switch": "qm8700", "sharp": true,
          "routing": "adaptive")",
      network, form, "collnet-direct");
}

// A leaf has two nodes, 16 NICs, and as many cables up. From every leaf the eight heads send to the leaf of
// the first box, each over a cable of its own, so no cable between switches carries more than a NIC's, an
// eighth of 8 MiB. With 5 nodes several cables lie side by side as one link; with 42 (21 leaves) each leads
// to another spine.
TEST(Sharp, GivesEveryHeadCablesOfItsOwnBetweenTheSwitches) {
  for (const int nodes : {5, 42}) {
    topology::BuildOptions apart;
    apart.merge_switches_above = 1'000'000;
    const Planned planned =
        step_plans::planned_all_reduce(two_leaves(nodes, "packet", "steps"), Bytes(8 << 20), apart);
    const topology::Topology& topology = planned.topology;
    EXPECT_EQ(planned.plan.choice.algorithm, collective::Algorithm::collnet_direct);
    const auto is_switch = [&](DeviceId device) {
      return topology.device(device).kind == topology::DeviceKind::fabric_switch;
    };
    std::size_t between = 0;
    for (const auto& [link, carried] : bytes_by_link(planned.plan)) {
      const topology::Link& row = topology.link(link);
      if (!is_switch(row.from) || !is_switch(row.to)) continue;
      EXPECT_LE(carried, (1 << 20) * row.count) << topology.name(link);
      ++between;
    }
    if (nodes == 42) {
      EXPECT_EQ(between, 2U * 21 * 8);  // of every leaf eight, up and down
    }
  }
}

// A cable carries an eighth of 16 MiB, 87 us at a NIC's 24 GB/s. In steps a piece of 64 KiB (2.7 us) goes on
// only when it has arrived: over two leaves six cables, five more than the pipelined form fills, 14 us of
// 166. Packets add 3 % as below. If all heads shared one cable it would take 700 us.
TEST(Sharp, TakesAsLongInPacketsOverTwoLeavesAsInTheFluid) {
  const auto time = [&](const char* network, const char* form) {
    return step_plans::all_reduce_microseconds(two_leaves(5, network, form), Bytes(16 << 20));
  };
  const double packets = time("packet", "steps"), steps = time("flow", "steps"),
               whole = time("flow", "pipelined");
  EXPECT_NEAR(steps, whole, 0.09 * whole);
  EXPECT_NEAR(packets, whole, 0.12 * whole);
}

// The pipelined form is one transfer at the tuner's rate after one latency; filling the pipeline makes 3 %.
// In steps of the flow model pieces on one cable share it instead of following one another: 4 %.
TEST(Sharp, TakesAsLongInPacketsAsInTheFluid) {
  for (const char* algorithm : {"collnet-direct", "nvls"}) {
    const auto time = [&](const char* network, const char* form) {
      return step_plans::all_reduce_microseconds(with_sharp(R"("kind": "rail")", network, form, algorithm),
                                                 Bytes(64 << 20));
    };
    const double packets = time("packet", "steps"), steps = time("flow", "steps"),
                 whole = time("flow", "pipelined");
    EXPECT_NEAR(packets, whole, 0.03 * whole) << algorithm;
    EXPECT_NEAR(packets, steps, 0.04 * steps) << algorithm;
  }
}
}  // namespace topsim::scenario::sharp_packets_test
