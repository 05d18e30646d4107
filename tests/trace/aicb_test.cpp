// AICB workloads: layers forward and backward, what a broken file gets.
#include <map>

#include "tests/trace/fixtures.hpp"

namespace topsim::workloads::trace::aicb_test {
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
    expect_mistake(problem_of([&] { (void)read_aicb(text, "x.txt", 8); }), line, column, message, text);
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

TEST(Aicb, AListLongerThanTheFileEndsWithIt) {
  EXPECT_FALSE(problem_of([] {
                 (void)read_aicb("HYBRID_TRANSFORMER checkpoints: 1000000 1 2", "x.txt", 0);
               }).message.empty());
}
}  // namespace topsim::workloads::trace::aicb_test
