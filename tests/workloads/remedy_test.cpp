// The remedy proposed where a plan does not fit: one change that is enough, the quickest of those tried.
#include <gmock/gmock.h>

#include "sim/base/error.hpp"
#include "tests/workloads/mixtures.hpp"
#include "workloads/memory/memory.hpp"

namespace topsim::workloads::remedy_test {
using namespace testing;
using ::testing::StartsWith;

std::string help(const WorkloadSpec& workload, std::uint32_t accelerators) {
  try {
    require_fit(workload, h100(), accelerators);
  } catch (const ConfigError& error) {
    return error.problems()[0].help;
  }
  return "it fits";
}

// Four layers of 0.86e9 and two embeddings of 1.05e9: 5.5e9 parameters. At 18 bytes they need 92 of 80 GiB
// whatever is recomputed; at 6, without the optimiser's states, 31.
TEST(Remedy, OneAcceleratorHasItsOptimiserOnTheHost) {
  WorkloadSpec workload;
  workload.model = llama3_70b();
  workload.model.layers = 4;
  workload.plan.global_batch = 1;
  EXPECT_THAT(help(workload, 1), StartsWith("offload = cpu would fit"));
}

// 70.6e9 weights take 131 GiB in 16 bits. With 68.4e9 of them in 8 bits and the embeddings in 16 they take
// 68.
TEST(Remedy, WeightsOfADecodeStepInFewerBits) {
  WorkloadSpec workload;
  workload.model = llama3_70b();
  workload.task = Task::decode;
  workload.sequence = 1024;
  EXPECT_THAT(help(workload, 1), StartsWith("precision.weights = int8 would fit"));
}

// One of 8 ranks caches for each token a key and a value of one head of 128 in 80 layers: 2 x 128 x 2 x 80 =
// 40,960 bytes. 1024 requests of 2048 tokens need 80 GiB, 512 need 40; 70.6e9 / 8 weights of 2 bytes take
// 16.4 GiB more.
TEST(Remedy, AMicroBatchIsHalvedUntilItFits) {
  WorkloadSpec workload;
  workload.model = llama3_70b();
  workload.task = Task::decode;
  workload.sequence = 2048;
  workload.plan.tp = 8, workload.plan.micro_batch = 1024;
  EXPECT_THAT(help(workload, 8), StartsWith("micro_batch = 512 would fit"));
}

// 8 layers x 8 experts of 3 x 4096 x 14336 = 176e6: 11.3e9 parameters on every rank. ZeRO-1 over 8 ranks
// leaves 6 + 12/8 bytes of each: 79 of 80 GiB without anything else. With ep = 2 a rank holds half of them at
// 6 + 12/4 bytes: 47 GiB.
TEST(Remedy, ExpertsAreDividedAmongTheRanksThatThereAre) {
  WorkloadSpec workload = small_moe(1, 1);
  workload.model.layers = 8, workload.model.hidden = 4096, workload.model.heads = 32;
  workload.model.experts.ffn = 14336;
  workload.plan.dp = 8, workload.plan.zero = 1;
  EXPECT_THAT(help(workload, 8), StartsWith("ep = 2 would fit"));  // before Megatron-FSDP's zero 2
  workload.framework = "megatron@2024";                            // has no stage 2
  EXPECT_THAT(help(workload, 8), StartsWith("ep = 2 would fit"));
}
}  // namespace topsim::workloads::remedy_test
