// The loss: single steps over fp32 copies of the logits, or one kernel each way; for all tokens at once or in
// chunks.
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

// Seconds of the loss for one micro-batch, without the LM head's products and the norm.
double loss_seconds(const WorkloadSpec& workload) {
  const topology::Accelerator accelerator = h100();
  const PiecePair pair = head(workload.model, resolve(workload, 8), ComputeModel(accelerator, {}));
  double sum = 0;
  for (const PieceList* list : {&pair.forward, &pair.backward})
    for (const Piece& piece : list->pieces())
      if (!piece.collective && piece.part == Part::loss) sum += piece.cost.seconds;
  return sum;
}

// 8192 tokens x 128256 / 8 words; fused kernels move 0.8 x 3.35 TB/s. Bytes per logit: Megatron's single
// steps 38 forward and 14 backward. Transformer Engine's kernels read 2, then read 2 and write 2; backward,
// since a mask multiplies the losses of tokens, they read and write once more, 4: 10, five passes of 2 bytes.
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

// Bytes per logit in PyTorch.
//   All words on a rank: cast 2 + 4, log-softmax 3 x 4 + 4; backward zeros 4, log-softmax's gradient
//     4 + 8 + 4, cast 4 + 2. Sum 48.
//   Words divided over tensor ranks: cast 6, maximum 4, subtraction 8, exponentials 8, their sum 4, the
//     logarithm subtracted 8; backward zeros 4, exponentials 8, sum 12, scaling 8, cast 6. Sum 76.
//   Compiled: 2 + 2 forward, 2 + 2 backward, and over tensor ranks 8 for the zeros.
//   llm-foundry: flash-attn's kernels 2 forward and 4 backward, and two metrics of 22 each.
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
  EXPECT_NEAR(bytes_a_logit("fsdp@2023", 1), 6 + 2 * 22, 1e-9);
  EXPECT_NEAR(bytes_a_logit("deepspeed", 8), 52, 1e-9);  // Megatron's
}

double activations(const WorkloadSpec& workload) {
  return memory_use(workload, h100(), 8).peak().activations;
}

// FSDP, all 8192 x 128256 logits on a rank, 14 bytes each: log-softmax and two gradients of 4 each, and a
// hole of 2. A fused kernel holds 4; in eight chunks an eighth of that.
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

// Eight tensor ranks with an eighth of the words each. 18 bytes per logit: log-softmax, zeros, exponentials
// and their sum, 4 each, and a hole of 2. Compiled 8: logits 2, zeros 4, gradient 2.
TEST(Loss, TensorRanksHoldEighteenBytesALogit) {
  const double logits = 8192.0 * 128256 / 8;
  EXPECT_NEAR(activations(job("fsdp@2024-compile")) - activations(job("fsdp@2025-compile")), 10 * logits, 1);
}

// Layers are recomputed after the loss, in the memory of its logits. One layer of 8192 tokens needs less than
// 14 bytes of each token's 128256 logits, but more than the logits of a chunk of 1/1024. Fused Adam, since
// the temporary of the other one (4 bytes of an eighth of 70e9 weights) would be more.
TEST(Loss, RecomputeTakesThePlaceOfTheLogits) {
  WorkloadSpec workload = job("fsdp@2025-eager");
  workload.plan.tp = 1, workload.plan.global_batch = 8;
  workload.plan.recompute = RecomputeSpec{RecomputeKind::full, {}};
  EXPECT_EQ(memory_use(workload, h100(), 8).peak().recompute, 0);
  workload.compute.fused_cross_entropy = true;
  workload.compute.loss_chunks = 1024;
  EXPECT_GT(memory_use(workload, h100(), 8).peak().recompute, 0);
}

// Written in single operators the norm before the head keeps 4 + 2 bytes of each of its 8192 x 8192 inputs;
// as a kernel, in llm-foundry's FSDP (fsdp@2023), 2. The loss holds 14 and 4 bytes per logit.
TEST(Loss, ComesAfterANormInFp32) {
  WorkloadSpec eager = job("fsdp"), kernel = job("fsdp@2023");
  for (WorkloadSpec* workload : {&eager, &kernel}) {
    workload->plan.tp = 1, workload->plan.global_batch = 8;
    workload->plan.recompute = RecomputeSpec{RecomputeKind::full, {}};
  }
  EXPECT_NEAR(activations(eager) - activations(kernel), 8192.0 * (10 * 128256 + 4 * 8192), 1);
}

// Chunks do the same products with fewer rows each. Seven of the eight gradients of the head are added to the
// one before: 3 x 2 bytes for each of its 8192 x 128256 weights.
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

// A zero-bubble schedule puts weight gradients off, the head's among them, and keeps its input and the
// gradient of its logits for it: (8192 + 128256) numbers of 2 bytes for each of 8192 tokens. In chunks
// nothing waits.
TEST(Loss, ChunksPutNoWeightGradientOff) {
  WorkloadSpec workload = job("megatron");
  workload.plan.tp = 1, workload.plan.pp = 8, workload.plan.global_batch = 16;
  workload.plan.schedule = Schedule::zb_h1;
  const auto kept = [&] { return stage_activations(workload.model, resolve(workload, 8), 7).until_weight; };
  const auto put_off = [&] {
    const PiecePair pair = head(workload.model, resolve(workload, 8), ComputeModel(h100(), {}));
    return std::count_if(pair.backward.pieces().begin(), pair.backward.pieces().end(),
                         [](const Piece& piece) { return piece.weight_gradient; });
  };
  const double whole = kept();
  EXPECT_EQ(put_off(), 1);
  workload.compute.loss_chunks = 8;
  EXPECT_EQ(whole - kept(), 8192.0 * (8192 + 128256) * 2);
  EXPECT_EQ(put_off(), 0);
}

TEST(Loss, InferenceHasNone) {
  WorkloadSpec workload = job("megatron");
  workload.task = Task::decode;
  workload.compute.fused_cross_entropy = true;
  EXPECT_THROW((void)resolve(workload, 8), ConfigError);
}
}  // namespace topsim::workloads::loss_test
