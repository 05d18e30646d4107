// The loss: steps over copies in fp32, or a kernel each way; all tokens at a time, or chunk by chunk.
#include <gmock/gmock.h>

#include "sim/base/error.hpp"
#include "tests/workloads/fixtures.hpp"
#include "workloads/layer/pieces.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads::loss_test {
using namespace testing;

WorkloadSpec job(std::string framework) {
  WorkloadSpec workload;
  workload.model = complete(llama3_70b());
  workload.framework = std::move(framework);
  workload.plan.tp = 8;
  workload.plan.global_batch = 1;
  return workload;
}

// Of one micro-batch, without the LM head's products and the norm.
double loss_seconds(const WorkloadSpec& workload) {
  const topology::Accelerator accelerator = h100();
  const PiecePair pair = head(workload.model, resolve(workload, 8), ComputeModel(accelerator, {}));
  double sum = 0;
  for (const PieceList* list : {&pair.forward, &pair.backward})
    for (const Piece& piece : list->pieces())
      if (!piece.collective && piece.part == Part::loss) sum += piece.cost.seconds;
  return sum;
}

// 8192 tokens x 128256 / 8 words; a fused kernel moves 0.8 of 3.35 TB/s. Megatron's own steps pass 38 bytes a
// logit forward and 14 backward; Transformer Engine's kernels read 2, read 2 and write 2, and backward, since
// a mask multiplies the losses of tokens, read and write 4 more.
TEST(Loss, TransformerEnginesKernelsPassTheLogitsFiveTimes) {
  const double logits = 8192.0 * 128256 / 8, rate = 0.8 * 3.35e12;
  EXPECT_NEAR(loss_seconds(job("megatron@2024")), logits * 52 / rate, 1e-9);
  EXPECT_NEAR(loss_seconds(job("megatron@2025")), logits * 10 / rate, 1e-9);
  WorkloadSpec said = job("megatron@2024");
  said.compute.fused_cross_entropy = true;
  EXPECT_DOUBLE_EQ(loss_seconds(said), loss_seconds(job("megatron")));
  said = job("megatron");
  said.compute.fused_cross_entropy = false;
  EXPECT_DOUBLE_EQ(loss_seconds(said), loss_seconds(job("megatron@2024")));
}

// PyTorch's passes a logit. A rank that has all words: cast 2 + 4, log-softmax 3 x 4 + 4; zeros 4,
// log-softmax's gradient 4 + 8 + 4, cast 4 + 2: 48. Tensor ranks: cast 6, maximum 4, subtracted 8,
// exponentials 8, their sum 4, logarithm subtracted 8; zeros 4, exponentials 8, their sum 12, scaled 8, cast
// 6: 76. Compiled: 2 + 2 forward, read 2 and written 2 backward, and between tensor ranks 8 for the zeros.
TEST(Loss, PyTorchPassesCopiesInFp32) {
  const auto bytes_a_logit = [](std::string framework, int tp) {
    WorkloadSpec workload = job(std::move(framework));
    workload.plan.tp = tp, workload.plan.global_batch = 8 / tp;
    return loss_seconds(workload) * 0.8 * 3.35e12 / (8192.0 * 128256 / tp);
  };
  EXPECT_NEAR(bytes_a_logit("fsdp", 1), 48, 1e-9);
  EXPECT_NEAR(bytes_a_logit("fsdp@2024-compile", 8), 76, 1e-9);
  EXPECT_NEAR(bytes_a_logit("fsdp@2025-compile", 1), 8, 1e-9);
  EXPECT_NEAR(bytes_a_logit("fsdp@2025-compile", 8), 16, 1e-9);
  EXPECT_NEAR(bytes_a_logit("deepspeed", 8), 52, 1e-9);  // Megatron's
}

double activations(const WorkloadSpec& workload) {
  return memory_use(workload, h100(), 8).peak().activations;
}

