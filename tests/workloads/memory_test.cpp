#include "workloads/memory/memory.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "sim/base/error.hpp"
#include "tests/workloads/fixtures.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads::memory_test {
using namespace testing;

constexpr double kGiB = 1024.0 * 1024 * 1024;

struct Case {
  int layers, hidden, heads, tp, pp, virtual_stages, micro_batch;
};
// Korthikanti et al. 2022, table 3.
const Case k22B{48, 6144, 64, 8, 1, 1, 4}, k175B{96, 12288, 96, 8, 8, 3, 1},
    k530B{105, 20480, 128, 8, 35, 3, 1}, k1T{128, 25600, 160, 8, 64, 1, 1};

WorkloadSpec workload_of(const Case& c, bool sequence_parallel, RecomputeKind recompute) {
  WorkloadSpec workload;
  workload.framework = "megatron@2022";
  workload.model = gpt(c.layers, c.hidden, c.heads);
  workload.plan.tp = c.tp, workload.plan.pp = c.pp, workload.plan.virtual_stages = c.virtual_stages;
  workload.plan.micro_batch = c.micro_batch;
  workload.plan.grad_accumulation = 8 * c.pp;
  workload.plan.sequence_parallel = sequence_parallel;
  workload.plan.recompute = RecomputeSpec{recompute, {}};
  return workload;
}

double layer_bytes(const Case& c, bool sequence_parallel, RecomputeKind recompute) {
  WorkloadSpec workload = workload_of(c, sequence_parallel, recompute);
  workload.model = complete(workload.model);
  return layer_activation_bytes(workload.model, resolve(workload, static_cast<std::uint32_t>(c.tp * c.pp)),
                                recompute);
}

// Table 2 of the paper: every technique's closed form, to the byte.
TEST(Memory, LayerActivationsAreTheClosedForms) {
  for (const Case& c : {k22B, k175B, k530B, k1T}) {
    const double sbh = 2048.0 * c.micro_batch * c.hidden, t = c.tp, scores = 5.0 * c.heads * 2048 / c.hidden;
    EXPECT_DOUBLE_EQ(layer_bytes(c, false, RecomputeKind::none), sbh * (10 + 24 / t + scores / t));
    EXPECT_DOUBLE_EQ(layer_bytes(c, true, RecomputeKind::none), sbh / t * (34 + scores));
    EXPECT_DOUBLE_EQ(layer_bytes(c, false, RecomputeKind::selective), sbh * (10 + 24 / t));
    EXPECT_DOUBLE_EQ(layer_bytes(c, true, RecomputeKind::selective), 34 * sbh / t);
    EXPECT_DOUBLE_EQ(layer_bytes(c, false, RecomputeKind::full), 2 * sbh);
  }
}

// Two heads on a rank do not fit Megatron's fused softmax. Its separate operators keep the softmax result in
// fp32, 4 bytes per score instead of 2, beside 3 for dropout's mask and result: 7.
TEST(Memory, SoftmaxInOperatorsKeepsItsAnswerInFp32) {
  const Case narrow{24, 2048, 16, 8, 1, 1, 1};
  const double sbh = 2048.0 * narrow.hidden, scores = 7.0 * narrow.heads * 2048 / narrow.hidden;
  EXPECT_DOUBLE_EQ(layer_bytes(narrow, false, RecomputeKind::none), sbh * (10 + 24.0 / 8 + scores / 8));
}

