// Frozen weights in NF4, as bitsandbytes keeps them and expands them for each product.
#include <gmock/gmock.h>

#include "sim/base/error.hpp"
#include "tests/workloads/adapters.hpp"
#include "tests/workloads/fixtures.hpp"
#include "workloads/host/host.hpp"
#include "workloads/layer/lora.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/memory/working_set.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads::nf4_test {
using namespace testing;

// A layer of Llama-3 8B: queries and projection 4096 x 4096, keys and values 4096 x 1024, gate, up and down
// 4096 x 14336.
constexpr double kWeights = 218'103'808, kMatrices = 7;

WorkloadSpec quantised(std::optional<Precision> format, std::string framework = "ddp") {
  WorkloadSpec workload = adapted(std::move(framework), {"q", "v"});
  workload.precision.frozen_weights = format;
  return workload;
}
PiecePair layer(const WorkloadSpec& workload, RecomputeKind recompute = RecomputeKind::none) {
  const topology::Accelerator accelerator = h100();
  const ComputeModel compute(accelerator, {});
  const Plan plan = resolve(workload, 1);
  PiecePair pair = adapted_layer(workload.model, LayerKind::dense, plan, compute, recompute);
  set_host_time(pair, LayerKind::dense, workload.model, plan, recompute);
  return pair;
}
KernelCost sum(const PieceList& list) {
  KernelCost cost;
  for (const Piece& piece : list.pieces()) cost += piece.cost;
  return cost;
}

// 4 bits and 32 for 64 weights: 4.5. With double quantisation 8 for 64 and 32 for 64 x 256: "from 0.5 bits to
// 0.127 bits" a parameter (Dettmers et al. 2023, section 3). Embedding, head and norms stay in 16 bits.
TEST(Nf4, WeightsOfLinearLayersTakeFourAndAHalfBits) {
  const double wide = memory_use(quantised({}), h100(), 1).peak().weights;
  EXPECT_NEAR(wide - memory_use(quantised(Precision::nf4), h100(), 1).peak().weights,
              32 * kWeights * (2 - 4.5 / 8), 1);
  EXPECT_NEAR(wide - memory_use(quantised(Precision::nf4_double), h100(), 1).peak().weights,
              32 * kWeights * (2 - 4.127 / 8), 1e-4 * 32 * kWeights);
}

// A kernel for each matrix before its product, in both passes: 0.5625 bytes read and 2 written a weight, at
// 0.8 x 3.35 TB/s. The products are those of 16-bit weights. Where the layer is recomputed it is the pass
// forward once more.
TEST(Nf4, EveryMatrixIsExpandedBeforeEveryProduct) {
  const PiecePair wide = layer(quantised({})), narrow = layer(quantised(Precision::nf4));
  const double expanded = kWeights * 2.5625 / (0.8 * 3.35e12);
  for (const auto list : {&PiecePair::forward, &PiecePair::backward}) {
    EXPECT_EQ(sum(narrow.*list).kernels - sum(wide.*list).kernels, kMatrices);
    EXPECT_NEAR(sum(narrow.*list).seconds - sum(wide.*list).seconds, expanded, 1e-3 * expanded);
    EXPECT_DOUBLE_EQ(sum(narrow.*list).flops, sum(wide.*list).flops);
  }
  const double again = sum(layer(quantised(Precision::nf4), RecomputeKind::full).backward).seconds -
                       sum(layer(quantised({}), RecomputeKind::full).backward).seconds;
  EXPECT_NEAR(again, 2 * expanded, 2e-3 * expanded);
}

// Double quantisation expands the maxima first, one for 64 weights: 1 byte read and 4 written, then their
// mean added, 4 and 4; the weights read them in 4 bytes: three kernels.
TEST(Nf4, MaximaOfDoubleQuantisationAreExpandedToo) {
  const KernelCost one = sum(layer(quantised(Precision::nf4)).forward),
                   two = sum(layer(quantised(Precision::nf4_double)).forward);
  EXPECT_EQ(two.kernels - one.kernels, 2 * kMatrices);
  const double more = kWeights * 13 / 64 / (0.8 * 3.35e12);
  EXPECT_GT(two.seconds - one.seconds, 0.99 * more);
  EXPECT_LT(two.seconds - one.seconds, more + 2 * kMatrices * 3e-6);  // which may be as short as a kernel is
}

