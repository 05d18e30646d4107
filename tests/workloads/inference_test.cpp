// Inference: a prompt (prefill) or one more token for each request (decode): what it computes, sends and
// holds.
#include <gmock/gmock.h>

#include <numeric>
#include <tuple>

#include "sim/base/error.hpp"
#include "sim/scenario/read/shipped.hpp"
#include "tests/workloads/fixtures.hpp"
#include "tests/workloads/replay.hpp"
#include "workloads/layer/layer_kernels.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::inference_test {
using namespace testing;
using program::CollectiveKind;
using program::OpKind;
using program::Phase;

WorkloadSpec serving(Task task, int pp = 1, int micro_batches = 1) {
  WorkloadSpec workload;
  workload.model = llama3_70b();
  workload.task = task;
  workload.plan.tp = 8, workload.plan.pp = pp;
  workload.plan.micro_batch = 16;
  workload.plan.grad_accumulation = micro_batches;
  return workload;
}
std::uint32_t ranks(const WorkloadSpec& workload) {
  return static_cast<std::uint32_t>(workload.plan.tp * workload.plan.pp);
}
program::Program step(const WorkloadSpec& workload) {
  auto program = training_step(workload, h100(), ranks(workload));
  program::validate(program);
  return program;
}

TEST(Inference, ComputesForwardOnly) {
  for (const Task task : {Task::prefill, Task::decode}) {
    const auto program = step(serving(task));
    for (const auto& op : program.classes[0].ops) EXPECT_EQ(op.phase, Phase::forward);
  }
}

// Two all-reduces per layer and one after the embedding, each of 16 requests x 8192 x 2 B; then a gather of
// 16 rows of logits.
TEST(Inference, DecodingReducesOneTokenOfEachRequest) {
  const auto program = step(serving(Task::decode));
  int reductions = 0;
  for (const auto& op : program.classes[0].ops) {
    if (op.kind != OpKind::collective) continue;
    if (op.collective == CollectiveKind::all_gather) {
      EXPECT_EQ(op.bytes.value(), 16 * 128256 * 2);
      continue;
    }
    EXPECT_EQ(op.bytes.value(), 16 * 8192 * 2);
    ++reductions;
  }
  EXPECT_EQ(reductions, 2 * 80 + 1);
}

// Each step reads every weight of the layers' matrices (855,638,016 a layer) and of the head once, 2 bytes
// each at 0.83 x 3.35 TB/s. That is a lower bound; with 16 requests everything else takes less than as long
// again.
TEST(Inference, DecodingIsBoundByWeights) {
  const auto program = step(serving(Task::decode));
  Duration busy{};
  for (const auto& op : program.classes[0].ops)
    if (op.kind == OpKind::compute) busy += op.duration;
  const double matrices = (80 * 855'638'016.0 + 128256.0 * 8192) / 8;
  const double least = 2 * matrices / (0.83 * 3.35e12);
  EXPECT_GT(seconds(busy), least);
  EXPECT_LT(seconds(busy), 2 * least);
}

// 8192 tokens more in the cache: 80 layers x 16 requests x 8192 x (key + value) x 128 (one head per rank) x 2
// B, at 0.8 x 3.35 TB/s.
TEST(Inference, AttentionReadsTheCache) {
  WorkloadSpec workload = serving(Task::decode);
  const auto busy = [&](int sequence) {
    workload.sequence = sequence;
    return seconds(free_network().run(step(workload)).busy[0]);
  };
  EXPECT_NEAR(busy(16384) - busy(8192), 80 * 16 * 8192.0 * 2 * 128 * 2 / (0.8 * 3.35e12), 1e-9);
  workload.precision.kv_cache = Precision::fp8;  // 1 byte instead of 2
  EXPECT_NEAR(busy(16384) - busy(8192), 80 * 16 * 8192.0 * 2 * 128 / (0.8 * 3.35e12), 1e-9);
}

// 16 x 1024 results are 16 tiles of 64 x 64, too few for 132 units. K is divided by 8 so that all of them
// work, and reading the 8 MiB of weights sets the time: bytes / (0.83 x 3.35 TB/s) + 6.3 us.
TEST(Inference, FewRowsDoNotLeaveUnitsIdle) {
  const topology::Accelerator accelerator = h100();
  const ComputeModel compute(accelerator, {});
  const double bytes = 2 * (4096.0 * 1024 + 16 * 4096 + 16 * 1024);
  EXPECT_NEAR(compute.gemm({16, 1024, 4096}, Precision::bf16).seconds, 6.3e-6 + bytes / (0.83 * 3.35e12),
              1e-9);
}

