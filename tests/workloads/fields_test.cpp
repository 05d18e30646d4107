#include "workloads/fields.hpp"

#include <gmock/gmock.h>

#include "sim/base/error.hpp"
#include "sim/config/object.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads {
namespace {

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

TEST(WorkloadFields, WhatIsWrittenReadsBackTheSame) {
  const WorkloadSpec spec =
      read(R"({"model": "mixtral-8x7b", "plan": {"zero_group": "node", "recompute": 2}})");
  const std::string text = config::write(spec);
  EXPECT_EQ(config::write(read(text)), text);
}

TEST(WorkloadFields, AnUnknownFrameworkIsNamedWithTheKnownOnes) {
  try {
    (void)read(R"({"model": "llama3-8b", "framework": "megatronn"})");
    FAIL();
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.problems().size(), 1u);
    EXPECT_THAT(error.problems()[0].message, testing::HasSubstr("megatronn"));
    EXPECT_THAT(error.problems()[0].label, testing::HasSubstr("megatron"));
  }
}

// Parameters that the models' papers state, in 1e9.
TEST(Models, ShippedShapesHaveThePublishedNumberOfParameters) {
  const std::pair<const char*, double> published[] = {
      {"gpt3-175b", 175},     {"llama2-7b", 6.74},      {"llama2-13b", 13.0},     {"llama2-70b", 69.0},
      {"llama3-8b", 8.03},    {"llama3-70b", 70.6},     {"llama3-405b", 405.9},   {"megatron-1.7b", 1.7},
      {"megatron-3.6b", 3.6}, {"megatron-7.5b", 7.5},   {"megatron-18b", 18.4},   {"megatron-39b", 39.1},
      {"megatron-76b", 76.1}, {"megatron-145b", 145.6}, {"megatron-310b", 310.1}, {"megatron-530b", 529.6},
      {"megatron-1t", 1008},  {"korthikanti-22b", 22},  {"bloom-176b", 176.2},    {"mt-nlg-530b", 530},
      {"qwen2.5-7b", 7.62},   {"qwen2.5-72b", 72.7}};
  for (const auto& [name, billions] : published) {
    const WorkloadSpec spec = read(std::string("{\"model\": \"") + name + "\"}");
    EXPECT_NEAR(total_parameters(complete(spec.model)) / 1e9, billions, std::max(0.05, 0.012 * billions))
        << name;
  }
}
}  // namespace
}  // namespace topsim::workloads
