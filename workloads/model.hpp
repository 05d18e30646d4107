// Shapes of transformers: fills in what a ModelSpec leaves out, and counts the parameters of each part.
#pragma once

#include <cstdint>

#include "workloads/spec.hpp"

namespace topsim::workloads {

// Replaces zeros by what they stand for (kv_heads, head_dim, ffn, expert width); detects gqa from kv_heads.
[[nodiscard]] ModelSpec complete(ModelSpec model);
// The model of the workload; learned positions reach as far as its sequence.
[[nodiscard]] ModelSpec complete_model(const WorkloadSpec& workload);

[[nodiscard]] inline Positions positions_of(const ModelSpec& model) {
  return model.positions.value_or(model.gated_ffn ? Positions::rotary : Positions::learned);
}
[[nodiscard]] inline bool has_biases(const ModelSpec& model) {
  return model.biases.value_or(!model.gated_ffn);
}

// Attention and feed-forward network read the result of the same norm.
[[nodiscard]] inline bool shares_norm(const ModelSpec& model) {
  return model.parallel_residual && model.shared_norm;
}
[[nodiscard]] inline double norms_of_layer(const ModelSpec& model) {
  return shares_norm(model) ? 1 : 2;
}

// What a layer has after its attention.
enum class LayerKind : std::uint8_t { dense, experts };
[[nodiscard]] LayerKind kind_of(const ModelSpec& model, int layer);
[[nodiscard]] int count_of(const ModelSpec& model, LayerKind kind);

// Widths of one attention head. Latent attention: queries and keys have a rotary part beside the plain one.
[[nodiscard]] double key_width(const ModelSpec& model);
[[nodiscard]] double value_width(const ModelSpec& model);

// Of `count` layers from `first` on, those that see all keys: with a sliding window, the last of every
// full_every layers (transformers, layer_types of Gemma 3 and gpt-oss). And their share of all layers.
[[nodiscard]] int full_attention_layers(const ModelSpec& model, int first, int count);
[[nodiscard]] double full_attention_share(const ModelSpec& model);
// Pairs of a query and a key in one head of a sequence, mean over the layers. causal_half: as below.
[[nodiscard]] double attended_pairs(const ModelSpec& model, double sequence, bool causal_half);

// Parameters of one layer, all ranks together. Matrices are split over tp, with them the biases of their
// columns; biases of a row-parallel product's sum are whole on every tensor rank, as norms are
// (Megatron-Core, tensor_parallel/layers.py: RowParallelLinear, bias of output_size). Norms of GPT shapes (no
// gated FFN) have biases, those of Llama shapes none.
struct LayerParameters {
  double qkv = 0, proj = 0;
  double latent = 0;                      // latent attention: down projections, whole on every tensor rank
  double fc1 = 0, fc2 = 0;                // the dense feed-forward network, or the shared experts
  double proj_bias = 0, fc2_bias = 0;     // of their sums, whole on every tensor rank
  double router = 0;                      // whole on every tensor rank
  double expert_fc1 = 0, expert_fc2 = 0;  // of all routed experts; split over ep and etp
  double norms = 0;                       // whole on every tensor rank
  [[nodiscard]] double split() const { return qkv + proj + fc1 + fc2; }  // over tp
  [[nodiscard]] double whole() const { return latent + router + norms + proj_bias + fc2_bias; }
  [[nodiscard]] double routed() const { return expert_fc1 + expert_fc2; }
  [[nodiscard]] double total() const { return split() + whole() + routed(); }
};
[[nodiscard]] LayerParameters layer_parameters(const ModelSpec& model, LayerKind kind = LayerKind::dense);

[[nodiscard]] double embedding_parameters(const ModelSpec& model);  // words and learned positions
// Of one of `tp` ranks: words are split, learned positions are whole (Megatron-Core,
// models/common/embeddings/language_model_embedding.py: torch.nn.Embedding).
[[nodiscard]] double embedding_parameters(const ModelSpec& model, int tp);
[[nodiscard]] double head_parameters(const ModelSpec& model);        // LM head matrix, tied or not
[[nodiscard]] double final_norm_parameters(const ModelSpec& model);  // before it; whole on every tensor rank
// Tied weights counted once, multi-token prediction left out, as publishers of models count.
[[nodiscard]] double total_parameters(const ModelSpec& model);
// Those that one token uses: of the routed experts it visits top_k.
[[nodiscard]] double active_parameters(const ModelSpec& model);
// Of one module of multi-token prediction beside its layer, on one of `tp` ranks: the projection, and its
// norms, which are whole.
[[nodiscard]] double prediction_parameters(const ModelSpec& model, int tp);

// Model FLOPs of one sequence through forward and backward: 2 per multiply-add, backward twice the forward,
// recompute not counted. For GPT shapes with the full score matrix this is
//   72 s L h^2 (1 + s / (6 h) + V / (12 h L))                      Narayanan et al., SC'21, eq. 3 (x 3/4)
// Of routed experts, the top_k that a token visits. causal_half: attention scores above the diagonal are not
// counted. predictions: tokens that the head sees; 0: all.
[[nodiscard]] double model_flops_per_sequence(const ModelSpec& model, int sequence, bool causal_half,
                                              double predictions = 0);
// FLOPs of one request's pass over `queries` tokens (a prompt, or one token with a cache), with the LM head
// only for its last token.
[[nodiscard]] double inference_flops_per_request(const ModelSpec& model, int queries, int keys,
                                                 bool causal_half);
}  // namespace topsim::workloads
