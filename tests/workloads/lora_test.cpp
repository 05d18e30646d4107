// Low-rank adapters beside frozen weights: what they add, and what frozen weights save.
#include "workloads/layer/lora.hpp"

#include <gmock/gmock.h>

#include "sim/base/error.hpp"
#include "tests/workloads/fixtures.hpp"
#include "workloads/layer/layer_kernels.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::lora_test {
using namespace testing;
using program::CollectiveKind;
using program::OpKind;
using program::Phase;

// Llama-3 70B, k + n of which one of eight tensor ranks has an eighth; an adapter has rank (k + n)
// parameters. QKV 8192 + 10240, projection 8192 + 8192, FC1 8192 + 57344, FC2 28672 + 8192.
constexpr double kQkv = 18432 / 8.0, kProj = 16384 / 8.0, kFc1 = 65536 / 8.0, kFc2 = 36864 / 8.0;

WorkloadSpec adapted(std::vector<std::string> targets = targets_of({}), std::string framework = "megatron") {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.task = Task::lora;
  workload.framework = std::move(framework);
  workload.lora.emplace();
  workload.lora->rank = 16;
  workload.lora->targets = std::move(targets);
  return workload;
}
double bytes(const program::Program& program, Phase phase, std::size_t stage = 0) {
  double sum = 0;
  for (const auto& op : program.classes[stage].ops)
    if (op.kind == OpKind::collective && op.phase == phase && op.bytes > Bytes(4) &&
        program.labels[op.label].find("norm") == std::string::npos)
      sum += static_cast<double>(op.bytes.value());
  return sum;
}
double flops(const program::Program& program) {
  double sum = 0;
  for (const auto& op : program.classes[0].ops) sum += op.flops.value();
  return sum;
}

// What is proposed on 64 accelerators of so many GiB.
std::string help_in(std::int64_t gibibytes, const WorkloadSpec& workload) {
  topology::Accelerator accelerator = h100();
  accelerator.memory = Bytes(gibibytes << 30);
  try {
    require_fit(workload, accelerator, 64);
  } catch (const ConfigError& error) {
    return error.problems()[0].help;
  }
  return "it fits";
}

// Gradients of 16 (k + n) parameters for each target in each of the stage's 40 layers, 4 bytes each.
TEST(Lora, OnlyAdaptersAreReduced) {
  const auto all = training_step(adapted(), h100(), 64);
  program::validate(all);
  EXPECT_NEAR(bytes(all, Phase::gradient_sync), 4 * 16 * (kQkv + kProj + kFc1 + kFc2) * 40, 64);
  const auto some = training_step(adapted({"qkv", "proj"}), h100(), 64);
  EXPECT_NEAR(bytes(some, Phase::gradient_sync), 4 * 16 * (kQkv + kProj) * 40, 64);
}

// Trained norms are summed over the tensor group with sequence parallelism, and a tied table over the first
// and the last stage. Frozen ones are not.
TEST(Lora, NothingIsExchangedForFrozenNormsAndTables) {
  WorkloadSpec workload = adapted();
  workload.model.tied_embeddings = true;
  const auto names = [](const program::Program& program) {
    std::string text;
    for (const auto& op : program.classes[0].ops)
      if (op.kind == OpKind::collective) text += program.labels[op.label] + '\n';
    return text;
  };
  EXPECT_THAT(names(training_step(workload, h100(), 64)),
              ::testing::Not(::testing::AnyOf(::testing::HasSubstr("norm gradients"),
                                              ::testing::HasSubstr("embedding gradients"))));
  workload.task = Task::pretrain;
  workload.lora.reset();
  EXPECT_THAT(
      names(training_step(workload, h100(), 64)),
      ::testing::AllOf(::testing::HasSubstr("norm gradients"), ::testing::HasSubstr("embedding gradients")));
}

// Frozen matrices have two of their three products: no weight gradient of the layers' 855,638,016 weights.
// Adapters have all three.
TEST(Lora, FrozenWeightsHaveNoGradient) {
  const auto lora = training_step(adapted({"qkv"}), h100(), 64);
  WorkloadSpec full = adapted();
  full.task = Task::pretrain;
  full.lora.reset();
  const auto trained = training_step(full, h100(), 64);
  // Stage 0, one of 8 tensor ranks, 32 micro-batches of 8192 tokens.
  const double tokens = 32 * 8192.0, saved = 2 * tokens * 40 * 855'638'016.0 / 8;
  const double added = 3 * 2 * tokens * 40 * 16 * kQkv;
  EXPECT_NEAR((flops(trained) - flops(lora)) / (saved - added), 1, 1e-9);
}

