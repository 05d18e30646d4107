// Memory of data-parallel frameworks.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/workloads/fixtures.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads::data_parallel_memory_test {
using namespace testing;

// Weights, gradients and optimiser states on 8 ranks, against the closed forms of memory.hpp. Psi, all
// parameters: 4 layers + embedding (the head is tied to it) + final norm = 104,912,896.
TEST(DataParallelMemory, IsTheClosedFormOfEachFramework) {
  const auto tied = [](const char* framework) {
    WorkloadSpec workload = small(framework);
    workload.model.tied_embeddings = true;
    return workload;
  };
  const ModelSpec model = complete(tied("ddp").model);
  const double layer = layer_parameters(model).total(), embedding = embedding_parameters(model);
  const double norm = 2 * 1024;  // the final one, whose bias and weight are in the root
  const double all = 4 * layer + embedding + norm;
  const auto states = [&](const WorkloadSpec& workload) {
    const MemoryParts parts = memory_use(workload, a100(), 8).peak();
    return parts.weights + parts.gradients + parts.optimizer;
  };
  EXPECT_DOUBLE_EQ(states(tied("ddp")), 22 * all);
  // FSDP2: 16 Psi / 8. Beside it, in 2 bytes each: root and one layer gathered; the buffers that the root and
  // the first layer were gathered into; and this rank's eighth of the root, cast for its gather. Gradients on
  // their way add nothing, since they fit in the memory of the logits, 14 B x 2048 x 51200: the head's take 2
  // B x 1024 x 53248, a layer's 6 B x 12.6e6.
  EXPECT_DOUBLE_EQ(states(tied("fsdp")),
                   16 * all / 8 + 2 * 2 * (embedding + norm + layer) + 2 * (embedding + norm) / 8);
  WorkloadSpec deepspeed = tied("deepspeed");
  // One bucket of 5e8 elements holds all gradients: 2 Psi.
  deepspeed.plan.zero = 1;
  EXPECT_DOUBLE_EQ(states(deepspeed), 2 * all + 2 * all + 12 * all / 8 + 2 * all);
  deepspeed.plan.zero = 2;
  EXPECT_DOUBLE_EQ(states(deepspeed), 2 * all + 14 * all / 8 + 2 * all);
  deepspeed.plan.zero = 3;  // all parameters are below the 1e9 that may live
  EXPECT_DOUBLE_EQ(states(deepspeed), 16 * all / 8 + 2 * all + 2 * all);
}

// Gradients that are reduced in 16 bits go back to the weights' 4 bytes: a rank's eighth of them in FSDP; in
// DDP all, in buckets and beside them. Those on their way fit in the memory of the logits, as above.
TEST(DataParallelMemory, GradientsReducedIn16BitsAreKeptIn32) {
  const auto gradients = [](const char* framework) {
    WorkloadSpec workload = small(framework);
    workload.model.tied_embeddings = true;
    workload.precision.gradients = Precision::bf16;
    return memory_use(workload, a100(), 8).peak().gradients;
  };
  const ModelSpec model = complete(small("ddp").model);
  const double all = 4 * layer_parameters(model).total() + embedding_parameters(model) + 2 * 1024;
  for (const char* set : {"fsdp", "fsdp@2023", "fsdp@2024-flat"})
    EXPECT_DOUBLE_EQ(gradients(set), 4 * all / 8) << set;
  EXPECT_DOUBLE_EQ(gradients("ddp"), 8 * all);
}

// 36 layers of 4096: 7.5 billion parameters, as in figure 1 of the ZeRO paper (Rajbhandari et al. 2020). Over
// 64 ranks stages 0 to 3 hold 120, 31.4, 16.6 and 1.9 GB of states. Beside them topsim counts one bucket of
// 5e8 gradients and, with stage 3, 1e9 live parameters, in 2 bytes each.
WorkloadSpec zero_7b(int stage) {
  WorkloadSpec workload;
  workload.model = gpt(36, 4096, 32);
  workload.framework = "deepspeed";
  workload.plan.zero = stage;
  workload.plan.grad_accumulation = 1;
  return workload;
}

TEST(DataParallelMemory, ZeroIsTheFigureOfItsPaper) {
  const ModelSpec model = complete(zero_7b(0).model);
  const double all = total_parameters(model);
  const double bytes[] = {16, 4 + 12 / 64.0, 2 + 14 / 64.0, 16 / 64.0}, paper[] = {120, 31.4, 16.6, 1.9};
  for (int stage = 0; stage < 4; ++stage) {
    const MemoryParts parts = memory_use(zero_7b(stage), a100(), 64).peak();
    const double beside = 2 * 5e8 + (stage == 3 ? 2 * 1e9 : 0);
    const double states = parts.weights + parts.gradients + parts.optimizer - beside;
    EXPECT_NEAR(states / all / bytes[stage], 1, 1e-12) << stage;
    EXPECT_NEAR(bytes[stage] * 7.5, paper[stage], 0.05) << stage;
    EXPECT_EQ(parts.update, 0) << stage;
  }
}

