// Shared by the trace tests: an accelerator with round numbers, a run, and a small trace of each format.
#pragma once

#include <gmock/gmock.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/protobuf_writer.hpp"
#include "sim/executor/simulate.hpp"
#include "topology/build.hpp"
#include "workloads/trace/formats.hpp"
#include "workloads/trace/load.hpp"
#include "workloads/trace/replay.hpp"

namespace topsim::workloads::trace {
using ::testing::HasSubstr;
namespace fs = std::filesystem;
using program::CollectiveKind;
using program::OpKind;

inline topology::Accelerator accelerator() {
  topology::Accelerator a;
  a.id = "test";
  a.dense_flops = {{"bf16", 1e12}};
  a.memory_bandwidth = BytesPerSecond(1e12);
  a.norm_fraction_eager = 0.35, a.elementwise_fraction_eager = 0.5, a.add_fraction_eager = 0.84;
  a.fused_fraction = 0.8;
  return a;
}

inline Problem problem_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const ConfigError& error) {
    return error.problems().front();
  }
  return {};
}
inline void expect_mistake(const Problem& problem, int line, int column, const char* message,
                           const std::string& text) {
  EXPECT_THAT(problem.message, HasSubstr(message)) << text;
  EXPECT_EQ(problem.place.line, line) << text;
  EXPECT_EQ(problem.place.column, column) << text;
}
inline Problem goal_problem(const std::string& text) {
  return problem_of([&] { (void)to_program(read_goal(text, "x.goal"), accelerator()); });
}

// Runs the trace on the first accelerators of as many HGX H100 nodes as its ranks need.
inline executor::Outcome run(const Trace& trace) {
  static const topology::Catalogue catalogue = topology::Catalogue::load(TOPSIM_SOURCE_DIR "/configs");
  topology::TopologySpec spec;
  spec.node.use = "hgx-h100";
  spec.nodes = static_cast<int>((trace.ranks + 7) / 8);
  spec.fabric.kind = spec.nodes > 1 ? topology::FabricKind::rail : topology::FabricKind::none;
  if (spec.nodes > 1) spec.fabric.link.use = "ib-ndr";
  spec.accelerators = static_cast<int>(trace.ranks);
  const topology::Topology built = topology::build(spec, catalogue);
  std::vector<DeviceId> devices(built.accelerators().begin(), built.accelerators().begin() + trace.ranks);
  const topology::Topology topology = built.with_ranks_on(devices);
  const program::Program program = to_program(trace, catalogue.accelerator("h100-sxm5"));
  program::validate(program);
  const topology::Router router(topology, 1);
  const collective::NcclModel nccl(router, {});
  executor::RunOptions options;
  options.warmup = 0;
  options.steps = 1;
  return executor::simulate(program, router, nccl, options, nullptr);
}

inline constexpr const char* kTwo =
    "num_ranks 2 // comment\n/* and\nanother */\nrank 0 {\nl1: calc 500\nl2: send 1000b to 1 tag 3\nl2 "
    "requires l1\n}\n"
    "rank 1 {\r\n\trecv 1000b from 0 tag 3 cpu 1 nic 0\n}\n";

inline constexpr const char* kLayers =
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 2 ga: 1 all_gpus: 8 "
    "checkpoints: 0 "
    "checkpoint_initiates: 0 pp_comm: 6291456.0\n2\n"
    "fc1 -1 1000 ALLGATHER 4096 2000 REDUCESCATTER 4096 3000 NONE 77 100\n"
    "fc2 -1 1000 REDUCESCATTER 8192 2000 NONE 0 3000 ALLREDUCE 65536 100\n";

inline constexpr const char* kNative = R"({"format": "topsim.trace/1", "ranks": 4,
 "groups": [
  {"name": "tp", "dimension": "tensor", "members": [[0, 1], [2, 3]]}],
 "programs": [
  {"ranks": [0, 1, 2, 3], "nodes": [
   {"id": 1, "kind": "compute", "name": "fc1", "duration": "10 us"},
   {"id": 2, "kind": "collective", "bytes": "16777216 B", "collective": "all_reduce", "group": "tp", "after": [1]}]}]}
)";

// A node of Chakra's protobuf. The field numbers are those of et_def.proto.
inline std::string node(std::uint64_t id, std::uint64_t type, const std::vector<std::uint64_t>& after,
                        const std::vector<std::pair<std::string, std::uint64_t>>& attributes,
                        std::uint64_t micros = 0, const std::string& group = {}) {
  ProtobufWriter out;
  out.integer(1, id);
  out.text(2, "n" + std::to_string(id));
  out.integer(3, type);
  for (const std::uint64_t each : after) out.integer(5, each);
  if (micros > 0) out.integer(7, micros);
  for (const auto& [name, value] : attributes) {
    ProtobufWriter attribute;
    attribute.text(1, name);
    attribute.integer(9, value);
    out.text(10, attribute.bytes());
  }
  if (!group.empty()) {
    ProtobufWriter attribute;
    attribute.text(1, "pg_name");
    attribute.text(29, group);
    out.text(10, attribute.bytes());
  }
  return out.bytes();
}
inline std::string file_of(const std::vector<std::string>& nodes) {
  ProtobufWriter out, metadata;
  metadata.text(1, "0.0.4");
  out.block(metadata.bytes());
  for (const std::string& each : nodes) out.block(each);
  return out.bytes();
}
inline Trace chakra(const std::vector<std::string>& ranks, const std::string& groups = {}) {
  std::vector<std::string> names;
  for (std::size_t r = 0; r < ranks.size(); ++r) names.push_back("x." + std::to_string(r) + ".et");
  return read_chakra(names, ranks, groups, "x.json");
}

}  // namespace topsim::workloads::trace
