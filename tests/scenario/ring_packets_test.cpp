// A ring in packets against the same ring in the flow model, where nothing collides.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/config/reader.hpp"
#include "sim/scenario/bench/bench.hpp"
#include "sim/scenario/read/read.hpp"

namespace topsim::scenario::ring_packets_test {

// 64 GPUs on eight rails: every hop has its NIC to itself, so only what packets add can differ (windows,
// acknowledgements, one packet's time per hop; headers are in the links' goodput): within 3 %.
TEST(RingAllReduce, Of64GpusTakesTheSameTimeInPacketsAsInTheFluid) {
  const config::Library library({"configs"});
  const topology::Catalogue catalogue = topology::Catalogue::load("configs");
  for (const char* protocol : {"simple", "ll128"}) {
    const auto time = [&](const char* network, const char* form, Bytes bytes) {
      const Scenario scenario = parse_scenario(
          std::string(R"({"topology": {"node": "hgx-h100", "nodes": 8, "fabric": {"kind": "rail",
              "link": "ib-ndr", "switch": "qm9700"}},
            "workload": {"model": "llama3-8b", "plan": {"tp": 8}, "sequence": 2048},
            "network": {"model": ")") +
              network + R"(", "collectives": ")" + form +
              R"(", "nccl": {"algorithm": "ring", "protocol": ")" + protocol + R"("}}})",
          "test.json", {}, library);
      return microseconds(
          bench(scenario, catalogue, collective::CollectiveKind::all_reduce, {bytes, bytes, 2})
              .rows.at(0)
              .time);
    };
    for (const Bytes bytes : {Bytes(16 << 20), Bytes(64 << 20)}) {
      const double fluid = time("flow", "pipelined", bytes), packets = time("packet", "steps", bytes);
      EXPECT_NEAR(packets, fluid, 0.03 * fluid) << protocol << ' ' << bytes.value();
    }
  }
}
}  // namespace topsim::scenario::ring_packets_test