// Qi et al., arXiv:2401.10241, table 1: a layer whose weight gradients are put off keeps 32 s b h, of 34 s b
// h and the scores before. In 2 bytes: inputs of QKV, projection, FC1 and FC2 with 1 + 1 + 1 + 4 h columns,
// gradients of their outputs with 3 + 1 + 4 + 1 h.
TEST(Memory, WeightGradientsThatArePutOffNeed32BytesATokenAndColumn) {
  Case whole = k175B;
  whole.tp = 1, whole.virtual_stages = 1;
  WorkloadSpec workload = workload_of(whole, false, RecomputeKind::none);
  workload.model = complete(workload.model);
  const Plan plan = resolve(workload, static_cast<std::uint32_t>(whole.pp));
  const double sbh = 2048.0 * whole.micro_batch * whole.hidden, layers = whole.layers / 8.0;
  EXPECT_DOUBLE_EQ(stage_activations(workload.model, plan, 3).until_weight, layers * 32 * sbh);
  EXPECT_DOUBLE_EQ(stage_activations(workload.model, plan, 3).forward,
                   layers * sbh * (34 + 5.0 * whole.heads * 2048 / whole.hidden));
}

// On one of t tensor ranks, in 2 bytes. Divided by t: inputs of projection and FC2, 1 + 4 h, and gradients of
// the outputs of QKV and FC1, 3 + 4 h: 24 / t. Whole: gradients of the outputs of projection and FC2, 2 x 2;
// and inputs of QKV and FC1, 2 x 2, of which a rank keeps only its own rows with sequence parallelism: 8 + 24
// / t or 4 + 28 / t.
TEST(Memory, WeightGradientsThatArePutOffNeedTheirRowsOfColumnInputs) {
  for (const bool rows : {false, true}) {
    WorkloadSpec workload = workload_of(k1T, rows, RecomputeKind::selective);
    workload.model = complete(workload.model);
    const Plan plan = resolve(workload, 512);
    const double sbh = 2048.0 * k1T.hidden, layers = 128 / 64.0;
    EXPECT_DOUBLE_EQ(stage_activations(workload.model, plan, 3).until_weight,
                     layers * sbh * (rows ? 4 + 28 / 8.0 : 8 + 24 / 8.0));
  }
}

// With ZB-H1 stage r puts off r weight gradients, and one more when its next input gradient ends: it holds p
// - r - 1 whole micro-batches and r + 1 put-off gradients, where 1F1B holds p - r micro-batches. Stage 6 of
// 8, 12 layers, sequence parallelism over 8 tensor ranks: per layer 34 / 8 s b h for the former and 4 + 28 /
// 8 for the latter.
TEST(Memory, ZeroBubbleHoldsPutOffWeightGradientsInThePlaceOfActivations) {
  Case whole = k175B;
  whole.virtual_stages = 1;
  WorkloadSpec workload = workload_of(whole, true, RecomputeKind::selective);
  const double layer = 2048.0 * 12288 * 12, forward = 34 / 8.0, put_off = 4 + 28 / 8.0;
  EXPECT_DOUBLE_EQ(memory_use(workload, a100(), 64).stages[6].activations, layer * 2 * forward);
  workload.plan.schedule = Schedule::zb_h1;
  EXPECT_DOUBLE_EQ(memory_use(workload, a100(), 64).stages[6].activations,
                   layer * (1 * forward + 7 * put_off));
}

// ZB-1p puts weight gradients off as long as the memory of p micro-batches allows (Qi et al., section 5.1),
// ZB-H1 by a fixed count. On stage 1 of 8, ZB-H1's peak is 7 micro-batches and one put-off gradient; ZB-1p
// holds more than that, but not more than 8 micro-batches.
TEST(Memory, ZeroBubble1PFillsMoreOfItsLimitThanH1) {
  Case whole = k175B;
  whole.virtual_stages = 1, whole.tp = 1;
  WorkloadSpec workload = workload_of(whole, false, RecomputeKind::none);
  workload.model = complete(workload.model);
  const StageActivations each = stage_activations(workload.model, resolve(workload, 8), 1);
  const auto held = [&](Schedule schedule) {
    workload.plan.schedule = schedule;
    return memory_use(workload, a100(), 8).stages[1].activations;
  };
  EXPECT_DOUBLE_EQ(held(Schedule::zb_h1), 7 * each.forward + each.until_weight);
  EXPECT_GT(held(Schedule::zb_1p), held(Schedule::zb_h1));
  EXPECT_LE(held(Schedule::zb_1p), 8 * each.forward);
}

