// Multi-token prediction, and experts in one kernel.
#include <gtest/gtest.h>

#include "tests/workloads/mixtures.hpp"
#include "workloads/layer/pieces.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads::prediction_test {
using namespace testing;
using program::CollectiveKind;
using program::Dimension;

// A module of multi-token prediction is a layer, a projection of 2 h x h, and the head again. It trains its
// layer, projection and two norms; head and embedding are the model's own.
TEST(Prediction, OfASecondTokenIsALayerAProjectionAndTheHeadAgain) {
  WorkloadSpec workload = small_moe(1, 4);
  const ModelSpec one = complete(workload.model);
  const double plain = model_flops_per_sequence(one, 512, true);
  workload.model.prediction_layers = 1;
  const ModelSpec two = complete(workload.model);
  ModelSpec longer = one;
  ++longer.layers;
  const double h = 1024, s = 512;
  EXPECT_NEAR(model_flops_per_sequence(two, 512, true) - plain,
              model_flops_per_sequence(longer, 512, true) - plain + 3 * 2 * s * (2 * h * h + h * one.vocab),
              1);
  const auto program = training_step(workload, h100(), 8);
  program::validate(program);
  EXPECT_NEAR(flops_of_all_ranks(program) / program.facts.model_flops.value(), 1, 1e-12);
  // Reduced over all data-parallel ranks in fp32: the layer's dense part, 2 h h and two norms more.
  const auto scattered = [](const program::Program& of) {
    double sum = 0;
    for (const auto& op : collectives(of, Dimension::data))
      if (op.collective == CollectiveKind::reduce_scatter) sum += static_cast<double>(op.bytes.value());
    return sum;
  };
  const LayerParameters layer = layer_parameters(one, LayerKind::experts);
  EXPECT_DOUBLE_EQ(scattered(program) - scattered(training_step(small_moe(1, 4), h100(), 8)),
                   4 * (layer.split() + layer.whole() + 2 * h * h + 2 * h));
}

TEST(Prediction, IsHeldInMemoryAndNoPartOfInference) {
  WorkloadSpec workload = small_moe(1, 4);
  const auto weights = [&] { return memory_use(workload, h100(), 8).peak().weights; };
  const double before = weights();
  workload.model.prediction_layers = 1;
  const ModelSpec model = complete(workload.model);
  const LayerParameters layer = layer_parameters(model, LayerKind::experts);
  EXPECT_DOUBLE_EQ(weights() - before, 2 * (layer.split() + layer.whole() + layer.routed() / 4 +
                                            prediction_parameters(model, 1)));
  WorkloadSpec prefill = workload, plain = small_moe(1, 4);
  prefill.task = plain.task = Task::prefill;
  prefill.plan.grad_accumulation = plain.plan.grad_accumulation = std::nullopt;
  prefill.plan.global_batch = plain.plan.global_batch = 16;
  EXPECT_EQ(training_step(prefill, h100(), 8).facts.model_flops.value(),
            training_step(plain, h100(), 8).facts.model_flops.value());
}

// With two stages the last one looks up words in a copy of the table. The copy takes 2 bytes per weight, and
// its gradients are summed with the first stage's, once for all modules.
TEST(Prediction, CopiesTheTableOfWordsToTheLastStage) {
  WorkloadSpec workload = small_moe(1, 4);
  workload.plan.pp = 2;
  workload.plan.virtual_stages = 1;
  workload.plan.stage_layers = {2, 2};
  const auto last = [&] { return memory_use(workload, h100(), 8).stages.back().weights; };
  const auto sums = [&] {
    return collectives(training_step(workload, h100(), 8), Dimension::embedding).size();
  };
  const double before = last();
  EXPECT_EQ(sums(), 0U);  // untied: no copies to sum
  workload.model.prediction_layers = 1;
  const ModelSpec model = complete(workload.model);
  const LayerParameters layer = layer_parameters(model, LayerKind::experts);
  const double words = embedding_parameters(model);
  EXPECT_DOUBLE_EQ(last() - before, 2 * (layer.split() + layer.whole() + layer.routed() / 4 +
                                         prediction_parameters(model, 1) + words));
  EXPECT_EQ(sums(), 1U);  // on this rank
  workload.model.prediction_layers = 2;
  EXPECT_EQ(sums(), 1U);
  workload.model.tied_embeddings = true;  // the tied head's copy serves both
  const double tied = last();
  workload.model.prediction_layers = 1;
  EXPECT_DOUBLE_EQ(tied - last(), 2 * (layer.split() + layer.whole() + layer.routed() / 4 +
                                       prediction_parameters(model, 1)));
}

// Tensor ranks split the projection by columns, with or without sequence parallelism.
TEST(Prediction, ProjectsTheSameShareOnEveryTensorRank) {
  WorkloadSpec workload = small_moe(4, 1);
  workload.model.experts.count = 0;
  workload.model.prediction_layers = 1;
  const auto flops = [&](bool sequence_parallel) {
    workload.plan.sequence_parallel = sequence_parallel;
    return flops_of_all_ranks(training_step(workload, h100(), 8));
  };
  EXPECT_DOUBLE_EQ(flops(true), flops(false));
}

// S: an activation of 512 tokens x 1024 x 2 B. Forward both inputs are gathered (2 S) and the result's
// columns (S). Backward the gradient's rows are gathered (S) and both inputs again (2 S), and the inputs'
// gradients are scattered (2 S).
TEST(Prediction, GathersTheProjectionsInputsAndColumns) {
  WorkloadSpec workload = small_moe(4, 1);
  workload.model.experts.count = 0;
  workload.model.prediction_layers = 1;
  workload.model = complete(workload.model);
  static const topology::Accelerator accelerator = h100();
  const auto sent = [](const PieceList& list) {
    double bytes = 0;
    for (const Piece& piece : list.pieces()) bytes += piece.bytes;
    return bytes;
  };
  const double s = 512 * 1024 * 2;
  const Plan plan = resolve(workload, 8);
  const PiecePair module = prediction(workload.model, plan, ComputeModel(accelerator, {}), {}, {}, {});
  EXPECT_DOUBLE_EQ(sent(module.forward), 3 * s);
  EXPECT_DOUBLE_EQ(sent(module.backward), 5 * s);
}