// An H100 with an eighth of its compute rate (an H20 has a seventh), 123.7 TFLOP/s. Reading 4096 x 4096
// weights takes 12.1 us.
//   Up to 16 rows: 64 tiles of 16 x 64, K in two parts, one wave of 132 units. 132 x 2048 x 2 x 64 x 16 FLOPs
//     at 0.946 / (1 + 16.8 (1/16 + 1/64)) of the rate take 10.9 us, less than the reading.
//   17 rows: tiles of 24 x 128, K in four parts. 132 x 1024 x 2 x 128 x 24 FLOPs at
//     0.946 / (1 + 16.8 (1/24 + 1/128)) take 13.0 us; adding the parts, 4 x 8 x 17 x 4096 bytes, 0.8 us.
TEST(Inference, AFewRowsTakeTilesOfFewRows) {
  topology::Accelerator slow = h100();
  for (auto& [precision, rate] : slow.dense_flops) rate /= 8;
  slow.sustained_flops.clear(), slow.achievable_flops.clear();
  const ComputeModel compute(slow, {});
  const auto product = [&](double rows) {
    return compute.gemm({rows, 4096, 4096}, Precision::bf16).seconds - 6.3e-6;
  };
  const auto read = [](double rows) { return 2 * (4096 * 4096 + 2 * 4096 * rows) / (0.83 * 3.35e12); };
  EXPECT_NEAR(product(1), read(1), 1e-9);
  EXPECT_NEAR(product(16), read(16), 1e-9);
  EXPECT_NEAR(product(17), 13.8e-6, 0.05e-6);
}

// The products of a layer of Llama-3 8B on an H20, limited by compute from some 30 rows on. Tiles grow by
// eight rows: 65 rows take 72 / 64 of the time of 64, and 129 rows 136 / 128, beside the lower rate of small
// tiles.
TEST(Inference, OneMoreRequestIsNoOtherRowOfTiles) {
  const topology::Accelerator h20 = scenario::shipped_catalogue().accelerator("h20");
  const ComputeModel compute(h20, {});
  const auto layer = [&](double rows) {
    double sum = 0;
    for (const auto& [n, k] :
         {std::pair{6144.0, 4096.0}, {4096.0, 4096.0}, {28672.0, 4096.0}, {4096.0, 14336.0}})
      sum += compute.gemm({rows, n, k}, Precision::bf16).seconds;
    return sum;
  };
  for (const double rows : {32.0, 64.0, 96.0, 128.0, 192.0, 256.0})
    EXPECT_LT(layer(rows + 1) / layer(rows), 1.2) << rows;
  EXPECT_GT(layer(256) / layer(64), 2.5);
}

// Without a micro_batch prompts are read together up to 8,192 tokens: 8 of 1,000 tokens. As even as can be,
// 65 are two batches of 8 and seven of 7, 17 two of 6 and one of 5. There are at least as many batches as
// stages (8 on 4 stages: 2 each; 5 on 4: one of 2). Kernels start from graphs.
TEST(Inference, PromptsAreReadTogetherAndFromGraphs) {
  WorkloadSpec workload = serving(Task::prefill);
  workload.plan.micro_batch.reset(), workload.plan.grad_accumulation.reset();
  workload.sequence = 1000;
  const auto together = [&](int prompts, int stages) {
    workload.plan.global_batch = prompts, workload.plan.pp = stages;
    const Plan plan = resolve(workload, ranks(workload));
    EXPECT_TRUE(plan.host.graph);
    EXPECT_EQ(plan.global_batch, prompts);
    EXPECT_EQ(plan.micro_batches * plan.micro_batch - plan.smaller, prompts);
    return std::tuple(plan.micro_batch, plan.micro_batches, plan.smaller);
  };
  EXPECT_EQ(together(64, 1), std::tuple(8, 8, 0));
  EXPECT_EQ(together(65, 1), std::tuple(8, 9, 7));
  EXPECT_EQ(together(17, 1), std::tuple(6, 3, 1));
  EXPECT_EQ(together(8, 4), std::tuple(2, 4, 0));
  EXPECT_EQ(together(5, 4), std::tuple(2, 4, 3));
  workload.sequence = 4000;
  EXPECT_EQ(together(3, 1), std::tuple(2, 2, 1));
  workload.sequence = 1000;
  // A number of micro-batches may be given in place of their size.
  workload.plan.grad_accumulation = 16;
  EXPECT_EQ(together(64, 1), std::tuple(4, 16, 0));
  EXPECT_EQ(together(65, 1), std::tuple(5, 16, 15));
  workload.plan.grad_accumulation.reset();
  workload.plan.micro_batch = 1;
  EXPECT_EQ(together(64, 1), std::tuple(1, 64, 0));
  workload.plan.micro_batch = 3;
  EXPECT_THROW((void)together(64, 1), ConfigError);
}

