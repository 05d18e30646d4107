// Properties of a model beside its sizes: activation, positions, biases.
#include <gtest/gtest.h>

#include "tests/workloads/fixtures.hpp"
#include "workloads/layer/pieces.hpp"
#include "workloads/model.hpp"
#include "workloads/plan.hpp"

namespace topsim::workloads::model_shapes_test {
using namespace testing;

constexpr double kBandwidth = 0.8 * 3.35e12;  // bytes per second of a fused kernel on an H100
constexpr double kHidden = 1024, kTokens = 2048;

ModelSpec plain() {
  return complete(gpt(2, 1024, 16));
}
// Time of a layer's kernels, as numbers of 2 bytes that pass through memory for each token.
struct Numbers {
  double forward = 0, backward = 0;
};
Numbers layer(const ModelSpec& model, const char* framework) {
  WorkloadSpec workload;
  workload.model = model;
  workload.framework = framework;
  workload.plan.global_batch = 8, workload.plan.recompute = RecomputeSpec{};
  static const topology::Accelerator accelerator = h100();
  const PiecePair pair = transformer_layer(model, LayerKind::dense, resolve(workload, 8),
                                           ComputeModel(accelerator, {}), RecomputeKind::none);
  const double number = 2 * kTokens / kBandwidth;
  Numbers sums;
  for (const Piece& piece : pair.forward.pieces()) sums.forward += piece.cost.seconds / number;
  for (const Piece& piece : pair.backward.pieces()) sums.backward += piece.cost.seconds / number;
  return sums;
}
Numbers added(const ModelSpec& model, const char* framework) {
  const Numbers with = layer(model, framework), without = layer(plain(), framework);
  return {with.forward - without.forward, with.backward - without.backward};
}

// NeMo (megatron@2024) runs relu and pow as two kernels that read and write 4 h numbers each; fused, one
// kernel does. Backward they move 2 + 2 + 3 and 3 of 4 h instead of 3.
TEST(ModelShapes, SquaredReluIsWrittenInSingleOperators) {
  ModelSpec model = plain();
  model.activation = Activation::squared_relu;
  const Numbers nemo = added(model, "megatron@2024"), bridge = added(model, "megatron");
  EXPECT_NEAR(nemo.forward, 2 * 4 * kHidden, 1e-3);
  EXPECT_NEAR(nemo.backward, 7 * 4 * kHidden, 1e-3);
  EXPECT_NEAR(bridge.forward, 0, 1e-3);
  EXPECT_NEAR(bridge.backward, 0, 1e-3);
}

// Rotary positions read and write queries and keys, 2 h. The projection's result is then no layout that
// attention reads: values are copied, h numbers of a slice at 3.35e9 per second and compute unit, and
// backward the three gradients joined, 6 h.
TEST(ModelShapes, PositionsMayBeRotaryWithoutGates) {
  ModelSpec model = plain();
  model.positions = Positions::rotary;
  const Numbers rotary = added(model, "megatron");
  EXPECT_NEAR(rotary.forward, (4 + kBandwidth / (2 * 132 * 3.35e9)) * kHidden, 1e-3);
  EXPECT_NEAR(rotary.backward, (4 + 6) * kHidden, 1e-3);
  // The table of 2048 positions is not there.
  EXPECT_DOUBLE_EQ(embedding_parameters(plain()) - embedding_parameters(model), 2048 * kHidden);
  ModelSpec alibi = plain();
  alibi.positions = Positions::alibi;
  EXPECT_NEAR(added(alibi, "megatron").forward, 0, 1e-3);
  EXPECT_DOUBLE_EQ(embedding_parameters(alibi), embedding_parameters(model));
}

// Without biases three gradients are not summed: those of the projection and FC2, which read h numbers each,
// and FC1's, 4 h. A layer has 3 h + h + 4 h + h biases.
TEST(ModelShapes, BiasesAreTheModels) {
  ModelSpec model = plain();
  model.biases = false;
  const Numbers none = added(model, "megatron");
  EXPECT_NEAR(none.forward, 0, 1e-3);
  EXPECT_NEAR(none.backward, -(2 + 4) * kHidden, 1e-3);
  EXPECT_DOUBLE_EQ(layer_parameters(plain()).total() - layer_parameters(model).total(), 9 * kHidden);
  // Gated layers have none unless the model says so.
  ModelSpec gated = plain();
  gated.gated_ffn = true;
  EXPECT_FALSE(has_biases(gated));
  gated.biases = true;
  EXPECT_TRUE(has_biases(gated));
}

// The table has a row for each of the workload's 4,096 positions, and at least the model's own 2,048.
TEST(ModelShapes, LearnedPositionsReachAsFarAsTheSequence) {
  WorkloadSpec workload;
  workload.model = gpt(2, 1024, 16);
  workload.model.sequence = 2048;
  const double words = head_parameters(workload.model);
  workload.sequence = 4096;
  EXPECT_EQ(embedding_parameters(complete_model(workload)) - words, 4096.0 * 1024);
  workload.sequence = 512;
  EXPECT_EQ(embedding_parameters(complete_model(workload)) - words, 2048.0 * 1024);
}
}  // namespace topsim::workloads::model_shapes_test
