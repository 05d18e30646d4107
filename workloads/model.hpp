// Shapes of transformers: what a ModelSpec leaves out filled in, and how many parameters each part has.
#pragma once

#include <cstdint>

#include "workloads/spec.hpp"

namespace topsim::workloads {

// Zeros replaced by what they stand for (kv_heads, head_dim, ffn, expert width), gqa told from kv_heads.
[[nodiscard]] ModelSpec complete(ModelSpec model);

// Parameters of one layer, all tensor ranks together. Matrices are split over tp; `norms` and biases of
// row-parallel layers are replicated, which only matters below 0.1 % and is counted as split.
// GPT shapes (no gated FFN) carry biases and learned positions, Llama shapes do not.
struct LayerParameters {
  double qkv = 0, proj = 0, fc1 = 0, fc2 = 0;  // matrices and biases
  double norms = 0;
  [[nodiscard]] double attention() const { return qkv + proj; }
  [[nodiscard]] double total() const { return qkv + proj + fc1 + fc2 + norms; }
};
[[nodiscard]] LayerParameters layer_parameters(const ModelSpec& model);

[[nodiscard]] double embedding_parameters(const ModelSpec& model);  // words and learned positions
[[nodiscard]] double head_parameters(const ModelSpec& model);       // LM head matrix, tied or not
[[nodiscard]] double total_parameters(const ModelSpec& model);      // tied weights counted once

// Model FLOPs of one sequence through forward and backward: 2 per multiply-add, backward twice the forward,
// recompute not counted. For GPT shapes with the full score matrix this is
//   72 s L h^2 (1 + s / (6 h) + V / (12 h L))                      Narayanan et al., SC'21, eq. 3 (x 3/4)
// causal_half: attention scores above the diagonal are not counted.
[[nodiscard]] double model_flops_per_sequence(const ModelSpec& model, int sequence, bool causal_half);
// Of one request's pass over `queries` tokens (a prompt, or one that attends to a cache), the LM head for its
// last token alone.
[[nodiscard]] double inference_flops_per_request(const ModelSpec& model, int queries, int keys,
                                                 bool causal_half);
}  // namespace topsim::workloads
