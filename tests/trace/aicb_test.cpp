// AICB workloads: layers forward and backward, and the messages for broken files.
#include <map>

#include "tests/trace/fixtures.hpp"

namespace topsim::workloads::trace::aicb_test {
// Two layers: forward 1 + 1 us, backward 2 x (2 + 3) us, and an update of 0.1 us after each of four calls
// (all-gather and reduce-scatter forward, reduce-scatter and all-reduce backward): 12.4 us.
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
  EXPECT_EQ(compute, from_microseconds(12.4));
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

Duration computed(const Trace& trace) {
  Duration sum{};
  const program::Program program = to_program(trace, accelerator());
  for (const auto& op : program.classes[0].ops)
    if (op.kind == OpKind::compute) sum += op.duration;
  return sum;
}

// The second layer's gradients are reduced and its weights then updated for 50 ms, while the first layer
// computes for 40 ms. The all-reduce of 1 MiB takes far less than those, so the step takes a little over
// 50 ms and the accelerator is busy for all of it.
TEST(Aicb, WeightsAreUpdatedAfterTheirGradientsAndBesideTheLayersThatFollow) {
  const Trace trace = read_aicb(
      "HYBRID_TRANSFORMER model_parallel_NPU_group: 1 all_gpus: 8\n2\n"
      "a -1 0 NONE 0 0 NONE 0 40000000 NONE 0 0\n"
      "b -1 0 NONE 0 0 NONE 0 0 ALLREDUCE 1048576 50000000\n",
      "x.txt", 0);
  const auto outcome = run(trace);
  EXPECT_GT(seconds(outcome.step_times[0]), 0.050);
  EXPECT_LT(seconds(outcome.step_times[0]), 0.051);
  for (const auto& rank : outcome.ranks) EXPECT_EQ(rank.steps[0].busy, outcome.step_times[0]);
}

// In a tensor group of one rank nothing is communicated, so there is no update either: 1 us of compute.
TEST(Aicb, AGroupOfOneHasNoUpdate) {
  EXPECT_EQ(computed(read_aicb("HYBRID_TRANSFORMER model_parallel_NPU_group: 1 all_gpus: 8\n1\n"
                               "a -1 1000 ALLREDUCE 4096 0 NONE 0 0 NONE 0 7000\n",
                               "x.txt", 0)),
            from_microseconds(1));
}

// Layers 0 to 3 take 1, 2, 4 and 8 us, all forward. Layers are computed again from the last checkpoint: layer
// 2 before the backward of layer 3, layer 0 before that of layer 1. 15 + 4 + 1 = 20 us.
TEST(Aicb, LayersAreComputedAgainFromTheirCheckpoint) {
  const std::string layers =
      "\n4\na -1 1000 NONE 0 0 NONE 0 0 NONE 0 0\nb -1 2000 NONE 0 0 NONE 0 0 NONE 0 0\n"
      "c -1 4000 NONE 0 0 NONE 0 0 NONE 0 0\nd -1 8000 NONE 0 0 NONE 0 0 NONE 0 0\n";
  const std::string lists = " all_gpus: 8 checkpoints: 2 0 2 checkpoint_initiates: ";
  const std::string policy = "HYBRID_TRANSFORMER_FWD_IN_BCKWD";
  EXPECT_EQ(computed(read_aicb(policy + lists + "0" + layers, "x.txt", 0)), from_microseconds(15));
  EXPECT_EQ(computed(read_aicb(policy + lists + "2 1 3" + layers, "x.txt", 0)), from_microseconds(20));
  const Trace other = read_aicb("HYBRID_TRANSFORMER" + lists + "1 3" + layers, "x.txt", 0);
  EXPECT_EQ(computed(other), from_microseconds(15));
  EXPECT_THAT(other.notes.front(), HasSubstr("not computed again"));
  const auto mistake = [&](const std::string& said, int column, const char* message) {
    const std::string text = policy + said + layers;
    expect_mistake(problem_of([&] { (void)read_aicb(text, "x.txt", 8); }), 1, column, message, text);
  };
  mistake(" checkpoints: 1 0 checkpoint_initiates: 1 9", 74, "the file has no layer 9");
  mistake(" checkpoints: 1 2 checkpoint_initiates: 1 1", 74, "no checkpoint between layer 0 and layer 1");
  mistake(" checkpoints: 1 0 checkpoint_initiates: 2 1 3", 76, "no checkpoint between layer 1 and layer 3");
  mistake(" checkpoints: 1 3 checkpoint_initiates: 1 3", 74, "layer 3 is a checkpoint itself");
  mistake(" checkpoints: 1 0 checkpoints: 1 2", 50, "\"checkpoints:\" stands twice in the first line");
  mistake(" ep: 1 all_gpus: 8 ep: 2", 51, "\"ep:\" stands twice in the first line");
  mistake(" checkpoints: 3 0 1", 46, "checkpoints: says 3 layers, 1 fewer follow");
}

// 8 ranks in tensor groups of 2. A layer of policy DATA reduces gradients over all 8 and has no call forward,
// one of MODEL calls all 8 forward, and one of HYBRID_TRANSFORMER calls its 2 forward and reduces over the 4
// that hold the same part.
TEST(Aicb, ALayerMayHaveAPolicyOfItsOwn) {
  const auto layer = [](const std::string& own) {
    return "HYBRID_CUSTOMIZED model_parallel_NPU_group: 2 all_gpus: 8\n1\n"
           "a -1 1 ALLREDUCE 8192 1 NONE 0 1 ALLREDUCE 4096 0 " +
           own + "\n";
  };
  const auto groups = [&](const std::string& own) {
    const program::Program program = to_program(read_aicb(layer(own), "x.txt", 0), accelerator());
    std::map<std::int64_t, std::uint32_t> sizes;
    for (const auto& op : program.classes[0].ops)
      if (op.kind == OpKind::collective)
        sizes[op.bytes.value()] = program.communicators[program.communicator_slots[op.slot][0].index()].size;
    return sizes;
  };
  using Sizes = std::map<std::int64_t, std::uint32_t>;
  EXPECT_EQ(groups("DATA"), (Sizes{{4096, 8}}));
  EXPECT_EQ(groups("MODEL"), (Sizes{{8192, 8}}));
  EXPECT_EQ(groups("HYBRID_TRANSFORMER"), (Sizes{{4096, 4}, {8192, 2}}));
  EXPECT_THAT(read_aicb(layer("DATA"), "x.txt", 0).notes.front(), HasSubstr("ALLREDUCE is left out"));
  for (const char* unknown : {"NONSENSE", "HYBRID_CUSTOMIZED"})
    expect_mistake(problem_of([&] { (void)read_aicb(layer(unknown), "x.txt", 8); }), 3, 51,
                   "unknown parallelism policy", unknown);
}

// 8 ranks, layers divided over 2. HYBRID_DATA_MODEL: over ranks 0 and 1; replicas are 0, 2, 4, 6. ASTRA-sim's
// HYBRID_MODEL_DATA has the replicas side by side: 0 to 3; layers are divided over 0 and 4.
TEST(Aicb, ModelDataHasItsReplicasSideBySide) {
  const auto file = [](const std::string& first, const char* all = "all_gpus: 8") {
    return first + " " + all + "\n1\na -1 1 ALLREDUCE 8192 1 NONE 0 1 ALLREDUCE 4096 0\n";
  };
  using Ranks = std::vector<std::uint32_t>;
  for (const auto& [policy, forward, weights] :
       {std::tuple("HYBRID_DATA_MODEL", Ranks{0, 1}, Ranks{0, 2, 4, 6}),
        {"HYBRID_MODEL_DATA", Ranks{0, 4}, Ranks{0, 1, 2, 3}}}) {
    const Trace trace = read_aicb(file(std::string(policy) + " model_parallel_NPU_group: 2"), "x.txt", 0);
    const program::Program program = to_program(trace, accelerator());
    std::map<std::int64_t, Ranks> members;
    for (const auto& op : program.classes[0].ops) {
      if (op.kind != OpKind::collective) continue;
      for (const RankId rank : program.members_of(program.communicator_slots[op.slot][0]))
        members[op.bytes.value()].push_back(rank.value);
    }
    EXPECT_EQ(members[8192], forward) << policy;
    EXPECT_EQ(members[4096], weights) << policy;
    expect_mistake(problem_of([&] { (void)read_aicb(file(policy), "x.txt", 0); }), 3, 8,
                   "line 1 does not say how many ranks", policy);
  }
}

// Without it every tensor group would have one rank, and their communications would vanish.
TEST(Aicb, TransformersSayHowManyRanksALayerIsDividedOver) {
  const std::string layers = "\n1\na -1 1 ALLREDUCE 8192 1 NONE 0 1 NONE 0 0\n";
  for (const std::string policy : {"HYBRID_TRANSFORMER", "HYBRID_TRANSFORMER_FWD_IN_BCKWD"}) {
    expect_mistake(problem_of([&] { (void)read_aicb(policy + layers, "x.txt", 8); }), 3, 8,
                   "line 1 does not say how many ranks", policy);
    const Trace one = read_aicb(policy + " model_parallel_NPU_group: 1" + layers, "x.txt", 8);
    EXPECT_THAT(one.notes, testing::ElementsAre("line 3: all_reduce is left out, as others may be: its group "
                                                "(tensor) has one rank"));
  }
}

// MICRO calls all ranks of a job, and says nowhere how many.
TEST(Aicb, AFileThatDoesNotSayHowManyRanksNamesTheOption) {
  const std::string text = "MICRO\n1\na -1 1 NONE 0 1 NONE 0 1 ALLTOALL 65536 1\n";
  EXPECT_THAT(read_aicb(text, "x.txt", 0).notes.front(), HasSubstr("--ranks N, or all_gpus: N in line 1"));
  EXPECT_TRUE(read_aicb(text, "x.txt", 4).notes.empty());
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
