// Workload traces: what each format says, what a broken one gets, and what becomes of it as a program.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/base/error.hpp"
#include "sim/executor/simulate.hpp"
#include "topology/build.hpp"
#include "workloads/trace/formats.hpp"
#include "workloads/trace/load.hpp"
#include "workloads/trace/replay.hpp"
#include "workloads/trace/wire.hpp"

namespace topsim::workloads::trace {
namespace {
using ::testing::HasSubstr;
namespace fs = std::filesystem;
using program::CollectiveKind;
using program::OpKind;

topology::Accelerator accelerator() {
  topology::Accelerator a;
  a.id = "test";
  a.dense_flops = {{"bf16", 1e12}};
  a.memory_bandwidth = BytesPerSecond(1e12);
  return a;
}

Problem problem_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const ConfigError& error) {
    return error.problems().front();
  }
  return {};
}
Problem goal_problem(const std::string& text) {
  return problem_of([&] { (void)to_program(read_goal(text, "x.goal"), accelerator()); });
}

// On `ranks` accelerators of one HGX H100.
executor::Outcome run(const Trace& trace) {
  static const topology::Catalogue catalogue = topology::Catalogue::load(TOPSIM_SOURCE_DIR "/configs");
  topology::TopologySpec spec;
  spec.node.use = "hgx-h100";
  spec.nodes = static_cast<int>((trace.ranks + 7) / 8);
  spec.fabric.kind = spec.nodes > 1 ? "rail" : "none";
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

// --- GOAL

constexpr const char* kTwo =
    "num_ranks 2 // comment\n/* and\nanother */\nrank 0 {\nl1: calc 500\nl2: send 1000b to 1 tag 3\nl2 "
    "requires l1\n}\n"
    "rank 1 {\r\n\trecv 1000b from 0 tag 3 cpu 1 nic 0\n}\n";

TEST(Goal, ReadsOperationsDependenciesAndComments) {
  const Trace trace = read_goal(kTwo, "x.goal");
  ASSERT_EQ(trace.ranks, 2u);
  const RankTrace& first = trace.programs[0];
  ASSERT_EQ(first.nodes.size(), 2u);
  EXPECT_EQ(first.nodes[0].duration, from_microseconds(0.5));
  EXPECT_EQ(first.nodes[1].bytes, 1000);
  EXPECT_EQ(first.nodes[1].id, 6u);  // the line
  EXPECT_EQ(first.after[1], std::vector<std::uint32_t>{0});
  EXPECT_EQ(trace.programs[1].nodes[0].processor, 1u);
}

TEST(Goal, MistakesHaveALineAndAColumn) {
  const auto at = [](const std::string& text, int line, int column, const char* message) {
    const Problem problem = goal_problem(text);
    EXPECT_THAT(problem.message, HasSubstr(message)) << text;
    EXPECT_EQ(problem.place.line, line) << text;
    EXPECT_EQ(problem.place.column, column) << text;
  };
  at("", 1, 1, "expected \"num_ranks\", found the end of the file");
  at("num_ranks x", 1, 11, "expected a number of ranks, found \"x\"");
  at("num_ranks 2\nrank 1 {\n}\n", 2, 6, "rank 1 where rank 0 comes next");
  at("num_ranks 2\nrank 0 {\n}\n", 4, 1, "num_ranks says 2, the file has 1 ranks");
  at("num_ranks 1\nrank 0 {\nl1: calc 1\n", 4, 1, "rank 0 has no closing }");
  at("num_ranks 1\nrank 0 {\nsend 5 to 0\n}", 3, 6, "expected a size in bytes, found \"5\"");
  at("num_ranks 1\nrank 0 {\nsend 5b to 7\n}", 3, 12, "the schedule has no rank 7");
  at("num_ranks 1\nrank 0 {\na: calc 1\na: calc 2\n}", 4, 1, "label \"a\" twice in one rank");
  at("num_ranks 1\nrank 0 {\na: calc 1\nb requires a\n}", 4, 1, "no item is labelled \"b\" before this line");
  at("num_ranks 1\nrank 0 {\ncalc -4\n}", 3, 6, "a time in nanoseconds cannot be negative");
  at("num_ranks 1\nrank 0 {\ncalc 99999999999999999999\n}", 3, 6, "too large");
  at("num_ranks 1\nrank 0 {\ncalc 1 calc 2\n}", 3, 8, "after the end of an item");
  at("num_ranks 1 /* no end", 1, 13, "a comment has no end");
}

TEST(Goal, WhatCanNeverEndIsSaid) {
  EXPECT_THAT(
      goal_problem("num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}").message,
      HasSubstr("2 nodes wait for each other (3, 4)"));
  EXPECT_THAT(
      goal_problem("num_ranks 2\nrank 0 {\nrecv 8b from 1 tag 2\n}\nrank 1 {\nsend 8b to 0 tag 1\n}").message,
      HasSubstr("rank 0: node 3 receives from rank 1 with tag 2 what nobody sends"));
}

// An empty send to a rank that cannot exist marks a rank's end in schedules of htsim.
TEST(Goal, SentinelsArePassedOver) {
  const Trace trace = read_goal("num_ranks 1\nrank 0 {\nsend 0b to 9999999\n}", "x.goal");
  EXPECT_EQ(trace.programs[0].nodes[0].kind, Kind::join);
  EXPECT_THAT(trace.notes.front(), HasSubstr("mark ends of ranks"));
}

// Ten messages of one tag and pair meet in the order in which they were sent, whatever their size: the
// receiver's calculation after the first one begins when that has arrived, long before the others have.
TEST(Goal, MessagesOfOneTagKeepTheirOrder) {
  std::string sends, receives;
  for (int i = 0; i < 10; ++i) {
    sends += "send " + std::to_string(i == 0 ? 100 : 100000000) + "b to 1\n";
    receives += "r" + std::to_string(i) + ": recv 100b from 0\n";
  }
  const std::string text =
      "num_ranks 2\nrank 0 {\n" + sends + "}\nrank 1 {\n" + receives + "c: calc 1000\nc requires r0\n}\n";
  const program::Program program = to_program(read_goal(text, "x.goal"), accelerator());
  program::validate(program);
  std::vector<std::int64_t> received;
  for (const auto& op : program.classes[1].ops)
    if (op.kind == OpKind::recv) received.push_back(op.bytes.value());
  EXPECT_EQ(received.front(), 100);
  EXPECT_EQ(received.back(), 100000000);
  const auto outcome = run(read_goal(text, "x.goal"));
  EXPECT_GT(seconds(outcome.step_times[0]), 9e8 / 450e9);  // nine of 100 MB at NVLink's 450 GB/s at most
}

// Everybody sends first and receives then: small messages leave without their receive.
TEST(Goal, SmallMessagesDoNotWaitForTheirReceive) {
  const char* text =
      "num_ranks 2\nrank 0 {\na: send 8b to 1\nb: recv 8b from 1\nb requires a\n}\n"
      "rank 1 {\na: send 8b to 0\nb: recv 8b from 0\nb requires a\n}\n";
  EXPECT_TRUE(run(read_goal(text, "x.goal")).complete);
}

TEST(Goal, AReceiveFromAnybodyTakesWhatIsLeft) {
  const char* text =
      "num_ranks 3\nrank 0 {\nrecv 8b from -1\nrecv 8b from 1\n}\nrank 1 {\nsend 8b to 0\n}\nrank 2 {\nsend "
      "9b to 0\n}\n";
  const program::Program program = to_program(read_goal(text, "x.goal"), accelerator());
  program::validate(program);
}

TEST(Goal, WrittenAndReadAgainIsTheSame) {
  const std::string once = write_goal(read_goal(kTwo, "x.goal"));
  EXPECT_EQ(write_goal(read_goal(once, "x.goal")), once);
}

// --- AICB

constexpr const char* kLayers =
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 2 ga: 1 all_gpus: 8 "
    "checkpoints: 0 "
    "checkpoint_initiates: 0 pp_comm: 6291456.0\n2\n"
    "fc1 -1 1000 ALLGATHER 4096 2000 REDUCESCATTER 4096 3000 NONE 77 100\n"
    "fc2 -1 1000 REDUCESCATTER 8192 2000 NONE 0 3000 ALLREDUCE 65536 100\n";

// Forward 1 + 1 us, backward 2 x (2 + 3) us, and 0.1 us after each blocking call (AG, RS forward, RS
// backward).
TEST(Aicb, LayersRunForwardAndBackward) {
  const Trace trace = read_aicb(kLayers, "x.txt", 0);
  EXPECT_EQ(trace.ranks, 8u);
  const program::Program program = to_program(trace, accelerator());
  program::validate(program);
  ASSERT_EQ(program.classes.size(), 1u);
  Duration compute{};
  std::map<std::string, int> calls;
  for (const auto& op : program.classes[0].ops) {
    if (op.kind == OpKind::compute) compute += op.duration;
    if (op.kind == OpKind::collective) {
      const auto id = program.communicator_slots[op.slot][0];
      ++calls[std::string(name_of(op.collective)) + " of " +
              std::to_string(program.communicators[id.index()].size)];
    }
  }
  EXPECT_EQ(compute, from_microseconds(12.3));
  EXPECT_EQ(calls, (std::map<std::string, int>{
                       {"all_gather of 2", 1}, {"reduce_scatter of 2", 2}, {"all_reduce of 4", 1}}));
  EXPECT_THAT(trace.notes.front(), HasSubstr("no pipeline messages"));
}

TEST(Aicb, MistakesHaveALineAndAColumn) {
  const auto at = [](const std::string& text, int line, int column, const char* message) {
    const Problem problem = problem_of([&] { (void)read_aicb(text, "x.txt", 8); });
    EXPECT_THAT(problem.message, HasSubstr(message)) << text;
    EXPECT_EQ(problem.place.line, line) << text;
    EXPECT_EQ(problem.place.column, column) << text;
  };
  at("", 1, 1, "the file is empty");
  at("BANANA\n1\n", 1, 1, "unknown parallelism policy \"BANANA\"");
  at("MICRO\nx\n", 2, 1, "expected the number of layers, found \"x\"");
  at("MICRO\n1\na -1 1 NONE 0 1 NONE 0\n", 3, 1, "layer 1 has 8 of 12 columns");
  at("MICRO\n1\na -1 1 SHOUT 9 1 NONE 0 1 NONE 0 1\n", 3, 8, "unknown communication \"SHOUT\"");
  at("MICRO\n1\na -1 -5 NONE 9 1 NONE 0 1 NONE 0 1\n", 3, 6, "cannot be negative");
  at("HYBRID_TRANSFORMER model_parallel_NPU_group: 3 all_gpus: 8\n1\n", 1, 58, "8 ranks do not divide");
  at("HYBRID_TRANSFORMER model_parallel_NPU_group:\n1\n", 1, 20, "has no value");
}

TEST(Aicb, FewerLayersThanSaidAndStrayWordsAreNoted) {
  const Trace trace = read_aicb("MICRO\n9\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 1\n", "x.txt", 4);
  EXPECT_THAT(trace.notes.front(), HasSubstr("says 9 layers, the file has 1"));
  const Trace stray = read_aicb("MICRO\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 1\ntest", "x.txt", 4);
  EXPECT_THAT(stray.notes.front(), HasSubstr("\"test\" and what follows is passed over"));
}

// --- Chakra

std::string node(std::uint64_t id, std::uint64_t type, const std::vector<std::uint64_t>& after,
                 const std::vector<std::pair<std::string, std::uint64_t>>& attributes,
                 std::uint64_t micros = 0, const std::string& group = {}) {
  WireWriter out;
  out.integer(1, id);
  out.text(2, "n" + std::to_string(id));
  out.integer(3, type);
  for (const std::uint64_t each : after) out.integer(5, each);
  if (micros > 0) out.integer(7, micros);
  for (const auto& [name, value] : attributes) {
    WireWriter attribute;
    attribute.text(1, name);
    attribute.integer(9, value);
    out.text(10, attribute.bytes());
  }
  if (!group.empty()) {
    WireWriter attribute;
    attribute.text(1, "pg_name");
    attribute.text(29, group);
    out.text(10, attribute.bytes());
  }
  return out.bytes();
}
std::string file_of(const std::vector<std::string>& nodes) {
  WireWriter out, metadata;
  metadata.text(1, "0.0.4");
  out.block(metadata.bytes());
  for (const std::string& each : nodes) out.block(each);
  return out.bytes();
}
Trace chakra(const std::vector<std::string>& ranks, const std::string& groups = {}) {
  std::vector<std::string> names;
  for (std::size_t r = 0; r < ranks.size(); ++r) names.push_back("x." + std::to_string(r) + ".et");
  return read_chakra(names, ranks, groups, "x.json");
}

// An input of 1000 bytes a rank: NCCL counts 2000 for the gather and 1000 for the all-reduce. 5e6 operations
// at 1 TFLOP/s take 5 us; 2e6 bytes at 1 TB/s 2 us; the longer counts.
TEST(Chakra, ReadsNodesGroupsAndRooflines) {
  const std::string rank =
      file_of({node(1, 4, {}, {{"num_ops", 5000000}, {"tensor_size", 2000000}}),
               node(2, 7, {1}, {{"comm_type", 2}, {"comm_size", 1000}}, 0, "7"), node(3, 4, {2}, {}, 40),
               node(4, 7, {3}, {{"comm_type", 0}, {"comm_size", 1000}})});
  const Trace trace = chakra({rank, rank}, "{\"7\": [0, 1]}");
  const program::Program program = to_program(trace, accelerator());
  program::validate(program);
  const auto& ops = program.classes[0].ops;
  ASSERT_EQ(ops.size(), 4u);
  EXPECT_EQ(ops[0].duration, from_microseconds(5));
  EXPECT_EQ(ops[1].bytes, Bytes(2000));
  EXPECT_EQ(ops[1].collective, CollectiveKind::all_gather);
  EXPECT_EQ(ops[2].duration, from_microseconds(40));
  EXPECT_EQ(ops[3].bytes, Bytes(1000));
  EXPECT_NE(ops[1].slot, ops[3].slot);
}

TEST(Chakra, MistakesNameTheNode) {
  const auto message = [](const std::vector<std::string>& nodes, const std::string& groups = {}) {
    return problem_of([&] {
             (void)to_program(chakra({file_of(nodes), file_of({})}, groups), accelerator());
           })
        .message;
  };
  EXPECT_THAT(message({node(1, 4, {9}, {})}), HasSubstr("node 1 (\"n1\"): it waits for node 9"));
  EXPECT_THAT(message({node(1, 9, {}, {})}), HasSubstr("unknown node type 9"));
  EXPECT_THAT(message({node(1, 4, {}, {}), node(1, 4, {}, {})}), HasSubstr("two nodes have this number"));
  EXPECT_THAT(message({node(1, 7, {}, {{"comm_type", 40}})}), HasSubstr("unknown collective 40"));
  EXPECT_THAT(message({node(1, 7, {}, {}, 0, "5")}), HasSubstr("process group \"5\" is not described"));
  EXPECT_THAT(message({node(1, 7, {}, {}, 0, "5")}, "{\"5\": [1]}"), HasSubstr("rank 0 is no member"));
  EXPECT_THAT(message({node(1, 5, {}, {{"comm_dst", 8}, {"comm_size", 1}})}), HasSubstr("its peer is 8"));
  EXPECT_THAT(message({node(1, 4, {2}, {}), node(2, 4, {1}, {})}), HasSubstr("2 nodes wait for each other"));
  EXPECT_THAT(message({node(3, 7, {}, {{"comm_size", 8}})}),
              HasSubstr("call 1 of rank 0 is all_reduce of 8 bytes, of rank 1 it is nothing more"));
  EXPECT_THAT(message({}, "{\"5\": [0, 0]}"), HasSubstr("a rank twice"));
  EXPECT_THAT(message({}, "{\"5\": [4]}"), HasSubstr("no rank of the trace"));
}

TEST(Chakra, WrittenAndReadAgainIsTheSame) {
  const Trace trace = read_aicb(kLayers, "x.txt", 0);
  const ChakraFiles files = write_chakra(trace);
  const Trace again = chakra(files.ranks, files.groups);
  // Micro-seconds are what Chakra can say: 0.1 us after a call is lost, and all times here are whole
  // otherwise.
  const auto calls = [](const program::Program& program) {
    std::vector<std::tuple<CollectiveKind, std::int64_t, std::uint32_t>> result;
    for (const auto& op : program.classes[program.class_of_rank[5]].ops)
      if (op.kind == OpKind::collective)
        result.emplace_back(op.collective, op.bytes.value(),
                            program.communicators[program.communicator_slots[op.slot][5].index()].size);
    return result;
  };
  EXPECT_EQ(calls(to_program(again, accelerator())), calls(to_program(trace, accelerator())));
}

// --- native

constexpr const char* kNative = R"({"format": "topsim.trace/1", "ranks": 4,
 "groups": [
  {"name": "tp", "dimension": "tensor", "members": [[0, 1], [2, 3]]}],
 "programs": [
  {"ranks": [0, 1, 2, 3], "nodes": [
   {"id": 1, "kind": "compute", "name": "fc1", "duration": "10 us"},
   {"id": 2, "kind": "collective", "bytes": "16777216 B", "collective": "all_reduce", "group": "tp", "after": [1]}]}]}
)";

