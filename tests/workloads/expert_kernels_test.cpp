// Kernels beside an expert's products that pass its rows through memory: permutation, padding, casts, biases;
// and what selective recompute repeats.
#include <gmock/gmock.h>

#include "sim/base/error.hpp"
#include "tests/workloads/mixtures.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads::expert_kernels_test {
using namespace testing;
using program::OpKind;

// An H100's fused kernels move 0.8 x 3.35 TB/s; each kernel takes 2 us more, and 0.9 to the next.
// Operators on slices or with repeated operands: results per second of one and of two operands on 132 units.
constexpr double kBandwidth = 0.8 * 3.35e12, kKernel = 2.9e-6, kOfOne = 132 * 3.35e9, kOfTwo = 132 * 1.51e9;
// small_moe(1, 4): 4 layers, 2 micro-batches. 512 tokens visit 2 experts each: 1024 rows of 1024 numbers on
// each rank, which holds 2 experts of width 2048.
constexpr double kPasses = 4 * 2, kRows = 1024, kHidden = 1024, kHere = 2;

double part_seconds(const WorkloadSpec& workload, const char* part) {
  const auto program = training_step(workload, h100(), 8);
  double sum = 0;
  for (const auto& op : program.classes[0].ops)
    if (op.kind == OpKind::compute && program.labels[op.label].find(part) == 0) sum += seconds(op.duration);
  return sum;
}
double all_seconds(const WorkloadSpec& workload) {
  return part_seconds(workload, "");
}

// Biases in an expert's products, in 3 kernels per expert forward and 6 backward. Of these 1 and 2 are
// products that repeat an operand. Bytes per number of its answers in the others: 10 forward and 8 backward;
// with fp32 probabilities, as DeepEP needs them, 24 and 24 (expert_feed_forward.cpp has the list).
TEST(ExpertKernels, BiasesPassOverAllAnswers) {
  for (const auto& [dispatcher, bytes] :
       {std::pair{TokenDispatcher::alltoall, 18.0}, {TokenDispatcher::deepep, 48.0}}) {
    WorkloadSpec plain = small_moe(1, 4), biased = plain;
    plain.plan.token_dispatcher = biased.plan.token_dispatcher = dispatcher;
    biased.model.experts.biases = true;
    EXPECT_NEAR(
        part_seconds(biased, "experts") - part_seconds(plain, "experts"),
        kPasses * (bytes * kRows * kHidden / kBandwidth + 3 * kRows * kHidden / kOfTwo + 9 * kHere * kKernel),
        1e-9);
  }
}

// Fused, the kernel of FC2's gradient of its input also sums the bias's gradient, for 16.6 us of 139.0: 512
// rows for each of 2 experts, 1024 numbers to 2048 columns.
TEST(ExpertKernels, AFusedProductAlsoSumsTheBias) {
  WorkloadSpec plain = small_moe(1, 4);
  plain.precision.gemm = Precision::mxfp8;
  plain.compute.fused_experts = true;
  WorkloadSpec biased = plain;
  biased.model.experts.biases = true;
  static const topology::Accelerator accelerator = h100();
  ComputeSettings settings;
  settings.memory_fixed = from_microseconds(2);
  const double product =
      ComputeModel(accelerator, settings).gemm({512, 2048, 1024, kHere}, Precision::mxfp8).seconds;
  EXPECT_NEAR(part_seconds(biased, "experts") - part_seconds(plain, "experts"),
              kPasses * 16.6 / 139.0 * product, 1e-9);
}

// Clamps before the activation: two per pass of 2048 numbers of 1024 rows, slices of the product's result;
// backward with slices of the gradient. A join of 2 x 2048 numbers in 2 bytes follows, which reads and
// writes.
TEST(ExpertKernels, ClampsPassOverBothHalves) {
  WorkloadSpec plain = small_moe(1, 4), clamped = plain;
  clamped.model.clamped_ffn = true;
  EXPECT_NEAR(part_seconds(clamped, "experts") - part_seconds(plain, "experts"),
              kPasses * (2 * 2048 * kRows * (1 / kOfOne + 1 / kOfTwo) +
                         2 * (4 * 2048 * kRows * 2 / kBandwidth + 3 * kKernel)),
              1e-9);
}