// Figure 1 of the paper. The first stage holds the activations of L layers, interleaved 1 + (p-1)/(p v) times
// as many; the embedding's dropout mask of each micro-batch; and without a pipeline the head's 4 s b h/t (1 +
// V/h).
TEST(Memory, FirstStageHoldsTheClosedFormOfFigure1) {
  for (const Case& c : {k22B, k175B, k530B, k1T}) {
    const double sbh = 2048.0 * c.micro_batch * c.hidden, t = c.tp, p = c.pp, v = c.virtual_stages;
    const double in_flight = c.layers * (v > 1 ? 1 + (p - 1) / (p * v) : 1.0);
    // Interleaved, stage 0 holds p v + p - 1 chunk passes, of which two groups of p are of the model's first
    // chunk; otherwise all p are.
    const double masks = v > 1 ? 2 * p : p;
    const double head = c.pp == 1 ? 4 * sbh / t * (1 + 51200.0 / c.hidden) : 0;
    const auto use = memory_use(workload_of(c, true, RecomputeKind::selective), a100(),
                                static_cast<std::uint32_t>(c.tp * c.pp));
    EXPECT_NEAR(use.stages[0].activations / (34 * sbh / t * in_flight + sbh / t * masks + head), 1, 1e-12);
  }
}

// Figure 1 counts 18 bytes for each of the layers' 12 L h^2 / (t p) matrix parameters: 45.56, 31.64 and 32.96
// GiB.
TEST(Memory, ModelStatesAre18BytesAParameter) {
  const std::pair<Case, double> published[] = {{k175B, 45.56}, {k530B, 31.64}, {k1T, 32.96}};
  for (const auto& [c, gibibytes] : published) {
    const auto use = memory_use(workload_of(c, true, RecomputeKind::selective), a100(),
                                static_cast<std::uint32_t>(c.tp * c.pp));
    // A middle stage has no embedding. Beside 12 h^2 / t a layer has the biases of QKV and FC1, 7 h / t, and
    // whole on every rank the biases of projection and FC2, 2 h, and both norms, 4 h.
    const MemoryParts& middle = use.stages[static_cast<std::size_t>(c.pp) / 2];
    const double states = middle.weights + middle.gradients + middle.optimizer;
    const double matrices = 12.0 * c.layers * c.hidden * c.hidden / c.tp / c.pp;
    EXPECT_NEAR(matrices * 18 / kGiB, gibibytes, 0.01);
    EXPECT_NEAR(states / (matrices * (1 + (7.0 + 6 * c.tp) / 12 / c.hidden)) / 18, 1, 1e-12);
    EXPECT_DOUBLE_EQ(middle.weights / states, 2.0 / 18);
    EXPECT_DOUBLE_EQ(middle.optimizer / states, 12.0 / 18);
  }
}

// Megatron's dist_optimizer.md. With 16-bit gradients, whose fp32 copies stay, a parameter takes 2 + 2 + 4 +
// 4 + 8 = 20 bytes; with a distributed optimiser 4 + 16 / dp.
TEST(Memory, MegatronKeepsFp32CopiesOf16BitGradients) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.precision.gradients = Precision::bf16;
  const MemoryParts sharded = memory_use(workload, h100(), 64).stages[0];
  workload.plan.zero = 0;
  const MemoryParts whole = memory_use(workload, h100(), 64).stages[0];
  EXPECT_DOUBLE_EQ(whole.gradients / whole.weights, 1);
  EXPECT_DOUBLE_EQ(whole.optimizer / whole.weights, 16 / 2.0);
  EXPECT_DOUBLE_EQ(sharded.optimizer / whole.weights, 16 / 4 / 2.0);
  EXPECT_EQ(whole.update, 0);
}

