// DeepSpeed around a model of transformers: what its hooks cost the host, and the sizes that "auto" means.
#include <gtest/gtest.h>

#include "tests/workloads/fixtures.hpp"
#include "workloads/framework.hpp"
#include "workloads/host/host.hpp"
#include "workloads/plan.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::deepspeed_test {
using namespace testing;

WorkloadSpec job(const char* framework, int zero) {
  WorkloadSpec workload;
  workload.model = gpt(4, 1024, 16);
  workload.framework = framework;
  workload.plan.zero = zero;
  workload.plan.recompute = RecomputeSpec{};
  return workload;
}

double host_seconds(const WorkloadSpec& workload) {
  Duration sum{};
  for (const program::Op& op : training_step(workload, a100(), 1).classes.front().ops) sum += op.launch;
  return seconds(sum);
}

// An opcode is 3.5 us / 158 = 22 ns. A module costs stage 3 three views, two Functions and its opcodes:
// 7.5 + 52 + 1805 x 0.022 = 99.2 us forward, 7.5 + 52 + 1384 x 0.022 = 89.9 backward; a matrix 20 + 17.5 +
// 2095 x 0.022 = 83.6 and 83.5. A layer of GPT calls 14 modules with 6 matrices (queries, keys and values
// apart): 14 x 189.2 + 6 x 167.1 = 3,651 us, with a gate 7 matrices.
constexpr double kLayer = 14 * (99.21e-6 + 89.948e-6) + 6 * (83.59e-6 + 83.546e-6);
TEST(DeepSpeedHooks, CostTheHostOfStage3) {
  const char* set = "deepspeed@2024-transformers";
  EXPECT_NEAR(host_seconds(job(set, 3)) - host_seconds(job(set, 2)), 4 * kLayer, 1e-8);
  // Megatron's own layers are counted with Megatron's calls alone.
  EXPECT_NEAR(host_seconds(job("deepspeed", 3)), host_seconds(job("deepspeed", 2)), 1e-9);
}

// Stages 1 and 2 have a hook at the gradient of each of 6 matrices: 3 operators, 6 views and a Function, 30 +
// 15 + 26 = 71 us. Without ZeRO there is none.
TEST(DeepSpeedHooks, CostAFunctionForEachGradient) {
  const char* set = "deepspeed@2024-transformers";
  EXPECT_NEAR(host_seconds(job(set, 1)) - host_seconds(job(set, 0)), 4 * 6 * 71e-6, 1e-8);
}

// A recomputed layer runs the hooks of its forward pass again: 14 x 99.21 + 6 x 83.59 us.
TEST(DeepSpeedHooks, AreCalledAgainByACheckpoint) {
  WorkloadSpec once = job("deepspeed@2024-transformers", 3), again = once;
  again.plan.recompute->kind = RecomputeKind::full;
  const HostProfile& host = framework(once.framework).host;
  EXPECT_NEAR(host_seconds(again) - host_seconds(once),
              4 * (seconds(host_time(host.forward + host.checkpoint)) + 14 * 99.21e-6 + 6 * 83.59e-6), 1e-8);
}

// PEFT wraps the 6 layers that have adapters here: 4 modules and 2 matrices more for each, and gradients of
// 2 x 6 matrices instead of 6, in stage 3 and below.
TEST(DeepSpeedHooks, SeeEveryModuleOfAnAdapter) {
  const auto hooks = [](bool adapters) {
    WorkloadSpec third = job("deepspeed@2024-transformers", 3);
    if (adapters) {
      third.task = Task::lora;
      third.lora = LoraSpec{};
      third.lora->rank = 8;
      third.lora->targets = {"qkv", "proj", "fc1", "fc2"};
    }
    WorkloadSpec second = third;
    second.plan.zero = 2;
    return host_seconds(third) - host_seconds(second);
  };
  EXPECT_NEAR(hooks(true) - hooks(false), 4 * (6 * 4 * (99.21e-6 + 89.948e-6) + 12 * (83.59e-6 + 83.546e-6)),
              1e-8);
}

// Trainer's "auto" for hidden 1024: buckets of 1024^2, and gathers ahead of 0.9 x 1024^2 = 943,718.4 numbers.
// Layers, norms and loss are those of FSDP around the same model; Adam is DeepSpeed's.
TEST(DeepSpeedTransformers, TakesItsSizesFromTheHiddenSize) {
  const auto plan = [](const char* framework) {
    WorkloadSpec workload = job(framework, 3);
    workload.model = complete(workload.model);
    return resolve(workload, 8);
  };
  const Plan here = plan("deepspeed@2024-transformers"), megatron = plan("deepspeed"),
             modules = plan("fsdp@2024-flat");
  EXPECT_EQ(here.bucket_elements, 1024 * 1024);
  EXPECT_NEAR(here.prefetch_elements, 943718.4, 1e-6);
  EXPECT_EQ(megatron.bucket_elements, 5e8);
  EXPECT_EQ(megatron.prefetch_elements, 5e7);
  EXPECT_EQ(here.eager_norms, modules.eager_norms);
  EXPECT_EQ(here.gate_apart, modules.gate_apart);
  EXPECT_NE(here.attention, AttentionKernel::unfused);
  EXPECT_TRUE(here.fused_adam);
  EXPECT_FALSE(modules.fused_adam);
}
}  // namespace topsim::workloads::deepspeed_test
