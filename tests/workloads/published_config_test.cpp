// Published config.json files in a scenario's keys. What must come out are the shapes of configs/models,
// which were written by hand.
#include "workloads/published_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace topsim::workloads::published_config_test {
using ::testing::HasSubstr;

std::string of(const std::string& json) {
  const config::Document document = config::Document::parse(json, "config.json");
  return written_out(document.root()).value_or("none");
}

TEST(PublishedConfig, LlamaHasGatesAndNoSequenceOfTheLongestContext) {
  EXPECT_EQ(
      of(R"({"model_type": "llama", "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
                   "max_position_embeddings": 131072, "num_attention_heads": 32, "num_hidden_layers": 32,
                   "num_key_value_heads": 8, "tie_word_embeddings": false, "is_encoder_decoder": false,
                   "vocab_size": 128256})"),
      "write its figures here: {\"layers\": 32, \"hidden\": 4096, \"heads\": 32, \"kv_heads\": 8, "
      "\"ffn\": 14336, \"vocab\": 128256, \"gated_ffn\": true}");
}

TEST(PublishedConfig, GemmaIsTiedWithoutSayingSoAndHasWiderHeadsAndWindows) {
  EXPECT_EQ(of(R"({"model_type": "gemma2", "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 3584,
                   "intermediate_size": 14336, "num_attention_heads": 16, "num_hidden_layers": 42,
                   "num_key_value_heads": 8, "head_dim": 256, "sliding_window": 4096, "vocab_size": 256000})"),
            "write its figures here: {\"layers\": 42, \"hidden\": 3584, \"heads\": 16, \"kv_heads\": 8, "
            "\"head_dim\": 256, \"ffn\": 14336, \"vocab\": 256000, \"gated_ffn\": true, \"activation\": "
            "\"gelu\", \"tied_embeddings\": true, \"attention\": {\"window\": 4096, \"full_every\": 2}}");
}

// As configs/models/deepseek-v3.json.
TEST(PublishedConfig, DeepSeekHasLatentAttentionAndExperts) {
  EXPECT_EQ(
      of(R"({"model_type": "deepseek_v3", "first_k_dense_replace": 3, "hidden_act": "silu",
             "hidden_size": 7168, "intermediate_size": 18432, "kv_lora_rank": 512, "moe_intermediate_size": 2048,
             "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1, "num_attention_heads": 128,
             "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128,
             "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
             "qk_rope_head_dim": 64, "topk_group": 4, "v_head_dim": 128, "vocab_size": 129280})"),
      "write its figures here: {\"layers\": 61, \"hidden\": 7168, \"heads\": 128, \"ffn\": 18432, \"vocab\": "
      "129280, \"gated_ffn\": true, \"attention\": {\"kind\": \"mla\", \"q_lora_rank\": 1536, "
      "\"kv_lora_rank\": 512, \"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64, \"v_head_dim\": 128}, "
      "\"dense_layers\": 3, \"experts\": {\"count\": 256, \"top_k\": 8, \"shared\": 1, \"ffn\": 2048, "
      "\"node_limit\": 4}, \"published_predictions\": 1}");
}

// Qwen2 states a window and does not use it; every layer of a list that sees all leaves none.
TEST(PublishedConfig, WindowsThatNoLayerUsesAreLeftOut) {
  EXPECT_THAT(of(R"({"model_type": "qwen2", "use_sliding_window": false, "sliding_window": 131072})"),
              ::testing::Not(HasSubstr("window")));
  EXPECT_THAT(of(R"({"model_type": "qwen3", "layer_types": ["full_attention"], "sliding_window": 4096})"),
              ::testing::Not(HasSubstr("window")));
  EXPECT_THAT(of(R"({"model_type": "gpt_oss", "sliding_window": 128,
                     "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]})"),
              HasSubstr("\"window\": 128, \"full_every\": 2"));
}

// Gemma 3 1B: layers 6, 12, 18 and 24 of 26. Its larger files say neither pattern nor heads.
TEST(PublishedConfig, GemmaThreesLayersSeeAllInTurn) {
  std::string types;
  for (int layer = 1; layer <= 26; ++layer)
    types += std::string(layer > 1 ? ", " : "") +
             (layer % 6 == 0 ? "\"full_attention\"" : "\"sliding_attention\"");
  EXPECT_THAT(
      of("{\"model_type\": \"gemma3_text\", \"sliding_window\": 512, \"layer_types\": [" + types + "]}"),
      HasSubstr("\"window\": 512, \"full_every\": 6, \"qk_norm\": true"));
  EXPECT_THAT(
      of(R"({"model_type": "gemma3_text", "sliding_window": 1024, "hidden_size": 2560})"),
      ::testing::AllOf(HasSubstr("\"full_every\": 6"), HasSubstr("leaves layers, heads, ffn, vocab to")));
}

