// Sequence parallelism of PyTorch's DTensor: a rank holds a stretch of every sequence of the batch, and keeps
// what it gathered.
#include <gtest/gtest.h>

#include "tests/workloads/fixtures.hpp"
#include "workloads/layer/pieces.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"
#include "workloads/plan.hpp"

namespace topsim::workloads::sharded_rows_test {
using namespace testing;

constexpr double kBandwidth = 0.8 * 3.35e12;  // bytes per second of a fused kernel on an H100
// Llama-3 70B, one sequence of 8192 tokens, tensor 8: the whole activation has 8192 x 8192 numbers of 2
// bytes.
constexpr double kNumbers = 8192.0 * 8192, kWhole = 2 * kNumbers;

WorkloadSpec workload(const char* framework, TensorOverlap overlap = TensorOverlap::none) {
  WorkloadSpec result;
  result.model = complete(llama3_70b());
  result.framework = framework;
  result.plan.tp = 8, result.plan.global_batch = 8, result.plan.tp_overlap = overlap;
  return result;
}
struct Sums {
  double seconds = 0, gathers = 0, scatters = 0;
};
Sums sums_of(const PieceList& list) {
  Sums sums;
  for (const Piece& piece : list.pieces()) {
    sums.seconds += piece.cost.seconds;
    sums.gathers += piece.collective && piece.kind == program::CollectiveKind::all_gather ? piece.bytes : 0;
    sums.scatters +=
        piece.collective && piece.kind == program::CollectiveKind::reduce_scatter ? piece.bytes : 0;
  }
  return sums;
}
PiecePair layer(const WorkloadSpec& spec, RecomputeKind recompute = RecomputeKind::none) {
  static const topology::Accelerator accelerator = h100();
  const Plan plan = resolve(spec, 8);
  return transformer_layer(spec.model, LayerKind::dense, plan, ComputeModel(accelerator, {}), recompute);
}

// PyTorch copies (reads and writes) what each of two gathers and two reduce-scatters moves, forward and
// backward, since the rows of a rank are not contiguous. Asynchronous tensor parallelism needs no copies, nor
// does Megatron, which cuts the first dimension.
TEST(ShardedRows, PyTorchCopiesWhatItGathersAndScatters) {
  for (const char* framework : {"fsdp@2024-compile", "fsdp@2023"}) {
    const PiecePair copied = layer(workload(framework));
    const PiecePair direct = layer(workload(framework, TensorOverlap::async));
    EXPECT_NEAR(sums_of(copied.forward).seconds - sums_of(direct.forward).seconds,
                4 * 2 * kWhole / kBandwidth, 1e-9);
    EXPECT_NEAR(sums_of(copied.backward).seconds - sums_of(direct.backward).seconds,
                4 * 2 * kWhole / kBandwidth, 1e-9);
  }
  const PiecePair exposed = layer(workload("megatron")),
                  hidden = layer(workload("megatron", TensorOverlap::async));
  EXPECT_DOUBLE_EQ(sums_of(exposed.forward).seconds, sums_of(hidden.forward).seconds);
}

// Backward the gradients of both row-parallel products are gathered and those of both column-parallel inputs
// scattered. Megatron kept only its rows of the inputs and gathers both again for the weight gradients. So do
// torchtitan's selective checkpoints, which keep scattered results only.
TEST(ShardedRows, InputsAreGatheredAgainWhereOnlyRowsWereKept) {
  const auto backward = [](const char* framework, RecomputeKind recompute) {
    return sums_of(layer(workload(framework), recompute).backward);
  };
  EXPECT_DOUBLE_EQ(backward("fsdp@2024-compile", RecomputeKind::none).gathers, 2 * kWhole);
  EXPECT_DOUBLE_EQ(backward("fsdp@2024-compile", RecomputeKind::none).scatters, 2 * kWhole);
  EXPECT_DOUBLE_EQ(backward("megatron", RecomputeKind::none).gathers, 4 * kWhole);
  // Full recompute repeats the forward pass's two gathers and the first of its scatters; it ends before the
  // last product, whose result no gradient needs. Megatron's repeats both scatters.
  EXPECT_DOUBLE_EQ(backward("fsdp@2024-compile", RecomputeKind::full).gathers, 4 * kWhole);
  EXPECT_DOUBLE_EQ(backward("fsdp@2024-compile", RecomputeKind::full).scatters, 3 * kWhole);
  EXPECT_DOUBLE_EQ(backward("megatron", RecomputeKind::full).scatters, 4 * kWhole);
  WorkloadSpec selective = workload("fsdp@2024-compile");
  selective.plan.recompute = RecomputeSpec{RecomputeKind::selective, {}};
  EXPECT_DOUBLE_EQ(sums_of(layer(selective, RecomputeKind::selective).backward).gathers, 4 * kWhole);
}

// torchao keeps inputs of 8-bit products as it gathered them, 1 byte per number instead of 2: 2 x 8192 bytes
// less per token.
TEST(ShardedRows, InputsGatheredInEightBitsAreKeptSo) {
  WorkloadSpec spec = workload("fsdp@2024-compile");
  spec.precision.gemm = Precision::fp8;
  const Plan narrow = resolve(spec, 8);
  Plan wide = narrow;
  wide.gathers_narrow = false;
  EXPECT_NEAR(layer_activation_bytes(spec.model, wide, RecomputeKind::none) -
                  layer_activation_bytes(spec.model, narrow, RecomputeKind::none),
              2 * kNumbers, 1);
}

// Inputs of QKV and FC1, 2 x 8192 numbers per token: PyTorch keeps them whole, a Megatron rank an eighth.
TEST(ShardedRows, GatheredInputsAreKept) {
  const auto kept = [](const char* framework) {
    const WorkloadSpec spec = workload(framework);
    return layer_activation_bytes(spec.model, resolve(spec, 8), RecomputeKind::none);
  };
  EXPECT_NEAR(kept("fsdp@2024-compile") - kept("megatron"), 2 * kWhole * 7 / 8, 1);
}
}  // namespace topsim::workloads::sharded_rows_test
