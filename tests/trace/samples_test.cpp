// Public traces, read where they lie beside the checkout.
#include "tests/trace/fixtures.hpp"

namespace topsim::workloads::trace::samples_test {
class Samples : public ::testing::Test {
 protected:
  void SetUp() override {
    // Data of others: read where it lies beside the project, never committed.
    if (!fs::exists(folder_)) GTEST_SKIP() << "no traces beside the project";
  }
  Trace read(const std::string& format, const std::string& path, std::uint32_t ranks = 0) const {
    TraceSpec spec;
    spec.format = format;
    spec.path = (folder_ / path).string();
    return load(spec, {}, ranks);
  }
  fs::path folder_ = fs::path(TOPSIM_SOURCE_DIR) / "../shared/data/traces";
};

// All-to-all of 16 ranks on two boxes, 15 x 1 MB out of and into each rank. 8 of them go to the other box, at
// no more than the 50 GB/s of the rank's rail.
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
// The ring of sends and receives has 14 steps of 1/8 MiB. For the collective node NCCL chooses, by its 1 MiB.
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
}  // namespace topsim::workloads::trace::samples_test