// As configs/models/llama4-maverick.json.
TEST(PublishedConfig, MaverickHasExpertsInEverySecondLayerAndNoNormsOfHeads) {
  EXPECT_EQ(
      of(R"({"model_type": "llama4_text", "attention_chunk_size": 8192, "hidden_act": "silu", "hidden_size": 5120,
             "interleave_moe_layer_step": 2, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
             "num_attention_heads": 40, "num_experts_per_tok": 1, "num_hidden_layers": 48,
             "num_key_value_heads": 8, "num_local_experts": 128, "use_qk_norm": false, "vocab_size": 202048})"),
      "write its figures here: {\"layers\": 48, \"hidden\": 5120, \"heads\": 40, \"kv_heads\": 8, \"ffn\": "
      "16384, "
      "\"vocab\": 202048, \"gated_ffn\": true, \"attention\": {\"window\": 8192, \"full_every\": 4}, "
      "\"experts\": "
      "{\"count\": 128, \"top_k\": 1, \"shared\": 1, \"ffn\": 8192, \"every\": 2}}");
}

TEST(PublishedConfig, OfAModelThatSeesTheTextPartIsWritten) {
  EXPECT_THAT(of(R"({"model_type": "gemma3", "vision_config": {}, "text_config":
                     {"model_type": "gemma3_text", "hidden_size": 2560}})"),
              ::testing::StartsWith("write the text part's figures here: {\"hidden\": 2560"));
}

TEST(PublishedConfig, LayersThatAreNotDescribedAreRefusedByName) {
  EXPECT_THAT(of(R"({"model_type": "qwen3_next", "linear_num_value_heads": 32})"),
              HasSubstr("\"linear_num_value_heads\", which is not described here"));
  EXPECT_THAT(of(R"({"model_type": "llama", "layer_types": ["linear_attention"]})"),
              HasSubstr("layers of linear_attention"));
  EXPECT_THAT(of(R"({"model_type": "mystery"})"), HasSubstr("model_type \"mystery\" is not known here"));
}

// LLaVA 1.5 says only what differs from LlamaConfig.
TEST(PublishedConfig, FiguresThatAFileLeavesToDefaultsAreNamed) {
  EXPECT_EQ(
      of(R"({"model_type": "llava", "text_config": {"model_type": "llama", "vocab_size": 32064}})"),
      "write the text part's figures here: {\"vocab\": 32064, \"gated_ffn\": true}; the file leaves layers, "
      "hidden, heads, ffn to transformers' defaults: add them");
  // Without gates, four times the hidden size is the default of both.
  EXPECT_THAT(
      of(R"({"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257})"),
      ::testing::Not(HasSubstr("leaves")));
}

TEST(PublishedConfig, NarrowEmbeddingsAreSaid) {
  const std::string opt = R"({"model_type": "opt", "hidden_size": 1024, "num_attention_heads": 16,
                              "num_hidden_layers": 24, "vocab_size": 50272, "word_embed_proj_dim": )";
  EXPECT_THAT(of(opt + "512}"), HasSubstr("its embeddings are 512 wide (word_embed_proj_dim)"));
  EXPECT_THAT(of(opt + "1024}"), ::testing::Not(HasSubstr("wide")));
}

TEST(PublishedConfig, AModelThatShipsIsNamedWhereItsFileSaysTooLittle) {
  for (const auto& [type, model] : {std::pair("falcon", "falcon-7b"),
                                    {"dbrx", "dbrx-132b"},
                                    {"deepseek", "deepseek-moe-16b"},
                                    {"mpt", "mpt-30b"},
                                    {"gpt_bigcode", "starcoder-15b"},
                                    {"chatglm", "glm4-9b"},
                                    {"qwen", "qwen-14b"},
                                    {"internlm", "internlm-7b"},
                                    {"hunyuan", "hunyuan-large"},
                                    {"minimax_m2", "minimax-m2"},
                                    {"bert", "bert-large"}}) {
    EXPECT_THAT(of(std::string("{\"model_type\": \"") + type + "\"}"), HasSubstr(model));
    EXPECT_TRUE(
        std::filesystem::exists(std::string(TOPSIM_SOURCE_DIR) + "/configs/models/" + model + ".json"));
  }
}

TEST(PublishedConfig, OurOwnKeysAreNone) {
  EXPECT_EQ(of(R"({"layers": 32, "hidden": 4096})"), "none");
}
}  // namespace topsim::workloads::published_config_test