// With one short sequence, recomputed, DeepSpeed's optimiser step can be the peak: it copies the 16-bit
// gradients that a rank updates to fp32.
//   ZeRO-2: 2 + 14 / 8 bytes per parameter, and for an eighth of them 2 flattened + 4 cast. On 64 ranks these
//           copies are smaller than what the backward pass holds.
//   ZeRO-0: 4 cast + 4 flattened, with fp16 only; bf16 accumulates in fp32.
//   ZeRO-3: 1e9 parameters at a time; on two ranks each updates 3.75e9. 6 B x 1e9.
TEST(DataParallelMemory, TheStepOfZeroIsAPeakOfItsOwn) {
  const auto use = [](int stage, std::uint32_t ranks, Precision precision = Precision::bf16) {
    WorkloadSpec workload = zero_7b(stage);
    workload.sequence = 128;
    workload.plan.recompute = RecomputeSpec{RecomputeKind::full, {}};
    workload.precision.gemm = precision;
    return memory_use(workload, a100(), ranks).peak();
  };
  const ModelSpec model = complete(zero_7b(0).model);
  const double all = total_parameters(model);
  EXPECT_DOUBLE_EQ(use(2, 8).update, 6 * all / 8);
  EXPECT_NEAR(use(2, 8).total() / all, 2 + 14 / 8.0 + 6 / 8.0, 1e-12);
  EXPECT_EQ(use(2, 8).activations + use(2, 8).recompute, 0);
  EXPECT_EQ(use(2, 64).update, 0);
  EXPECT_EQ(use(0, 8).update, 0);
  EXPECT_NEAR(use(0, 8, Precision::fp16).total() / all, 16 + 8, 1e-12);
  EXPECT_DOUBLE_EQ(use(3, 2).update, 6e9);
}

// torch.optim's foreach Adam takes the roots of all second moments at once, 4 B a parameter, when casts and
// activations are gone. With few tokens that is the peak. DDP: weights 4, gradients 4, buckets 4, moments 8,
// roots 4: 24, in the fused Adam of ddp@2024-compile 22 and activations. A rank alone has no buckets. FSDP2:
// 20 of an eighth, less than 16 of it and root and layer whole.
TEST(DataParallelMemory, TheRootsOfForeachAdamAreThereAtItsStep) {
  const auto peak = [](const char* framework, std::uint32_t ranks) {
    WorkloadSpec workload = small(framework);
    workload.model.tied_embeddings = true;
    workload.sequence = 16;
    return memory_use(workload, a100(), ranks).peak();
  };
  const ModelSpec model = complete(small("ddp").model);
  const double all = 4 * layer_parameters(model).total() + embedding_parameters(model) + 2 * 1024;
  EXPECT_DOUBLE_EQ(peak("ddp", 8).total(), 24 * all);
  EXPECT_DOUBLE_EQ(peak("ddp", 8).update, 4 * all);
  EXPECT_EQ(peak("ddp", 8).activations, 0);
  EXPECT_DOUBLE_EQ(peak("ddp", 1).total(), 20 * all);
  EXPECT_DOUBLE_EQ(peak("dataparallel", 1).total(), 20 * all);
  EXPECT_EQ(peak("ddp@2024-compile", 8).update, 0);
  EXPECT_EQ(peak("dataparallel", 8).update, 0);  // 22 B: its gradients are there twice
  EXPECT_EQ(peak("fsdp", 8).update, 0);
}

// A single rank gathers nothing, but fully_shard still copies a unit's parameters to 16 bits for its passes
// and then frees them: root (embedding and final norm) and one layer, without buffers. DDP under autocast
// keeps the copies of all parameters, a program of XLA those of the layer, or the embedding, at work.
TEST(DataParallelMemory, FullyShardedOnOneRankHoldsAUnitIn16Bits) {
  const auto weights = [](const char* framework) {
    WorkloadSpec workload = small(framework);
    workload.model.tied_embeddings = true;
    return memory_use(workload, a100(), 1).peak().weights;
  };
  const ModelSpec model = complete(small("fsdp").model);
  const double layer = layer_parameters(model).total(), embedding = embedding_parameters(model);
  const double root = embedding + 2 * 1024;
  EXPECT_DOUBLE_EQ(weights("fsdp"), 4 * (4 * layer + root) + 2 * (root + layer));
  EXPECT_DOUBLE_EQ(weights("ddp"), 6 * (4 * layer + root));
  EXPECT_DOUBLE_EQ(weights("pax"), 4 * (4 * layer + root) + 2 * std::max(layer, embedding));
}

