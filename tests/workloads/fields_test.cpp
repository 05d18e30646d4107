#include "workloads/fields.hpp"

#include <gmock/gmock.h>

#include "sim/base/error.hpp"
#include "sim/config/object.hpp"
#include "workloads/framework.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads::fields_test {

const config::Library& library() {
  static const config::Library shipped({TOPSIM_SOURCE_DIR "/configs"});
  return shipped;
}

WorkloadSpec read(std::string text) {
  return config::read<WorkloadSpec>(config::Document::parse(std::move(text), "test.json"), &library());
}

TEST(WorkloadFields, TheContractsExampleReadsCompletely) {
  const WorkloadSpec spec = read(R"({
    "model": "llama3-70b",
    "plan": { "tp": 8, "pp": 2, "dp": 4, "cp": 1, "ep": 1, "virtual_stages": 1, "schedule": "1f1b",
              "micro_batch": 1, "global_batch": 128, "sequence_parallel": true, "zero": 1,
              "recompute": "selective", "overlap_grad_reduce": true, "overlap_param_gather": true },
    "sequence": 8192, "precision": "bf16", "framework": "megatron" })");
  EXPECT_EQ(spec.model.name, "llama3-70b");
  EXPECT_EQ(spec.model.layers, 80);
  EXPECT_EQ(spec.model.kv_heads, 8);
  EXPECT_EQ(spec.plan.recompute->kind, RecomputeKind::selective);
  EXPECT_EQ(spec.plan.schedule, Schedule::one_f_one_b);
  EXPECT_EQ(spec.plan.global_batch, 128);
}

TEST(WorkloadFields, ANumberOfLayersIsFullRecomputeOfThem) {
  const WorkloadSpec spec = read(R"({"model": {"use": "llama3-8b", "layers": 4}, "plan": {"recompute": 3}})");
  EXPECT_EQ(spec.model.layers, 4);
  EXPECT_EQ(spec.plan.recompute->kind, RecomputeKind::full);
  EXPECT_EQ(spec.plan.recompute->layers, 3);
}

TEST(WorkloadFields, PrecisionIsANameOrAnObjectPerPart) {
  EXPECT_EQ(read(R"({"model": "llama3-8b", "precision": "fp8"})").precision.gemm, Precision::fp8);
  const auto parts =
      read(R"({"model": "llama3-8b", "precision": {"gemm": "fp8", "gradients": "bf16"}})").precision;
  EXPECT_EQ(parts.gemm, Precision::fp8);
  EXPECT_EQ(parts.gradients, Precision::bf16);
}

TEST(WorkloadFields, TheOrderOfRanksIsAListOrMegatronsText) {
  const auto order = [](const std::string& given) {
    return read(R"({"model": "llama3-8b", "plan": {"rank_order": )" + given + "}}").plan.rank_order;
  };
  EXPECT_EQ(order(R"("tp-pp-dp-cp-ep")"), (std::vector<std::string>{"tp", "pp", "dp", "cp", "ep"}));
  EXPECT_EQ(order(R"("tp-pp-dp-cp-ep")"), order(R"(["tp", "pp", "dp", "cp", "ep"])"));
  EXPECT_THROW(order(R"("tp-bp")"), ConfigError);
}

TEST(WorkloadFields, WhatIsWrittenReadsBackTheSame) {
  const WorkloadSpec spec =
      read(R"({"model": "mixtral-8x7b", "plan": {"zero_group": "node", "recompute": 2}})");
  const std::string text = config::write(spec);
  EXPECT_EQ(config::write(read(text)), text);
}

