// JAX: what a loop over layers that XLA compiles gathers and reduces, and when; what its remat policies keep;
// look-ups by products.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "sim/base/error.hpp"
#include "tests/workloads/fixtures.hpp"
#include "tests/workloads/replay.hpp"
#include "workloads/layer/layer_kernels.hpp"
#include "workloads/layer/pieces.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"
#include "workloads/plan.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::loops_test {
using namespace testing;
using program::CollectiveKind;
using program::OpKind;
using program::Phase;

constexpr double kH = 1024, kHead = 51200 * kH, kTable = (51200 + 2048) * kH;

std::vector<double> sizes(const program::Program& program, Phase phase) {
  std::vector<double> bytes;
  for (const auto& op : program.classes[0].ops)
    if (op.kind == OpKind::collective && op.phase == phase && op.bytes > Bytes(4))
      bytes.push_back(static_cast<double>(op.bytes.value()));
  return bytes;
}
double sum(const std::vector<double>& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), 0.0);
}

// qkv, projection, fc1 and fc2, the first and the third with the biases of their columns.
const std::vector<double> kLayer{3 * kH * kH + 3 * kH, kH* kH, 4 * kH* kH + 4 * kH, 4 * kH* kH};

// Forward: table, four layers, head; backward the layers again, but neither the head, which stays, nor the
// table, whose gradient needs none. In 16 bits; norms and other biases are whole everywhere. Every
// micro-batch does so.
TEST(Loop, GathersMatrixByMatrix) {
  for (const int accumulation : {1, 3}) {
    const auto program = training_step(small("maxtext", accumulation), a100(), 8);
    program::validate(program);
    const std::vector<double> gathers = sizes(program, Phase::parameter_sync);
    EXPECT_EQ(gathers.size(), accumulation * (1 + 4 * 4 + 1 + 4 * 4u));
    EXPECT_DOUBLE_EQ(sum(gathers), accumulation * 2 * (kTable + kHead + 2 * 4 * (12 * kH * kH + 7 * kH)));
    EXPECT_EQ(gathers.front(), 2 * kTable);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(gathers[1 + i], 2 * kLayer[i]);
      EXPECT_EQ(gathers[18 + i], 2 * kLayer[i]);  // full remat reads them in forward order
    }
  }
}

// The order of the products where nothing is computed again: fc2, fc1, projection, qkv.
TEST(Loop, GathersBackwardInTheOrderOfTheProducts) {
  WorkloadSpec workload = small("maxtext");
  workload.plan.recompute = RecomputeSpec{RecomputeKind::none, {}};
  const std::vector<double> gathers = sizes(training_step(workload, a100(), 8), Phase::parameter_sync);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(gathers[18 + i], 2 * kLayer[3 - i]);
}

// Head and final norm, then for each layer fc2, fc1, projection with a norm, qkv, and the other norm at the
// end of the pass; the table: 2 + 4 x 5 + 1 reduce-scatters of all gradients, in 16 bits.
TEST(Loop, ReducesEachMatrixInItsPass) {
  const auto program = training_step(small("maxtext"), a100(), 8);
  const std::vector<double> sums = sizes(program, Phase::gradient_sync);
  EXPECT_EQ(sums.size(), 2 + 4 * 5 + 1u);
  const LayerParameters layer = layer_parameters(complete(small("maxtext").model));
  EXPECT_DOUBLE_EQ(sum(sums), 2 * (kTable + kHead + 2 * kH + 4 * layer.total()));
  for (const auto& op : program.classes[0].ops)
    if (op.kind == OpKind::collective && op.phase == Phase::gradient_sync && op.bytes > Bytes(4)) {
      EXPECT_EQ(op.collective, CollectiveKind::reduce_scatter);
    }
}

Duration step(const WorkloadSpec& workload, Phase slow, Duration each) {
  Replay replay = free_network();
  replay.collective = [=](const program::Op& op, const program::Communicator&) {
    return op.phase == slow && op.bytes > Bytes(4) ? each : Duration{};
  };
  return replay.run(training_step(workload, a100(), 8)).step;
}
double added(const WorkloadSpec& workload, Phase slow, double microseconds) {
  return 1e6 * seconds(step(workload, slow, from_microseconds(microseconds)) - step(workload, slow, {}));
}

