#include "workloads/memory/until_weight.hpp"

#include <algorithm>

#include "workloads/compute/compute_model.hpp"

namespace topsim::workloads {
namespace {

// Of matrices with `rows` rows of a micro-batch: `in` columns as the products keep them, `out` of gradients.
struct Kept {
  double input = 0, gradient = 0;  // bytes of one number
  [[nodiscard]] double of(double rows, double in, double out) const {
    return rows * (in * input + out * gradient);
  }
};

double of_layer(const ModelSpec& model, const Plan& plan, LayerKind kind, const Kept& kept) {
  const double tokens = plan.tokens(), h = model.hidden, t = plan.tp;
  const double gates = model.gated_ffn ? 2 : 1;
  const double context = model.heads * value_width(model) / t;
  double bytes = kept.of(tokens, context, h);  // the attention's projection
  if (model.attention.kind == AttentionKind::mla) {
    const AttentionSpec& a = model.attention;
    const double down = a.q_lora_rank + a.kv_lora_rank + a.qk_rope_head_dim;
    bytes += kept.of(tokens, h, down) +
             kept.of(tokens, a.q_lora_rank + a.kv_lora_rank,
                     model.heads / t * (2 * key_width(model) - a.qk_rope_head_dim + value_width(model)));
  } else {
    bytes += kept.of(tokens, h, (model.heads + 2.0 * model.kv_heads) * model.head_dim / t);
  }
  // Side by side: one gradient of both answers, and one input where the norm is shared.
  if (model.parallel_residual) bytes -= kept.of(tokens, shares_norm(model) ? h : 0, h);
  // Columns of the dense network, or of the shared experts.
  const double dense = (kind == LayerKind::dense ? model.ffn : model.experts.shared * model.experts.ffn) / t;
  if (dense > 0) bytes += kept.of(tokens, h, gates * dense) + kept.of(tokens, dense, h);
  if (kind == LayerKind::experts) {
    const ExpertSpec& experts = model.experts;
    const double arrived =
        plan.etp * tokens / (plan.sequence_parallel ? t : 1) * experts.top_k * plan.expert_load;
    const double ffn = static_cast<double>(experts.ffn) / plan.etp;
    bytes += kept.of(arrived, h, gates * ffn) + kept.of(arrived, ffn, h);
  }
  return bytes;
}
}  // namespace

double bytes_until_weight(const ModelSpec& model, const Plan& plan, int stage) {
  const double element = bytes_of(plan.activations);
  const Kept kept{plan.wide_inputs ? element : std::min(element, bytes_of(plan.gemm)), element};
  const int first = plan.first_layer_of(stage);
  double bytes = 0;
  for (int i = 0; i < plan.stage_layers[static_cast<std::size_t>(stage)]; ++i)
    bytes += of_layer(model, plan, kind_of(model, first + i), kept);
  if (stage == plan.global_stages() - 1)
    bytes +=
        Kept{element, element}.of(plan.tokens(), model.hidden, model.vocab / static_cast<double>(plan.tp));
  return bytes;
}
}  // namespace topsim::workloads