TEST(WorkloadFields, AYearWithoutASetOfItsOwnHasTheOneBeforeIt) {
  // Megatron has sets of 2019, 2021, 2022, ..., that of 2021 since v2.0 of 2020; FSDP's first is of 2023.
  EXPECT_EQ(framework("megatron@2019").release, "2019");
  EXPECT_EQ(framework("megatron@2020").release, "2021");
  EXPECT_EQ(framework("megatron@2026").release, "2025");
  EXPECT_EQ(framework("megatron@2021").release, "2021");
  EXPECT_EQ(framework("megatron@2030").release, framework("megatron").release);
  EXPECT_EQ(framework("fsdp@2020").release, "2023");
  EXPECT_THROW((void)framework("megatron@main"), ConfigError);
  EXPECT_EQ(read(R"({"model": "llama3-8b", "framework": "megatron@2020"})").framework, "megatron@2020");
  EXPECT_THROW((void)read(R"({"model": "llama3-8b", "framework": "megatron@2018"})"), ConfigError);
}

TEST(WorkloadFields, AnUnknownFrameworkIsNamedWithTheKnownOnes) {
  try {
    (void)read(R"({"model": "llama3-8b", "framework": "megatronn"})");
    FAIL();
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.problems().size(), 1u);
    EXPECT_THAT(error.problems()[0].message, ::testing::HasSubstr("megatronn"));
    EXPECT_THAT(error.problems()[0].label, ::testing::HasSubstr("megatron"));
  }
}