// FSDP2's root is reduced at the end of the backward pass: 2 bytes of each gradient and the 4 of the
// reduction. With short sequences this is the peak, and nothing else of the pass is there: no activations, no
// layer that is recomputed or at work. So it does not depend on the sequence, and a longer one never needs
// less.
TEST(DataParallelMemory, TheRootsGradientsAreReducedWhenTheLayersAreDone) {
  const auto peak = [](int sequence) {
    WorkloadSpec workload = small("fsdp");
    workload.model.tied_embeddings = true;
    workload.sequence = sequence;
    return memory_use(workload, a100(), 8).peak();
  };
  const ModelSpec model = complete(small("fsdp").model);
  const double root = embedding_parameters(model) + 2 * 1024,
               all = 4 * layer_parameters(model).total() + root;
  EXPECT_DOUBLE_EQ(peak(32).gradients, 4 * all / 8 + 6 * root);
  EXPECT_EQ(peak(32).activations + peak(32).recompute + peak(32).working, 0);
  EXPECT_DOUBLE_EQ(peak(32).total(), peak(16).total());
  for (int sequence = 16; sequence < 4096; sequence *= 2)
    EXPECT_LE(peak(sequence).total(), peak(2 * sequence).total()) << sequence;
}

// FSDP2 in a pipeline reduces after the last micro-batch. Until then gradients are whole, in the 4 bytes they
// are reduced in, beside the rank's quarter and 2 bytes for each gradient of the largest unit (the embedding)
// that the backward pass leaves. First stage: two layers and the embedding; 4 ranks share it.
TEST(DataParallelMemory, AccumulatedGradientsOfAPipelineAreWhole) {
  WorkloadSpec workload = small("fsdp", 4);
  workload.plan.pp = 2;
  const ModelSpec model = complete(workload.model);
  const double embedding = embedding_parameters(model),
               stage = 2 * layer_parameters(model).total() + embedding;
  EXPECT_DOUBLE_EQ(memory_use(workload, a100(), 8).stages[0].gradients,
                   4 * stage / 4 + 4 * stage + 2 * embedding);
}

// pp 2 with two chunks per rank: the first stage holds embedding + layer 0 and layer 2. With two
// micro-batches both backward passes of its second chunk come first, so its gradients are reduced before
// those of the first chunk exist. With four the passes alternate in pairs, and the gradients of both chunks
// are whole at the same time.
TEST(DataParallelMemory, AChunksGradientsAreWholeUntilItsLastMicroBatch) {
  const auto gradients = [](int micro_batches) {
    WorkloadSpec workload = small("fsdp", micro_batches);
    workload.plan.pp = 2, workload.plan.virtual_stages = 2;
    return memory_use(workload, a100(), 8).stages[0].gradients;
  };
  const ModelSpec model = complete(small("fsdp").model);
  const double layer = layer_parameters(model).total(), embedding = embedding_parameters(model);
  const double shards = 4 * (2 * layer + embedding) / 4, leaving = 2 * embedding;
  EXPECT_DOUBLE_EQ(gradients(2), shards + 4 * (layer + embedding) + leaving);
  EXPECT_DOUBLE_EQ(gradients(4), shards + 4 * (2 * layer + embedding) + leaving);
}

// Llama-3 70B on 8 tensor ranks, all layers recomputed; T tokens and T / 8 rows of 8192 numbers. Kept are the
// rows of 80 layers, the final norm's in 4 and 2 bytes, the head's input whole, and 18 bytes of each of T x V
// / 8 logits. Beside them is what the head's input was gathered into, which is smaller than the 16-bit logits
// (8192 columns of 16032); from larger ones they take their own size (8192 - 4000).
TEST(DataParallelMemory, TensorRanksHoldWhatTheHeadsInputWasGatheredInto) {
  for (const int words : {128256, 32000}) {
    WorkloadSpec workload;
    workload.model = llama3_70b();
    workload.model.vocab = words;
    workload.framework = "fsdp@2024-compile";
    workload.plan.tp = 8, workload.plan.micro_batch = 2;
    workload.plan.recompute = RecomputeSpec{RecomputeKind::full, {}};
    workload.sequence = 8192;
    const double tokens = 2 * 8192.0, rows = tokens / 8 * 8192, whole = tokens * 8192;
    const double beside = 2 * tokens * (words == 128256 ? 8192 : 8192 - 4000);
    EXPECT_DOUBLE_EQ(memory_use(workload, h100(), 64).peak().activations,
                     80 * 2 * rows + 6 * rows + 2 * whole + 18 * tokens * words / 8 + beside);
  }
}
}  // namespace topsim::workloads::data_parallel_memory_test
