#include "workloads/model.hpp"

namespace topsim::workloads {

ModelSpec complete(ModelSpec model) {
  if (model.kv_heads == 0) model.kv_heads = model.heads;
  if (model.head_dim == 0 && model.heads > 0) model.head_dim = model.hidden / model.heads;
  if (model.ffn == 0) model.ffn = 4 * model.hidden;
  if (model.experts.count > 0 && model.experts.ffn == 0) model.experts.ffn = model.ffn;
  if (model.attention.kind == AttentionKind::mha && model.kv_heads != model.heads)
    model.attention.kind = AttentionKind::gqa;
  return model;
}

LayerParameters layer_parameters(const ModelSpec& model) {
  const double h = model.hidden, f = model.ffn, d = model.head_dim;
  const double bias = model.gated_ffn ? 0 : 1;
  LayerParameters parameters;
  const double qkv_width = (model.heads + 2.0 * model.kv_heads) * d;
  parameters.qkv = qkv_width * (h + bias);
  parameters.proj = model.heads * d * h + bias * h;
  const double fc1_width = model.gated_ffn ? 2 * f : f;
  parameters.fc1 = fc1_width * (h + bias);
  parameters.fc2 = f * h + bias * h;
  parameters.norms = 2 * h * (1 + bias);
  return parameters;
}

double embedding_parameters(const ModelSpec& model) {
  const double positions = model.gated_ffn ? 0 : model.sequence;
  return (static_cast<double>(model.vocab) + positions) * model.hidden;
}

double head_parameters(const ModelSpec& model) {
  return static_cast<double>(model.vocab) * model.hidden;
}

double total_parameters(const ModelSpec& model) {
  const double final_norm = model.hidden * (model.gated_ffn ? 1.0 : 2.0);
  return model.layers * layer_parameters(model).total() + embedding_parameters(model) + final_norm +
         (model.tied_embeddings ? 0.0 : head_parameters(model));
}

double model_flops_per_sequence(const ModelSpec& model, int sequence, bool causal_half) {
  const double s = sequence, h = model.hidden, d = model.head_dim;
  const double matrices = h * (model.heads + 2.0 * model.kv_heads) * d + model.heads * d * h +
                          (model.gated_ffn ? 3.0 : 2.0) * h * model.ffn;
  const double scores = (causal_half && model.attention.causal ? 0.5 : 1.0) * 4 * s * s * model.heads * d;
  const double forward = model.layers * (2 * s * matrices + scores) + 2 * s * h * model.vocab;
  return 3 * forward;
}

double inference_flops_per_request(const ModelSpec& model, int queries, int keys, bool causal_half) {
  const double h = model.hidden, v = model.vocab;
  // Scores of one token with itself, and what one token costs without them and without the head.
  const double pair = 4.0 * model.layers * model.heads * model.head_dim;
  const double token = model_flops_per_sequence(model, 1, false) / 3 - pair - 2 * h * v;
  const double pairs = static_cast<double>(queries) * keys *
                       (causal_half && model.attention.causal && queries > 1 ? 0.5 : 1.0);
  return queries * token + pairs * pair + 2 * h * v;
}
}  // namespace topsim::workloads