// 14 prompts of 2,048 tokens are two batches of 4 and two of 3; a batch of 3 has 3/4 of the FLOPs of one of
// 4, and sends as much less to the next stage.
TEST(Inference, MorePromptsNeverTakeLess) {
  WorkloadSpec workload = serving(Task::prefill);
  workload.plan.micro_batch.reset(), workload.plan.grad_accumulation.reset();
  workload.sequence = 2048;
  const auto seconds_of = [&](int prompts) {
    workload.plan.global_batch = prompts;
    return seconds(free_network().run(step(workload)).step);
  };
  double last = 0;
  for (int prompts = 1; prompts <= 17; ++prompts) {
    const double now = seconds_of(prompts);
    EXPECT_GT(now, last) << prompts;
    last = now;
  }
  EXPECT_NEAR(seconds_of(14), (seconds_of(8) + seconds_of(6)), 0.001 * last);
  workload.plan.pp = 2, workload.plan.global_batch = 14;
  const auto program = step(workload);
  std::vector<double> sent;
  for (const auto& op : program.classes[0].ops)
    if (op.kind == OpKind::send) sent.push_back(static_cast<double>(op.bytes.value()));
  EXPECT_THAT(sent, ::testing::ElementsAre(sent[0], sent[0], 0.75 * sent[0], 0.75 * sent[0]));
}

// 4-bit weights with a scale of 2 bytes for each 128 of them; embedding and head keep two bytes. For each
// number of a layer 2 - 0.5 - 2 / 128 bytes fewer are held, and read where memory is the limit.
TEST(Inference, NarrowWeightsAreReadAndHeldAsTheyAre) {
  WorkloadSpec workload = serving(Task::decode);
  workload.plan.micro_batch = 1;
  const auto busy = [&] { return seconds(free_network().run(step(workload)).busy[0]); };
  const auto weights = [&] { return memory_use(workload, h100(), 8).peak().weights; };
  const double wide = busy(), held = weights();
  workload.precision.weights = WeightFormat::int4;
  const double layers = 80 * 855'638'016.0 / 8, saved = 1.5 - 2.0 / 128;
  EXPECT_NEAR(wide - busy(), saved * layers / (0.83 * 3.35e12), 1e-6);
  EXPECT_NEAR(held - weights(), saved * layers, 0.001 * layers);  // tolerance: norms
}

WorkloadSpec latent_serving() {
  WorkloadSpec workload = serving(Task::decode);
  workload.model.attention = {AttentionKind::mla, {}, true, 1536, 512, 128, 64, 128};
  workload.model.kv_heads = 0;
  return workload;
}

// Absorbed latent attention reads the latents once for all heads of a rank: 80 layers x 16 requests x 8192
// tokens more x (512 + 64) numbers x 2 B.
TEST(Inference, LatentAttentionReadsItsLatentsOnly) {
  WorkloadSpec workload = latent_serving();
  const auto busy = [&](int sequence) {
    workload.sequence = sequence;
    return seconds(free_network().run(step(workload)).busy[0]);
  };
  EXPECT_NEAR(busy(16384) - busy(8192), 80 * 16 * 8192.0 * 576 * 2 / (0.8 * 3.35e12), 1e-9);
}

// Absorbing the projections changes the computation, not the work that counts: the FLOPs of
// inference_flops_per_request().
TEST(Inference, AbsorbedProjectionsAreTheModelsWork) {
  WorkloadSpec workload = latent_serving();
  workload.plan.tp = 1;  // with tensor parallelism every rank projects to the latents
  const auto program = step(workload);
  double flops = 0;
  for (const auto& op : program.classes[0].ops) flops += op.flops.value();
  EXPECT_NEAR(flops / program.facts.model_flops_full_attention.value(), 1, 1e-3);
}