// bitsandbytes' Function, 26 us, and the operator that expands, 10; two operators more with double
// quantisation; for 7 matrices, in both passes.
TEST(Nf4, EachExpansionCostsTheHostItsCalls) {
  const auto host = [](std::optional<Precision> format) {
    const PiecePair pair = layer(quantised(format));
    return sum(pair.forward).host + sum(pair.backward).host;
  };
  EXPECT_NEAR(host(Precision::nf4) - host({}), 2 * kMatrices * 36e-6, 1e-9);
  EXPECT_NEAR(host(Precision::nf4_double) - host({}), 2 * kMatrices * 56e-6, 1e-9);
}

// 128 tokens: while FC2's product runs in the backward pass the copy of its 4096 x 14336 weights exists in 2
// bytes, beside gradients of 4096 and 14336 columns.
TEST(Nf4, TheCopyOfAMatrixCountsWhileItIsMultiplied) {
  WorkloadSpec workload = quantised(Precision::nf4);
  workload.sequence = 128;
  EXPECT_DOUBLE_EQ(working_set(workload.model, resolve(workload, 1)),
                   2 * 4096.0 * 14336 + 2 * 128.0 * (4096 + 14336));
}

// The layers take 13 GiB of 36.3 in 16 bits; 6.5 in 8 bits, and 3.7 in 4.5 bits, a little of which the copies
// of matrices take.
TEST(Nf4, IsTheRemedyWhereEightBitsAreTooManyAndMatricesAreWhole) {
  topology::Accelerator accelerator = h100();
  accelerator.memory = Bytes(std::int64_t{31} << 30);
  try {
    require_fit(quantised({}), accelerator, 1);
    FAIL() << "it fits";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.problems()[0].help,
                ::testing::StartsWith("precision.frozen_weights = nf4 would fit ("));
  }
}

// Llama 3 405B over 32 accelerators of 26 GiB under ZeRO-3, which cannot shard NF4: shards take 25.3 GB in 16
// bits, 12.7 in 8 and 7.1 in 4.5.
TEST(Nf4, WhereItIsRefusedTheOtherFormatOfFourBitsIsTheRemedy) {
  WorkloadSpec workload = quantised({}, "deepspeed");
  ModelSpec& model = workload.model;
  model.layers = 126, model.hidden = 16384, model.heads = 128, model.kv_heads = 8, model.head_dim = 128;
  model.ffn = 53248;
  workload.plan.zero = 3, workload.plan.recompute = RecomputeSpec{RecomputeKind::full, std::nullopt};
  workload.sequence = 256;
  topology::Accelerator accelerator = h100();
  accelerator.memory = Bytes(std::int64_t{26} << 30);
  try {
    require_fit(workload, accelerator, 32);
    FAIL() << "it fits";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.problems()[0].help,
                ::testing::StartsWith("precision.frozen_weights = nvfp4 would fit ("));
  }
}

TEST(Nf4, WhatBitsandbytesCannotDoIsRefused) {
  const auto help = [](const WorkloadSpec& workload, std::uint32_t accelerators = 1) {
    try {
      (void)resolve(workload, accelerators);
    } catch (const ConfigError& error) {
      return error.problems()[0].path + ": " + error.problems()[0].help;
    }
    return std::string("accepted");
  };
  WorkloadSpec narrow = quantised(Precision::nf4);
  narrow.precision.gemm = Precision::fp8;
  EXPECT_EQ(
      help(narrow),
      "workload.precision.frozen_weights: set precision.gemm to bf16, or frozen_weights to fp8 or nvfp4");
  EXPECT_EQ(help(quantised(Precision::nf4, "fsdp"), 8),
            "workload.precision.frozen_weights: use framework ddp, deepspeed below zero 3 or megatron, or "
            "frozen_weights fp8");
  WorkloadSpec trained = quantised(Precision::nf4);
  trained.task = Task::finetune, trained.lora.reset();
  EXPECT_EQ(help(trained), "workload.precision.frozen_weights: set \"task\": \"lora\", or leave it out");
  EXPECT_EQ(help(quantised(Precision::nf4, "megatron")), "accepted");
}
}  // namespace topsim::workloads::nf4_test
