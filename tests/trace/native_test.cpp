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