// One of 8 tensor ranks holds 80 layers of 855,638,016 weights in one byte instead of two, as NVIDIA's LoRA
// in MLPerf does; embedding and head stay in 16 bits.
TEST(Lora, FrozenWeightsInEightBitsTakeHalfTheMemoryAndNoCast) {
  WorkloadSpec wide = adapted();
  wide.plan.pp = 1, wide.plan.dp = 8;
  wide.precision.gemm = Precision::fp8;
  WorkloadSpec narrow = wide;
  narrow.precision.frozen_weights = Precision::fp8;
  const double saved =
      memory_use(wide, h100(), 64).peak().weights - memory_use(narrow, h100(), 64).peak().weights;
  EXPECT_NEAR(saved, 80 * 855'638'016.0 / 8, 1e-3 * saved);
  const auto seconds_of = [&](const WorkloadSpec& workload) {
    double sum = 0;
    const auto program = training_step(workload, h100(), 64);
    for (const auto& op : program.classes[0].ops)
      if (op.kind == OpKind::compute) sum += seconds(op.duration);
    return sum;
  };
  // The cast once per step is saved: 2 bytes per weight for the maximum and 4 for the cast at 0.8 x 3.35
  // TB/s, and 4 kernels of 2 us, each 0.9 us from the next, for each of 4 products per layer.
  const double casts = 6 * 80 * 855'638'016.0 / 8 / (0.8 * 3.35e12) + 80 * 4 * 4 * 2.9e-6;
  EXPECT_NEAR(seconds_of(wide) - seconds_of(narrow), casts, 1e-3 * casts);
  wide.task = Task::finetune, wide.lora.reset();
  wide.precision.frozen_weights = Precision::fp8;
  EXPECT_THROW((void)resolve(wide, 64), ConfigError);
}

// How many collectives of this kind and size rank 0 has in that phase.
int count(const program::Program& program, Phase phase, CollectiveKind kind, std::int64_t bytes) {
  int sum = 0;
  for (const auto& op : program.classes[0].ops)
    sum += op.kind == OpKind::collective && op.collective == kind && op.phase == phase &&
           op.bytes == Bytes(bytes);
  return sum;
}

// X A, 8192 tokens x 16 x 2 B. The column-parallel QKV and FC1 gather its columns forward; projection and FC2
// sum it. Backward the gradient of all four is summed: B's columns are split in each. 40 layers, 32
// micro-batches.
TEST(Lora, InnerResultsAreGatheredOrSummedOverTheTensorGroup) {
  const auto program = training_step(adapted(), h100(), 64);
  constexpr std::int64_t kInner = 8192 * 16 * 2;
  EXPECT_EQ(count(program, Phase::forward, CollectiveKind::all_gather, kInner), 2 * 40 * 32);
  EXPECT_EQ(count(program, Phase::forward, CollectiveKind::all_reduce, kInner), 2 * 40 * 32);
  EXPECT_EQ(count(program, Phase::backward, CollectiveKind::all_reduce, kInner), 4 * 40 * 32);
}

// Projection and FC2: each rank has 8192 / 8 columns of the answer for all 8192 tokens. They are gathered,
// and the gradient of each rank's own tokens is gathered for the backward pass; MLPerf's code exchanges an
// eighth of them instead.
TEST(Lora, AnswersOfRowParallelLayersAreGatheredOrExchanged) {
  constexpr std::int64_t kWhole = 8192 * 8192 * 2;
  const auto gathers = [](const WorkloadSpec& workload, Phase phase) {
    return count(training_step(workload, h100(), 64), phase, CollectiveKind::all_gather, kWhole);
  };
  for (const Phase phase : {Phase::forward, Phase::backward})
    EXPECT_EQ(gathers(adapted(), phase) - gathers(adapted({"qkv", "fc1"}), phase), 2 * 40 * 32);
  const auto exchanged = training_step(adapted(targets_of({}), "megatron@2024-mlperf"), h100(), 64);
  for (const Phase phase : {Phase::forward, Phase::backward})
    EXPECT_EQ(count(exchanged, phase, CollectiveKind::all_to_all, kWhole / 8), 2 * 40 * 32);
}

// Without sequence parallelism a rank has all tokens' answers, so that their gradient needs no gather; that
// of QKV's and FC1's input is summed for the adapters too.
TEST(Lora, WithoutSequenceParallelismInputGradientsOfAdaptersAreSummed) {
  WorkloadSpec workload = adapted();
  workload.plan.sequence_parallel = false;
  const auto program = training_step(workload, h100(), 64);
  constexpr std::int64_t kWhole = 8192 * 8192 * 2;
  EXPECT_EQ(count(program, Phase::forward, CollectiveKind::all_gather, kWhole), 2 * 40 * 32);
  EXPECT_EQ(count(program, Phase::backward, CollectiveKind::all_gather, kWhole), 0);
  workload.task = Task::pretrain, workload.lora.reset();
  const auto trained = training_step(workload, h100(), 64);
  EXPECT_EQ(count(program, Phase::backward, CollectiveKind::all_reduce, kWhole) -
                count(trained, Phase::backward, CollectiveKind::all_reduce, kWhole),
            2 * 40 * 32);
}

