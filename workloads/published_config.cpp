#include "workloads/published_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <vector>

namespace topsim::workloads {
namespace {
using config::Kind;
using config::Node;

// transformers' model types (src/transformers/models/*/configuration_*.py) and what their code implies and
// their files do not say. `said` is in our keys.
struct Family {
  std::string_view type;
  bool gated;
  bool tied = false;  // where the file is silent
  std::string_view said = {};
  std::string_view attention = {};
};
constexpr std::string_view kNormedHeads = "\"qk_norm\": true";
constexpr Family kFamilies[] = {
    {"llama", true},
    {"llama4_text", true},
    {"mistral", true},
    {"ministral", true},
    {"mixtral", true},
    {"qwen2", true},
    {"qwen2_moe", true},
    {"qwen3", true, false, {}, kNormedHeads},
    {"qwen3_moe", true, false, {}, kNormedHeads},
    {"gemma", true, true},
    {"gemma2", true, true},
    {"gemma3_text", true, true, {}, kNormedHeads},
    {"deepseek_v2", true},
    {"deepseek_v3", true},
    {"kimi_k2", true},
    {"glm4_moe", true},
    {"gpt_oss", true, false, "\"clamped_ffn\": true", "\"scaled_rotary\": true"},
    {"phi3", true},
    {"internlm2", true},
    {"baichuan", true},
    {"granite", true},
    {"olmo", true},
    {"olmo2", true, false, {}, kNormedHeads},
    {"phimoe", true},
    {"seed_oss", true},
    {"smollm3", true, true},
    {"olmoe", true, false, {}, kNormedHeads},
    {"cohere", true, true, "\"parallel_residual\": true"},
    {"gpt2", false, true},
    {"opt", false, true},
    {"bloom", false, true, "\"positions\": \"alibi\""},
    {"gpt_neox", false, false,
     "\"positions\": \"rotary\", \"parallel_residual\": true, \"shared_norm\": false"},
    {"gptj", false, false, "\"positions\": \"rotary\", \"parallel_residual\": true"},
    {"phi", false, false, "\"positions\": \"rotary\", \"parallel_residual\": true"},
    {"starcoder2", false, true, "\"positions\": \"rotary\""},
    {"nemotron", false, false, "\"positions\": \"rotary\", \"biases\": false"},
};

// Types whose files say too little here, or in other words, and the models of them that ship.
struct Shipped {
  std::string_view type, models;
};
constexpr Shipped kShipped[] = {{"falcon", "falcon-7b, falcon-40b, falcon-180b"},
                                {"dbrx", "dbrx-132b"},
                                {"deepseek", "deepseek-moe-16b"},
                                {"mpt", "mpt-7b, mpt-30b"},
                                {"gpt_bigcode", "starcoder-15b"},
                                {"chatglm", "glm4-9b"},
                                {"qwen", "qwen-1.8b, qwen-7b, qwen-14b, qwen-72b"},
                                {"internlm", "internlm-7b"},
                                {"hunyuan", "hunyuan-large"},
                                {"minimax_m2", "minimax-m2"},
                                {"bert", "bert-base, bert-large"}};

// Keys of layers of other kinds than attention and a feed-forward network: recurrent ones, sparse attention
// by an index.
constexpr std::string_view kOtherLayers[] = {
    "linear_", "mamba_", "ssm_", "index_", "attn_layer_", "hybrid_", "attn_type_", "full_attention_interval"};

bool said(const Node& node) {
  return node && !node.is(Kind::null) && !(node.is(Kind::boolean) && !node.boolean());
}
std::int64_t whole(const Node& root, std::span<const std::string_view> keys) {
  for (const std::string_view key : keys)
    if (const Node each = root.find(key); each.is(Kind::integer)) return each.integer();
  return 0;
}

std::int64_t whole(const Node& root, std::initializer_list<std::string_view> keys) {
  return whole(root, std::span(keys.begin(), keys.size()));
}

class Writer {
 public:
  void add(std::string_view key, std::int64_t value) {
    if (value > 0) parts_.push_back(fmt::format("\"{}\": {}", key, value));
  }
  void add(std::string text) {
    if (!text.empty()) parts_.push_back(std::move(text));
  }
  void add(std::string_view key, const Writer& inner) {
    if (!inner.parts_.empty()) parts_.push_back(fmt::format("\"{}\": {}", key, inner.text()));
  }
  [[nodiscard]] std::string text() const { return fmt::format("{{{}}}", fmt::join(parts_, ", ")); }

