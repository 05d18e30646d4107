#include "workloads/memory/until_weight.hpp"

#include <algorithm>

#include "workloads/compute/compute_model.hpp"
#include "workloads/memory/activations.hpp"

namespace topsim::workloads {
namespace {

// Kept for a matrix's weight gradient: its input as the products keep it, and the gradient of its output.
struct KeptBytes {
  double input = 0, gradient = 0;  // bytes of one number
  [[nodiscard]] double of(double in, double out) const { return in * input + out * gradient; }
};

// Under sequence parallelism a column-parallel matrix keeps only its own rows of the input and gathers them
// again; the gradient of a row-parallel matrix's output is gathered once and kept whole
// (zero-bubble-pipeline-parallelism, megatron/core/tensor_parallel/layers.py, pre_process: "we do not support
// all gather grad_output"; tensor_parallel/mappings.py, _ReduceScatterToSequenceParallelRegion).
double of_layer(const ModelSpec& model, const Plan& plan, LayerKind kind, const KeptBytes& kept) {
  const double tokens = plan.tokens(), rows = rows_of(plan), h = model.hidden, t = plan.tp;
  const double input = rows_kept(plan) * h, output = tokens * h;
  const double gates = model.gated_ffn ? 2 : 1;
  const double context = model.heads * value_width(model) / t;
  double bytes = kept.of(tokens * context, output);  // the attention's projection
  if (model.attention.kind == AttentionKind::mla) {
    // Down projections work on this rank's rows, with whole matrices; up projections are split by columns.
    const AttentionSpec& a = model.attention;
    const double ranks = a.q_lora_rank + a.kv_lora_rank;
    bytes += kept.of(rows * h, rows * (ranks + a.qk_rope_head_dim)) +
             kept.of(rows * ranks, tokens * model.heads / t *
                                       (2 * key_width(model) - a.qk_rope_head_dim + value_width(model)));
  } else {
    const double kv_heads = std::max(1.0, model.kv_heads / t);
    bytes += kept.of(input, tokens * (model.heads / t + 2 * kv_heads) * model.head_dim);
  }
  // With parallel halves: one gradient for both outputs, and one input if they share the norm.
  if (model.parallel_residual) bytes -= kept.of(shares_norm(model) ? input : 0, output);
  // Columns of the dense network, or of the shared experts.
  const double shared = static_cast<double>(model.experts.shared) * model.experts.ffn;
  const double dense = (kind == LayerKind::dense ? model.ffn : shared) / t;
  if (dense > 0) bytes += kept.of(input, tokens * gates * dense) + kept.of(tokens * dense, output);
  if (kind == LayerKind::experts) {
    const ExpertSpec& experts = model.experts;
    const double arrived = plan.etp * rows * experts.top_k * plan.experts.load;
    const double ffn = static_cast<double>(experts.ffn) / plan.etp;
    bytes += kept.of(arrived * h, arrived * gates * ffn) + kept.of(arrived * ffn, arrived * h);
  }
  return bytes;
}
}  // namespace

double bytes_until_weight(const ModelSpec& model, const Plan& plan, int stage) {
  const double element = bytes_of(plan.activations);
  const KeptBytes kept{plan.wide_inputs ? element : std::min(element, bytes_of(plan.gemm)), element};
  const int first = plan.first_layer_of(stage);
  double bytes = 0;
  for (int i = 0; i < plan.stage_layers[static_cast<std::size_t>(stage)]; ++i)
    bytes += of_layer(model, plan, kind_of(model, first + i), kept);
  // In chunks of tokens the head's weight gradient is not put off (layer/ends.cpp).
  if (stage == plan.global_stages() - 1 && plan.loss_chunks == 1)
    bytes += KeptBytes{element, element}.of(rows_predicted(plan) * model.hidden,
                                            plan.predicted() * model.vocab / static_cast<double>(plan.tp));
  return bytes;
}
}  // namespace topsim::workloads