TEST(Native, ReadsAndWritesTheSame) {
  const Trace trace = read_native(kNative, "x.json");
  EXPECT_EQ(write_native(trace), kNative);
  const auto outcome = run(trace);
  ASSERT_EQ(outcome.collectives.size(), 1u);
  EXPECT_EQ(outcome.collectives[0].calls, 2u);
  EXPECT_GT(outcome.step_times[0], from_microseconds(10));
}

TEST(Native, MistakesHaveAPlace) {
  const auto message = [](std::string text, const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
    const Problem problem = problem_of([&] { (void)read_native(text, "x.json"); });
    EXPECT_GT(problem.place.line, 0) << to;
    return problem.message;
  };
  EXPECT_THAT(message(kNative, "topsim.trace/1", "topsim.trace/9"), HasSubstr("no topsim trace"));
  EXPECT_THAT(message(kNative, "\"ranks\": 4", "\"ranks\": 0"), HasSubstr("from 1"));
  EXPECT_THAT(message(kNative, "[2, 3]]", "[2, 9]]"), HasSubstr("no rank of the trace"));
  EXPECT_THAT(message(kNative, "[0, 1, 2, 3]", "[0, 1, 2]"), HasSubstr("rank 3 has no program"));
  EXPECT_THAT(message(kNative, "compute", "compote"), HasSubstr("unknown kind of node"));
  EXPECT_THAT(message(kNative, "10 us", "10 parsecs"), HasSubstr("parsecs"));
  EXPECT_THAT(message(kNative, "\"after\": [1]", "\"after\": [7]"), HasSubstr("no node of this program"));
  EXPECT_THAT(message(kNative, "\"group\": \"tp\"", "\"group\": \"dp\""), HasSubstr("no group is called"));
  EXPECT_THAT(message(kNative, "\"duration\"", "\"durance\""), HasSubstr("unknown key"));
}