// Parameters that the models' papers state, in 1e9.
TEST(Models, ShippedShapesHaveThePublishedNumberOfParameters) {
  const std::pair<const char*, double> published[] = {{"gpt3-175b", 175},
                                                      {"llama2-7b", 6.74},
                                                      {"llama2-13b", 13.0},
                                                      {"llama2-70b", 69.0},
                                                      {"llama3-8b", 8.03},
                                                      {"llama3-70b", 70.6},
                                                      {"llama3-405b", 405.9},
                                                      {"megatron-1.7b", 1.7},
                                                      {"megatron-3.6b", 3.6},
                                                      {"megatron-7.5b", 7.5},
                                                      {"megatron-18b", 18.4},
                                                      {"megatron-39b", 39.1},
                                                      {"megatron-76b", 76.1},
                                                      {"megatron-145b", 145.6},
                                                      {"megatron-310b", 310.1},
                                                      {"megatron-530b", 529.6},
                                                      {"megatron-1t", 1008},
                                                      {"korthikanti-22b", 22},
                                                      {"bloom-176b", 176.2},
                                                      {"mt-nlg-530b", 530},
                                                      {"qwen2.5-7b", 7.62},
                                                      {"qwen2.5-72b", 72.7},
                                                      {"qwen2.5-0.5b", 0.49},
                                                      {"qwen2.5-1.5b", 1.54},
                                                      {"qwen2.5-3b", 3.09},
                                                      {"qwen2.5-14b", 14.7},
                                                      {"qwen2.5-32b", 32.5},
                                                      {"qwen3-0.6b", 0.6},
                                                      {"qwen3-1.7b", 1.7},
                                                      {"qwen3-4b", 4.0},
                                                      {"qwen3-8b", 8.2},
                                                      {"qwen3-14b", 14.8},
                                                      {"qwen3-32b", 32.8},
                                                      {"opt-125m", 0.125},
                                                      {"opt-350m", 0.35},
                                                      {"opt-1.3b", 1.3},
                                                      {"opt-2.7b", 2.7},
                                                      {"opt-6.7b", 6.7},
                                                      {"opt-13b", 13},
                                                      {"opt-30b", 30},
                                                      {"opt-66b", 66},
                                                      {"opt-175b", 175},
                                                      {"llama3.2-1b", 1.24},
                                                      {"llama3.2-3b", 3.21},
                                                      {"llama1-7b", 6.7},
                                                      {"llama1-13b", 13.0},
                                                      {"llama1-33b", 32.5},
                                                      {"llama1-65b", 65.2},
                                                      {"nemotron4-15b", 15.6},
                                                      {"nemotron4-340b", 340},
                                                      {"gemma-7b", 8.54},
                                                      {"gemma2-27b", 27.2},
                                                      {"glm-130b", 130},
                                                      {"gpt2", 0.124},
                                                      {"gpt2-medium", 0.355},
                                                      {"gpt2-large", 0.774},
                                                      {"gpt2-xl", 1.558},
                                                      {"gpt-neox-20b", 20.6},
                                                      {"pythia-160m", 0.162},
                                                      {"pythia-410m", 0.405},
                                                      {"pythia-1b", 1.01},
                                                      {"pythia-1.4b", 1.41},
                                                      {"pythia-2.8b", 2.78},
                                                      {"pythia-6.9b", 6.86},
                                                      {"pythia-12b", 11.85},
                                                      {"mistral-7b", 7.24},
                                                      {"mistral-nemo-12b", 12.2},
                                                      {"gpt-j-6b", 6.05},
                                                      {"palm-62b", 62.50},
                                                      {"palm-540b", 540.35},
                                                      {"phi-2", 2.78},
                                                      {"command-r-35b", 34.98},
                                                      {"command-r-plus-104b", 103.8},
                                                      {"falcon-7b", 6.92},
                                                      {"falcon-40b", 41.3},
                                                      {"falcon-180b", 179.5},
                                                      {"olmo2-1b", 1.48},
                                                      {"olmo2-7b", 7.3},
                                                      {"olmo2-13b", 13.7},
                                                      {"olmo2-32b", 32.2},
                                                      {"mpt-7b", 6.65},
                                                      {"mpt-30b", 30},
                                                      {"qwen-1.8b", 1.84},
                                                      {"qwen-7b", 7.72},
                                                      {"qwen-14b", 14.2},
                                                      {"qwen-72b", 72.3},
                                                      {"qwen2-0.5b", 0.49},
                                                      {"qwen2-1.5b", 1.54},
                                                      {"qwen2-7b", 7.62},
                                                      {"qwen2-72b", 72.7},
                                                      {"gpt3-1.3b", 1.3},
                                                      {"gpt3-2.7b", 2.7},
                                                      {"gpt3-6.7b", 6.7},
                                                      {"gpt3-13b", 13},
                                                      {"bert-base", 0.11},
                                                      {"bert-large", 0.34},
                                                      {"turing-nlg-17b", 17},
                                                      {"bloom-560m", 0.559},
                                                      {"bloom-1.1b", 1.07},
                                                      {"bloom-1.7b", 1.72},
                                                      {"bloom-3b", 3},
                                                      {"bloom-7.1b", 7.07},
                                                      {"cerebras-gpt-6.7b", 6.7},
                                                      {"cerebras-gpt-13b", 13},
                                                      {"starcoder-15b", 15.5},
                                                      {"starcoder2-3b", 3.03},
                                                      {"starcoder2-7b", 7.17},
                                                      {"starcoder2-15b", 16},
                                                      {"codellama-7b", 6.74},
                                                      {"codellama-13b", 13},
                                                      {"codellama-34b", 33.7},
                                                      {"tinyllama-1.1b", 1.1},
                                                      {"smollm2-135m", 0.135},
                                                      {"smollm2-360m", 0.362},
                                                      {"smollm2-1.7b", 1.71},
                                                      {"smollm3-3b", 3.08},
                                                      {"yi-6b", 6.06},
                                                      {"yi-34b", 34.4},
                                                      {"deepseek-llm-7b", 6.9},
                                                      {"deepseek-llm-67b", 67.4},
                                                      {"internlm-7b", 7.32},
                                                      {"internlm2-7b", 7.74},
                                                      {"internlm2-20b", 19.9},
                                                      {"baichuan2-7b", 7.5},
                                                      {"baichuan2-13b", 13.9},
                                                      {"mistral-small-24b", 23.6},
                                                      {"mistral-large-123b", 123},
                                                      {"phi-3-mini", 3.8},
                                                      {"phi-3-medium", 14},
                                                      {"phi-4", 14.7},
                                                      {"gemma-2b", 2.51},
                                                      {"gemma2-2b", 2.61},
                                                      {"gemma2-9b", 9.24},
                                                      {"gemma3-1b", 1},
                                                      {"gemma3-4b", 3.884},
                                                      {"gemma3-12b", 11.77},
                                                      {"gemma3-27b", 27.02},
                                                      {"qwen1.5-32b", 32.5},
                                                      {"qwen1.5-110b", 111.2},
                                                      {"glm4-9b", 9.4},
                                                      {"seed-oss-36b", 36.2},
                                                      {"grok-1", 314},
                                                      {"llama3.1-8b", 8.03},
                                                      {"llama3.1-70b", 70.6},
                                                      {"llama3.3-70b", 70.6},
                                                      {"llama3.1-405b", 405.9}};
  for (const auto& [name, billions] : published) {
    const WorkloadSpec spec = read(std::string("{\"model\": \"") + name + "\"}");
    const double digits = billions < 1 ? 0.025 * billions : std::max(0.05, 0.012 * billions);  // as printed
    EXPECT_NEAR(total_parameters(complete(spec.model)) / 1e9, billions, digits) << name;
  }
}