 private:
  std::vector<std::string> parts_;
};

std::string_view activation_of(const Node& root, bool gated) {
  for (const std::string_view key : {"hidden_activation", "hidden_act", "activation_function"}) {
    const Node name = root.find(key);
    if (!name.is(Kind::string)) continue;
    if (name.text() == "relu2") return "squared_relu";
    if (name.text() == "relu") return "relu";
    return gated && name.text().starts_with("gelu") ? "gelu" : "";
  }
  return "";
}

// The layers that see all keys: one in so many; 0: none.
std::int64_t full_every(const Node& root, std::string_view type) {
  const Node types = root.find("layer_types");
  if (types.size() == 0) {
    if (type == "llama4_text") return 4;  // no_rope_layer_interval
    if (type == "gemma2") return 2;
    const std::int64_t pattern = whole(root, {"sliding_window_pattern", "_sliding_window_pattern"});
    return pattern == 0 && type == "gemma3_text" ? 6 : pattern;  // Gemma3TextConfig's default
  }
  std::int64_t first = 0, full = 0;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (!types[i].is(Kind::string) || types[i].text() != "full_attention") continue;
    if (full++ == 0) first = static_cast<std::int64_t>(i) + 1;
  }
  // In turn, the last of so many sees all; else the mean.
  const auto layers = static_cast<std::int64_t>(types.size());
  if (full == 0 || layers / first == full) return first;
  return (layers + full / 2) / full;
}

Writer attention_of(const Node& root, const Family& family) {
  Writer attention;
  if (const std::int64_t latent = whole(root, {"kv_lora_rank"}); latent > 0) {
    attention.add("\"kind\": \"mla\"");
    for (const std::string_view key :
         {"q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"})
      attention.add(key, whole(root, {key}));
  }
  const Node used = root.find("use_sliding_window");
  const std::int64_t window = whole(root, {"sliding_window", "attention_chunk_size"});
  const std::int64_t every = full_every(root, family.type);
  // Qwen2's windows are those of the layers behind the first max_window_layers, which have no words here.
  const bool some = said(used) && root.find("max_window_layers");
  if (window > 0 && every != 1 && !some && (!used || said(used))) {
    attention.add("window", window);
    attention.add("full_every", every);
  }
  if (!family.attention.empty())
    attention.add(std::string(family.attention));
  else if (said(root.find("use_qk_norm")))
    attention.add(std::string(kNormedHeads));
  return attention;
}

Writer experts_of(const Node& root, std::string_view type) {
  Writer experts;
  const std::int64_t count = whole(root, {"n_routed_experts", "num_local_experts", "num_experts"});
  if (count == 0) return experts;
  const std::int64_t width = whole(root, {"moe_intermediate_size"});
  const std::int64_t shared_width = whole(root, {"shared_expert_intermediate_size"});
  const bool llama4 = type == "llama4_text";
  experts.add("count", count);
  experts.add("top_k", whole(root, {"num_experts_per_tok", "num_experts_per_token", "experts_per_token"}));
  experts.add("shared", llama4                          ? 1
                        : width > 0 && shared_width > 0 ? shared_width / width
                                                        : whole(root, {"n_shared_experts"}));
  experts.add("ffn", llama4 ? whole(root, {"intermediate_size"}) : width);
  if (const std::int64_t every = whole(root, {"interleave_moe_layer_step", "decoder_sparse_step"}); every > 1)
    experts.add("every", every);
  if (whole(root, {"n_group"}) > 1) experts.add("node_limit", whole(root, {"topk_group"}));
  if (type == "gpt_oss") experts.add("\"biases\": true");
  return experts;
}

// The figures that scenarios need, in the words of each family's files.
using namespace std::string_view_literals;
constexpr std::array kLayers{"num_hidden_layers"sv, "n_layer"sv, "n_layers"sv};
constexpr std::array kHidden{"hidden_size"sv, "n_embd"sv, "n_embed"sv, "d_model"sv};
constexpr std::array kHeads{"num_attention_heads"sv, "n_head"sv, "n_heads"sv};
constexpr std::array kFfn{"intermediate_size_mlp"sv, "intermediate_size"sv, "n_inner"sv, "ffn_dim"sv};
constexpr std::array kVocab{"vocab_size"sv};

// Those that a file does not say: transformers' defaults differ by family. GPT-2, GPT-J and BLOOM leave ffn
// at four times hidden, as it is here.
std::string left_to_defaults(const Node& root, const Family& family) {
  std::string missing;
  const auto needs = [&](const char* name, std::span<const std::string_view> keys) {
    if (whole(root, keys) == 0) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", name);
  };
  needs("layers", kLayers);
  needs("hidden", kHidden);
  needs("heads", kHeads);
  if (family.gated) needs("ffn", kFfn);
  needs("vocab", kVocab);
  return missing;
}

std::string model_of(const Node& root, const Family& family) {
  Writer model;
  const std::int64_t hidden = whole(root, kHidden), heads = whole(root, kHeads),
                     kv_heads = whole(root, {"num_key_value_heads"}), width = whole(root, {"head_dim"});
  const bool latent = whole(root, {"kv_lora_rank"}) > 0;
  model.add("layers", whole(root, kLayers));
  model.add("hidden", hidden);
  model.add("heads", heads);
  if (!latent && kv_heads != heads) model.add("kv_heads", kv_heads);
  if (!latent && width * heads != hidden) model.add("head_dim", width);
  model.add("ffn", whole(root, kFfn));
  model.add("vocab", whole(root, kVocab));
  if (family.gated) model.add("\"gated_ffn\": true");
  const std::string_view activation = activation_of(root, family.gated);
  if (!activation.empty()) model.add(fmt::format("\"activation\": \"{}\"", activation));
  const Node side_by_side = root.find("use_parallel_residual");  // GPT-NeoX
  const bool in_turn = side_by_side.is(Kind::boolean) && !side_by_side.boolean();
  model.add(std::string(in_turn ? "\"positions\": \"rotary\"" : family.said));
  if (family.type == "baichuan" && root.find("model_max_length"))
    model.add("\"positions\": \"alibi\"");  // 13B
  const Node tied = root.find("tie_word_embeddings");
  if (tied.is(Kind::boolean) ? tied.boolean() : family.tied) model.add("\"tied_embeddings\": true");
  model.add("attention", attention_of(root, family));
  model.add("dense_layers", whole(root, {"first_k_dense_replace"}));
  model.add("experts", experts_of(root, family.type));
  model.add("published_predictions", whole(root, {"num_nextn_predict_layers"}));
  return model.text();
}

// The first key or value that says that some layers are of a kind that is not described.
std::optional<std::string> other_layer(const Node& root) {
  for (std::size_t i = 0; i < root.size(); ++i) {
    const Node each = root[i];
    if (!said(each)) continue;
    const auto begins = [&](std::string_view word) { return each.key().starts_with(word); };
    if (each.key() == "is_encoder_decoder" ||
        std::any_of(std::begin(kOtherLayers), std::end(kOtherLayers), begins))
      return '"' + each.key() + '"';
  }
  const Node types = root.find("layer_types");
  for (std::size_t i = 0; i < types.size(); ++i)
    if (types[i].is(Kind::string) && types[i].text() != "full_attention" &&
        types[i].text() != "sliding_attention" && types[i].text() != "chunked_attention")
      return "layers of " + types[i].text();
  return std::nullopt;
}
}  // namespace