// One micro-batch on four stages: the next token waits for all four in turn, so the step is the sum of their
// times.
TEST(Inference, OneMicroBatchGoesRoundTheStages) {
  const auto program = step(serving(Task::decode, 4, 1));
  const auto result = free_network().run(program);
  const Duration sum = std::accumulate(result.busy.begin(), result.busy.end(), Duration{});
  EXPECT_EQ(result.step.count(), sum.count());
}

// As many micro-batches as stages: all stages work all the time, and a step is four turns of the slowest one,
// the last, which has the head.
TEST(Inference, AsManyMicroBatchesAsStagesLeaveNoBubble) {
  const auto program = step(serving(Task::decode, 4, 4));
  const auto result = free_network().run(program);
  EXPECT_EQ(result.step.count(), result.busy[3].count());
  EXPECT_EQ(*std::max_element(result.busy.begin(), result.busy.end()), result.busy[3]);
}

// One replica of four stages. A given micro_batch of 16 holds; else 64 requests are divided over the stages,
// 16 each, and 66 are 17, 17, 16 and 16, all of which take as long as 17. Prompts are read one by one.
TEST(Inference, AReplicaDecodesAllItsRequestsAtOnce) {
  WorkloadSpec workload = serving(Task::decode, 4);
  workload.plan.grad_accumulation.reset();
  workload.plan.global_batch = 64;
  const auto micro_batch = [&] { return resolve(workload, 32).micro_batch; };
  EXPECT_EQ(micro_batch(), 16);
  workload.plan.micro_batch.reset();
  EXPECT_EQ(micro_batch(), 16);
  workload.plan.global_batch = 66;
  EXPECT_EQ(micro_batch(), 17);
  workload.task = Task::prefill;
  EXPECT_EQ(micro_batch(), 1);
}

// 9 requests over 8 stages are 8 micro-batches of at most 2, not 5 of 2: no stage is without one. 5 are
// 5 of 1.
TEST(Inference, EveryStageHasAMicroBatchWhereRequestsDoNotDivide) {
  WorkloadSpec workload = serving(Task::decode, 8);
  workload.plan.grad_accumulation.reset(), workload.plan.micro_batch.reset();
  for (const auto& [requests, parts, size] : {std::tuple(8, 8, 1), {9, 8, 2}, {17, 8, 3}, {5, 5, 1}}) {
    workload.plan.global_batch = requests;
    const Plan plan = resolve(workload, ranks(workload));
    EXPECT_EQ(plan.micro_batches, parts) << requests;
    EXPECT_EQ(plan.micro_batch, size) << requests;
    EXPECT_EQ(plan.global_batch, requests);
  }
}

TEST(Inference, MoreMicroBatchesThanStagesAreSentAndReceivedInTheSameNumber) {
  for (const int micro_batches : {1, 2, 3, 4, 7}) {
    const auto result = free_network().run(step(serving(Task::decode, 4, micro_batches)));
    EXPECT_GE(result.step, result.busy[3]);
  }
}

// A window of 128 on every other of 80 layers: 40 layers cache 8192 tokens, 40 cache 128, for 64 requests.
TEST(Inference, LayersWithAWindowKeepItsKeysOnly) {
  WorkloadSpec workload = serving(Task::decode, 1, 4);
  workload.model.attention.window = 128, workload.model.attention.full_every = 2;
  EXPECT_DOUBLE_EQ(memory_use(workload, h100(), 8).peak().kv_cache,
                   2.0 * 128 * 2 * 64 * (40 * 8192 + 40 * 128));
}

// The input of each of a layer's four products is cast in one kernel that reads 2 bytes and writes 1 per
// number: 16 rows of 8192 (QKV; gate and up), 1024 (projection) or 3584 (down) on one of eight ranks.
TEST(Inference, EightBitProductsCastTheirInputInOneKernel) {
  WorkloadSpec workload = serving(Task::decode);
  workload.precision.gemm = Precision::fp8;
  workload.model = complete(workload.model);
  const Plan plan = resolve(workload, 8);
  const topology::Accelerator accelerator = h100();
  const ComputeModel compute(accelerator, {});
  const LayerKernels kernels(workload.model, plan, compute);
  for (const double k : {8192.0, 1024.0, 3584.0}) {
    const KernelCost cast = kernels.linear(16, 1024, k, {LayerKernels::Operand::wide}).forward_cast;
    EXPECT_EQ(cast.kernels, 1);
    EXPECT_DOUBLE_EQ(cast.seconds, compute.memory_bound(3 * 16 * k, MemoryKernel::elementwise).seconds);
  }
}