// FSDP, all 8192 x 128256 logits of a rank: 14 bytes of each (log-softmax and two gradients of 4, and a hole
// of 2); 4 where the loss is a kernel, and an eighth of that in eight chunks.
TEST(Loss, ChunksHoldTheirOwnLogitsOnly) {
  WorkloadSpec workload = job("fsdp");
  workload.plan.tp = 1, workload.plan.global_batch = 8;
  const double logits = 8192.0 * 128256, eager = activations(workload);
  workload.compute.fused_cross_entropy = true;
  EXPECT_NEAR(eager - activations(workload), 10 * logits, 1);
  const double fused = activations(workload);
  workload.compute.loss_chunks = 8;
  EXPECT_NEAR(fused - activations(workload), 3.5 * logits, 1);
}

// Eight tensor ranks, an eighth of the words each: log-softmax, zeros, exponentials, their sum 4 each and a
// hole of 2. Compiled 8: logits, zeros in fp32, gradient.
TEST(Loss, TensorRanksHoldEighteenBytesALogit) {
  const double logits = 8192.0 * 128256 / 8;
  EXPECT_NEAR(activations(job("fsdp@2024-compile")) - activations(job("fsdp@2025-compile")), 10 * logits, 1);
}

// A layer that is computed again is so after the loss: of 8192 tokens less than 14 bytes of 128256 logits
// each, but not less than a thousandth of them.
TEST(Loss, RecomputeTakesThePlaceOfTheLogits) {
  WorkloadSpec workload = job("fsdp");
  workload.plan.tp = 1, workload.plan.global_batch = 8;
  workload.plan.recompute = RecomputeSpec{RecomputeKind::full, {}};
  EXPECT_EQ(memory_use(workload, h100(), 8).peak().recompute, 0);
  workload.compute.fused_cross_entropy = true;
  workload.compute.loss_chunks = 1024;
  EXPECT_GT(memory_use(workload, h100(), 8).peak().recompute, 0);
}

// In single operators the norm before the head keeps 4 + 2 bytes of its 8192 x 8192 inputs, where its kernel
// keeps 2: llm-foundry's FSDP, whose loss holds 4 bytes a logit, not 14.
TEST(Loss, ComesAfterANormInFp32) {
  WorkloadSpec eager = job("fsdp"), kernel = job("fsdp@2023");
  for (WorkloadSpec* workload : {&eager, &kernel}) {
    workload->plan.tp = 1, workload->plan.global_batch = 8;
    workload->plan.recompute = RecomputeSpec{RecomputeKind::full, {}};
  }
  EXPECT_NEAR(activations(eager) - activations(kernel), 8192.0 * (10 * 128256 + 4 * 8192), 1);
}

// The products are the same, of fewer rows each, and seven of eight gradients of the head are added to those
// before: 3 x 2 bytes of each of its 8192 x 128256 weights.
TEST(Loss, ChunksMultiplyTheSameAndAddTheirGradients) {
  const topology::Accelerator accelerator = h100();
  const auto cost = [&](int chunks) {
    WorkloadSpec workload = job("fsdp");
    workload.plan.tp = 1, workload.plan.global_batch = 8;
    workload.compute.loss_chunks = chunks;
    const PiecePair pair = head(workload.model, resolve(workload, 8), ComputeModel(accelerator, {}));
    KernelCost sum;
    for (const PieceList* list : {&pair.forward, &pair.backward})
      for (const Piece& piece : list->pieces()) sum += piece.cost;
    return sum;
  };
  const KernelCost whole = cost(1), parts = cost(8);
  EXPECT_DOUBLE_EQ(parts.flops, whole.flops);
  const double added = 7 * 6 * 8192.0 * 128256 / (accelerator.memory_bandwidth.value() * 0.8);
  EXPECT_NEAR(parts.seconds - whole.seconds, added, 0.1 * added);
}

TEST(Loss, InferenceHasNone) {
  WorkloadSpec workload = job("megatron");
  workload.task = Task::decode;
  workload.compute.fused_cross_entropy = true;
  EXPECT_THROW((void)resolve(workload, 8), ConfigError);
}
}  // namespace topsim::workloads::loss_test
