// Ring attention beside its attention kernels: copies, rescaling and sums while keys and values go round.
#include <gtest/gtest.h>

#include "tests/workloads/fixtures.hpp"
#include "workloads/layer/pieces.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads::ring_test {
using namespace testing;

struct Sums {
  double seconds = 0, sent = 0;
};
Sums sums_of(const PieceList& list) {
  Sums sums;
  for (const Piece& piece : list.pieces()) {
    sums.seconds += piece.cost.seconds;
    if (piece.collective && piece.group == Group::context) sums.sent += piece.bytes;
  }
  return sums;
}

// A layer of Llama-3 70B on 8 tensor ranks, sequences of 8,192 tokens.
PiecePair layer(const std::string& framework, ContextKind kind, int cp, int tp = 8) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.plan.tp = tp;
  workload.framework = framework;
  workload.plan.cp = cp, workload.plan.cp_kind = kind;
  workload.plan.pp = 1, workload.plan.dp = 64 / (tp * cp), workload.plan.recompute = RecomputeSpec{};
  workload.model = complete(workload.model);
  const Plan plan = resolve(workload, 64);
  ComputeSettings settings;
  settings.fused = plan.fused_kernels;
  static const topology::Accelerator accelerator = h100();
  return transformer_layer(workload.model, LayerKind::dense, plan, ComputeModel(accelerator, settings),
                           RecomputeKind::none);
}

// The ring is compared with one gather of all keys and values, which has the same attention kernels and no
// such passes. On a rank the answer has A = 8192/cp tokens x 8 heads x 128 x 2 bytes; keys and values of its
// one head together K = A / 4.
constexpr double kFused = 0.8 * 3.35e12;  // bytes per second of a fused kernel

// What the ring's attention kernels take beyond the gathered one: a block of own keys under the mask and cp -
// 1 blocks of others' without it, 8192 / cp / 2 keys of each.
double split_into_blocks(int cp, AttentionKernel kernel, bool forward) {
  static const topology::Accelerator accelerator = h100();
  const ComputeModel compute(accelerator, {});
  const auto seconds = [&](double keys, bool causal) {
    const AttentionShape shape{1, 8, 1, 8192.0 / cp, keys, 128, 128, causal};
    return (forward ? compute.attention_forward(shape, kernel, Precision::bf16)
                    : compute.attention_backward(shape, kernel, Precision::bf16))
        .seconds;
  };
  return seconds(8192.0 / cp, true) + (cp - 1) * seconds(8192.0 / cp / 2, false) - seconds(8192, true);
}

// Passes counted in layer/attention.cpp. Forward: 2 A + 2 K, and 3 A + K for each of cp - 1 blocks. Backward:
// 2 A + 6 K, and 4.5 A + 5 K.
TEST(Ring, TransformerEngineRescalesAndAddsIn16Bits) {
  for (const int cp : {2, 4}) {
    const PiecePair ring = layer("megatron", ContextKind::ring, cp);
    const PiecePair gathered = layer("megatron", ContextKind::all_gather, cp);
    const double a = 8192.0 / cp * 8 * 128 * 2, k = a / 4, later = cp - 1;
    EXPECT_NEAR(
        sums_of(ring.forward).seconds - sums_of(gathered.forward).seconds,
        (2 * a + 2 * k + later * (3 * a + k)) / kFused + split_into_blocks(cp, AttentionKernel::flash, true),
        1e-12)
        << cp;
    EXPECT_NEAR(sums_of(ring.backward).seconds - sums_of(gathered.backward).seconds,
                (2 * a + 6 * k + later * (4.5 * a + 5 * k)) / kFused +
                    split_into_blocks(cp, AttentionKernel::flash, false),
                1e-12)
        << cp;
    EXPECT_NEAR(sums_of(ring.forward).sent, later * k, 1);
    EXPECT_NEAR(sums_of(ring.backward).sent, later * 2 * k, 1);
  }
}

// Two tensor ranks have 32 heads each, 4 of them of keys and values. After its exchange a rank of four has 8
// heads, one of keys and values, and all queries; where keys are gathered, all heads of a quarter of the
// queries. Nothing else differs.
TEST(Ring, UlyssesComputesAPartOfTheHeads) {
  const PiecePair ulysses = layer("megatron", ContextKind::ulysses, 4, 2);
  const PiecePair gathered = layer("megatron", ContextKind::all_gather, 4, 2);
  const topology::Accelerator accelerator = h100();
  const ComputeModel compute(accelerator, {});
  const AttentionShape heads{1, 8, 1, 8192, 8192, 128, 128, true},
      queries{1, 32, 4, 2048, 8192, 128, 128, true};
  const auto forward = [&](const AttentionShape& shape) {
    return compute.attention_forward(shape, AttentionKernel::flash, Precision::bf16).seconds;
  };
  const auto backward = [&](const AttentionShape& shape) {
    return compute.attention_backward(shape, AttentionKernel::flash, Precision::bf16).seconds;
  };
  EXPECT_NEAR(sums_of(ulysses.forward).seconds - sums_of(gathered.forward).seconds,
              forward(heads) - forward(queries), 1e-12);
  EXPECT_NEAR(sums_of(ulysses.backward).seconds - sums_of(gathered.backward).seconds,
              backward(heads) - backward(queries), 1e-12);
}

// PyTorch repeats the key-value head for all 8 heads, so K = 2 A, and adds in fp32. Passes forward 6 A, and
// 19 A + 2 K per block; backward 10 A + 14 K, and 6.5 A + 12.5 K. Sent are keys and values in 16 bits and,
// backward, their gradients in fp32 after each of two blocks.
TEST(Ring, PyTorchMergesInFp32) {
  const PiecePair ring = layer("fsdp@2024-compile", ContextKind::ring, 2);
  const PiecePair gathered = layer("fsdp@2024-compile", ContextKind::all_gather, 2);
  const double a = 8192.0 / 2 * 8 * 128 * 2, k = 2 * a;
  EXPECT_NEAR(sums_of(ring.forward).seconds - sums_of(gathered.forward).seconds,
              (6 * a + 19 * a + 2 * k) / kFused + split_into_blocks(2, AttentionKernel::flash2, true), 1e-12);
  EXPECT_NEAR(
      sums_of(ring.backward).seconds - sums_of(gathered.backward).seconds,
      (10 * a + 14 * k + 6.5 * a + 12.5 * k) / kFused + split_into_blocks(2, AttentionKernel::flash2, false),
      1e-12);
  EXPECT_NEAR(sums_of(ring.forward).sent, 2 * k, 1);
  EXPECT_NEAR(sums_of(ring.backward).sent, 2 * k + 2 * 2 * k, 1);
}
}  // namespace topsim::workloads::ring_test
