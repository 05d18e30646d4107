#include "workloads/memory/activations.hpp"

#include <algorithm>

#include "workloads/compute/compute_model.hpp"
#include "workloads/layer/lora.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/memory/until_weight.hpp"
#include "workloads/schedule/tasks.hpp"

namespace topsim::workloads {
namespace {

double chunk_activations(const ModelSpec& model, const Plan& plan, int global) {
  const int layers = plan.stage_layers[static_cast<std::size_t>(global)];
  const int again = plan.layers_recomputed(layers);
  const int first = plan.first_layer_of(global);
  double bytes = 0;
  for (int i = 0; i < layers && !plan.offload.activations; ++i)
    bytes += layer_activation_bytes(model, plan, plan.recompute_of(i < again), kind_of(model, first + i));
  const double element = bytes_of(plan.activations);
  if (global == 0 && plan.looks_up_by_product) bytes += plan.tokens() * model.vocab / plan.tp * element;
  if (global == 0 && plan.dropout) bytes += rows_of(plan) * model.hidden;  // mask of the embedding's dropout
  if (global == plan.global_stages() - 1) {
    // Inputs of the final norm and of the LM head, and the logits. With single operators the norm keeps its
    // input only in fp32, and its result before the weights (torchtitan/models/norms.py, RMSNorm).
    const double norm = plan.eager_final_norm ? 4 + element : element;
    const double head =
        (norm * rows_of(plan) + element * rows_predicted(plan)) * model.hidden + logits_bytes(model, plan);
    // A multi-token prediction module: its projection's input of 2 h, its layer, the head again.
    const double module =
        2 * element * rows_of(plan) * model.hidden +
        layer_activation_bytes(model, plan, plan.recompute_of(again > 0), kind_of(model, model.layers - 1)) +
        head;
    bytes += head + (plan.inference() ? 0 : predictions_of(model)) * module;
  }
  return bytes;
}

// What is kept between the attention core and its output projection, and the outputs of the input
// projections.
double attention_bytes(const ModelSpec& model, const Plan& plan, RecomputeKind recompute, double e,
                       double input) {
  const double tokens = plan.tokens(), heads = model.heads / static_cast<double>(plan.tp);
  const double context = input * heads * value_width(model);
  if (model.attention.kind != AttentionKind::mla) {
    const double kv_heads = std::max(1.0, static_cast<double>(model.kv_heads) / plan.tp);
    return tokens * (e * (heads + 2 * kv_heads) * model.head_dim + context);
  }
  // Compressed before and after their norm; queries, keys and values in full.
  const AttentionSpec& a = model.attention;
  const double compressed =
      rows_of(plan) * ((a.q_lora_rank + a.kv_lora_rank) * (e + input) + a.qk_rope_head_dim * e);
  const double whole = e * heads * (2 * key_width(model) + value_width(model));
  return compressed +
         tokens * ((recompute == RecomputeKind::selective && plan.again.latent ? 0 : whole) + context);
}

// Inputs of the activation function and of FC2, `ffn` columns on this rank; eager SwiGLU keeps the activated
// gate for the product with the other half.
double feed_forward_bytes(const ModelSpec& model, const Plan& plan, double count, double ffn, double e,
                          double input) {
  const double gate = model.gated_ffn && !plan.fused_kernels ? e : 0;
  return count * ffn * (e * (model.gated_ffn ? 2 : 1) + input + gate);
}

// What fused attention keeps beside its answer: the logarithm of the sum of every row of scores, in fp32
// (softmax_lse of flash-attn's csrc/flash_attn/flash_api.cpp, logsumexp of aten's, softmax_aux of TE's).
double row_sums_bytes(const ModelSpec& model, const Plan& plan) {
  return 4 * plan.tokens() * model.heads / plan.tp;
}

// Plan::Again::operators: the layer's input, the attention core's answer, results of wq, wv, w1 and w2, and
// of the reduce-scatters of wo and w2. No gradient reads the result of w2, so a compiled layer does not keep
// it (torch/_functorch/partitioners.py saves the inputs of the backward graph); eager layers keep all that
// the policy names (torch/utils/checkpoint.py, _CachingTorchDispatchMode). Of experts the rows that
// all-to-alls bring, there and back, and what shared ones keep as a dense network; nothing of grouped
// products.
double kept_by_operator(const ModelSpec& model, const Plan& plan, LayerKind kind) {
  const double t = plan.tp, h = model.hidden, tokens = plan.tokens();
  const double queries = model.heads / t * model.head_dim;
  const double values = std::max(1.0, model.kv_heads / t) * model.head_dim;
  const double answers = plan.fused_kernels ? 0 : 1;
  const double scattered = plan.sequence_parallel && !plan.again.scatters ? 1 + answers : 0;
  const double rows = rows_of(plan) * h * (1 + scattered);
  double network = tokens * (model.ffn / t + answers * h);
  if (kind == LayerKind::experts) {
    const ExpertSpec& experts = model.experts;
    const int sent = plan.experts.fused_dispatch() ? std::min(experts.top_k, plan.ep) : experts.top_k;
    network = plan.ep > 1 ? 2 * rows_of(plan) * sent * plan.experts.load * h : 0;
    if (experts.shared > 0)
      network += tokens * (static_cast<double>(experts.shared) * experts.ffn / t + answers * h);
  }
  return bytes_of(plan.activations) * (rows + tokens * (2 * queries + values) + network) +
         row_sums_bytes(model, plan);
}
// Softmax output, and with dropout its mask and output; in fp32 under autocast and in Megatron's operators,
// with a cast copy for the product. Fused kernels keep the logarithm of each row's sum.
double scores_bytes(const ModelSpec& model, const Plan& plan) {
  if (plan.attention != AttentionKernel::unfused) return row_sums_bytes(model, plan);
  const double e = bytes_of(plan.activations), heads = model.heads / static_cast<double>(plan.tp);
  const bool wide = (plan.eager_softmax() || plan.plain_softmax) && e < 4;
  return heads * plan.tokens() * plan.sequence *
         (e + (wide ? 4 : 0) + (plan.dropout ? 1 + (wide ? 0 : e) : 0));
}
}  // namespace

double logits_bytes(const ModelSpec& model, const Plan& plan) {
  return plan.loss.held * plan.predicted() * model.vocab / plan.tp / plan.loss_chunks;
}

double beside_logits(const ModelSpec& model, const Plan& plan) {
  if (!plan.batch_first_shards || !plan.sequence_parallel || plan.tp == 1) return 0;
  const double element = bytes_of(plan.activations);
  const double gathered = element * plan.tokens() * model.hidden;
  const double logits = element * plan.predicted() * model.vocab / plan.tp / plan.loss_chunks;
  return gathered < logits ? gathered : gathered - logits;
}

double layer_activation_bytes(const ModelSpec& model, const Plan& plan, RecomputeKind recompute,
                              LayerKind kind) {
  const double e = bytes_of(plan.activations);
  const double input = plan.wide_inputs ? e : std::min(e, bytes_of(plan.gemm));  // kept of a matmul's input
  const double h = model.hidden, t = plan.tp, tokens = plan.tokens(), rows = rows_of(plan);
  if (recompute == RecomputeKind::full) return e * rows * h;

  if (recompute == RecomputeKind::selective && plan.again.operators)
    return kept_by_operator(model, plan, kind);

  const double mask = plan.dropout ? 1 : 0;
  // A frozen matrix needs its input only for its adapter, which also keeps its inner result.
  const PlanAdapters& on = plan.adapters;
  const auto kept = [&](bool adapted) { return !plan.frozen() || adapted ? input : 0.0; };
  // Inputs of both norms, inputs of QKV and FC1, two dropout masks: whole rows. Side by side both norms read
  // one tensor, and with a shared norm both products read one tensor if it is not cast.
  const bool one_input = shares_norm(model) && input >= e;
  const double halves =
      one_input ? std::max(kept(on.qkv()), kept(on.fc1())) : kept(on.qkv()) + kept(on.fc1());
  const double products =
      h * rows_kept(plan) * (plan.gathers_narrow ? 2 * std::min(e, bytes_of(plan.gemm)) : halves);
  double bytes = rows * h * ((model.parallel_residual ? 1 : 2) * e + 2 * mask) + products;
  // The first product of a dense network keeps the normed rows, experts keep them sorted.
  if (recompute == RecomputeKind::selective && plan.again.norms) bytes -= products;
  if (recompute == RecomputeKind::selective && plan.again.projection) bytes -= rows * h * e;
  bytes += attention_bytes(model, plan, recompute, e, input);
  const bool selective = recompute == RecomputeKind::selective, between = selective && plan.again.between;
  if (between && plan.again.core)
    bytes -= tokens * input * model.heads / t * value_width(model);  // the core's answer
  if (plan.frozen()) bytes += e * adapter_activations(model, kind, plan);
  if (kind == LayerKind::dense && selective && plan.again.mlp) {
    // Its input alone, or what that is made of.
  } else if (kind == LayerKind::dense) {
    bytes += feed_forward_bytes(model, plan, tokens, model.ffn / t, e, between ? 0 : kept(on.fc2));
  } else {
    // Scores before and after softmax in fp32; rows that arrive at the experts, and those of the shared
    // experts.
    const ExpertSpec& experts = model.experts;
    const double arrived = plan.etp * rows * experts.top_k * plan.experts.load;
    bytes += 8 * rows * experts.count + arrived * h * kept(on.fc1());
    const double ffn = static_cast<double>(experts.ffn) / plan.etp;
    bytes += feed_forward_bytes(model, plan, arrived, ffn, e, kept(on.fc2));
    if (recompute == RecomputeKind::selective && plan.again.activation) bytes -= arrived * ffn * input;
    // The input of the product with the probabilities, and silu's result.
    if (plan.early_experts) bytes += arrived * e * (h + (model.gated_ffn ? ffn : 0));
    const double shared = static_cast<double>(experts.shared) * experts.ffn / t;
    bytes += feed_forward_bytes(model, plan, tokens, shared, e, kept(on.fc2));
  }
  if (recompute == RecomputeKind::none || !plan.again.core) bytes += scores_bytes(model, plan);
  return bytes;
}

double bytes_computed_again(const ModelSpec& model, const Plan& plan) {
  const RecomputeKind kind = plan.recompute.kind;
  if (kind == RecomputeKind::none) return 0;
  const double all = layer_activation_bytes(model, plan, RecomputeKind::none, largest_kind(model));
  if (kind == RecomputeKind::full) return all;
  const auto made = [&](const Plan& of) {
    return std::max(0.0, all - layer_activation_bytes(model, of, kind, largest_kind(model)));
  };
  if (!plan.again.activation) return made(plan);
  // The experts' activation is freed before attention's turn.
  Plan attention = plan, experts = plan;
  attention.again.activation = false;
  experts.again = {.core = false, .activation = true};
  return std::max(made(attention), made(experts));
}

StageActivations stage_activations(const ModelSpec& model, const Plan& plan, int stage) {
  return {chunk_activations(model, plan, stage), bytes_until_weight(model, plan, stage)};
}

double peak_activations(const ModelSpec& model, const Plan& plan, int stage) {
  std::vector<StageActivations> chunks;
  for (int i = 0; i < plan.chunks(); ++i)
    chunks.push_back(stage_activations(model, plan, plan.global_stage(stage, i)));
  double held = 0, peak = 0;
  for (const StageTask& task : tasks_of(plan, stage)) {
    const StageActivations& chunk = chunks[static_cast<std::size_t>(task.chunk)];
    if (task.action == Action::forward) held += chunk.forward;
    if (task.action == Action::backward) held -= chunk.forward;
    if (task.action == Action::backward_input) held += chunk.until_weight - chunk.forward;
    if (task.action == Action::backward_weight) held -= chunk.until_weight;
    peak = std::max(peak, held);
  }
  return peak;
}

double layers_in_flight(const ModelSpec& model, const Plan& plan, int layers) {
  if (!plan.offload.activations) return 0;
  const bool all_again = plan.recompute.kind == RecomputeKind::full && !plan.recompute.layers;
  const RecomputeKind kind = plan.recompute_of(all_again);
  double most = 0;
  for (const LayerKind each : {LayerKind::dense, LayerKind::experts})
    if (count_of(model, each) > 0) most = std::max(most, layer_activation_bytes(model, plan, kind, each));
  return std::min(2, layers) * most;
}
}  // namespace topsim::workloads
