// What passes through the layer whose backward pass runs, and through the loss.
#include "workloads/memory/working_set.hpp"

#include <gtest/gtest.h>

#include "tests/workloads/fixtures.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"
#include "workloads/plan.hpp"

namespace topsim::workloads::working_set_test {
using namespace testing;

double passes(WorkloadSpec workload, std::uint32_t ranks = 8) {
  workload.model = complete(workload.model);
  return working_set(workload.model, resolve(workload, ranks));
}

// GPT of 175 billion over 8 tensor ranks with sequence parallelism, in s b h (2 bytes a number). FC2's
// product: gradients of the layer's and of dropout's output 2/8 each, gathered 2, and FC2's input's 8/8.
TEST(WorkingSet, GathersTheGradientOfARowParallelProduct) {
  WorkloadSpec workload;
  workload.model = gpt(96, 12288, 96);
  workload.framework = "megatron@2022";
  workload.plan.tp = 8, workload.plan.sequence_parallel = true;
  EXPECT_DOUBLE_EQ(passes(workload), 2048.0 * 12288 * (2 / 8.0 + 2 / 8.0 + 2 + 8 / 8.0));
  // Without it nothing is gathered, and FC1's is the fullest moment no more: 2 + 2 + 8 / 8.
  workload.plan.sequence_parallel = false;
  EXPECT_DOUBLE_EQ(passes(workload), 2048.0 * 12288 * (2 + 2 + 8 / 8.0));
}

// Stored scores, 32 heads of 2048 tokens at h 2048, no tensor ranks: twice the layer's gradient and two
// gradients of scores, of which dropout's output makes room for one, less what the network kept: input of FC1
// h, of FC2 and of the activation 4 h each. Numbers a token, 2 bytes each.
TEST(WorkingSet, IsTheScoresWhereTheyAreStored) {
  WorkloadSpec workload;
  workload.model = gpt(4, 2048, 32);
  workload.framework = "megatron@2022";
  EXPECT_DOUBLE_EQ(passes(workload, 1), 2 * 2048.0 * (2 * 2048 + 32 * 2048 - 9 * 2048));
}

// Llama-3 405B over 8 tensor ranks of torchtitan, compiled, numbers a token of 2 bytes: w1's and w3's
// gradients of 16384 and a copy of their sum in chunks, that of the layer's output and the scattered one 2048
// each, two of 6656; w2's input and both of the activation are gone, three of 6656.
TEST(WorkingSet, HoldsBothAnswersOfProductsThatAreApart) {
  WorkloadSpec workload;
  workload.model = llama3_405b();
  workload.framework = "fsdp@2024-compile";
  workload.plan.tp = 8;
  EXPECT_DOUBLE_EQ(passes(workload, 64), 2 * 8192.0 * (3 * 16384 + 2 * 2048 - 6656));
}

// Llama-3 8B on one rank: the activation's moment, the layer's gradient 4096, the product's and both halves'
// 14336, less w2's input.
TEST(WorkingSet, HoldsThreeGradientsOfAGatedActivation) {
  WorkloadSpec workload;
  workload.model = llama3_70b();
  workload.model.layers = 32, workload.model.hidden = 4096, workload.model.heads = 32;
  workload.model.ffn = 14336;
  workload.framework = "fsdp";
  EXPECT_DOUBLE_EQ(passes(workload), 2 * 8192.0 * (4096 + 2 * 14336));
}

// Fourteen bytes a logit are more than any layer of small models needs after them.
TEST(WorkingSet, IsInThePlaceOfTheLogits) {
  EXPECT_EQ(memory_use(small("fsdp"), a100(), 8).peak().working, 0);
}

// Megatron keeps the softmax in 4 bytes, which take a layer's place; while it is computed the 16-bit logits
// are there, and later their gradient.
TEST(WorkingSet, IsTheSixteenBitLogitsWhileMegatronsLossRuns) {
  const MemoryParts parts = memory_use(small("megatron@2022"), a100(), 8).peak();
  EXPECT_DOUBLE_EQ(parts.working, 2 * 2048.0 * 51200);
  // Transformer Engine's gradient overwrites them.
  EXPECT_EQ(memory_use(small("megatron@2025"), a100(), 8).peak().working, 0);
}

TEST(WorkingSet, IsPartOfTheTotal) {
  WorkloadSpec workload = small("megatron");
  workload.plan.pp = 2;
  const MemoryParts first = memory_use(workload, a100(), 8).stages[0];
  workload.model = complete(workload.model);
  EXPECT_DOUBLE_EQ(first.working, working_set(workload.model, resolve(workload, 8)));
  EXPECT_DOUBLE_EQ(first.total(),
                   first.weights + first.gradients + first.optimizer + first.activations + first.working);
}
}  // namespace topsim::workloads::working_set_test