// What a published model was pretrained with is trained where its framework has such modules.
TEST(Prediction, IsPartOfAPretrainingThatHadIt) {
  WorkloadSpec workload = small_moe(1, 4);
  workload.model.published_predictions = 1;
  const auto modules = [](WorkloadSpec of) { return predictions_of(complete_model(of)); };
  workload.framework = "megatron@2025";
  EXPECT_EQ(modules(workload), 1);
  WorkloadSpec other = workload;
  other.model.prediction_layers = 0;
  EXPECT_EQ(modules(other), 0);
  for (const Task task : {Task::finetune, Task::lora, Task::prefill, Task::decode}) {
    other = workload, other.task = task;
    EXPECT_EQ(modules(other), 0) << static_cast<int>(task);
  }
  for (const char* name : {"fsdp", "megatron@2024", "deepspeed"}) {
    other = workload, other.framework = name;
    EXPECT_EQ(modules(other), 0) << name;
  }
}

// Megatron-Bridge's layouts of DeepSeek-V3, recipes/deepseek/deepseek_v3.py: 61 layers, a module at the end.
TEST(Prediction, StandsForTwoLayersWhereStagesAreDivided) {
  WorkloadSpec workload = small_moe(1, 1);
  workload.model.layers = 61;
  workload.model = complete(workload.model);
  workload.plan.virtual_stages = 1;
  const auto stages = [&](int pp) {
    workload.plan.pp = pp;
    return resolve(workload, static_cast<std::uint32_t>(8 * pp)).stage_layers;
  };
  EXPECT_EQ(stages(4), (std::vector{15, 16, 15, 15}));
  workload.model.prediction_layers = 1;
  EXPECT_EQ(stages(4), (std::vector{16, 16, 16, 13}));
  EXPECT_EQ(stages(8), (std::vector{8, 8, 8, 8, 8, 8, 8, 5}));
  std::vector sixteen(16, 4);
  sixteen.back() = 1;
  EXPECT_EQ(stages(16), sixteen);
  // A layer a stage and none in the last one leave no two: the split of a model without the module.
  std::vector many(62, 1);
  many.back() = 0;
  EXPECT_EQ(stages(62), many);
}

// FC1, activation and casts in one kernel: what passes through memory between the products is gone; the
// products of all experts are one kernel.
TEST(Experts, FusedExpertsLeaveTheProducts) {
  WorkloadSpec apart = small_moe(1, 4);
  apart.precision.gemm = Precision::mxfp8;
  WorkloadSpec fused = apart;
  fused.compute.fused_experts = true;
  const auto seconds_of = [](const WorkloadSpec& workload) {
    double sum = 0;
    const auto program = training_step(workload, h100(), 8);
    for (const auto& op : program.classes[0].ops) sum += seconds(op.duration);
    return sum;
  };
  // For each of 4 layers x 2 micro-batches, 1,024 rows and 2,048 columns. Bytes: activation 3 numbers forward
  // and 5 backward per column, 2 bytes each; casts of its result and of FC1's gradient (4,096 columns), 5
  // bytes per number each; rows of 1,024 numbers padded and cut, forward and backward, 4 x 2 x 2. At 0.8 x
  // 3.35 TB/s. Kernels of 2 us: 2 of the activation, 4 for padding, 2 x 2 casts of two experts, 2 x 1 casts
  // that are now one for both experts, and 2 x 1 casts of weights in every second micro-batch: 13. The second
  // expert's 6 products count as a third of a launch each: 15 gaps of 0.9 us.
  // Scales reordered: a kernel for both operands of 6 products, 12; a byte for 32 numbers read and written
  // for either product of X, W and dY, in Mi numbers 1 + 8 + 4 of FC1 and 2 + 4 + 1 of FC2.
  const double swizzled = 2 * 20 * 1024 * 1024 * 2.0 / 32;
  const double bytes = 1024 * 2048.0 * (2 * (3 + 5) + 5 + 2 * 5) + 4 * 2 * 1024 * 1024 * 2.0 + swizzled;
  // Two experts' products of 512 rows, one after the other, take longer than in one kernel, whose waves of
  // tiles they share.
  const topology::Accelerator accelerator = h100();
  ComputeSettings settings;
  settings.memory_fixed = from_microseconds(2);
  const ComputeModel compute(accelerator, settings);
  double in_turn = 0;
  for (const auto& [n, k] : {std::pair(4096.0, 1024.0), {1024.0, 2048.0}}) {
    const auto add = [&](double a, double b, double c, GemmOutput output) {
      in_turn += 2 * compute.gemm({a, b, c}, Precision::mxfp8, output).seconds -
                 compute.gemm({a, b, c, 2}, Precision::mxfp8, output).seconds;
    };
    add(512, n, k, GemmOutput::fresh);
    add(512, k, n, GemmOutput::fresh);
    add(n, k, 512, GemmOutput::accumulate_32);
  }
  EXPECT_GT(in_turn, 10e-6);
  EXPECT_NEAR(seconds_of(apart) - seconds_of(fused),
              8 * (bytes / (0.8 * 3.35e12) + (13 + 12) * 2e-6 + (15 + 12) * 0.9e-6 + in_turn), 2e-7);
}
}  // namespace topsim::workloads::prediction_test
