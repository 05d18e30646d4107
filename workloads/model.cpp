#include "workloads/model.hpp"

#include <algorithm>

#include "workloads/framework.hpp"

namespace topsim::workloads {

ModelSpec complete(ModelSpec model) {
  if (model.kv_heads == 0) model.kv_heads = model.heads;
  if (model.head_dim == 0 && model.heads > 0 && model.hidden % model.heads == 0)
    model.head_dim = model.hidden / model.heads;
  if (model.ffn == 0) model.ffn = 4 * model.hidden;
  if (model.experts.count > 0 && model.experts.ffn == 0) model.experts.ffn = model.ffn;
  if (model.attention.kind.value_or(AttentionKind::mha) == AttentionKind::mha)
    model.attention.kind = model.kv_heads != model.heads ? AttentionKind::gqa : AttentionKind::mha;
  return model;
}

ModelSpec complete_model(const WorkloadSpec& workload) {
  ModelSpec model = complete(workload.model);
  if (!model.prediction_layers && model.published_predictions > 0 && workload.task == Task::pretrain &&
      framework_of(workload).trains_predictions)
    model.prediction_layers = model.published_predictions;
  model.sequence = std::max(model.sequence, workload.sequence.value_or(0));
  return model;
}

LayerKind kind_of(const ModelSpec& model, int layer) {
  const bool experts =
      model.experts.count > 0 && layer >= model.dense_layers && (layer + 1) % model.experts.every == 0;
  return experts ? LayerKind::experts : LayerKind::dense;
}

int count_of(const ModelSpec& model, LayerKind kind) {
  const int every = model.experts.every, first = std::min(model.dense_layers, model.layers);
  const int experts = model.experts.count > 0 ? model.layers / every - first / every : 0;
  return kind == LayerKind::experts ? experts : model.layers - experts;
}

double key_width(const ModelSpec& model) {
  const AttentionSpec& a = model.attention;
  return a.kind == AttentionKind::mla ? a.qk_nope_head_dim + a.qk_rope_head_dim : model.head_dim;
}

double value_width(const ModelSpec& model) {
  return model.attention.kind == AttentionKind::mla ? model.attention.v_head_dim : model.head_dim;
}

int full_attention_layers(const ModelSpec& model, int first, int count) {
  const int every = model.attention.full_every;
  if (model.attention.window <= 0) return count;
  return every > 0 ? (first + count) / every - first / every : 0;
}

double full_attention_share(const ModelSpec& model) {
  const int layers = std::max(1, model.layers);
  return static_cast<double>(full_attention_layers(model, 0, layers)) / layers;
}

double attended_pairs(const ModelSpec& model, double sequence, bool causal_half) {
  const bool half = causal_half && model.attention.causal;
  const double all = sequence * sequence * (half ? 0.5 : 1);
  const double share = full_attention_share(model);
  const double width = model.attention.window;
  const double window = std::min(model.attention.causal ? width : width / 2, sequence);
  const double side = sequence * window * (half || !model.attention.causal ? 1 - window / (2 * sequence) : 1);
  const double seen = (model.attention.causal ? 1 : 2) * side;
  return share * all + (1 - share) * seen;
}

namespace {

void add_attention(const ModelSpec& model, double bias, LayerParameters& parameters) {
  const double h = model.hidden;
  const AttentionSpec& a = model.attention;
  parameters.proj = model.heads * value_width(model) * h;
  parameters.proj_bias = bias * h;
  if (a.kind != AttentionKind::mla) {
    parameters.qkv = (model.heads + 2.0 * model.kv_heads) * model.head_dim * (h + bias);
    return;
  }
  // Keys and values come from kv_lora_rank numbers per token, the rotary key from the same projection;
  // queries are compressed as well if q_lora_rank is given. A norm is between the two projections.
  const double queries = model.heads * key_width(model);
  parameters.latent = h * (a.kv_lora_rank + a.qk_rope_head_dim) + a.kv_lora_rank;
  parameters.qkv = a.kv_lora_rank * static_cast<double>(model.heads) * (a.qk_nope_head_dim + a.v_head_dim);
  if (a.q_lora_rank > 0) {
    parameters.latent += (h + 1) * a.q_lora_rank;
    parameters.qkv += a.q_lora_rank * queries;
  } else {
    parameters.qkv += h * queries;
  }
}
}  // namespace

LayerParameters layer_parameters(const ModelSpec& model, LayerKind kind) {
  const double h = model.hidden;
  const double bias = has_biases(model) ? 1 : 0;
  const double gates = model.gated_ffn ? 2 : 1;
  LayerParameters parameters;
  add_attention(model, bias, parameters);
  const ExpertSpec& experts = model.experts;
  const double f = kind == LayerKind::dense ? model.ffn : static_cast<double>(experts.shared) * experts.ffn;
  if (f > 0) {
    parameters.fc1 = gates * f * (h + bias);
    parameters.fc2 = f * h;
    parameters.fc2_bias = bias * h;
  }
  if (kind == LayerKind::experts) {
    parameters.router = h * experts.count;
    parameters.expert_fc1 = experts.count * gates * experts.ffn * (h + bias);
    parameters.expert_fc2 = experts.count * (experts.ffn * h + bias * h);
  }
  parameters.norms = norms_of_layer(model) * h * (model.gated_ffn ? 1 : 2);
  return parameters;
}

double embedding_parameters(const ModelSpec& model) {
  return embedding_parameters(model, 1);
}

double embedding_parameters(const ModelSpec& model, int tp) {
  const double positions = positions_of(model) == Positions::learned ? model.sequence : 0;
  return (static_cast<double>(model.vocab) / tp + positions) * model.hidden;
}

double head_parameters(const ModelSpec& model) {
  return static_cast<double>(model.vocab) * model.hidden;
}

double final_norm_parameters(const ModelSpec& model) {
  return model.hidden * (model.gated_ffn ? 1.0 : 2.0);
}

double total_parameters(const ModelSpec& model) {
  double layers = 0;
  for (const LayerKind kind : {LayerKind::dense, LayerKind::experts})
    layers += count_of(model, kind) * layer_parameters(model, kind).total();
  return layers + embedding_parameters(model) + final_norm_parameters(model) +
         (model.tied_embeddings ? 0.0 : head_parameters(model));
}

double active_parameters(const ModelSpec& model) {
  if (model.experts.count == 0) return total_parameters(model);
  const double routed = layer_parameters(model, LayerKind::experts).routed();
  const double idle = 1 - static_cast<double>(model.experts.top_k) / model.experts.count;
  return total_parameters(model) - count_of(model, LayerKind::experts) * routed * idle;
}

double prediction_parameters(const ModelSpec& model, int tp) {
  const double h = model.hidden;
  return 2 * h * h / tp + 2 * h;
}

double model_flops_per_sequence(const ModelSpec& model, int sequence, bool causal_half, double predictions) {
  const double s = sequence, h = model.hidden;
  const double gates = model.gated_ffn ? 3 : 2;
  const ExpertSpec& experts = model.experts;
  const AttentionSpec& a = model.attention;
  double attention = model.heads * value_width(model) * h;
  if (a.kind == AttentionKind::mla) {
    const double queries = model.heads * key_width(model);
    attention += h * (a.kv_lora_rank + a.qk_rope_head_dim) +
                 a.kv_lora_rank * static_cast<double>(model.heads) * (a.qk_nope_head_dim + a.v_head_dim) +
                 (a.q_lora_rank > 0 ? a.q_lora_rank * (h + queries) : h * queries);
  } else {
    attention += h * (model.heads + 2.0 * model.kv_heads) * model.head_dim;
  }
  const double dense = gates * h * model.ffn;
  // Rows beyond an expert's capacity are dropped: with even loads, those for which a factor below 1 leaves no
  // room.
  const double kept = experts.capacity_factor > 0 ? std::min(1.0, experts.capacity_factor) : 1;
  const double sparse = gates * h * experts.ffn * (experts.top_k * kept + experts.shared) + h * experts.count;
  const double matrices = model.layers * attention + count_of(model, LayerKind::dense) * dense +
                          count_of(model, LayerKind::experts) * sparse;
  const double scores =
      2 * attended_pairs(model, s, causal_half) * model.heads * (key_width(model) + value_width(model));
  const double head = 2 * (predictions > 0 ? predictions : s) * h * model.vocab;
  const bool mixture = kind_of(model, model.layers - 1) == LayerKind::experts;
  const double module = 2 * s * (attention + (mixture ? sparse : dense) + 2 * h * h) + scores + head;
  const double forward = 2 * s * matrices + model.layers * scores + head + predictions_of(model) * module;
  return 3 * forward;
}

double inference_flops_per_request(const ModelSpec& model, int queries, int keys, bool causal_half) {
  const double h = model.hidden, v = model.vocab;
  if (predictions_of(model) > 0) {  // no part of generation
    ModelSpec plain = model;
    plain.prediction_layers = 0;
    return inference_flops_per_request(plain, queries, keys, causal_half);
  }
  // Scores of one token with itself, and the cost of one token without them and without the head.
  const double pair = 2.0 * model.layers * model.heads * (key_width(model) + value_width(model));
  const double token = model_flops_per_sequence(model, 1, false) / 3 - pair - 2 * h * v;
  const double share = full_attention_share(model);
  const double seen = share * keys + (1 - share) * std::min(keys, model.attention.window);
  const double pairs = queries > 1 ? attended_pairs(model, keys, causal_half) * queries / keys : seen;
  return queries * token + pairs * pair + 2 * h * v;
}
}  // namespace topsim::workloads
