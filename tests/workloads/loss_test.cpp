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

double activations(const WorkloadSpec& workload) {
  return memory_use(workload, h100(), 8).peak().activations;
}

// FSDP, all 8192 x 128256 logits of a rank: 10 bytes of each; 4 where the loss is a kernel, and an eighth of
// that in eight chunks.
TEST(Loss, ChunksHoldTheirOwnLogitsOnly) {
  WorkloadSpec workload = job("fsdp");
  workload.plan.tp = 1, workload.plan.global_batch = 8;
  const double logits = 8192.0 * 128256, eager = activations(workload);
  workload.compute.fused_cross_entropy = true;
  EXPECT_NEAR(eager - activations(workload), 6 * logits, 1);
  const double fused = activations(workload);
  workload.compute.loss_chunks = 8;
  EXPECT_NEAR(fused - activations(workload), 3.5 * logits, 1);
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