// Weights of layers under Megatron, each in two layouts of one byte: 2 bytes a parameter with one scale a
// tensor or in MXFP8. With blocks of 128 the 16-bit weights stay beside them, 4; in NVFP4 too, beside 2 x
// 1/2. Embedding, head and norms have 16 bits alone.
TEST(Memory, BlockScaledWeightsStayBesideTheir16Bits) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.plan.zero = 0;
  const auto weights = [&](Precision format) {
    workload.precision.gemm = format;
    return memory_use(workload, h100(), 64).stages[1].weights;
  };
  const double fp8 = weights(Precision::fp8), blocks = weights(Precision::fp8_blockwise);
  EXPECT_DOUBLE_EQ(weights(Precision::mxfp8), fp8);
  const ModelSpec model = complete(workload.model);
  const double matrices = model.layers / 2.0 * layer_parameters(model).split() / workload.plan.tp;
  EXPECT_DOUBLE_EQ(blocks - fp8, 2 * matrices);
  EXPECT_DOUBLE_EQ(weights(Precision::nvfp4) - fp8, matrices);
}

// Megatron accumulates and reduces bf16 gradients in fp32, but fp16 gradients in 16 bits: 4 + 16 / dp bytes
// here too. In 2022 fp16 took 6 + 12 / dp, 18 undivided, as in the paper of that year.
TEST(Memory, MegatronReducesFp16GradientsIn16Bits) {
  for (const auto& [name, gradient] :
       {std::pair{"megatron", 2.0}, {"megatron@2025", 2.0}, {"megatron@2023", 2.0}, {"megatron@2022", 4.0}}) {
    WorkloadSpec workload = llama3_70b_on_64();
    workload.framework = name;
    workload.precision.gemm = Precision::fp16, workload.plan.zero = 1;
    const MemoryParts parts = memory_use(workload, h100(), 64).stages[0];
    EXPECT_DOUBLE_EQ(parts.gradients / parts.weights, gradient / 2) << name;
    EXPECT_DOUBLE_EQ(parts.optimizer / parts.weights, (gradient < 4 ? 16 : 12) / 4 / 2.0) << name;
  }
}

// Distributed optimiser: 6 + 12 / dp bytes per parameter, dp = 4.
TEST(Memory, Zero1ShardsTheOptimiser) {
  WorkloadSpec workload = llama3_70b_on_64();
  const auto sharded = memory_use(workload, h100(), 64);
  workload.plan.zero = 0;
  const auto whole = memory_use(workload, h100(), 64);
  EXPECT_DOUBLE_EQ(whole.stages[0].optimizer / sharded.stages[0].optimizer, 4);
  EXPECT_DOUBLE_EQ(whole.stages[0].gradients, sharded.stages[0].gradients);
}

// 1F1B: stage r holds p - r micro-batches. Its 2 layers, fully recomputed, keep 2 s b h / t each.
TEST(Memory, LaterStagesHoldFewerMicroBatches) {
  WorkloadSpec workload = workload_of(k1T, true, RecomputeKind::full);
  const auto use = memory_use(workload, a100(), 512);
  const double layer = 2 * 2048.0 * 25600 / 8;
  EXPECT_DOUBLE_EQ(use.stages[10].activations, (64 - 10) * 2 * layer);
  EXPECT_DOUBLE_EQ(use.stages[62].activations, 2 * 2 * layer);
}