// 8-bit products need padded rows: rows are padded before the products and cut after them, forward and
// backward, 4 copies that read and write 1024 rows. HybridEP delivers rows padded, and 16-bit products need
// no padding.
TEST(ExpertKernels, EightBitProductsWantPaddedRows) {
  WorkloadSpec padded = small_moe(1, 4);
  padded.precision.gemm = Precision::fp8;
  padded.plan.token_dispatcher = TokenDispatcher::deepep;
  WorkloadSpec hybrid = padded;
  hybrid.plan.token_dispatcher = TokenDispatcher::hybridep;
  const double passes = kPasses * 4 * (2 * kRows * kHidden * 2 / kBandwidth + kKernel);
  EXPECT_NEAR(part_seconds(padded, "experts") - part_seconds(hybrid, "experts"), passes, 1e-9);
  padded.precision.gemm = hybrid.precision.gemm = Precision::bf16;
  EXPECT_NEAR(part_seconds(padded, "experts"), part_seconds(hybrid, "experts"), 1e-12);
}

// A token's 2 of 8 experts lie on 4 (1 - 6/8 x 5/7) = 13/7 of the 4 ranks on average. DeepEP sends one copy
// to each such rank, so rows sorted on arrival and answers summed there, forward and backward, read or write
// 13/7 copies of each of 512 tokens instead of 2.
TEST(ExpertKernels, CopiesForSeveralExpertsAreReadOnce) {
  WorkloadSpec all = small_moe(1, 4), once = all;
  once.plan.token_dispatcher = TokenDispatcher::deepep;
  EXPECT_NEAR(part_seconds(all, "experts") - part_seconds(once, "experts"),
              kPasses * 4 * (2 - 13.0 / 7) * 512 * kHidden * 2 / kBandwidth, 1e-9);
}

// Without a fused dispatcher tokens are permuted before the exchange: 512 rows are read, 1024 written; the
// opposite where the answers are summed, and both again backward. DeepEP does none of the four.
TEST(ExpertKernels, APermutationReadsATokenOnce) {
  WorkloadSpec all = small_moe(1, 4), once = all;
  once.plan.token_dispatcher = TokenDispatcher::deepep;
  const double permutations = kPasses * 4 * ((512 + 1024) * kHidden * 2 / kBandwidth + kKernel);
  EXPECT_NEAR(all_seconds(all) - all_seconds(once),
              permutations + kPasses * 4 * (2 - 13.0 / 7) * 512 * kHidden * 2 / kBandwidth, 1e-9);
}

// Transformer Engine casts weights for the first micro-batch of a step and keeps them, so four micro-batches
// cast as often as one. 2 experts of 3 x 2048 x 1024 weights: 2 bytes read for the maximum, 2 read and 2
// written for the cast; for both products of each expert four kernels: the maximum set to 0, taken, made a
// scale, and the cast.
TEST(ExpertKernels, WeightsAreCastOnceAStep) {
  WorkloadSpec one = small_moe(1, 4), four = one;
  one.precision.gemm = four.precision.gemm = Precision::fp8;
  one.plan.grad_accumulation = 1, four.plan.grad_accumulation = 4;
  const double cast = kHere * 3 * 2048 * 1024 * 6 / kBandwidth + 2 * kHere * 4 * kKernel;
  EXPECT_NEAR(4 * part_seconds(one, "experts") - part_seconds(four, "experts"), 3 * 4 * cast, 1e-9);
}

// Casts of the inputs and result gradients of both products: 1024 rows of 1024, 2048, 1024 and 2 x 2048
// numbers. With scales known beforehand (megatron@2024) one kernel casts the rows of both experts. The
// current maximum takes four kernels per expert, and reads 2 bytes per number more. The same holds for
// weights, once for two micro-batches.
TEST(ExpertKernels, EveryExpertsRowsAreCastOnTheirOwn) {
  WorkloadSpec own = small_moe(1, 4), known = own;
  own.precision.gemm = known.precision.gemm = Precision::fp8;
  known.framework = "megatron@2024";
  const double rows =
      kPasses * (2 * kRows * (1024 + 2048 + 1024 + 4096) / kBandwidth + 4 * (4 * kHere - 1) * kKernel);
  const double weights = 4 * (2 * kHere * 3 * 2048 * 1024 / kBandwidth + 2 * (4 * kHere - 1) * kKernel);
  EXPECT_NEAR(part_seconds(own, "experts") - part_seconds(known, "experts"), rows + weights, 1e-9);
}