// Gathers of 10 us, shorter than every product. Exposed are the table's, the first of each of 4 + 4 passes
// and the head's; forward a norm of some 5 us runs beside the first: 10 + 4 x 5 + 4 x 10 + 5 = 75 us. FSDP
// gathers a layer while the one before is computed: left are its root's and the first layer's behind it.
TEST(Loop, TheFirstGatherOfEveryPassIsExposed) {
  const double loop = added(small("maxtext"), Phase::parameter_sync, 10);
  EXPECT_GT(loop, 60);
  EXPECT_LT(loop, 95);
  WorkloadSpec units = small("fsdp@2024-compile");
  units.compute.launch_overhead = Duration{};  // or the host hides all
  EXPECT_NEAR(added(units, Phase::parameter_sync, 10), 20, 3);
}

// A TPU computes nothing beside its reduce-scatters: 23 of 10 us. Pax's overlap within the pass: of each
// layer the last matrix' and the last norm's are left, of the head its matrix' and norm's, the table's.
TEST(Loop, ReductionsOverlapWithinTheirPass) {
  EXPECT_NEAR(added(small("maxtext"), Phase::gradient_sync, 10), 230, 1);
  WorkloadSpec workload = small("pax@2023");
  workload.compute.launch_overhead = Duration{};
  const double overlapped = added(workload, Phase::gradient_sync, 10);
  EXPECT_GT(overlapped, 4 * 10 + 10);
  EXPECT_LT(overlapped, 4 * 20 + 20 + 10);
}

// Pipelined, all of the next layer is one gather, launched before this one computes, as in FSDP: exposed is
// the table's; the first layer's goes on beside the product that looks words up. Of gradients the table's is
// left; a layer's is summed beside the next, of the same 10 us, so nothing else waits. No kernel copies
// gradients.
TEST(PipelinedLoop, ExchangesALayerBesideAnother) {
  WorkloadSpec workload = small("maxtext@2024-gpu");
  workload.compute.launch_overhead = Duration{};
  EXPECT_NEAR(added(workload, Phase::parameter_sync, 10), 10, 3);
  EXPECT_NEAR(added(workload, Phase::gradient_sync, 10), 10, 3);
  const auto program = training_step(workload, a100(), 8);
  program::validate(program);
  const double layer = layer_parameters(complete(workload.model)).total();
  EXPECT_EQ(std::ranges::count(sizes(program, Phase::parameter_sync), 2 * layer), 4 + 4);
  EXPECT_EQ(std::ranges::count(sizes(program, Phase::gradient_sync), 2 * layer), 4);
  // The table once, because its gradient needs no weights, and the head once, which stays.
  EXPECT_DOUBLE_EQ(sum(sizes(program, Phase::parameter_sync)), 2 * (8 * layer + kTable + kHead + 2 * kH));
  for (const auto& op : program.classes[0].ops)
    EXPECT_FALSE(op.kind == OpKind::compute && op.phase == Phase::gradient_sync && op.duration > Duration{});
}

// Shards of layers are cast, then gathered: one byte a number instead of two. Table and head are not cast.
// Neither are other formats than fp8, nor layers whose width is given.
TEST(PipelinedLoop, GathersWeightsOfNarrowProductsNarrow) {
  WorkloadSpec workload = small("maxtext@2024-gpu");
  const auto gathered = [&](Precision precision) {
    workload.precision.gemm = precision;
    return sum(sizes(training_step(workload, h100(), 8), Phase::parameter_sync));
  };
  const double layers = 8 * layer_parameters(complete(workload.model)).total(),
               ends = kTable + kHead + 2 * kH;
  EXPECT_DOUBLE_EQ(gathered(Precision::fp8), layers + 2 * ends);
  EXPECT_DOUBLE_EQ(gathered(Precision::mxfp8), 2 * (layers + ends));
  workload.precision.parameters_all_gather = Precision::bf16;
  EXPECT_DOUBLE_EQ(gathered(Precision::fp8), 2 * (layers + ends));
}