// --- all formats

// Random truncations and changed bytes: an error is a sentence, never anything else.
TEST(Formats, BrokenInputGetsASentence) {
  std::vector<std::pair<std::string, std::function<void(const std::string&)>>> readers;
  readers.emplace_back(kTwo,
                       [](const std::string& t) { (void)to_program(read_goal(t, "f"), accelerator()); });
  readers.emplace_back(kLayers,
                       [](const std::string& t) { (void)to_program(read_aicb(t, "f", 8), accelerator()); });
  readers.emplace_back(kNative,
                       [](const std::string& t) { (void)to_program(read_native(t, "f"), accelerator()); });
  const std::string rank = file_of({node(1, 4, {}, {{"num_ops", 5000000}, {"tensor_size", 2000000}}),
                                    node(2, 7, {1}, {{"comm_type", 2}, {"comm_size", 1000}}, 0, "7"),
                                    node(3, 5, {2}, {{"comm_dst", 0}, {"comm_size", 8}, {"comm_tag", 4}}),
                                    node(4, 6, {2}, {{"comm_src", 0}, {"comm_size", 8}, {"comm_tag", 4}})});
  readers.emplace_back(
      rank, [](const std::string& t) { (void)to_program(chakra({t}, "{\"7\": [0]}"), accelerator()); });
  std::uint64_t state = 88172645463325252ULL;
  const auto below = [&](std::size_t n) {
    state ^= state << 13U, state ^= state >> 7U, state ^= state << 17U;
    return static_cast<std::size_t>(state % n);
  };
  int refused = 0;
  for (const auto& [good, read] : readers) {
    EXPECT_NO_THROW(read(good));
    for (int i = 0; i < 3000; ++i) {
      std::string text = good;
      if (below(3) == 0) text.resize(below(text.size()));
      for (std::size_t changes = below(4); changes > 0 && !text.empty(); --changes) {
        const std::size_t at = below(text.size());
        if (below(2) == 0) text[at] = static_cast<char>(below(256));
        if (below(8) == 0) text.erase(at, 1 + below(20));
        if (below(8) == 0) text.insert(at, text.substr(below(text.size() + 1), below(30)));
      }
      try {
        read(text);
      } catch (const ConfigError& error) {
        ++refused;
        ASSERT_FALSE(error.problems().empty());
        ASSERT_FALSE(error.problems().front().message.empty());
      }
    }
  }
  EXPECT_GT(refused, 6000);
}

