// How tokens' rows reach their experts when all tokens are gathered, and how Megatron-Core 0.6 ordered them.
#include "workloads/layer/row_moves.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "tests/workloads/mixtures.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads::row_moves_test {
using namespace testing;
using namespace ::testing;
using program::CollectiveKind;

// An H100's fused kernels move 0.8 x 3.35 TB/s; picking numbers by an index runs at 619 GB/s (pytorch issue
// 151612).
constexpr double kBandwidth = 0.8 * 3.35e12, kIndexed = 619e9, kKernel = 2e-6;
// small_moe(1, 4): 512 tokens of each of four ranks visit 2 of 8 experts: 1024 rows of 1024 numbers on each
// rank.
constexpr double kTokens = 512, kAll = 4 * kTokens, kRows = 1024, kRowBytes = 1024 * 2;
constexpr char kEarly[] = "megatron@2024-core0.6";

WorkloadSpec mixture(const char* framework, TokenDispatcher dispatcher) {
  WorkloadSpec workload = small_moe(1, 4);
  workload.framework = framework;
  workload.plan.token_dispatcher = dispatcher;
  return workload;
}
Plan plan_of(WorkloadSpec workload) {
  workload.model = complete(workload.model);
  return resolve(workload, 8);
}
RowMoves moves_of(const char* framework, TokenDispatcher dispatcher) {
  const WorkloadSpec workload = mixture(framework, dispatcher);
  const ModelSpec model = complete(workload.model);
  const Plan plan = plan_of(workload);
  const topology::Accelerator accelerator = h100();
  const ComputeModel compute(accelerator, {{}, 1, true, false, false, 0, from_microseconds(2)});
  return row_moves(LayerKernels(model, plan, compute), {kTokens, 2 * kTokens, kAll, kRows, kRows, 2});
}
double plain(double rows, double kernels) {
  return rows * kRowBytes / kBandwidth + kernels * kKernel;
}
double indexed(double rows, double kernels) {
  return 2 * rows * kRowBytes / kIndexed + kernels * kKernel;  // read and written
}

// One kernel each, in both passes: all gathered tokens are read and the rows written, or the reverse. Where a
// token goes is gathered as a byte and an fp32 probability for each of 8 experts.
TEST(RowMoves, AllGatherPicksFromTheTokensOfAllRanks) {
  const RowMoves moves = moves_of("megatron", TokenDispatcher::allgather);
  EXPECT_EQ(moves.permuted.kernels, 0);
  EXPECT_EQ(moves.choices, 5 * 8 * kAll);
  EXPECT_NEAR(moves.map.seconds, 5 * 8 * kAll / kBandwidth + 2 * kKernel, 1e-12);
  EXPECT_EQ(moves.picked.kernels, 0);
  for (const KernelCost& cost : {moves.sorted, moves.summed, moves.summed_backward, moves.sorted_backward})
    EXPECT_NEAR(cost.seconds, plain(kAll + kRows, 1), 1e-12);
}

// Core 0.6. Forward: two gathers by index. Summing: zeros and their copy (3 passes of all rows), scatter by
// index, product with probabilities (2), zeros of all tokens and their copy (3), scatter_add by index.
// Backward: gather by index, the product's gradients (2, 3 and a sum of 1), gather by index; then zeros and
// scatter_add of the rows, and of all tokens.
TEST(RowMoves, Core06MovesNumberByNumber) {
  const RowMoves moves = moves_of(kEarly, TokenDispatcher::allgather);
  const double choices = (8 + 2) * 2 * kAll;  // two experts: 64-bit number and probability
  EXPECT_EQ(moves.choices, choices);
  EXPECT_NEAR(moves.map.seconds, 4 * choices / kBandwidth + 12 * kKernel, 1e-12);
  EXPECT_NEAR(moves.picked.seconds, indexed(kRows, 1) + 4 * choices / kBandwidth + 8 * kKernel, 1e-12);
  EXPECT_NEAR(moves.sorted.seconds, indexed(kRows, 1), 1e-12);
  EXPECT_NEAR(moves.summed.seconds, indexed(2 * kRows, 2) + plain(5 * kRows + 3 * kAll, 5), 1e-12);
  EXPECT_NEAR(moves.summed_backward.seconds, indexed(2 * kRows, 2) + plain(6 * kRows, 3), 1e-12);
  EXPECT_NEAR(moves.sorted_backward.seconds, indexed(2 * kRows, 2) + plain(kRows + kAll, 2), 1e-12);
}