// XLA's kernels write 8 bits where they make what a product reads, so all that is left of its casts is the
// transposed copy of the weights, a byte read and a byte written. Transformer Engine reads the input in 16
// bits and writes both layouts.
TEST(PipelinedLoop, NarrowNumbersAreWrittenWhereTheyAreMade) {
  const topology::Accelerator accelerator = h100();
  const ComputeModel compute(accelerator, {});
  const double m = 2048, n = 4096, k = 1024;
  const auto cast = [&](const char* framework) {
    WorkloadSpec workload = small(framework);
    workload.model = complete(workload.model);
    workload.precision.gemm = Precision::fp8;
    const Plan plan = resolve(workload, 8);
    const LayerKernels kernels(workload.model, plan, compute);
    return kernels.linear(m, n, k, {kernels.between_products()}).forward_cast.seconds;
  };
  const auto moved = [&](double bytes) {
    return compute.memory_bound(bytes, MemoryKernel::elementwise).seconds;
  };
  EXPECT_DOUBLE_EQ(cast("maxtext@2024-gpu"), moved(2 * n * k));
  EXPECT_DOUBLE_EQ(cast("megatron@2024"), moved(4 * m * k) + moved(4 * n * k));
}

// The axis data holds whole copies: no gathers. Pax combines all-reduces up to 51,200 bytes, so that a
// matrix has its own: head, four layers of four, the table; norms go with what follows.
TEST(Loop, WholeCopiesAreReducedMatrixByMatrix) {
  WorkloadSpec workload = small("pax@2023");
  workload.plan.zero = 0;
  const auto program = training_step(workload, a100(), 8);
  EXPECT_TRUE(sizes(program, Phase::parameter_sync).empty());
  const std::vector<double> sums = sizes(program, Phase::gradient_sync);
  EXPECT_EQ(sums.size(), 1 + 4 * 4 + 1u);
  EXPECT_EQ(sums.front(), 2 * kHead);
}

// Beside the reduced shards a TPU's pass holds one matrix' gradient in 16 bits: fc1's, 4 h^2 + 4 h with its
// biases. It is where the logits were, 4 bytes of each in 2025.
TEST(Loop, HoldsOneMatrixOfGradientsWhereNothingOverlaps) {
  WorkloadSpec workload = small("maxtext@2025");
  workload.model.vocab = 512;
  workload.model = complete(workload.model);
  const double shards = resolve(workload, 8).kept_gradient_bytes * total_parameters(workload.model) / 8;
  EXPECT_NEAR(memory_use(workload, a100(), 8).peak().gradients,
              shards + 2 * (4 * kH * kH + 4 * kH) - 4.0 * 512 * 2048, 1);
}

// Shards over 4 of 8 chips: each sum of shards, a quarter, is then summed over the two.
TEST(Loop, AxisDataSumsShards) {
  WorkloadSpec workload = small("maxtext");
  workload.plan.hsdp_shard = 4;
  const auto program = training_step(workload, a100(), 8);
  program::validate(program);
  double scattered = 0, summed = 0;
  for (const auto& op : program.classes[0].ops) {
    if (op.kind != OpKind::collective || op.phase != Phase::gradient_sync || op.bytes <= Bytes(4)) continue;
    (op.collective == CollectiveKind::all_reduce ? summed : scattered) +=
        static_cast<double>(op.bytes.value());
  }
  EXPECT_NEAR(summed, scattered / 4, 100);
}

// MaxText's "minimal" (checkpoint_dots_with_no_batch_dims) keeps a layer's input and the results of products
// with weights: of Llama-3 8B 4096 + (4096 + 2 x 1024) + 4096 + 2 x 14336 = 43,008 numbers of 2 bytes a
// token. "full" keeps 4,096.
TEST(Remat, MinimalKeepsProducts) {
  WorkloadSpec workload;
  workload.model = llama3_70b();
  workload.model.layers = 32, workload.model.hidden = 4096, workload.model.heads = 32;
  workload.model.ffn = 14336;
  workload.model = complete(workload.model);
  workload.framework = "maxtext";
  workload.plan.recompute = RecomputeSpec{RecomputeKind::selective, {}};
  const Plan plan = resolve(workload, 8);
  const auto kept = [&](RecomputeKind kind) { return layer_activation_bytes(workload.model, plan, kind); };
  EXPECT_DOUBLE_EQ(kept(RecomputeKind::selective), 2 * 8192 * 43008.0);
  EXPECT_DOUBLE_EQ(kept(RecomputeKind::full), 2 * 8192 * 4096.0);
  // "save_dot_except_mlp" drops the network's 2 x 14336; "..._with_context_..." keeps attention's answer,
  // 4096 numbers, and its 32 sums in fp32.
  workload.plan.recompute_modules = {"core_attn", "mlp"};
  EXPECT_DOUBLE_EQ(layer_activation_bytes(workload.model, resolve(workload, 8), RecomputeKind::selective),
                   2 * 8192 * 14336.0);
  workload.plan.recompute_modules = {"mlp"};
  EXPECT_DOUBLE_EQ(layer_activation_bytes(workload.model, resolve(workload, 8), RecomputeKind::selective),
                   2 * 8192 * (14336 + 4096.0) + 4 * 8192 * 32);
  // "save_qkv_proj" keeps the input, 4096 numbers, and 4096 + 2 x 1024.
  workload.plan.recompute_modules = {"core_attn", "out_proj", "mlp"};
  EXPECT_DOUBLE_EQ(layer_activation_bytes(workload.model, resolve(workload, 8), RecomputeKind::selective),
                   2 * 8192 * 10240.0);
  // No product with weights runs again: products of half the speed add nothing to what is added.
  const topology::Accelerator accelerator = h100();
  const auto again = [&](double efficiency) {
    ComputeSettings settings;
    settings.gemm_efficiency = efficiency;
    const ComputeModel compute(accelerator, settings);
    const auto time = [&](RecomputeKind kind) {
      double seconds = 0;
      const PiecePair layer = transformer_layer(workload.model, LayerKind::dense, plan, compute, kind);
      for (const Piece& piece : layer.backward.pieces()) seconds += piece.cost.seconds;
      return seconds;
    };
    return time(RecomputeKind::selective) - time(RecomputeKind::none);
  };
  EXPECT_GT(again(0.8), 0);
  EXPECT_NEAR(again(0.4), again(0.8), 1e-9);
}

