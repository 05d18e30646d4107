// Chakra execution traces: nodes, process groups, rooflines, mistakes, and writing what was read.
#include <tuple>

#include "tests/trace/fixtures.hpp"
#include "workloads/trace/chakra_nodes.hpp"

namespace topsim::workloads::trace::chakra_test {
// Each of two ranks has an input of 1000 bytes; NCCL counts that as 2000 for an all-gather and 1000 for an
// all-reduce. A node takes the longer of 5e6 operations at 1 TFLOP/s (5 us) and 2e6 bytes at 1 TB/s (2 us).
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

// Chakra's durations are whole microseconds, so topsim adds an attribute with the picoseconds: 0.3 us would
// become 0. If the two disagree (7 us and 2.4), a tool has changed the duration, and it counts.
TEST(Chakra, TimesBetweenMicrosecondsAreKept) {
  const std::string rank = file_of({node(1, 4, {}, {}, 3), node(2, 4, {1}, {}, 7)});
  Trace trace = chakra({rank, rank});
  trace.programs[0].nodes[0].duration = Duration(300'000);
  trace.programs[0].nodes[1].duration = Duration(2'400'001);
  const auto again = chakra(write_chakra(trace).ranks).programs[0].nodes;
  EXPECT_EQ(again[0].duration, Duration(300'000));
  EXPECT_EQ(again[1].duration, Duration(2'400'001));
  const std::string changed = file_of({node(1, 4, {}, {{std::string(kPicoseconds), 2'400'001}}, 7)});
  EXPECT_EQ(chakra({changed, changed}).programs[0].nodes[0].duration, from_microseconds(7));
}

TEST(Chakra, HasNoSendrecvOfAGroup) {
  Trace trace = read_aicb(kLayers, "x.txt", 0);
  Node call;
  call.kind = Kind::collective;
  call.collective = CollectiveKind::send_recv;
  trace.programs[0].add(call);
  EXPECT_THAT(problem_of([&] { (void)write_chakra(trace); }).message, HasSubstr("sendrecv of a group"));
}

// A gather of 3 bytes over two ranks would need an input of 1.5 bytes each.
TEST(Chakra, AGatherThatRanksDoNotDivideIsNotWritten) {
  std::string text = kNative;
  text.replace(text.find("all_reduce"), 10, "all_gather");
  (void)write_chakra(read_native(text, "x.json"));
  text.replace(text.find("16777216 B"), 10, "3 B");
  EXPECT_THAT(problem_of([&] { (void)write_chakra(read_native(text, "x.json")); }).message,
              HasSubstr("gathers 3 bytes of 2 ranks"));
}

// 1e15 bytes of each rank are more than any job moves; over 10,000 ranks their sum would not fit 64 bits.
TEST(Chakra, AGatherOfMoreThanAnyJobMovesIsRefused) {
  const std::string rank =
      file_of({node(1, 7, {}, {{"comm_type", 2}, {"comm_size", 1'000'000'000'000'000}})});
  EXPECT_THAT(problem_of([&] {
                (void)chakra({rank, rank});
              }).message,
              HasSubstr("comm_size is 1000000000000000 on each of 2 ranks"));
}
}  // namespace topsim::workloads::trace::chakra_test