// Frozen weights take 2 bytes. Adapters take 2, gradients 4, and 12 / 4 with an optimiser distributed over 4
// replicas.
TEST(Lora, HoldsFrozenWeightsInTwoBytes) {
  const MemoryUse use = memory_use(adapted(), h100(), 64);
  const double adapters = 16 * (kQkv + kProj + kFc1 + kFc2) * 40;
  const ModelSpec model = complete(llama3_70b());
  const LayerParameters layer = layer_parameters(model);
  const double frozen = 40 * (layer.split() / 8 + layer.norms) + embedding_parameters(model) / 8;
  EXPECT_DOUBLE_EQ(use.stages[0].weights, 2 * frozen + 2 * adapters);
  EXPECT_DOUBLE_EQ(use.stages[0].gradients, 4 * adapters);
  EXPECT_DOUBLE_EQ(use.stages[0].optimizer, 3 * adapters);
}

// A frozen matrix keeps its input only for an adapter. Without adapters on FC1 and FC2 their inputs (8192 +
// 28672 wide, over eight ranks) are not kept; with them 16 columns more each, the inner results.
TEST(Lora, KeepsTheInputsOfAdaptedMatricesAlone) {
  const auto layer = [](std::vector<std::string> targets) {
    WorkloadSpec workload = adapted(std::move(targets));
    workload.model = complete(workload.model);
    return layer_activation_bytes(workload.model, resolve(workload, 64), RecomputeKind::none);
  };
  EXPECT_DOUBLE_EQ(layer({"qkv", "fc1", "fc2"}) - layer({"qkv"}),
                   2 * 8192.0 * ((8192 + 28672) / 8.0 + 2 * 16));
}

// A frozen bias is added but has no gradient, so no kernel sums the layer's gradients for it.
TEST(Lora, FrozenBiasesHaveNoGradient) {
  WorkloadSpec workload = adapted({"qkv"});
  workload.model = complete(gpt(80, 8192, 64));
  const topology::Accelerator accelerator = h100();
  const ComputeModel compute(accelerator, {});
  const Plan frozen = resolve(workload, 64);
  EXPECT_EQ(LayerKernels(workload.model, frozen, compute).bias_gradient(1e6).kernels, 0);
  workload.task = Task::pretrain;
  workload.lora.reset();
  const Plan trained = resolve(workload, 64);
  EXPECT_EQ(LayerKernels(workload.model, trained, compute).bias_gradient(1e6).kernels, 1);
}

// DDP's matmuls do not accumulate: a kernel each adds the gradients of A and B, as for other weights.
TEST(Lora, GradientsOfAdaptersAreAddedAsThoseOfOtherWeights) {
  const topology::Accelerator accelerator = h100();
  const ComputeModel compute(accelerator, {});
  WorkloadSpec workload = adapted({"proj"}, "ddp");
  workload.model = complete(workload.model);
  workload.plan = {};
  workload.plan.micro_batch = 1, workload.plan.grad_accumulation = 4;
  const auto kernels = [&](const Plan& plan) {
    double sum = 0;
    const PiecePair layer =
        adapted_layer(workload.model, LayerKind::dense, plan, compute, RecomputeKind::none);
    for (const Piece& piece : layer.backward.pieces())
      if (piece.weight_gradient) sum += piece.cost.kernels;
    return sum;
  };
  Plan plan = resolve(workload, 64);
  const double apart = kernels(plan);
  plan.fused_accumulation = true;
  EXPECT_EQ(apart - kernels(plan), 2);
}

// PEFT on Llama-3 8B, rank 16, all linear layers: "trainable params: 41,943,040". Seven pairs A, B per layer:
// 16 x 32 layers x (q 8192 + k 5120 + v 5120 + o 8192 + 3 x 18432 for gate, up and down). Megatron's fused
// layers share A among q, k and v and among gate and up: 16 x 32 x (2 + 1) x 4096 fewer.
TEST(Lora, SeparateLayersHaveAdaptersOfTheirOwn) {
  const auto trained = [](const char* framework) {
    WorkloadSpec workload = adapted(targets_of({}), framework);
    workload.plan = {};
    workload.plan.micro_batch = 1;
    workload.model.layers = 32, workload.model.hidden = 4096, workload.model.heads = 32;
    workload.model.ffn = 14336;
    workload.model = complete(workload.model);
    return 32 * adapter_parameters(workload.model, LayerKind::dense, resolve(workload, 8)).dense;
  };
  for (const char* framework : {"ddp", "fsdp", "deepspeed"}) EXPECT_EQ(trained(framework), 41'943'040);
  EXPECT_EQ(trained("megatron"), 41'943'040 - 16 * 32 * 3 * 4096);
}