// The network again: 2 x 4096 x 14336 weights of gate and up, 2 FLOPs a token each, at a hundredth of 989.4
// TFLOP/s so that little else counts. Megatron's checkpoint runs the second product too: 3 x.
TEST(Remat, NetworksRunAgainToTheirLastProductOrBefore) {
  const topology::Accelerator accelerator = h100();
  ComputeSettings settings;
  settings.gemm_efficiency = 0.01;
  const ComputeModel compute(accelerator, settings);
  for (const auto& [framework, matrices] : {std::pair{"maxtext", 2}, {"megatron", 3}}) {
    WorkloadSpec workload = llama3_8b(framework);
    workload.plan.recompute_modules = {"mlp"};
    const Plan plan = resolve(workload, 8);
    const auto time = [&](RecomputeKind kind) {
      double seconds = 0;
      const PiecePair layer = transformer_layer(workload.model, LayerKind::dense, plan, compute, kind);
      for (const Piece& piece : layer.backward.pieces()) seconds += piece.cost.seconds;
      return seconds;
    };
    const double expected = matrices * 4096.0 * 14336 * 2 * 8192 / (0.01 * 989.4e12);
    EXPECT_NEAR(time(RecomputeKind::selective) - time(RecomputeKind::none), expected, 0.02 * expected);
  }
}

// A loop stacks what its layers keep. Results of products are copied in, read and written in 16 bits: of a
// GPT layer queries, keys and values 3 h, the projection h and the first product of the network 4 h. What
// attention reads is copied out again. On a TPU products read and write slices.
TEST(Remat, WhatIsKeptOfProductsIsCopiedIntoTheLoopsStack) {
  const topology::Accelerator accelerator = a100();
  const ComputeModel compute(accelerator, {});
  const auto added = [&](const char* framework) {
    WorkloadSpec workload = small(framework);
    workload.plan.recompute = RecomputeSpec{RecomputeKind::selective, {}};
    workload.model = complete(workload.model);
    const auto layer = [&](const Plan& plan) {
      return transformer_layer(workload.model, LayerKind::dense, plan, compute, RecomputeKind::selective);
    };
    const auto seconds = [](const PieceList& list) {
      double sum = 0;
      for (const Piece& piece : list.pieces()) sum += piece.cost.seconds;
      return sum;
    };
    const Plan plan = resolve(workload, 8);
    Plan in_place = plan;
    in_place.copies_kept_products = false;
    const PiecePair with = layer(plan), without = layer(in_place);
    return std::pair(seconds(with.forward) - seconds(without.forward),
                     seconds(with.backward) - seconds(without.backward));
  };
  const auto copied = [&](double width, double kernels) {
    return compute.memory_bound(4 * 2048 * width * kH, MemoryKernel::elementwise, kernels).seconds;
  };
  const auto [in, out] = added("pax");
  EXPECT_NEAR(in, copied(3 + 1 + 4, 3), 1e-9);
  EXPECT_NEAR(out, copied(3, 1), 1e-9);
  EXPECT_EQ(added("maxtext"), std::pair(0.0, 0.0));
}