TEST(Formats, AreToldByTheirContent) {
  const fs::path folder = fs::temp_directory_path() / "topsim_trace_test";
  fs::create_directories(folder);
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder / name, std::ios::binary) << text;
    return (folder / name).string();
  };
  EXPECT_EQ(detect_format(write("a.goal", kTwo)), "goal");
  EXPECT_EQ(detect_format(write("a.txt", kLayers)), "aicb");
  EXPECT_EQ(detect_format(write("a.json", kNative)), "native");
  EXPECT_EQ(detect_format(write("a.0.et", file_of({}))), "chakra");
  EXPECT_THAT(problem_of([&] {
                (void)detect_format(write("b.bin",
                                          "\x7f"
                                          "ELF"));
              }).message,
              HasSubstr("no trace"));
  TraceSpec missing;
  missing.format = "goal", missing.path = "none.goal";
  EXPECT_THAT(problem_of([&] { (void)load(missing, folder.string(), 0); }).message, HasSubstr("cannot read"));
  write("c.0.et", file_of({})), write("c.2.et", file_of({}));
  TraceSpec gap;
  gap.format = "chakra", gap.path = "c";
  EXPECT_THAT(problem_of([&] { (void)load(gap, folder.string(), 0); }).message,
              HasSubstr("the file of rank 1 is missing"));
  fs::remove_all(folder);
}

