// Multi-head latent attention: its parameters, what tensor ranks gather, and its flops.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/workloads/mixtures.hpp"
#include "tests/workloads/replay.hpp"
#include "workloads/model.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::latent_attention_test {
using namespace testing;
using program::CollectiveKind;
using program::Dimension;

// DeepSeek-V3's attention (technical report, 2.1.1): 7168 x 1536 + 1536 x 128 x 192 queries, 7168 x 576
// + 512 x 128 x 256 keys and values, 128 x 128 x 7168 output, norms of 1536 and 512.
TEST(LatentAttention, ParametersAreTheReports) {
  ModelSpec model;
  model.hidden = 7168, model.heads = 128, model.gated_ffn = true;
  model.attention = {AttentionKind::mla, {}, true, 1536, 512, 128, 64, 128};
  const LayerParameters layer = layer_parameters(complete(model));
  EXPECT_DOUBLE_EQ(layer.qkv + layer.latent + layer.proj,
                   7168.0 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168 + 2048);
}

// With sequence parallelism ranks gather the compressed tokens, 512 x (384 + 128 + 32) x 2 B, not the hidden
// ones, 512 x 1024 x 2 B.
TEST(LatentAttention, TensorRanksGatherTheCompressedTokens) {
  const auto program = training_step(small_deepseek(2, 4), h100(), 8);
  const auto ops = collectives(program, Dimension::tensor);
  const auto of_size = [&](std::int64_t bytes) {
    return std::count_if(ops.begin(), ops.end(), [&](const auto& op) {
      return op.bytes == Bytes(bytes) && op.collective == CollectiveKind::all_gather;
    });
  };
  EXPECT_EQ(of_size(512 * 544 * 2), 2 * 4 * 2);  // forward and again backward, 4 layers, 2 micro-batches
}

// Keys and queries have 64 + 32 = 96 numbers, values 64; FLOPs of the scores count both. Causal attention has
// half of them.
TEST(LatentAttention, ScoresCountBothWidths) {
  const WorkloadSpec workload = small_deepseek(1, 8);
  const ModelSpec model = complete(workload.model);
  const double causal = model_flops_per_sequence(model, 512, true),
               full = model_flops_per_sequence(model, 512, false);
  EXPECT_DOUBLE_EQ(full - causal, 3.0 * 4 * 512 * 512 * 16 * (96 + 64));
}
}  // namespace topsim::workloads::latent_attention_test