// The output projection again: 4096 x 4096 weights. Without the core before it and the network behind it
// there is nothing to gain, and Megatron has no such module.
TEST(Remat, TheOutputProjectionRunsAgainWithWhatIsAroundIt) {
  const topology::Accelerator accelerator = h100();
  ComputeSettings settings;
  settings.gemm_efficiency = 0.01;
  const ComputeModel compute(accelerator, settings);
  WorkloadSpec workload = llama3_8b("maxtext");
  const auto time = [&](std::vector<std::string> modules) {
    workload.plan.recompute_modules = std::move(modules);
    const Plan plan = resolve(workload, 8);
    const PiecePair layer =
        transformer_layer(workload.model, LayerKind::dense, plan, compute, RecomputeKind::selective);
    double seconds = 0;
    for (const Piece& piece : layer.backward.pieces()) seconds += piece.cost.seconds;
    return seconds;
  };
  const double expected = 4096.0 * 4096 * 2 * 8192 / (0.01 * 989.4e12);
  EXPECT_NEAR(time({"core_attn", "out_proj", "mlp"}) - time({"core_attn", "mlp"}), expected, 0.02 * expected);
  EXPECT_THROW((void)time({"out_proj", "mlp"}), ConfigError);
  EXPECT_THROW((void)time({"core_attn", "out_proj"}), ConfigError);
  workload.framework = "megatron";
  EXPECT_THROW((void)time({"core_attn", "out_proj", "mlp"}), ConfigError);
}

// One-hot rows are written, tokens x words, and multiplied by the table; backward the table's gradient is a
// product too.
TEST(LookUp, IsAProductInPax) {
  const topology::Accelerator accelerator = a100();
  const ComputeModel compute(accelerator, {});
  const auto times = [&](const char* framework) {
    WorkloadSpec workload = small(framework);
    workload.model = complete(workload.model);
    const PiecePair pair = embedding(workload.model, resolve(workload, 8), compute);
    return std::pair(pair.forward.pieces().front().cost.seconds, pair.backward.pieces().back().cost.seconds);
  };
  const double tokens = 2048, words = 51200;
  const auto [forward, backward] = times("pax");
  const auto [gathered, scattered] = times("maxtext");
  EXPECT_NEAR(forward - gathered,
              compute.gemm({tokens, kH, words}, Precision::bf16).seconds +
                  compute.memory_bound(2 * tokens * words, MemoryKernel::elementwise).seconds,
              1e-9);
  EXPECT_NEAR(backward - scattered, compute.gemm({words, kH, tokens}, Precision::bf16).seconds, 1e-9);
}

// Bytes a logit, forward and backward: 12 and 8 in fp32; three reads, then a read and a write of 2 in bf16.
TEST(Logits, AreSixteenBitsInMaxTextSince2025) {
  const topology::Accelerator accelerator = a100();
  const ComputeModel compute(accelerator, {});
  const auto time = [&](const char* framework) {
    WorkloadSpec workload = small(framework);
    workload.model = complete(workload.model);
    const PiecePair pair = head(workload.model, resolve(workload, 8), compute);
    double seconds = 0;
    for (const PieceList* list : {&pair.forward, &pair.backward})
      for (const Piece& piece : list->pieces()) seconds += piece.cost.seconds;
    return seconds;
  };
  const auto pass = [&](double bytes) {
    return compute.memory_bound(bytes * 2048 * 51200, MemoryKernel::elementwise).seconds;
  };
  EXPECT_NEAR(time("maxtext@2024") - time("maxtext@2025"), pass(12) + pass(8) - pass(6) - pass(4), 1e-9);
}

TEST(Jax, RefusesWhatItsProgramsDoNotHave) {
  WorkloadSpec workload = small("maxtext");
  workload.model = complete(workload.model);
  for (const int zero : {1, 2}) {
    workload.plan.zero = zero;
    EXPECT_THROW((void)resolve(workload, 8), ConfigError) << zero;
  }
  workload.plan.zero = 3;
  EXPECT_NO_THROW((void)resolve(workload, 8));
  workload.plan.pp = 2;
  EXPECT_THROW((void)resolve(workload, 8), ConfigError);
}
}  // namespace topsim::workloads::loops_test