// Traces of others, where the checkout has them beside it.
class Samples : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(folder_)) GTEST_SKIP() << folder_ << " is not there";
  }
  Trace read(const std::string& format, const std::string& path, std::uint32_t ranks = 0) const {
    TraceSpec spec;
    spec.format = format;
    spec.path = (folder_ / path).string();
    return load(spec, {}, ranks);
  }
  fs::path folder_ = fs::path(TOPSIM_SOURCE_DIR) / "../shared/data/traces";
};

// 15 x 1 MB out of and into each of 16 ranks: no faster than the two boxes' rails of 50 GB/s carry 8 of them.
TEST_F(Samples, GoalAllToAll) {
  const auto outcome = run(read("goal", "goal/a2a16.goal"));
  EXPECT_GT(seconds(outcome.step_times[0]), 8 * 1e6 / 50e9);
  EXPECT_LT(seconds(outcome.step_times[0]), 1e-3);
}
TEST_F(Samples, GoalSchedulesComplete) {
  for (const char* name : {"htsim-old_perm64", "loggopsim_binary_tree_32", "spcl-htsim_incast_8_1_2MiB",
                           "spcl-htsim_one_send"}) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(run(read("goal", std::string("goal/") + name + ".goal")).complete);
  }
}
// A ring of sends and receives is 14 steps of 1/8 MiB; the collective node is NCCL's own choice for 1 MiB.
TEST_F(Samples, ChakraRingOfMessagesAndCollective) {
  const auto ring = run(read("chakra", "chakra/custom_ring_allreduce_8npus_1MB"));
  const auto collective = run(read("chakra", "chakra/all_reduce_8npus_1MB"));
  EXPECT_TRUE(ring.complete);
  ASSERT_EQ(collective.collectives.size(), 1u);
  EXPECT_EQ(collective.collectives[0].bytes, Bytes(1 << 20));
  EXPECT_TRUE(run(read("chakra", "chakra/all_to_all_8npus_1MB")).complete);
}
TEST_F(Samples, ChakraTrainingStepOfEightRanks) {
  const Trace trace = read("chakra", "chakra/gpt_dp2_tp2_pp2_4layers");
  EXPECT_EQ(trace.ranks, 8u);
  const auto outcome = run(trace);
  EXPECT_TRUE(outcome.complete);
  // All time of every rank has a reason.
  for (const auto& rank : outcome.ranks) {
    Duration sum = rank.steps[0].busy;
    for (const Duration idle : rank.steps[0].idle) sum += idle;
    EXPECT_EQ(sum, outcome.step_times[0]);
  }
}
TEST_F(Samples, AicbWorkloads) {
  EXPECT_TRUE(run(read("aicb", "aicb/microAllReduce.txt")).complete);
  EXPECT_TRUE(run(read("aicb", "aicb/all_reduce.txt", 8)).complete);
  EXPECT_TRUE(run(read("aicb", "aicb/L7B-D1-C02_Llama7B_deepspeed_zero3_A100.txt", 8)).complete);
  EXPECT_EQ(read("aicb", "aicb/workload_analytical.txt").ranks, 9216u);
}
}  // namespace
}  // namespace topsim::workloads::trace
