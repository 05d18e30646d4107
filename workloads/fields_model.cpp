// Fields of a model's shape.
#include <fmt/format.h>

#include "workloads/fields.hpp"
#include "workloads/published_config.hpp"

namespace topsim::workloads {

using config::at_least;
using config::between;
using config::default_text;
using config::names;
using config::Object;
using config::positive;

const Object<AttentionSpec>& table(config::Type<AttentionSpec>) {
  static const auto object =
      Object<AttentionSpec>("attention", "How a layer attends")
          .field("kind", &AttentionSpec::kind, "multi-head, grouped-query or multi-head latent attention",
                 names<AttentionKind>(
                     {{"mha", AttentionKind::mha, "every head has its own keys and values"},
                      {"gqa", AttentionKind::gqa, "kv_heads heads share keys and values"},
                      {"mla", AttentionKind::mla, "keys and values compressed to kv_lora_rank"}}),
                 default_text("mha, or gqa where kv_heads are fewer than heads"))
          .field("kernel", &AttentionSpec::kernel, "how scores are computed",
                 names<AttentionKernel>(
                     {{"flash", AttentionKernel::flash,
                       "one kernel, scores never stored; the fastest written for the accelerator"},
                      {"flash2025", AttentionKernel::flash2025,
                       "of 2024 (cuDNN 9.0) on a Hopper, of 2025 (9.13) on a Blackwell"},
                      {"sdpa", AttentionKernel::sdpa,
                       "PyTorch's choice in 2024 and 2025: FlashAttention-2, cuDNN's on a Blackwell, "
                       "AOTriton's on a CDNA3 or CDNA4"},
                      {"sdpa2026", AttentionKernel::sdpa2026,
                       "PyTorch's choice in 2026 (2.11; torchtitan's from late 2025): cuDNN's on a "
                       "Hopper and a Blackwell, on a CDNA3 or CDNA4 AOTriton's forward and aiter's backward"},
                      {"flash2", AttentionKernel::flash2, "FlashAttention-2, whatever the accelerator"},
                      {"flash1", AttentionKernel::flash1, "FlashAttention of 2022"},
                      {"unfused", AttentionKernel::unfused, "batched matmuls and softmax, scores stored"}}),
                 default_text("the framework's"))
          .field("causal", &AttentionSpec::causal, "each token attends to those before it")
          .field("q_lora_rank", &AttentionSpec::q_lora_rank,
                 "mla: width of compressed queries; 0: not compressed", between(0, 1 << 20))
          .field("kv_lora_rank", &AttentionSpec::kv_lora_rank, "mla: width of compressed keys and values",
                 between(0, 1 << 20))
          .field("qk_nope_head_dim", &AttentionSpec::qk_nope_head_dim,
                 "mla: width of a head without rotary part", between(0, 65536))
          .field("qk_rope_head_dim", &AttentionSpec::qk_rope_head_dim, "mla: width of a head's rotary part",
                 between(0, 65536))
          .field("v_head_dim", &AttentionSpec::v_head_dim, "mla: width of a head's values", between(0, 65536))
          .field(
              "window", &AttentionSpec::window,
              "sliding window: keys a token sees at most, itself the last; without causal half of them are "
              "before it and half behind; 0: all",
              at_least(0))
          .field("full_every", &AttentionSpec::full_every,
                 "with a window: one layer in so many, the last of them, sees all keys; 0: none", at_least(0))
          .field("qk_norm", &AttentionSpec::qk_norm, "each head's queries and keys are normed (Qwen3)")
          .field("scaled_rotary", &AttentionSpec::scaled_rotary,
                 "positions are scaled as YaRN does: rotated by single operators");
  return object;
}

const Object<ExpertSpec>& table(config::Type<ExpertSpec>) {
  static const auto object =
      Object<ExpertSpec>("experts", "Mixture of experts")
          .field("count", &ExpertSpec::count, "routed experts of a layer; 0: a dense model",
                 between(0, 65536))
          .field("top_k", &ExpertSpec::top_k, "experts a token visits", between(1, 65536))
          .field("shared", &ExpertSpec::shared, "experts that every token visits", between(0, 1024))
          .field("ffn", &ExpertSpec::ffn, "width of one expert", between(0, 1 << 24),
                 default_text("the model's ffn"))
          .field("every", &ExpertSpec::every,
                 "one layer in so many has experts, the last of them (Llama 4 Maverick: 2)",
                 between(1, 16384))
          .field("capacity_factor", &ExpertSpec::capacity_factor,
                 "rows an expert takes over the mean; 0: no limit")
          .field("node_limit", &ExpertSpec::node_limit,
                 "nodes on which the experts of one token lie at most; 0: any")
          .field("pad_to_capacity", &ExpertSpec::pad_to_capacity,
                 "experts compute their whole capacity, padded with zeros")
          .field(
              "imbalance", &ExpertSpec::imbalance,
              "rows of the most loaded rank's experts over the mean, at most ep; all ranks compute, send and "
              "receive as it does, since all wait for it",
              at_least(1))
          .field("biases", &ExpertSpec::biases,
                 "each expert adds a bias to its answer, times the router's probability");
  return object;
}

namespace {
// Checks what the scenario says about attention in two places.
void check_kind(const ModelSpec& spec, const config::Node& node, config::Reader& reader) {
  const config::Node written = node.find("attention").find("kind");
  const config::Node& at = written ? written : node;
  if (spec.attention.kind == AttentionKind::mha && spec.kv_heads > 0 && spec.kv_heads != spec.heads)
    reader.problem(at,
                   fmt::format("mha gives each of {} heads keys and values of its own, and kv_heads is {}",
                               spec.heads, spec.kv_heads),
                   "at odds with kv_heads", "leave kind out, or kv_heads");
  if (spec.attention.kind == AttentionKind::gqa && spec.kv_heads == 0 && spec.heads > 0)
    reader.problem(at, "gqa needs to know how many heads share their keys and values", "without kv_heads",
                   "\"kv_heads\": 8, or leave kind out");
}
}  // namespace

const Object<ModelSpec>& table(config::Type<ModelSpec>) {
  static const auto object =
      Object<ModelSpec>("model", "Shape of a transformer: a name of configs/models, or its figures")
          .field("use", &ModelSpec::name, "a model of configs/models whose figures the other keys override")
          .field("description", &ModelSpec::description, "for people")
          .field("source", &ModelSpec::source, "where the shape comes from")
          .field("layers", &ModelSpec::layers, "transformer layers", between(0, 16384))
          .field("hidden", &ModelSpec::hidden, "width of the residual stream", between(0, 1 << 20))
          .field("heads", &ModelSpec::heads, "attention heads", between(0, 65536))
          .field("kv_heads", &ModelSpec::kv_heads, "key-value heads", between(0, 65536),
                 default_text("heads"))
          .field("head_dim", &ModelSpec::head_dim, "width of one head", between(0, 65536),
                 default_text("hidden / heads"))
          .field("ffn", &ModelSpec::ffn, "inner width of the feed-forward network", between(0, 1 << 24),
                 default_text("4 x hidden"))
          .field("vocab", &ModelSpec::vocab, "vocabulary, padded as the framework pads it",
                 between(0, 1 << 26))
          .field("gated_ffn", &ModelSpec::gated_ffn,
                 "SwiGLU: three matrices; unless said otherwise no biases and rotary positions (Llama)")
          .field("activation", &ModelSpec::activation, "what the inner numbers, or their gates, pass through",
                 names<Activation>({{"gelu", Activation::gelu, "GeLU (GPT), with gates GeGLU"},
                                    {"relu", Activation::relu, "ReLU (OPT)"},
                                    {"squared_relu", Activation::squared_relu,
                                     "squared ReLU (Nemotron); frameworks write it in single operators"},
                                    {"silu", Activation::silu, "SiLU, with gates SwiGLU (Llama)"}}),
                 default_text("gelu, or silu with gates"))
          .field("positions", &ModelSpec::positions, "how a token's place enters",
                 names<Positions>({{"learned", Positions::learned, "a table of as many rows as `sequence`"},
                                   {"rotary", Positions::rotary, "queries and keys are turned"},
                                   {"alibi", Positions::alibi, "a bias of the scores (ALiBi), or nothing"}}),
                 default_text("learned, or rotary with gates"))
          .field("biases", &ModelSpec::biases, "linear layers add biases",
                 default_text("true, or false with gates"))
          .field("clamped_ffn", &ModelSpec::clamped_ffn,
                 "the gate and what it is multiplied with are clamped before the activation")
          .field(
              "parallel_residual", &ModelSpec::parallel_residual,
              "attention and network read a layer's input side by side (PaLM, GPT-J, Falcon); tensor ranks "
              "sum both answers at once")
          .field("shared_norm", &ModelSpec::shared_norm,
                 "with parallel_residual: both read one norm; false: a norm each (GPT-NeoX-20B, Falcon 40B)")
          .field("tied_embeddings", &ModelSpec::tied_embeddings, "the LM head shares the embedding's weights")
          .field("attention", &ModelSpec::attention, "how a layer attends")
          .field("dense_layers", &ModelSpec::dense_layers,
                 "mixture of experts: leading layers with a dense FFN", between(0, 16384))
          .field("prediction_layers", &ModelSpec::prediction_layers,
                 "multi-token prediction: modules behind the last layer, each a projection of 2 x hidden, a "
                 "layer and a pass through the LM head",
                 between(0, 64),
                 default_text("published_predictions in a pretraining under Megatron since 2025, else 0"))
          .field("published_predictions", &ModelSpec::published_predictions,
                 "modules of multi-token prediction that the published model was pretrained with",
                 between(0, 64))
          .field("experts", &ModelSpec::experts, "mixture of experts")
          .field("sequence", &ModelSpec::sequence, "tokens of a sequence where the workload gives none")
          .shorthand("use")
          .from_library("models")
          .translated_by(&written_out)
          .check(check_kind);
  return object;
}
}  // namespace topsim::workloads
