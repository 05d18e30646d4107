// Sums in the fabric's switches: in packets, step by step in the fluid, and as the pipelined form counts
// them.
#include <gtest/gtest.h>

#include <map>

#include "sim/collective/collective.hpp"
#include "sim/config/reader.hpp"
#include "sim/scenario/bench.hpp"
#include "topology/build.hpp"

namespace topsim::scenario::sharp_packets_test {

Scenario with_sharp(const std::string& fabric, const char* network, const char* form, const char* algorithm) {
  const config::Library library({"configs"});
  return parse_scenario(
      std::string(R"({"topology": {"node": "hgx-h100", "nodes": 4, "fabric": {"link": "ib-ndr",
              "switch": "qm9700", "sharp": true, )") +
          fabric + R"(}}, "workload": {"model": "llama3-8b", "plan": {"tp": 8}, "sequence": 2048},
            "network": {"model": ")" +
          network + R"(", "collectives": ")" + form + R"(", "nccl": {"algorithm": ")" + algorithm + R"("}}})",
      "test.json", {}, library);
}

const topology::Catalogue& catalogue() {
  static const topology::Catalogue loaded = topology::Catalogue::load("configs");
  return loaded;
}

// Every endpoint sends its rail's eighth of S to the fabric once and receives it once, whatever the number of
// nodes: 8 MiB of 64 on every cable of a NIC, each way.
TEST(Sharp, sends_every_byte_once_up_and_once_down_each_cable) {
  for (const char* fabric : {R"("kind": "rail")", R"("kind": "fat-tree", "tiers": 2)"}) {
    const Scenario scenario = with_sharp(fabric, "packet", "steps", "collnet-direct");
    const topology::Topology topology = topology::build(scenario.topology, catalogue(), {});
    const topology::Router router(topology, 1);
    const collective::NcclModel nccl(router, scenario.network.nccl);
    const collective::StepPlan plan =
        nccl.steps(collective::CollectiveKind::all_reduce, Bytes(64 << 20), topology.accelerators());
    ASSERT_FALSE(plan.devices.empty());
    std::map<LinkId, std::int64_t> bytes;
    for (const collective::StepMessage& message : plan.messages)
      for (const LinkId link : plan.ways.at(message.way)) bytes[link] += message.bytes.value();
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

// The sum as one pipelined transfer, whose rate is the tuner's and whose latency all start with: 3 % for how
// the pipeline fills. Piece by piece in the fluid, pieces that are under way on a cable share it instead of
// following one another: 4 %.
TEST(Sharp, takes_as_long_in_packets_as_in_the_fluid) {
  for (const char* algorithm : {"collnet-direct", "nvls"}) {
    const auto time = [&](const char* network, const char* form) {
      const Bytes bytes(64 << 20);
      return microseconds(bench(with_sharp(R"("kind": "rail")", network, form, algorithm), catalogue(),
                                collective::CollectiveKind::all_reduce, {bytes, bytes, 2})
                              .at(0)
                              .time);
    };
    const double packets = time("packet", "steps"), steps = time("flow", "steps"),
                 whole = time("flow", "pipelined");
    EXPECT_NEAR(packets, whole, 0.03 * whole) << algorithm;
    EXPECT_NEAR(packets, steps, 0.04 * steps) << algorithm;
  }
}
}  // namespace topsim::scenario::sharp_packets_test
