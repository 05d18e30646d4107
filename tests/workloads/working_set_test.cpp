// Memory of what passes through the layer whose backward pass is running, and through the loss.
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

// GPT-3 175B over 8 tensor ranks with sequence parallelism, in s b h (2 bytes per number). The fullest moment
// is FC2's product: gradients of the layer's and of the dropout's output, 2/8 each; the latter gathered, 2;
// the gradient of FC2's input, 8/8.
TEST(WorkingSet, GathersTheGradientOfARowParallelProduct) {
  WorkloadSpec workload;
  workload.model = gpt(96, 12288, 96);
  workload.framework = "megatron@2022";
  workload.plan.tp = 8, workload.plan.sequence_parallel = true;
  EXPECT_DOUBLE_EQ(passes(workload), 2048.0 * 12288 * (2 / 8.0 + 2 / 8.0 + 2 + 8 / 8.0));
  // Without sequence parallelism nothing is divided and nothing gathered: 2 + 2 + 8/8.
  workload.plan.sequence_parallel = false;
  EXPECT_DOUBLE_EQ(passes(workload), 2048.0 * 12288 * (2 + 2 + 8 / 8.0));
}

// Stored scores, 32 heads, 2048 tokens, h 2048, one tensor rank. Numbers of 2 bytes per token: the layer's
// gradient twice, 2 h; two gradients of scores, of which one takes the place of dropout's output; less what
// the network kept and has freed: inputs of FC1 h, of FC2 and of the activation 4 h each.
TEST(WorkingSet, IsTheScoresWhereTheyAreStored) {
  WorkloadSpec workload;
  workload.model = gpt(4, 2048, 32);
  workload.framework = "megatron@2022";
  EXPECT_DOUBLE_EQ(passes(workload, 1), 2 * 2048.0 * (2 * 2048 + 32 * 2048 - 9 * 2048));
}

// Llama-3 405B over 8 tensor ranks of compiled torchtitan. Numbers of 2 bytes per token: input gradients of
// w1 and w3, 16384 each, and a copy of their sum in chunks; gradients of the layer's output and of what is
// scattered, 2048 each; two of 6656 columns. Freed: w2's input and both inputs of the activation, three of
// 6656.
TEST(WorkingSet, HoldsBothAnswersOfProductsThatAreApart) {
  WorkloadSpec workload;
  workload.model = llama3_405b();
  workload.framework = "fsdp@2024-compile";
  workload.plan.tp = 8;
  EXPECT_DOUBLE_EQ(passes(workload, 64), 2 * 8192.0 * (3 * 16384 + 2 * 2048 - 6656));
}

// Llama-3 8B on one rank, while the activation's backward pass runs: the layer's gradient, 4096 numbers per
// token; gradients of the activation's result and of both halves, 14336 each; less w2's input, which is
// freed.
TEST(WorkingSet, HoldsThreeGradientsOfAGatedActivation) {
  WorkloadSpec workload;
  workload.model = llama3_70b();
  workload.model.layers = 32, workload.model.hidden = 4096, workload.model.heads = 32;
  workload.model.ffn = 14336;
  workload.framework = "fsdp";
  EXPECT_DOUBLE_EQ(passes(workload), 2 * 8192.0 * (4096 + 2 * 14336));
}

// The loss holds 14 bytes per logit, more than any layer of a small model needs after it, in the same memory.
TEST(WorkingSet, IsInThePlaceOfTheLogits) {
  EXPECT_EQ(memory_use(small("fsdp"), a100(), 8).peak().working, 0);
}

// Megatron keeps the softmax in 4 bytes per logit, which later serve a layer. While the loss runs the 16-bit
// logits, and then their gradient, exist beside it.
TEST(WorkingSet, IsTheSixteenBitLogitsWhileMegatronsLossRuns) {
  const MemoryParts parts = memory_use(small("megatron@2022"), a100(), 8).peak();
  EXPECT_DOUBLE_EQ(parts.working, 2 * 2048.0 * 51200);
  // Transformer Engine's gradient overwrites the logits.
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