// FSDP gathers all weights, frozen or not, in both passes, and reduces the adapters alone. k + n: q 16384, k
// and v 9216 each, projection 16384, gate, up and down 36864 each.
TEST(Lora, ShardedFrozenWeightsAreGathered) {
  WorkloadSpec workload = adapted(targets_of({}), "fsdp");
  workload.plan = {};
  workload.plan.micro_batch = 1;
  const auto program = training_step(workload, h100(), 64);
  program::validate(program);
  const double adapters = 16.0 * (16384 + 2 * 9216 + 16384 + 3 * 36864) * 80;  // one tensor rank
  const ModelSpec model = complete(llama3_70b());
  const double all = 80 * (layer_parameters(model).total() - layer_parameters(model).norms) + adapters;
  EXPECT_DOUBLE_EQ(bytes(program, Phase::gradient_sync), 4 * adapters);
  EXPECT_GT(bytes(program, Phase::parameter_sync), 2 * 2 * all);
}

TEST(Lora, WhatItCannotDoIsSaid) {
  WorkloadSpec workload = adapted();
  workload.task = Task::pretrain;
  EXPECT_THROW((void)training_step(workload, h100(), 64), ConfigError);  // adapters without the task
}
// Llama-3 70B in 180 GiB: 70.6e9 weights take 131 GiB in 16 bits, which leaves too little for the activations
// of 4096 tokens. In 8 bits the layers' 68.5e9 take 64 GiB less; that is named first, before what would make
// the step longer.
TEST(Lora, FrozenWeightsInFewerBitsAreTheFirstRemedy) {
  WorkloadSpec workload = adapted();
  workload.plan.tp = 1, workload.plan.pp = 1, workload.plan.cp = 2, workload.plan.dp.reset();
  for (const Precision products : {Precision::bf16, Precision::fp8}) {
    workload.precision.gemm = products;
    EXPECT_THAT(help_in(180, workload), ::testing::StartsWith("precision.frozen_weights = fp8 would fit ("));
    EXPECT_THAT(help_in(180, workload), ::testing::HasSubstr(", or recompute = full ("));
    WorkloadSpec narrow = workload;
    narrow.precision.frozen_weights = Precision::fp8;
    EXPECT_EQ(help_in(180, narrow), "it fits");
  }
}

// Llama-2 70B as MLPerf trains it on B200 without tensor parallelism: 86 GiB too much, and 8 bits save 64.
// Without adapters on FC1 and FC2 the inputs of these, 8192 + 28672 of one byte each for 8192 tokens in 80
// layers, need not be kept: 22.5 GiB, and 0.9 of adapters' states.
TEST(Lora, FewerTargetsAreNamedWhereTheyAreNeededToo) {
  WorkloadSpec workload = adapted();
  workload.plan.tp = 1, workload.plan.pp = 1, workload.plan.dp.reset(), workload.sequence = 8192;
  workload.model.vocab = 32000, workload.precision.gemm = Precision::fp8;
  const std::string help = help_in(180, workload);
  EXPECT_THAT(help, ::testing::StartsWith(
                        R"(precision.frozen_weights = fp8 with lora.targets = ["qkv", "proj"] would fit ()"));
  workload.precision.frozen_weights = Precision::fp8;
  EXPECT_THAT(help_in(180, workload), ::testing::StartsWith(R"(lora.targets = ["qkv", "proj"] would fit ()"));
  workload.lora->targets = {"qkv", "proj"};
  EXPECT_EQ(help_in(180, workload), "it fits");
}

// DualPipe with pp 2: both ranks of a pair hold stages 0 and 1, in opposite order, so the same 16-bit tables
// and 8-bit layers.
TEST(Lora, MirroredRanksOfDualPipeHoldTheSameFrozenWeights) {
  WorkloadSpec workload = adapted();
  workload.plan.pp = 2, workload.plan.schedule = Schedule::dualpipe;
  workload.precision.frozen_weights = Precision::fp8;
  const MemoryUse use = memory_use(workload, h100(), 64);
  EXPECT_DOUBLE_EQ(use.stages[0].weights, use.stages[1].weights);
}
}  // namespace topsim::workloads::lora_test