// YaRN's rotation in single operators, in 12 kernels forward and 20 backward: contiguous ones move 5 and 10
// numbers per element, the others give 1.5 results of one operand and 2 of two each pass. The fused one moves
// 2 and 2 in 2 and 2 kernels. Elements: 512 tokens x (16 query + 16 key heads) x 64.
TEST(ExpertKernels, ScaledPositionsAreRotatedOperatorByOperator) {
  WorkloadSpec plain = small_moe(1, 4), scaled = plain;
  scaled.model.attention.scaled_rotary = true;
  const double elements = 512 * 2 * 1024;
  EXPECT_NEAR(all_seconds(scaled) - all_seconds(plain),
              kPasses * ((15 - 4) * elements * 2 / kBandwidth + elements * (3 / kOfOne + 4 / kOfTwo) +
                         (32 - 4) * kKernel),
              1e-9);
}

// Norms of queries and of keys, 512 tokens x 16 heads x 64 each: forward read and written, backward the
// gradient read too; 2 kernels forward, 4 backward for both.
TEST(ExpertKernels, NormsOfHeadsPassOverQueriesAndKeys) {
  WorkloadSpec plain = small_moe(1, 4), normed = plain;
  normed.model.attention.qk_norm = true;
  EXPECT_NEAR(all_seconds(normed) - all_seconds(plain),
              kPasses * (2 * 5 * 512 * kHidden * 2 / kBandwidth + 6 * kKernel), 1e-9);
}

// Recomputed per pass: the activation reads 2 x 2048 columns of each row and writes 2048; two norms each read
// and write 512 tokens.
TEST(ExpertKernels, RecomputeDoesTheChosenModulesAgain) {
  const WorkloadSpec none = small_moe(1, 4);
  const auto added = [&](std::vector<std::string> modules) {
    WorkloadSpec again = none;
    again.plan.recompute_modules = std::move(modules);
    return all_seconds(again) - all_seconds(none);
  };
  const double activation = kPasses * (3 * 2048 * kRows * 2 / kBandwidth + kKernel);
  const double norms = kPasses * 2 * (2 * 512 * kHidden * 2 / kBandwidth + kKernel);
  EXPECT_NEAR(added({"moe_act"}), activation, 1e-9);
  EXPECT_NEAR(added({"layernorm"}), norms, 1e-9);
  EXPECT_NEAR(added({"layernorm", "moe_act"}), activation + norms, 1e-9);
}

// Not held in 4 layers, in 2 bytes: the activation's result, 1024 rows of 2048, and the normed rows that QKV
// and the router read, 512 each.
TEST(ExpertKernels, WhatIsDoneAgainIsNotHeld) {
  WorkloadSpec none = small_moe(1, 4), again = none;
  again.plan.recompute_modules = {"moe_act", "layernorm"};
  const auto held = [](const WorkloadSpec& workload) {
    return memory_use(workload, h100(), 8).peak().activations;
  };
  EXPECT_NEAR(held(none) - held(again), 4 * 2 * (kRows * 2048 + 2 * 512 * kHidden), 1e-3);
}

// Megatron's names of what is not described here are refused with what comes near.
TEST(ExpertKernels, ModulesThatAreNotDescribedAreRefusedByName) {
  for (const char* module : {"moe", "shared_experts"}) {
    WorkloadSpec workload = small_moe(1, 4);
    workload.plan.recompute_modules = {module};
    try {
      (void)training_step(workload, h100(), 8);
      ADD_FAILURE() << module;
    } catch (const ConfigError& error) {
      ASSERT_EQ(error.problems().size(), 1u) << module;
      EXPECT_NE(error.problems()[0].message.find(module), std::string::npos) << module;
      EXPECT_NE(error.problems()[0].help.find("moe_act"), std::string::npos) << module;
    }
  }
}

TEST(ExpertKernels, ModulesMustBeThere) {
  WorkloadSpec workload = small_moe(1, 4);
  workload.plan.recompute_modules = {"mla_up_proj"};
  EXPECT_THROW((void)training_step(workload, h100(), 8), ConfigError);
  workload.plan.recompute_modules = {"moe_act"};
  workload.plan.recompute = RecomputeSpec{RecomputeKind::full, {}};
  EXPECT_THROW((void)training_step(workload, h100(), 8), ConfigError);
}
}  // namespace topsim::workloads::expert_kernels_test
