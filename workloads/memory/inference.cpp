#include "workloads/memory/inference.hpp"

#include <algorithm>

#include "workloads/compute/compute_model.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads {

double cache_bytes_per_token(const ModelSpec& model, const Plan& plan) {
  if (!model.attention.causal) return 0;  // no later token asks for them
  // Compressed keys and values are on every tensor rank.
  if (model.attention.kind == AttentionKind::mla)
    return (model.attention.kv_lora_rank + model.attention.qk_rope_head_dim) * stored_bytes(plan.kv_cache);
  const double heads = std::max(1.0, model.kv_heads / static_cast<double>(plan.tp));
  return 2 * heads * model.head_dim * stored_bytes(plan.kv_cache);
}

namespace {
// Latent attention that decodes in absorbed form multiplies by the keys' and values' projections head by head
// in 16 bits: copies beside those that are stored in fewer (vLLM, mla_attention.py,
// process_weights_after_loading: W_UV and W_UK_T; of 16 bits they are views).
double absorbed_copies(const ModelSpec& model, const Plan& plan) {
  const AttentionSpec& a = model.attention;
  const double element = bytes_of(plan.activations);
  if (a.kind != AttentionKind::mla || plan.parameter_bytes >= element) return 0;
  const double numbers = static_cast<double>(a.qk_nope_head_dim + a.v_head_dim) * a.kv_lora_rank;
  return model.heads * numbers / plan.tp * element;
}
}  // namespace

MemoryUse inference_memory(const ModelSpec& model, const Plan& plan, Bytes capacity) {
  const double element = bytes_of(plan.activations), t = plan.tp;
  const double requests = static_cast<double>(plan.global_batch) / plan.dp;
  const double width = (model.gated_ffn ? 2 : 1) * model.ffn / t;
  MemoryUse use;
  use.capacity = static_cast<double>(capacity.value());
  use.share = plan.memory_share;
  int first = 0;
  for (int stage = 0; stage < plan.pp; ++stage) {
    const int layers = plan.stage_layers[static_cast<std::size_t>(stage)];
    MemoryParts parts;
    for (int i = 0; i < layers; ++i) {
      const LayerParameters layer = layer_parameters(model, kind_of(model, first + i));
      const double copies = plan.experts.slots / std::max(1.0, static_cast<double>(model.experts.count));
      const double routed = layer.routed() * copies / (plan.ep * plan.etp);
      parts.weights +=
          (layer.split() / t + layer.whole()) * plan.parameter_bytes + routed * plan.expert_bytes;
    }
    parts.weights += layers * absorbed_copies(model, plan);
    const double full = full_attention_layers(model, first, layers);
    first += layers;
    if (stage == 0) parts.weights += embedding_parameters(model, plan.tp) * element;
    // The residual stream, the input and the widest inner activation of a layer.
    parts.activations = (plan.experts.overlap ? 2 : 1) * plan.tokens() * element * (2 * model.hidden + width);
    if (stage == plan.pp - 1) {
      parts.weights += final_norm_parameters(model) * element;
      if (!model.tied_embeddings || plan.pp > 1) parts.weights += head_parameters(model) / t * element;
      parts.activations = std::max(parts.activations, plan.micro_batch * (element + 4.0) * model.vocab);
    }
    // Layers with a sliding window keep only the keys of the window.
    const double window = std::min(model.attention.window, plan.sequence);
    const double kept = full * plan.sequence + (layers - full) * window;
    parts.kv_cache = cache_bytes_per_token(model, plan) * kept / plan.cp * requests;
    use.stages.push_back(parts);
    if (parts.total() > use.peak().total()) use.fullest = static_cast<std::size_t>(stage);
  }
  return use;
}
}  // namespace topsim::workloads