std::optional<std::string> written_out(const Node& root) {
  if (!root.find("model_type").is(Kind::string) && !root.find("architectures")) return std::nullopt;
  const Node words = root.find("text_config");
  const Node& shape = words.is(Kind::object) ? words : root;
  const Node name = shape.find("model_type");
  const std::string type = name.is(Kind::string) ? name.text() : "";
  if (const auto other = other_layer(shape))
    return fmt::format("this model has {}, which is not described here; topsim list models shows what is",
                       *other);
  const auto family = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                   [&](const Family& each) { return each.type == type; });
  if (family == std::end(kFamilies)) {
    const auto shipped = std::find_if(std::begin(kShipped), std::end(kShipped),
                                      [&](const Shipped& each) { return each.type == type; });
    return fmt::format(
        "{} is not known here: write {}its figures, such as {{\"layers\": 32, \"hidden\": 4096, \"heads\": "
        "32, "
        "\"gated_ffn\": true}}; the files of configs/models are examples",
        type.empty() ? "a config.json without model_type" : fmt::format("model_type \"{}\"", type),
        shipped == std::end(kShipped)
            ? ""
            : fmt::format("the name of a model that ships ({}), or ", shipped->models));
  }
  std::string text =
      fmt::format("write {}figures here: {}", words.is(Kind::object) ? "the text part's " : "its ",
                  model_of(shape, *family));
  if (const std::string missing = left_to_defaults(shape, *family); !missing.empty())
    text += fmt::format("; the file leaves {} to transformers' defaults: add them", missing);
  const std::int64_t embedded = whole(shape, {"word_embed_proj_dim"});  // OPT 350M
  if (embedded > 0 && embedded != whole(shape, kHidden))
    text += fmt::format("; its embeddings are {} wide (word_embed_proj_dim), and counted at full width here",
                        embedded);
  return text;
}
}  // namespace topsim::workloads