// One of tp 2 x pp 2 ranks holds 70.6e9 / 4 parameters in 2 + 4 + 12 / 16 bytes: 111 GiB, so recompute alone
// does not help. With pp = 4 states are half, but the first stage holds four micro-batches: still too much.
// With tp = 8, a whole node, both states and activations are a quarter.
TEST(Memory, WhatDoesNotFitSaysByHowMuchAndWhatWould) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.plan.tp = 2, workload.plan.pp = 2, workload.plan.dp = 16;
  WorkloadSpec remedy = workload;
  remedy.plan.pp = 4, remedy.plan.dp.reset();
  EXPECT_FALSE(memory_use(remedy, h100(), 64).fits());
  remedy.plan.pp = 2, remedy.plan.tp = 8;
  const MemoryUse fits = memory_use(remedy, h100(), 64), needed = memory_use(workload, h100(), 64);
  EXPECT_TRUE(fits.fits());
  try {
    require_fit(workload, h100(), 64);
    FAIL() << "70e9 parameters do not fit on four accelerators";
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.problems().size(), 1u);
    const Problem& problem = error.problems()[0];
    EXPECT_EQ(problem.path, "workload.plan");
    EXPECT_EQ(problem.message, fmt::format("does not fit: stage 0 needs {:.1f} GiB, h100-sxm5 has 80.0 GiB",
                                           needed.peak().total() / kGiB));
    EXPECT_EQ(problem.help, fmt::format("tp = 8, dp = 4 would fit ({:.1f} GiB); --allow-oom simulates anyway",
                                        fits.peak().total() / kGiB));
  }
}

// GPT of 8 layers, h 1024, 32000 words, 4096 positions, t = 8. Divided by t: 12 h^2 of a layer's matrices,
// the 7 h biases of their columns, the word table. Whole on every rank: 6 h of the other biases and norms per
// layer, the positions, the final norm's 2 h.
TEST(Memory, PositionsNormsAndBiasesOfSumsAreWholeOnTensorRanks) {
  WorkloadSpec workload;
  workload.model = gpt(8, 1024, 16, 32000, 4096);
  workload.plan.tp = 8, workload.plan.grad_accumulation = 1, workload.plan.zero = 0;
  const double h = 1024, layer = 12 * h * h / 8 + 7 * h / 8 + 6 * h;
  const double numbers = 8 * layer + 32000 * h / 8 + 4096 * h + 2 * h;
  EXPECT_EQ(numbers, 20'931'584);
  const MemoryParts parts = memory_use(workload, h100(), 8).peak();
  EXPECT_DOUBLE_EQ(parts.weights, 2 * numbers);
  EXPECT_DOUBLE_EQ(parts.gradients, 4 * numbers);
  EXPECT_DOUBLE_EQ(parts.optimizer, 12 * numbers);
}

// The recomputed attention core of one layer holds its scores, 5 a b s^2 / t (Korthikanti et al. 2022,
// section 4), beside what all layers keep. Full recompute holds the layer's 34 s b h / t too. Taken on the
// first stage, since the last has room in the memory of the logits.
TEST(Memory, SelectiveRecomputeHoldsTheScoresOfOneLayer) {
  const double scores = 5.0 * 96 * 2048 * 2048 / 8, sbh = 2048.0 * 12288;
  const auto again = [](RecomputeKind kind) {
    return memory_use(workload_of(k175B, true, kind), a100(), 64).stages[0].recompute;
  };
  EXPECT_DOUBLE_EQ(again(RecomputeKind::selective), scores);
  EXPECT_DOUBLE_EQ(again(RecomputeKind::full), 34 * sbh / 8 + scores);
  EXPECT_EQ(again(RecomputeKind::none), 0);
}

// Only the norms are recomputed: the scores are kept, and of 34 s b h / t the inputs of both products, 4, are
// not but are made again for one layer.
TEST(Memory, ModulesWithoutTheCoreKeepTheScores) {
  WorkloadSpec workload = workload_of(k175B, true, RecomputeKind::selective);
  workload.plan.recompute_modules = {"layernorm"};
  workload.model = complete(workload.model);
  const double sbh = 2048.0 * 12288, scores = 5.0 * 96 * 2048 * 2048 / 8;
  EXPECT_DOUBLE_EQ(layer_activation_bytes(workload.model, resolve(workload, 64), RecomputeKind::selective),
                   30 * sbh / 8 + scores);
  EXPECT_DOUBLE_EQ(memory_use(workload, a100(), 64).stages[0].recompute, 4 * sbh / 8);
}

TEST(Memory, TheContractsScenarioFits) {
  EXPECT_NO_THROW(require_fit(llama3_70b_on_64(), h100(), 64));
}
}  // namespace topsim::workloads::memory_test
