// Layers whose attention and feed-forward network read the same input (PaLM, GPT-J, GPT-NeoX-20B, Falcon).
#include <gtest/gtest.h>

#include "tests/workloads/fixtures.hpp"
#include "workloads/layer/lora.hpp"
#include "workloads/layer/pieces.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"
#include "workloads/plan.hpp"

namespace topsim::workloads::parallel_layers_test {
using namespace testing;
using program::CollectiveKind;

// Hidden 6144, 64 heads, 2048 tokens, 16 bits: the whole activation S is 2048 x 6144 x 2 bytes. tp 8.
constexpr double kNumbers = 2048.0 * 6144, kWhole = 2 * kNumbers;
constexpr double kBandwidth = 0.8 * 3.35e12;  // bytes per second of a fused kernel on an H100

enum class Kind { in_turn, one_norm, two_norms };
WorkloadSpec workload(Kind kind, int tp = 8, bool sequence_parallel = false) {
  WorkloadSpec result;
  result.model = complete(gpt(44, 6144, 64, 50432));
  result.model.biases = false;
  result.model.parallel_residual = kind != Kind::in_turn;
  result.model.shared_norm = kind != Kind::two_norms;
  result.plan.tp = tp, result.plan.global_batch = 8, result.plan.sequence_parallel = sequence_parallel;
  return result;
}
PiecePair layer(const WorkloadSpec& spec, RecomputeKind recompute = RecomputeKind::none) {
  static const topology::Accelerator accelerator = h100();
  return transformer_layer(spec.model, LayerKind::dense, resolve(spec, 8), ComputeModel(accelerator, {}),
                           recompute);
}
double sent(const PieceList& list, CollectiveKind kind) {
  double bytes = 0;
  for (const Piece& piece : list.pieces()) bytes += piece.collective && piece.kind == kind ? piece.bytes : 0;
  return bytes;
}
double seconds_of(const PieceList& list) {
  double seconds = 0;
  for (const Piece& piece : list.pieces()) seconds += piece.cost.seconds;
  return seconds;
}

// All-reduces of S, forward and backward. In turn: each half's output and the gradient of its input, 2 and 2.
// Parallel: the sum of both outputs, 1; backward the gradient of each norm's result, 1 or 2.
TEST(ParallelLayers, ATensorGroupReducesOnceForwardAndWithOneNormOnceBackward) {
  const double reductions[][3] = {{0, 2, 2}, {1, 1, 1}, {2, 1, 2}};
  for (const auto& [kind, forward, backward] : reductions) {
    const PiecePair pieces = layer(workload(static_cast<Kind>(kind)));
    EXPECT_EQ(sent(pieces.forward, CollectiveKind::all_reduce), forward * kWhole) << kind;
    EXPECT_EQ(sent(pieces.backward, CollectiveKind::all_reduce), backward * kWhole) << kind;
  }
}

// In units of S. Gathers forward: each norm's result. Backward: the gradient of what was reduced (2, 1, 1),
// and each norm's result again for the weight gradients (2, 1, 2).
TEST(ParallelLayers, SequenceParallelismGathersOneNormsResultOnce) {
  const double gathers[][4] = {{0, 2, 4, 2}, {1, 1, 2, 1}, {2, 2, 3, 2}};
  for (const auto& [kind, forward, backward, scatters_back] : gathers) {
    const PiecePair pieces = layer(workload(static_cast<Kind>(kind), 8, true));
    EXPECT_EQ(sent(pieces.forward, CollectiveKind::all_gather), forward * kWhole) << kind;
    EXPECT_EQ(sent(pieces.forward, CollectiveKind::reduce_scatter), (kind == 0 ? 2 : 1) * kWhole) << kind;
    EXPECT_EQ(sent(pieces.backward, CollectiveKind::all_gather), backward * kWhole) << kind;
    EXPECT_EQ(sent(pieces.backward, CollectiveKind::reduce_scatter), scatters_back * kWhole) << kind;
  }
}

// Numbers of S that pass through memory.
//   Forward: in turn norm 2 and residual 3, twice: 10. One norm on one rank: norm 2; both outputs and the
//     residual in one kernel 4. One norm on 8 ranks: norm 2, sum of both outputs before their reduction 3,
//     residual 3. Two norms: 2 more.
//   Backward: in turn norm 3 and sum of two gradients 3, twice: 12. One norm on 8 ranks: norm 3, sum of both
//     products' input gradients 3, sum with the residual's 3. Two norms: 3 more.
TEST(ParallelLayers, OneNormSavesItsPassesThroughMemory) {
  const auto numbers = [](Kind kind, int tp, bool forward) {
    const WorkloadSpec spec = workload(kind, tp);
    const PiecePair pieces = layer(spec);
    return seconds_of(forward ? pieces.forward : pieces.backward) * kBandwidth / kWhole;
  };
  EXPECT_NEAR(numbers(Kind::in_turn, 1, true) - numbers(Kind::one_norm, 1, true), 10 - 6, 1e-6);
  EXPECT_NEAR(numbers(Kind::in_turn, 8, true) - numbers(Kind::one_norm, 8, true), 10 - 8, 1e-6);
  EXPECT_NEAR(numbers(Kind::in_turn, 8, true) - numbers(Kind::two_norms, 8, true), 10 - 10, 1e-6);
  EXPECT_NEAR(numbers(Kind::in_turn, 8, false) - numbers(Kind::one_norm, 8, false), 12 - 9, 1e-6);
  EXPECT_NEAR(numbers(Kind::in_turn, 8, false) - numbers(Kind::two_norms, 8, false), 12 - 12, 1e-6);
}

// The products and their FLOPs are those of layers in turn. A shared norm saves h gains and, in a GPT, h
// biases.
TEST(ParallelLayers, ProductsAreTheSame) {
  const auto flops = [](Kind kind) {
    double sum = 0;
    const PiecePair pieces = layer(workload(kind));
    for (const PieceList* list : {&pieces.forward, &pieces.backward})
      for (const Piece& piece : list->pieces()) sum += piece.cost.flops;
    return sum;
  };
  EXPECT_DOUBLE_EQ(flops(Kind::in_turn), flops(Kind::one_norm));
  EXPECT_DOUBLE_EQ(flops(Kind::in_turn), flops(Kind::two_norms));
  const auto parameters = [](Kind kind) { return layer_parameters(workload(kind).model).total(); };
  EXPECT_EQ(parameters(Kind::in_turn) - parameters(Kind::one_norm), 2 * 6144);
  EXPECT_EQ(parameters(Kind::in_turn), parameters(Kind::two_norms));
}

// The backward pass completes the gradient of every parameter that the forward pass reads. Each of 8 tensor
// ranks holds norms and the biases of row-parallel layers whole.
TEST(ParallelLayers, EveryParameterHasOneGradient) {
  for (const Kind kind : {Kind::in_turn, Kind::one_norm, Kind::two_norms}) {
    const WorkloadSpec spec = workload(kind);
    const PiecePair pieces = layer(spec);
    double read = 0, completed = 0;
    for (const Piece& piece : pieces.forward.pieces()) read += piece.parameters;
    for (const Piece& piece : pieces.backward.pieces()) completed += piece.parameters;
    const LayerParameters held = layer_parameters(spec.model);
    EXPECT_DOUBLE_EQ(read, held.split() / 8 + held.norms + held.proj_bias + held.fc2_bias);
    EXPECT_DOUBLE_EQ(completed, read);
  }
}

// memory.hpp, in units of s b h. In turn 10 + 24/t: inputs of norms 4, of products 4, masks 2. Parallel both
// norms read one tensor: 8 + 24/t; with one norm both products do too: 6 + 24/t. Flash attention adds 4 a /
// (h t), with heads of 96 columns 4 / 96 / 8. In 8 bits each product keeps the copy that it cast, 1 + 1
// instead of 2, so one norm saves nothing.
TEST(ParallelLayers, KeepOneInput) {
  const auto bytes = [](Kind kind, bool sequence_parallel, Precision gemm = Precision::bf16) {
    WorkloadSpec spec = workload(kind, 8, sequence_parallel);
    spec.dropout = true;
    spec.precision.gemm = gemm;
    return layer_activation_bytes(spec.model, resolve(spec, 8), RecomputeKind::none) / kNumbers;
  };
  const double sums = 4 / 96.0;
  EXPECT_DOUBLE_EQ(bytes(Kind::in_turn, false), 10 + (24 + sums) / 8);
  EXPECT_DOUBLE_EQ(bytes(Kind::two_norms, false), 8 + (24 + sums) / 8);
  EXPECT_DOUBLE_EQ(bytes(Kind::one_norm, false), 6 + (24 + sums) / 8);
  EXPECT_DOUBLE_EQ(bytes(Kind::in_turn, true), (34 + sums) / 8);
  EXPECT_DOUBLE_EQ(bytes(Kind::two_norms, true), (32 + sums) / 8);
  EXPECT_DOUBLE_EQ(bytes(Kind::one_norm, true), (30 + sums) / 8);
  EXPECT_DOUBLE_EQ(
      bytes(Kind::two_norms, false, Precision::fp8) - bytes(Kind::one_norm, false, Precision::fp8), 0);
}

// Weight gradients that are put off need inputs and output gradients of the matrices, 32 s b h in turn, of
// which inputs of QKV and FC1 are 2 x 2 and output gradients of projection and FC2 2 x 2. Parallel layers
// share one of the latter, and with one norm one of the former.
TEST(ParallelLayers, PutOffWeightGradientsShareWhatTheyNeed) {
  const auto needed = [](Kind kind) {
    WorkloadSpec spec = workload(kind, 1);
    spec.model.layers = 8, spec.plan.pp = 8, spec.plan.schedule = Schedule::zb_h1;
    const Plan plan = resolve(spec, 8);
    return stage_activations(spec.model, plan, 1).until_weight / kNumbers;
  };
  EXPECT_DOUBLE_EQ(needed(Kind::in_turn), 32);
  EXPECT_DOUBLE_EQ(needed(Kind::two_norms), 30);
  EXPECT_DOUBLE_EQ(needed(Kind::one_norm), 28);
}

// Full recompute repeats the layer's all-reduce beside backward's own, unless checkpoints stop before the
// last product (FSDP).
TEST(ParallelLayers, RecomputeRunsBothHalvesAgain) {
  const double again =
      sent(layer(workload(Kind::one_norm), RecomputeKind::full).backward, CollectiveKind::all_reduce);
  EXPECT_EQ(again, 2 * kWhole);
  WorkloadSpec stops = workload(Kind::one_norm);
  stops.framework = "fsdp";
  EXPECT_EQ(sent(layer(stops, RecomputeKind::full).backward, CollectiveKind::all_reduce), kWhole);
}

// Adapters on all four matrices: 16 (k + n) parameters each, of which one of 8 ranks has
// an eighth.
TEST(ParallelLayers, AdaptersFindTheirMatrices) {
  WorkloadSpec spec = workload(Kind::one_norm);
  spec.task = Task::lora;
  const Plan plan = resolve(spec, 8);
  static const topology::Accelerator accelerator = h100();
  const PiecePair pieces =
      adapted_layer(spec.model, LayerKind::dense, plan, ComputeModel(accelerator, {}), RecomputeKind::none);
  double trained = 0;
  for (const Piece& piece : pieces.backward.pieces()) trained += piece.parameters;
  const double h = 6144, widths = ((h + 3 * h) + (h + h) + (h + 4 * h) + (4 * h + h)) / 8;
  EXPECT_DOUBLE_EQ(trained, 16 * widths);
}
}  // namespace topsim::workloads::parallel_layers_test