// Mixtures of experts: all parameters, and those that one token uses, as published. DeepSeek and gpt-oss
// leave the input embedding out of the latter (V3: "37B", gpt-oss: 5.13 and 3.61), GLM-4.5 the head too (its
// totals have a module of multi-token prediction instead); Kimi K2 says 32.6.
enum class Counted { all, without_embedding, without_embedding_and_head };
TEST(Models, MixturesHaveThePublishedTotalAndActiveParameters) {
  struct Published {
    const char* name;
    double total, active;
    Counted counted = Counted::all;
  };
  constexpr Counted kNoEmbedding = Counted::without_embedding, kNoHead = Counted::without_embedding_and_head;
  const Published published[] = {{"mixtral-8x7b", 46.7, 12.9},
                                 {"mixtral-8x22b", 141, 39},
                                 {"deepseek-v2", 236, 21, kNoEmbedding},
                                 {"deepseek-v2-lite", 15.7, 2.4, kNoEmbedding},
                                 {"deepseek-v3", 671, 37, kNoEmbedding},
                                 {"kimi-k2", 1040, 32.6},
                                 {"qwen2-57b-a14b", 57.4, 14.2},
                                 {"qwen3-30b-a3b", 30.5, 3.3},
                                 {"qwen3-235b-a22b", 235, 22},
                                 {"dbrx-132b", 132, 36},
                                 {"gpt-oss-120b", 117, 5.1, kNoEmbedding},
                                 {"gpt-oss-20b", 20.9, 3.6, kNoEmbedding},
                                 {"llama4-scout", 109, 17},
                                 {"llama4-maverick", 400, 17},
                                 {"deepseek-moe-16b", 16.4, 2.8},
                                 {"qwen1.5-moe-a2.7b", 14.3, 2.7},
                                 {"phi-3.5-moe", 41.9, 6.6},
                                 {"qwen3-coder-480b-a35b", 480, 35},
                                 {"olmoe-1b-7b", 6.92, 1.28},
                                 {"hunyuan-large", 389, 52},
                                 {"deepseek-r1", 671, 37, kNoEmbedding},
                                 {"glm-4.5", 355, 32, kNoHead},
                                 {"glm-4.5-air", 106, 12, kNoHead},
                                 {"minimax-m2", 230, 10, kNoHead}};
  for (const Published& row : published) {
    const ModelSpec model = complete(read(std::string("{\"model\": \"") + row.name + "\"}").model);
    EXPECT_NEAR(total_parameters(model) / 1e9, row.total, 0.014 * row.total) << row.name;
    double active = active_parameters(model);
    if (row.counted != Counted::all) active -= embedding_parameters(model);
    if (row.counted == Counted::without_embedding_and_head) active -= head_parameters(model);
    EXPECT_NEAR(active / 1e9, row.active, 0.025 * row.active) << row.name;
  }
}
}  // namespace topsim::workloads::fields_test
