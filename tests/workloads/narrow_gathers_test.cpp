// 8-bit products with sequence parallelism: who casts, in how many layouts, and what is gathered.
#include <gtest/gtest.h>

#include "tests/workloads/fixtures.hpp"
#include "workloads/layer/layer_kernels.hpp"
#include "workloads/layer/pieces.hpp"
#include "workloads/model.hpp"
#include "workloads/plan.hpp"

namespace topsim::workloads::narrow_gathers_test {
using namespace testing;
using program::CollectiveKind;

constexpr double kBandwidth = 0.8 * 3.35e12;  // bytes per second of a fused kernel on an H100
// Llama-3 70B, one sequence of 8192 tokens, tensor 8: numbers in the whole activation.
constexpr double kNumbers = 8192.0 * 8192;

WorkloadSpec workload(const char* framework, Precision gemm, TensorOverlap overlap = TensorOverlap::none) {
  WorkloadSpec result;
  result.model = complete(llama3_70b());
  result.framework = framework;
  result.precision.gemm = gemm;
  result.plan.tp = 8, result.plan.global_batch = 8, result.plan.tp_overlap = overlap;
  result.plan.recompute = RecomputeSpec{};
  return result;
}
PiecePair layer(const WorkloadSpec& spec, const Plan& plan, int capability = 90) {
  static topology::Accelerator hopper = h100(), blackwell = h100();
  blackwell.compute_capability = 100;
  const ComputeModel compute(capability == 90 ? hopper : blackwell, {});
  return transformer_layer(spec.model, LayerKind::dense, plan, compute, RecomputeKind::none);
}
double bytes(const PieceList& list, CollectiveKind kind) {
  double sum = 0;
  for (const Piece& piece : list.pieces()) sum += piece.collective && piece.kind == kind ? piece.bytes : 0;
  return sum;
}
double passed(const PieceList& list) {  // bytes through memory that would take as long
  double seconds = 0;
  for (const Piece& piece : list.pieces()) seconds += piece.cost.seconds;
  return seconds * kBandwidth;
}
// What casting before gathers and in norms saves, compared with 16-bit gathers, in bytes per number of the
// activation.
struct Saved {
  double forward, backward;
};
Saved saved(const WorkloadSpec& spec, int capability) {
  const Plan narrow = resolve(spec, 8);
  Plan wide = narrow;
  wide.gathers_narrow = wide.casts_in_norms = false;
  const PiecePair after = layer(spec, narrow, capability), before = layer(spec, wide, capability);
  return {(passed(before.forward) - passed(after.forward)) / kNumbers,
          (passed(before.backward) - passed(after.backward)) / kNumbers};
}

// 1 byte per number: forward the inputs of QKV and FC1 are gathered; backward these again and the gradients
// of both row-parallel products. Scatters sum in 16 bits.
TEST(NarrowGathers, TransformerEngineGathersABytePerNumber) {
  for (const char* framework : {"megatron@2024", "megatron"}) {
    const WorkloadSpec spec = workload(framework, Precision::fp8);
    const PiecePair pair = layer(spec, resolve(spec, 8));
    EXPECT_DOUBLE_EQ(bytes(pair.forward, CollectiveKind::all_gather), 2 * kNumbers);
    EXPECT_DOUBLE_EQ(bytes(pair.backward, CollectiveKind::all_gather), 4 * kNumbers);
    EXPECT_DOUBLE_EQ(bytes(pair.forward, CollectiveKind::reduce_scatter), 2 * 2 * kNumbers);
    EXPECT_DOUBLE_EQ(bytes(pair.backward, CollectiveKind::reduce_scatter), 2 * 2 * kNumbers);
  }
  // Megatron's own layers gather 16 bits; torchao keeps the inputs it gathered, so backward it gathers only
  // the two gradients.
  const WorkloadSpec own = workload("megatron@2023-llama", Precision::fp8);
  EXPECT_DOUBLE_EQ(bytes(layer(own, resolve(own, 8)).forward, CollectiveKind::all_gather), 2 * 2 * kNumbers);
  const WorkloadSpec torch = workload("fsdp", Precision::fp8);
  EXPECT_DOUBLE_EQ(bytes(layer(torch, resolve(torch, 8)).backward, CollectiveKind::all_gather), 2 * kNumbers);
}

// MXFP8 has a byte of scale for 32 numbers: 33/32 bytes each. Forward 2 gathers; backward 2 of inputs, and 2
// of gradients in both layouts, by rows and by columns.
TEST(NarrowGathers, BlockScalesTravelBesideTheirNumbers) {
  const WorkloadSpec spec = workload("megatron", Precision::mxfp8);
  const PiecePair pair = layer(spec, resolve(spec, 8));
  EXPECT_DOUBLE_EQ(bytes(pair.forward, CollectiveKind::all_gather), 2 * kNumbers * 33 / 32);
  EXPECT_DOUBLE_EQ(bytes(pair.backward, CollectiveKind::all_gather), 6 * kNumbers * 33 / 32);
}

// Delayed scaling on a Hopper, savings of two inputs and of two gradients. Forward the norm writes 1 byte
// instead of 2 for its eighth of the rows, and no cast reads 2 and writes two layouts of all. Backward an
// eighth of a gradient is cast, 2 + 1 bytes, instead of all, 4; but gradient and input are transposed, 2
// bytes each.
TEST(NarrowGathers, CastsAreOfOwnRowsAndTransposesOfAll) {
  const Saved hopper = saved(workload("megatron@2024", Precision::fp8), 90);
  EXPECT_NEAR(hopper.forward, 2 * (1.0 / 8 + 4), 1e-6);
  EXPECT_NEAR(hopper.backward, 2 * (4 - 3.0 / 8 - 4), 1e-6);
  // A Blackwell's products read either layout: casts write only one, and nothing is transposed.
  const Saved blackwell = saved(workload("megatron@2024", Precision::fp8), 100);
  EXPECT_NEAR(blackwell.forward, 2 * (1.0 / 8 + 3), 1e-6);
  EXPECT_NEAR(blackwell.backward, 2 * (3 - 3.0 / 8), 1e-6);
}

// On a single rank norms cast too: they write 1 byte instead of 2, and the cast, 4, is saved; backward the
// second layout needs a transpose, 2.
TEST(NarrowGathers, NormsCastForOneRankToo) {
  WorkloadSpec spec = workload("megatron@2024", Precision::fp8);
  spec.plan.tp = 1;
  const Saved alone = saved(spec, 90);
  EXPECT_NEAR(alone.forward, 2 * (1 + 4), 1e-6);
  EXPECT_NEAR(alone.backward, 2 * -2, 1e-6);
}

// Current scaling needs the maximum over all ranks before each cast: an all-reduce of 4 bytes for each of two
// inputs and two gradients.
TEST(NarrowGathers, CurrentScalingSharesItsMaximum) {
  const WorkloadSpec current = workload("megatron", Precision::fp8),
                     delayed = workload("megatron@2024", Precision::fp8);
  EXPECT_DOUBLE_EQ(bytes(layer(current, resolve(current, 8)).forward, CollectiveKind::all_reduce), 2 * 4);
  EXPECT_DOUBLE_EQ(bytes(layer(current, resolve(current, 8)).backward, CollectiveKind::all_reduce), 2 * 4);
  EXPECT_DOUBLE_EQ(bytes(layer(delayed, resolve(delayed, 8)).forward, CollectiveKind::all_reduce), 0);
}

// What a framework of Transformer Engine takes longer for one matrix product's linear layer than one that has
// neither swizzles nor maxima: seconds forward and backward.
double longer(Precision gemm, void (*without)(Plan&), bool backward) {
  WorkloadSpec spec = workload("megatron", gemm);
  spec.plan.tp = 1, spec.plan.global_batch = 8;
  const Plan with = resolve(spec, 8);
  Plan none = with;
  without(none);
  static const topology::Accelerator blackwell = [] {
    topology::Accelerator chip = h100();
    chip.compute_capability = 100;
    return chip;
  }();
  ComputeSettings settings;
  settings.memory_fixed = from_microseconds(2);
  const ComputeModel compute(blackwell, settings);
  const auto seconds_of = [&](const Plan& plan) {
    const Linear linear = LayerKernels(spec.model, plan, compute).linear(8192, 4096, 2048);
    return backward ? linear.input_gradient.seconds + linear.weight_gradient.seconds : linear.forward.seconds;
  };
  return seconds_of(with) - seconds_of(none);
}

// Two kernels of 2 us for each product, which read and write a byte of scale for 32 numbers (16 in four
// bits). Operands of 8192 x 4096 x 2048: X 16 Mi numbers, W 8 Mi, dY 32 Mi. Forward X and W; backward dY and
// W, dY and X.
TEST(NarrowGathers, BlockScalesAreReorderedBeforeEveryProduct) {
  const auto without = [](Plan& plan) { plan.swizzles_scales = false; };
  const double mi = 1024 * 1024;
  EXPECT_NEAR(longer(Precision::mxfp8, without, false), 2 * 24 * mi / 32 / kBandwidth + 4e-6, 1e-9);
  EXPECT_NEAR(longer(Precision::mxfp8, without, true), 2 * 88 * mi / 32 / kBandwidth + 8e-6, 1e-9);
  EXPECT_NEAR(longer(Precision::nvfp4, without, false), 2 * 24 * mi / 16 / kBandwidth + 4e-6, 1e-9);
  EXPECT_DOUBLE_EQ(longer(Precision::fp8, without, false), 0);
  EXPECT_FALSE(resolve(workload("fsdp", Precision::mxfp8), 8).swizzles_scales);
}

// Four bits: the tensor's maximum takes one more read of 2 bytes, and two more kernels of 2 us. Forward of X
// and, once for 1 micro-batch, of W; backward of dY.
TEST(NarrowGathers, FourBitsNeedTheTensorsMaximum) {
  const auto without = [](Plan& plan) { plan.dynamic_scales = false; };
  const double mi = 1024 * 1024;
  EXPECT_NEAR(longer(Precision::nvfp4, without, false), 2 * 24 * mi / kBandwidth + 8e-6, 1e-9);
  EXPECT_NEAR(longer(Precision::nvfp4, without, true), 2 * 32 * mi / kBandwidth + 4e-6, 1e-9);
  EXPECT_DOUBLE_EQ(longer(Precision::mxfp8, without, true), 0);
}

// User buffers: 7 of 8 parts of each of two gathers come from neighbours, 1 byte per number. NeMo scatters
// fp8 too on a Hopper, but not on a Blackwell.
TEST(NarrowGathers, UserBuffersSendBytes) {
  const WorkloadSpec spec = workload("megatron@2024", Precision::fp8, TensorOverlap::userbuffers);
  const PiecePair hopper = layer(spec, resolve(spec, 8)), blackwell = layer(spec, resolve(spec, 8), 100);
  EXPECT_DOUBLE_EQ(bytes(hopper.forward, CollectiveKind::send_recv), 2 * kNumbers * 7 / 8);
  EXPECT_DOUBLE_EQ(bytes(hopper.forward, CollectiveKind::reduce_scatter), 2 * kNumbers);
  EXPECT_DOUBLE_EQ(bytes(blackwell.forward, CollectiveKind::reduce_scatter), 2 * 2 * kNumbers);
}

// Transformer Engine's buffers carry numbers; MXFP8's scales, a byte for 32 numbers, are gathered by NCCL
// before: forward for two inputs, backward for two inputs, which are gathered in bulk, and the rows of two
// gradients. The columns of the gradients bring their scales along.
TEST(NarrowGathers, ScalesGoBeforeUserBuffers) {
  const WorkloadSpec spec = workload("megatron", Precision::mxfp8, TensorOverlap::userbuffers);
  const PiecePair pair = layer(spec, resolve(spec, 8), 100);
  EXPECT_DOUBLE_EQ(bytes(pair.forward, CollectiveKind::all_gather), 2 * kNumbers / 32);
  EXPECT_DOUBLE_EQ(bytes(pair.forward, CollectiveKind::send_recv), 2 * kNumbers * 7 / 8);
  EXPECT_DOUBLE_EQ(bytes(pair.backward, CollectiveKind::all_gather), 2 * kNumbers + 4 * kNumbers / 32);
  EXPECT_DOUBLE_EQ(bytes(pair.backward, CollectiveKind::send_recv), 2 * (2 + 1.0 / 32) * kNumbers * 7 / 8);
}

// An eighth of the rows is read and written, 2 bytes a number: forward two inputs, backward these and two
// gradients.
TEST(NarrowGathers, RowsAreCopiedIntoUserBuffers) {
  const WorkloadSpec spec = workload("megatron", Precision::bf16, TensorOverlap::userbuffers);
  const Plan copied = resolve(spec, 8);
  Plan written = copied;
  written.copies_to_buffers = false;
  const PiecePair with = layer(spec, copied), without = layer(spec, written);
  EXPECT_NEAR((passed(with.forward) - passed(without.forward)) / kNumbers, 2 * 4.0 / 8, 1e-6);
  EXPECT_NEAR((passed(with.backward) - passed(without.backward)) / kNumbers, 4 * 4.0 / 8, 1e-6);
  const WorkloadSpec before = workload("megatron@2024", Precision::bf16, TensorOverlap::userbuffers);
  EXPECT_FALSE(resolve(before, 8).copies_to_buffers);
}

// Adapters read the norm's output in 16 bits: with them, and in inference, gathers stay in 16 bits.
TEST(NarrowGathers, WhatNeedsSixteenBitsGathersThem) {
  WorkloadSpec spec = workload("megatron", Precision::fp8);
  spec.task = Task::lora;
  spec.lora = LoraSpec{};
  EXPECT_FALSE(resolve(spec, 8).gathers_narrow);
  spec = workload("megatron", Precision::fp8);
  spec.task = Task::prefill;
  EXPECT_FALSE(resolve(spec, 8).gathers_narrow);
}
}  // namespace topsim::workloads::narrow_gathers_test