// Its all-to-all dispatcher permutes 1024 rows by index_select and sorts them the same way.
TEST(RowMoves, Core06PermutesByIndexToo) {
  const RowMoves moves = moves_of(kEarly, TokenDispatcher::alltoall);
  EXPECT_NEAR(moves.permuted.seconds, indexed(kRows, 1), 1e-12);
  EXPECT_NEAR(moves.sorted.seconds, indexed(kRows, 1), 1e-12);
  EXPECT_EQ(moves.sorted.memory_seconds, 0);  // limited by indexing, not by memory bandwidth
}

// torchtitan's 1,024 rows of a rank in fp32, bytes a number: casts 6 and 6, product 8; backward casts 6 and
// 6, products 8 and 12, sum 4. Compiled they are part of other kernels, and Megatron's carry the
// probabilities.
TEST(RowMoves, EagerTorchtitanWeighsRowsInFp32) {
  const RowMoves moves = moves_of("fsdp@2025-eager", TokenDispatcher::alltoall);
  EXPECT_NEAR(moves.weighted.seconds, 20 * kRows * 1024 / kBandwidth + 3 * kKernel, 1e-12);
  EXPECT_NEAR(moves.weighted_backward.seconds, 36 * kRows * 1024 / kBandwidth + 5 * kKernel, 1e-12);
  for (const char* fused : {"fsdp@2025-compile", "megatron"})
    EXPECT_EQ(moves_of(fused, TokenDispatcher::alltoall).weighted.kernels, 0) << fused;
}

// Two experts of 512 rows each: one kernel, or one each and then a third of an operator more. The library of
// Megatron-Core 0.6 has a kernel for all on an A100 alone, torch._grouped_mm from a Hopper on.
TEST(RowMoves, ExpertsAreMultipliedAsTheFrameworkAndTheChipAllow) {
  const auto kernels = [](const char* framework, const topology::Accelerator& accelerator) {
    const Plan plan = plan_of(mixture(framework, TokenDispatcher::alltoall));
    const ComputeModel compute(accelerator, {});
    const KernelCost together = product_of_experts(plan, compute, {512, 2048, 1024, 2});
    const KernelCost one = compute.gemm({512, 2048, 1024}, plan.gemm);
    EXPECT_LT(together.seconds, 2 * one.seconds * 1.0001) << framework;
    if (together.kernels > 1) {
      EXPECT_NEAR(together.seconds, 2 * one.seconds, 1e-12) << framework;
    }
    return together.kernels;
  };
  constexpr double kApart = 1 + 1.0 / 3;
  EXPECT_EQ(kernels("megatron", h100()), kApart);
  EXPECT_EQ(kernels(kEarly, h100()), kApart);
  EXPECT_EQ(kernels(kEarly, a100()), 1);
  EXPECT_EQ(kernels("fsdp@2025-eager", h100()), 1);
  EXPECT_EQ(kernels("fsdp@2025-eager", a100()), kApart);
  EXPECT_EQ(kernels("fsdp@2025-automodel", h100()), kApart);
  EXPECT_EQ(kernels("fsdp@2024-compile", h100()), kApart);
}

