// What the scripts of a benchmark set where a scenario leaves it open: NVIDIA's MLPerf code for LoRA.
#include <gtest/gtest.h>

#include "tests/workloads/adapters.hpp"

namespace topsim::workloads::scripts_test {
using namespace testing;
using Strings = std::vector<std::string>;

// One node of the benchmark: 8 bits on eight accelerators.
WorkloadSpec benchmark(int tp, int cp) {
  WorkloadSpec workload = adapted("megatron@2025-mlperf");
  workload.lora.reset();
  workload.precision.gemm = Precision::fp8;
  workload.plan.tp = tp, workload.plan.cp = cp;
  return workload;
}

TEST(Scripts, MlperfAdaptsAttentionAloneBesideFrozenWeightsOfEightBits) {
  const Plan plan = resolve(benchmark(1, 1), 8);
  EXPECT_TRUE(plan.adapters.qkv() && plan.adapters.proj);
  EXPECT_FALSE(plan.adapters.fc1() || plan.adapters.fc2);
  EXPECT_EQ(plan.frozen_weights, Precision::fp8);
  EXPECT_EQ(plan.attention_core, Precision::fp8);
}

// Its configurations with both tp and cp switch attention in 8 bits off.
TEST(Scripts, AttentionOfMlperfIsIn16BitsWhereTensorAndContextRanksDivideIt) {
  EXPECT_EQ(resolve(benchmark(4, 1), 8).attention_core, Precision::fp8);
  EXPECT_EQ(resolve(benchmark(1, 8), 8).attention_core, Precision::fp8);
  EXPECT_EQ(resolve(benchmark(4, 2), 8).attention_core, Precision::bf16);
}

TEST(Scripts, MlperfLaunchesLayersFromGraphsWhereContextRanksDivideThem) {
  EXPECT_EQ(scripted(benchmark(4, 1)).compute.graph_parts, Strings{});
  EXPECT_EQ(scripted(benchmark(1, 8)).compute.graph_parts, (Strings{"attention", "mlp"}));
  WorkloadSpec eager = benchmark(4, 2);
  eager.compute.cuda_graph = false;  // as v4.0 ran
  const Plan plan = resolve(eager, 8);
  EXPECT_FALSE(plan.host.graph_attention || plan.host.graph_mlp);
}

TEST(Scripts, MlperfOverlapsTensorParallelismByUserBuffersWhereSequencesAreSplit) {
  WorkloadSpec workload = benchmark(4, 1);
  EXPECT_EQ(resolve(workload, 8).tp_overlap, TensorOverlap::userbuffers);
  workload.plan.sequence_parallel = false;
  EXPECT_NE(resolve(workload, 8).tp_overlap, TensorOverlap::userbuffers);
}

// A rank alone leaves the matrices open.
TEST(Scripts, MatricesAreTheScriptsWhereARankIsGiven) {
  WorkloadSpec workload = benchmark(1, 1);
  workload.lora.emplace().rank = 8;
  const Plan plan = resolve(workload, 8);
  EXPECT_EQ(plan.adapters.rank, 8);
  EXPECT_FALSE(plan.adapters.fc1());
}

TEST(Scripts, WhatAJobSaysItselfStays) {
  WorkloadSpec workload = benchmark(1, 2);
  workload.lora.emplace().targets = Strings{"fc1"};
  workload.precision.frozen_weights = Precision::bf16, workload.precision.attention_core = Precision::bf16;
  workload.compute.graph_parts = {"mlp"};
  const WorkloadSpec said = scripted(workload);
  EXPECT_EQ(targets_of(*said.lora), Strings{"fc1"});
  EXPECT_EQ(said.precision.frozen_weights, Precision::bf16);
  EXPECT_EQ(said.precision.attention_core, Precision::bf16);
  EXPECT_EQ(said.compute.graph_parts, Strings{"mlp"});
}

TEST(Scripts, NothingIsSetInOtherTasksFormatsAndReleases) {
  WorkloadSpec wide = benchmark(1, 1), trained = benchmark(1, 2), plain = benchmark(1, 2);
  wide.precision.gemm = Precision::bf16;
  EXPECT_FALSE(scripted(wide).precision.frozen_weights || scripted(wide).precision.attention_core);
  trained.task = Task::finetune, trained.plan.tp = 4;
  EXPECT_EQ(scripted(trained).compute.graph_parts, Strings{});
  EXPECT_FALSE(scripted(trained).plan.tp_overlap);
  plain.framework = "megatron@2025";
  EXPECT_FALSE(scripted(plain).lora || scripted(plain).precision.frozen_weights);
}
}  // namespace topsim::workloads::scripts_test
