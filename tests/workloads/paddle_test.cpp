// PaddleNLP's set: exchanges of tensor parallelism, biases, rotary embedding, norms, and what ZeRO 1 and 2
// reduce.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/workloads/fixtures.hpp"
#include "workloads/compute/compute_model.hpp"
#include "workloads/layer/layer_kernels.hpp"
#include "workloads/model.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::paddle_test {
using namespace testing;
using program::CollectiveKind;
using program::Op;

constexpr double kBandwidth = 0.8 * 3.35e12;  // bytes per second of a fused kernel on an H100

Plan plan_of(const ModelSpec& model, const std::string& framework, int tp) {
  WorkloadSpec workload;
  workload.model = model;
  workload.framework = framework;
  workload.plan.tp = tp, workload.plan.global_batch = 8;
  workload.plan.sequence_parallel = false;
  workload.plan.recompute = RecomputeSpec{};
  return resolve(workload, 8);
}
PiecePair layer(const ModelSpec& model, const Plan& plan) {
  static const topology::Accelerator accelerator = h100();
  return transformer_layer(model, LayerKind::dense, plan, ComputeModel(accelerator, {}), RecomputeKind::none);
}
double sum(const PieceList& list) {
  double seconds = 0;
  for (const Piece& piece : list.pieces()) seconds += piece.cost.seconds;
  return seconds;
}

// Forward the two row-parallel layers reduce. Backward, of Llama: queries, keys, values, gate and up, each a
// column-parallel layer of its own, where Megatron has two of them; of GPT, whose network has no gate: 4.
TEST(Paddle, EveryColumnParallelLayerReducesItsGradientOfTheInput) {
  const auto reductions = [](const PieceList& list) {
    return std::count_if(list.pieces().begin(), list.pieces().end(),
                         [](const Piece& piece) { return piece.collective; });
  };
  const ModelSpec llama = complete(llama3_70b()), plain = complete(gpt(2, 1024, 16));
  const PiecePair paddle = layer(llama, plan_of(llama, "paddle", 2));
  EXPECT_EQ(reductions(paddle.forward), 2);
  EXPECT_EQ(reductions(paddle.backward), 5);
  EXPECT_EQ(reductions(layer(plain, plan_of(plain, "paddle", 2)).backward), 4);
  EXPECT_EQ(reductions(layer(llama, plan_of(llama, "megatron", 2)).backward), 2);
}

// Numbers per token with h = 1024, each bias a kernel that reads and writes: queries, keys and values 6 h,
// FC1 8 h, both row-parallel layers 4 h. Backward only the QKV gradient, 3 h, is not counted without it.
TEST(Paddle, BiasesAreAddedByKernelsOfTheirOwn) {
  const ModelSpec model = complete(gpt(2, 1024, 16));
  Plan plan = plan_of(model, "paddle", 1);
  const PiecePair apart = layer(model, plan);
  plan.adds_biases = false;
  const PiecePair inside = layer(model, plan);
  const double number = plan.tokens() * 2 / kBandwidth;
  EXPECT_NEAR((sum(apart.forward) - sum(inside.forward)) / number, 18 * 1024, 1e-6);
  EXPECT_NEAR((sum(apart.backward) - sum(inside.backward)) / number, 3 * 1024, 1e-6);
}

// Queries and keys, 9 heads of 128 at tensor 8: 24 bytes per number forward and 32 backward, where a fused
// kernel moves 4 in each.
TEST(Paddle, RotaryEmbeddingCopiesItsSlices) {
  const ModelSpec model = complete(llama3_70b());
  Plan plan = plan_of(model, "paddle", 8);
  const PiecePair eager = layer(model, plan);
  plan.rotary_in_copies = false;
  const PiecePair fused = layer(model, plan);
  const double number = plan.tokens() * 1152 / kBandwidth;
  EXPECT_NEAR((sum(eager.forward) - sum(fused.forward)) / number, 24 - 4, 1e-6);
  EXPECT_NEAR((sum(eager.backward) - sum(fused.backward)) / number, 32 - 4, 1e-6);
}

// apex's kernel among eager ones takes as long as among fused ones: 75.1 us for 16,384 rows of 1,024 numbers
// at 1.555 TB/s (release_test.cpp).
TEST(Paddle, NormsTakeAsLongAsApexMeasured) {
  topology::Accelerator accelerator = a100();
  accelerator.memory_bandwidth = BytesPerSecond(1.555e12);
  ComputeSettings settings;
  settings.fused = false;
  const ComputeModel compute(accelerator, settings);
  const ModelSpec model = complete(gpt(2, 1024, 16));
  const Plan plan = plan_of(model, "paddle", 1);
  EXPECT_NEAR(LayerKernels(model, plan, compute).norm_forward(16384, 1024).seconds, 75.1e-6, 0.5e-6);
}

// Two micro-batches on 8 ranks. Stage 1 all-reduces after the last; stage 2 reduces the same gradients to
// their owners after each. Afterwards all 8 owners broadcast.
TEST(Paddle, Stage2ReducesEveryMicroBatchToTheOwners) {
  const auto exchanges = [](int zero, CollectiveKind kind) {
    WorkloadSpec workload = small("paddle", 2);
    workload.plan.zero = zero;
    const auto program = training_step(workload, a100(), 8);
    std::vector<double> bytes;
    for (const Op& op : program.classes[0].ops)
      if (op.kind == program::OpKind::collective && op.collective == kind && op.bytes.value() > 4)
        bytes.push_back(static_cast<double>(op.bytes.value()));
    return bytes;
  };
  const std::vector<double> one = exchanges(1, CollectiveKind::all_reduce),
                            two = exchanges(2, CollectiveKind::reduce);
  ASSERT_FALSE(one.empty());
  ASSERT_EQ(two.size(), 2 * one.size());
  EXPECT_TRUE(std::equal(one.begin(), one.end(), two.begin()));
  EXPECT_TRUE(exchanges(1, CollectiveKind::reduce).empty());
  EXPECT_TRUE(exchanges(2, CollectiveKind::all_reduce).empty());
  EXPECT_EQ(exchanges(2, CollectiveKind::broadcast).size(), 8u);
}

// Four micro-batches. An owner adds three times: 16-bit gradients are read twice and written, 3 x 2 x 3 / 4
// bytes in the mean. DeepSpeed's stage 2 has sent the gradients on by then.
TEST(Paddle, OwnersAddWhatMicroBatchesBring) {
  static const topology::Accelerator accelerator = h100();
  const ComputeModel compute(accelerator, {});
  const auto added = [&](const char* framework) {
    WorkloadSpec workload = small(framework, 4);
    workload.model = complete(workload.model);
    workload.plan.zero = 2;
    return accumulated(resolve(workload, 8), compute, 1e6).seconds;
  };
  EXPECT_NEAR(added("paddle"), 4.5e6 / kBandwidth, 1e-12);
  EXPECT_EQ(added("deepspeed"), 0);
}

// Kernels exist for heads of 32 and 64: those of 40 take as long as those of 64, twice as long as those of
// 24, which are computed as 32.
TEST(Attention, NarrowHeadsArePaddedToAKernelsWidth) {
  const auto accelerator = a100();
  const ComputeModel model(accelerator, {});
  const auto time = [&](double width) {
    return attention_seconds(model, 128, 2048, width, AttentionKernel::flash1);
  };
  EXPECT_DOUBLE_EQ(time(40), time(64));
  EXPECT_DOUBLE_EQ(time(40), 2 * time(24));
}
}  // namespace topsim::workloads::paddle_test