// 4 of 8 ranks share the experts. Forward tokens and choices of all four are gathered and the answers' sums
// scattered; backward the same for their gradients, without choices: 5 collectives. With two parts per expert
// tokens are gathered over both groups in turn.
TEST(RowMoves, AllRanksSendAllTokens) {
  const auto program = training_step(mixture("megatron", TokenDispatcher::allgather), h100(), 8);
  const auto ops = collectives(program, program::Dimension::expert);
  ASSERT_EQ(ops.size(), 5u * 4 * 2);  // 4 layers, 2 micro-batches
  EXPECT_EQ(ops[0].collective, CollectiveKind::all_gather);
  EXPECT_EQ(ops[0].bytes.value(), kAll * kRowBytes);
  EXPECT_EQ(ops[1].bytes.value(), 5 * 8 * kAll);
  EXPECT_EQ(ops[2].collective, CollectiveKind::reduce_scatter);
  EXPECT_EQ(ops[2].bytes.value(), kAll * kRowBytes);

  WorkloadSpec divided = small_moe(2, 2, 2);
  divided.plan.token_dispatcher = TokenDispatcher::allgather;
  const auto both = training_step(divided, h100(), 8);
  // A rank has 256 tokens, 512 with the other part's, 1024 with the other expert rank's.
  EXPECT_EQ(collectives(both, program::Dimension::expert)[0].bytes.value(), 1024 * kRowBytes);
}

// The host reads which tokens come before it picks their rows; with 0.6 it reads twice.
TEST(RowMoves, HostWaitsBeforeItPicksRows) {
  const auto waits = [](const char* framework) {
    const auto program = training_step(mixture(framework, TokenDispatcher::allgather), h100(), 8);
    const auto& ops = program.classes[0].ops;
    return std::count_if(ops.begin(), ops.end(), [&](const auto& op) {
      return op.host_sync && program.labels[op.label].find("dispatch") == 0;
    });
  };
  EXPECT_EQ(waits("megatron"), 4 * 2);
  EXPECT_EQ(waits(kEarly), 2 * 4 * 2);
}

// Core 0.6 against a later release. silu is separate: 2 more passes of 1024 x 2048 numbers in one kernel
// forward, 8 in three backward. Gradients of 2 experts' 3 x 2048 x 1024 weights are written in 16 bits and
// then added to fp32 ones, 2 + 4 + 4 bytes, in two kernels. Each of these six is 0.9 us from the next. Rows
// are sorted by index.
TEST(RowMoves, Core06AddsGradientsApart) {
  const auto seconds_of = [](const char* framework) {
    WorkloadSpec workload = mixture(framework, TokenDispatcher::alltoall);
    workload.sequence = 65536;  // products bound by arithmetic
    const auto program = training_step(workload, h100(), 8);
    double sum = 0;
    for (const auto& op : program.classes[0].ops)
      if (op.kind == program::OpKind::compute && program.labels[op.label].find("experts") == 0)
        sum += seconds(op.duration);
    return sum / (4 * 2);
  };
  const double longer = 65536 / kTokens, rows = longer * kRows;
  const double sorts = 4 * (indexed(rows, 1) - plain(2 * rows, 1));
  const double activation = 10 * rows * 2048 * 2 / kBandwidth + 4 * kKernel;
  const double gradients = 2 * 3 * 2048 * 1024 * 10 / kBandwidth + 2 * kKernel;
  EXPECT_NEAR(seconds_of(kEarly) - seconds_of("megatron@2024"), sorts + activation + gradients + 6 * 0.9e-6,
              1e-9);
}

// Core 0.6 also keeps, for each row, what the probabilities multiply (1024) and silu's result (2048).
TEST(RowMoves, Core06KeepsRowsForTheirProbabilities) {
  const auto kept = [](const char* framework) {
    const WorkloadSpec workload = mixture(framework, TokenDispatcher::allgather);
    return layer_activation_bytes(complete(workload.model), plan_of(workload), RecomputeKind::none,
                                  LayerKind::experts);
  };
  EXPECT_EQ(kept(kEarly) - kept("megatron@2024"), kRows * 2 * (1024 + 2048));
}

TEST(RowMoves, AGatherIsNotOverlapped) {
  WorkloadSpec workload = mixture("megatron", TokenDispatcher::allgather);
  workload.plan.overlap_expert_exchange = true;
  EXPECT_THROW((void)plan_of(workload), ConfigError);
}
}  // namespace topsim::workloads::row_moves_test