// Cache: (key + value) x 80 layers x one head of 128 x 2 B x 8192 tokens x 64 requests. Weights: 2 B each,
// matrices / 8, 161 norms whole.
TEST(Inference, HoldsWeightsAndTheKeyValueCache) {
  WorkloadSpec workload = serving(Task::decode, 1, 4);
  const MemoryUse use = memory_use(workload, h100(), 8);
  EXPECT_DOUBLE_EQ(use.peak().kv_cache, 2.0 * 80 * 128 * 2 * 8192 * 64);
  const ModelSpec model = complete(workload.model);
  const double norms = (2 * 80 + 1) * 8192;
  EXPECT_DOUBLE_EQ(use.peak().weights, 2 * ((total_parameters(model) - norms) / 8 + norms));
  EXPECT_EQ(use.peak().gradients + use.peak().optimizer + use.peak().recompute, 0);
  workload.precision.kv_cache = Precision::fp8;
  EXPECT_DOUBLE_EQ(memory_use(workload, h100(), 8).peak().kv_cache, use.peak().kv_cache / 2);
  workload.precision.gemm = Precision::fp8;  // layers in 1 byte; embedding, final norm and head in 2
  const double ends = 2.0 * 128256 * 8192 / 8 + 8192;
  EXPECT_DOUBLE_EQ(memory_use(workload, h100(), 8).peak().weights,
                   (use.peak().weights - 2 * ends) / 2 + 2 * ends);
}

// FLOPs of a decoded token: 2 for each weight of the layers and the head, and in each layer 4 x 64 heads x
// 128 for each cached token.
TEST(Inference, CountsTheFlopsOfOnePass) {
  const auto program = step(serving(Task::decode));
  const double weights = 80 * 855'638'016.0 + 128256.0 * 8192, pairs = 80 * 4.0 * 64 * 128 * 8192;
  EXPECT_NEAR(program.facts.model_flops.value() / (16 * (2 * weights + pairs)), 1, 1e-12);
  EXPECT_EQ(program.facts.tokens, 16);
  // A prompt: the head only for its last token; causal, so half of the pairs.
  const auto prompt = step(serving(Task::prefill));
  EXPECT_NEAR(prompt.facts.model_flops.value() /
                  (16 * (8192 * 2 * 80 * 855'638'016.0 + 2 * 128256.0 * 8192 + 8192 * pairs / 2)),
              1, 1e-12);
  EXPECT_EQ(prompt.facts.tokens, 16 * 8192);
}

// Keys that mean nothing in inference may stay in a scenario whose task is changed.
TEST(Inference, KeysOfTrainingMayStay) {
  WorkloadSpec workload = serving(Task::decode);
  const auto plain = step(workload);
  workload.plan.zero = 1;
  workload.plan.recompute = RecomputeSpec{RecomputeKind::full, {}};
  workload.plan.schedule = Schedule::one_f_one_b;
  workload.plan.sequence_parallel = workload.plan.overlap_grad_reduce = true;
  const auto kept = step(workload);
  EXPECT_EQ(free_network().run(kept).step, free_network().run(plain).step);
}

TEST(Inference, WhatHasNoMeaningIsRefused) {
  WorkloadSpec workload = serving(Task::decode);
  workload.packing.on = true;
  workload.plan.cp = 2;
  try {
    (void)training_step(workload, h100(), 16);
    FAIL() << "nothing of this exists in a decode step";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.problems().size(), 2u);
  }
}

TEST(Inference, TrainingHasNoCache) {
  WorkloadSpec workload = serving(Task::pretrain);
  workload.precision.kv_cache = Precision::fp8;
  EXPECT_THROW((void)resolve(workload, 8), ConfigError);
}

// Four documents of 2048 tokens in a sequence of 8192: a quarter of the attention's work, everything else
// unchanged.
TEST(Packing, AttentionStaysInsideItsDocument) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.task = Task::finetune;
  const auto whole = training_step(workload, h100(), 64);
  workload.packing = {true, 4};
  const auto packed = training_step(workload, h100(), 64);
  const ModelSpec model = complete(workload.model);
  const double attention = 3 * 80 * 0.5 * 4 * 8192.0 * 8192 * 64 * 128 * 128;
  EXPECT_NEAR((whole.facts.model_flops.value() - packed.facts.model_flops.value()) / (0.75 * attention), 1,
              1e-9);
  workload.packing = {true, 3};
  EXPECT_THROW((void)training_step(workload, h100(), 64), ConfigError);
}
}  // namespace topsim::workloads::inference_test
