// topsim's own trace format: writing what was read, and the places of mistakes.
#include "tests/trace/fixtures.hpp"

namespace topsim::workloads::trace::native_test {
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
  EXPECT_THAT(message(kNative, "\"dimension\"", "\"dimesion\""), HasSubstr("unknown key \"dimesion\""));
  EXPECT_THAT(message(kNative, "\"ranks\": 4", "\"ranks\": 4, \"rankz\": 3"),
              HasSubstr("unknown key \"rankz\""));
}

// A value of another kind does not say what its key asks for; reading on would leave it out silently.
TEST(Native, ValuesOfTheWrongKindAreRefusedWhereTheyStand) {
  const auto expect = [](const std::string& from, const std::string& to, const char* message) {
    std::string text = kNative;
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const Problem problem = problem_of([&] { (void)read_native(text, "x.json"); });
    EXPECT_THAT(problem.message, HasSubstr(message)) << to;
    EXPECT_GT(problem.place.line, 0) << to;
    EXPECT_GT(problem.place.column, 0) << to;
    EXPECT_FALSE(problem.help.empty()) << to;
  };
  for (const char* other : {"1", "\"1\"", "{\"a\": 1}", "null", "true"}) {
    const std::string value = other;
    expect("\"after\": [1]", "\"after\": " + value, "\"after\" must be a list");
    expect("\"members\": [[0, 1], [2, 3]]", "\"members\": " + value, "\"members\" must be a list");
    expect("\"members\": [[0, 1], [2, 3]]", "\"members\": [" + value + "]", "a set of ranks must be a list");
    expect("\"ranks\": [0, 1, 2, 3]", "\"ranks\": " + value, "\"ranks\" must be a list");
  }
  expect("\"members\": [[0, 1], [2, 3]]", "\"members\": [0, 1]", "a set of ranks must be a list");
  expect(", \"members\": [[0, 1], [2, 3]]", "", "\"members\" is missing");
  const auto list = [&](const std::string& key, const std::string& value, const char* message) {
    std::string text = R"({"format": "topsim.trace/1", "ranks": 1, "groups": [],
 "programs": [{"ranks": [0], "nodes": []}]})";
    const std::size_t at = text.find("\"" + key + "\": ") + key.size() + 4;
    text = text.substr(0, at) + value +
           (key == "nodes"    ? "}]}"
            : key == "groups" ? ", \"programs\": []}"
                              : "}");
    const Problem problem = problem_of([&] { (void)read_native(text, "x.json"); });
    EXPECT_THAT(problem.message, HasSubstr(message)) << text;
    EXPECT_GT(problem.place.column, 0) << text;
    EXPECT_FALSE(problem.help.empty()) << text;
  };
  list("nodes", "\"all\"", "\"nodes\" must be a list");
  list("nodes", "[1]", "a node is an object");
  list("groups", "{\"tp\": 1}", "\"groups\" must be a list");
  list("groups", "[1]", "a group is an object");
  list("programs", "7", "\"programs\" must be a list");
  list("programs", "[7]", "a program is an object");
}

TEST(Native, KeysThatDoNothingForTheirKindOfNodeAreRefused) {
  const auto message = [](const std::string& node) {
    const std::string text = R"({"format": "topsim.trace/1", "ranks": 1,
 "groups": [{"name": "tp", "members": [[0]]}], "programs": [{"ranks": [0], "nodes": [{"id": 1, )" +
                             node + "}]}]}";
    return problem_of([&] { (void)read_native(text, "x.json"); }).message;
  };
  const std::string collective = R"("kind": "collective", "group": "tp")";
  EXPECT_EQ(message(collective + R"(, "bytes": "1 MB")"), "");
  EXPECT_EQ(message(collective + R"(, "duration": "1 ms")"),
            "\"duration\" means nothing for a node of kind collective");
  EXPECT_EQ(message(R"("kind": "compute", "bytes": "1 MB")"),
            "\"bytes\" means nothing for a node of kind compute");
  EXPECT_EQ(message(R"("kind": "join", "processor": 1)"),
            "\"processor\" means nothing for a node of kind join");
  EXPECT_EQ(message(R"("kind": "send", "peer": 0, "after": [], "operations": 1)"),
            "\"operations\" means nothing for a node of kind send");
}

// What a trace of another format says beside a node's own keys is not written: it could not be read back.
TEST(Native, WritesWhatItReads) {
  const Trace goal =
      read_goal("num_ranks 1\nrank 0 {\nsend 8b to 0 tag 1 cpu 2\nrecv 8b from 0 tag 1 cpu 3\n}", "x.goal");
  const std::string text = write_native(goal);
  EXPECT_EQ(write_native(read_native(text, "x.json")), text);
}

// NCCL does nothing for an all-reduce of 0 bytes; one of a byte takes its latency.
TEST(Native, EmptyCollectivesAreLeftOut) {
  const auto step = [](const std::string& bytes) {
    std::string text = kNative;
    text.replace(text.find("16777216 B"), 10, bytes);
    return run(read_native(text, "x.json")).step_times[0];
  };
  EXPECT_EQ(step("0 B"), from_microseconds(10));
  EXPECT_GT(step("1 B"), from_microseconds(12));
}

// By its bytes the node takes 1 MB / 1 TB/s = 1 us. A duration that the trace gives counts instead.
TEST(Native, AMeasuredTimeOfMemoryCountsBeforeItsBytes) {
  const auto time_of = [](const std::string& duration) {
    const Trace trace = read_native(
        R"({"format": "topsim.trace/1", "ranks": 1, "programs": [{"ranks": [0], "nodes": [
            {"id": 1, "kind": "memory", "bytes": "1 MB")" +
            duration + "}]}]}",
        "x.json");
    return to_program(trace, accelerator()).classes[0].ops[0].duration;
  };
  EXPECT_EQ(time_of(""), from_microseconds(1));
  EXPECT_EQ(time_of(R"(, "duration": "7 us")"), from_microseconds(7));
}
}  // namespace topsim::workloads::trace::native_test
