// A communicator that has its NVLinks to itself is not simulated message by message; its calls must take what
// their messages would.
#include <gtest/gtest.h>

#include "sim/config/reader.hpp"
#include "sim/scenario/bench/bench.hpp"
#include "sim/scenario/read/read.hpp"
#include "sim/scenario/run/simulate.hpp"

namespace topsim::scenario::alone_test {

// One node, tp 8: all-gathers and reduce-scatters of 8192 x 4096 bf16 = 64 MiB. topsim bench sends the same
// steps one by one.
TEST(StepsOfATensorGroup, TakeWhatTheSameMessagesTakeOneByOne) {
  const config::Library library({"configs"});
  const topology::Catalogue catalogue = topology::Catalogue::load("configs");
  for (const char* network : {"flow", "packet"}) {
    const Scenario scenario = parse_scenario(
        std::string(R"({"topology": {"node": "hgx-h100", "nodes": 1, "fabric": {"kind": "none"}},
          "workload": {"model": "llama3-8b", "plan": {"tp": 8, "micro_batch": 1, "global_batch": 1,
            "sequence_parallel": true}, "sequence": 8192},
          "network": {"model": ")") +
            network + R"(", "collectives": "steps"}, "run": {"steps": 1}})",
        "test.json", {}, library);
    const report::Result result = simulate(scenario, catalogue, {}, nullptr).result;
    int checked = 0;
    for (const report::CollectiveRow& row : result.collectives) {
      if (row.group_size != 8 || row.bytes < Bytes(1 << 20) || row.kind == "all_reduce") continue;
      const auto kind = row.kind == "all_gather" ? collective::CollectiveKind::all_gather
                                                 : collective::CollectiveKind::reduce_scatter;
      const auto rows = bench(scenario, catalogue, kind, {row.bytes, row.bytes, 2}).rows;
      EXPECT_NEAR(microseconds(row.each), microseconds(rows.at(0).time), 1e-3) << network << ' ' << row.kind;
      ++checked;
    }
    EXPECT_GE(checked, 2);
    EXPECT_GT(result.flows, 1000U);  // counted message by message
  }
}

// NVLS inside a box has no message form: rows name the ring that stands in, in a bench and in a run,
// and a finding says so.
TEST(StepsOfATensorGroup, AreNamedForWhatIsSent) {
  const config::Library library({"configs"});
  const topology::Catalogue catalogue = topology::Catalogue::load("configs");
  for (const char* form : {"pipelined", "steps"}) {
    const Scenario scenario = parse_scenario(
        std::string(R"({"topology": {"node": "hgx-h100", "nodes": 1, "fabric": {"kind": "none"}},
          "workload": {"model": "llama3-8b", "plan": {"tp": 8, "micro_batch": 1, "global_batch": 1, "sequence_parallel": false},
            "sequence": 8192},
          "network": {"model": "flow", "collectives": ")") +
            form + R"("}, "run": {"steps": 1}})",
        "test.json", {}, library);
    const bool in_steps = form[0] == 's';
    const Bytes bytes(64 << 20);
    const auto rows =
        bench(scenario, catalogue, collective::CollectiveKind::all_reduce, {bytes, bytes, 2}).rows;
    EXPECT_EQ(name_of(rows.at(0).choice.algorithm), in_steps ? "Ring" : "NVLS");
    int checked = 0;
    const report::Result result = simulate(scenario, catalogue, {}, nullptr).result;
    const auto said =
        std::count_if(result.findings.begin(), result.findings.end(), [](const report::Finding& finding) {
          return finding.message.find("NVLS has no message form here: Ring stands in") == 0;
        });
    EXPECT_EQ(said, in_steps ? 1 : 0);
    for (const report::CollectiveRow& row : result.collectives) {
      if (row.kind != "all_reduce" || row.bytes != bytes) continue;
      EXPECT_EQ(row.algorithm, in_steps ? "Ring" : "NVLS");
      ++checked;
    }
    EXPECT_GE(checked, 1);
  }
}
}  // namespace topsim::scenario::alone_test
