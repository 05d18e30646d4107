// DeepSpeed around a model of transformers: what its hooks cost the host, and the sizes that "auto" means.
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "tests/workloads/fixtures.hpp"
#include "workloads/framework.hpp"
#include "workloads/host/host.hpp"
#include "workloads/model.hpp"
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
  const program::Program program = training_step(workload, a100(), 1);
  Duration sum{};
  for (const program::Op& op : program.classes.front().ops) sum += op.launch;
  return seconds(sum);
}

// An opcode is 3.5 us / 158 = 22 ns. A module costs stage 3 three views, two Functions and its opcodes:
// 7.5 + 52 + 1805 x 0.022 = 99.2 us forward, 7.5 + 52 + 1384 x 0.022 = 89.9 backward; a matrix 20 + 17.5 +
// 2095 x 0.022 = 83.6 and 83.5. A Llama layer calls 14 modules with 7 matrices, one of GPT, which has neither
// gate nor rotary embedding, 12 with 6 (queries, keys and values apart): 12 x 189.2 + 6 x 167.1 = 3,273 us.
constexpr double kModule = 99.21e-6 + 89.948e-6, kMatrix = 83.59e-6 + 83.546e-6;
constexpr double kLayer = 12 * kModule + 6 * kMatrix;
TEST(DeepSpeedHooks, CostTheHostOfStage3) {
  const char* set = "deepspeed@2024-transformers";
  EXPECT_NEAR(host_seconds(job(set, 3)) - host_seconds(job(set, 2)), 4 * kLayer, 1e-8);
  // Megatron's own layers are counted with Megatron's calls alone.
  EXPECT_NEAR(host_seconds(job("deepspeed", 3)), host_seconds(job("deepspeed", 2)), 1e-9);
}

// What stage `zero` costs the host beside stage `less`.
double more(WorkloadSpec workload, int zero, int less) {
  workload.plan.zero = zero;
  const double all = host_seconds(workload);
  workload.plan.zero = less;
  return all - host_seconds(workload);
}
WorkloadSpec llama() {
  WorkloadSpec workload = job("deepspeed@2024-transformers", 1);
  workload.model.gated_ffn = true;
  return workload;
}
WorkloadSpec with_adapters(WorkloadSpec workload) {
  workload.task = Task::lora;
  workload.lora.emplace().targets = {"qkv", "proj", "fc1", "fc2"};
  return workload;
}

// Stages 1 and 2 have a hook at each gradient: 3 operators, 6 views and a Function, 30 + 15 + 26 = 71 us; of
// 6 matrices, their biases and both norms' weights and biases here, of 7 matrices and 2 norms in Llama.
// Without ZeRO there is none.
TEST(DeepSpeedHooks, CostAFunctionForEachGradient) {
  EXPECT_NEAR(more(job("deepspeed@2024-transformers", 1), 1, 0), 4 * 16 * 71e-6, 1e-8);
  EXPECT_NEAR(more(llama(), 1, 0), 4 * 9 * 71e-6, 1e-8);
  EXPECT_NEAR(more(llama(), 3, 2), 4 * (14 * kModule + 7 * kMatrix), 1e-8);
}

// Mixtral's layer: 9 modules without the dense network's 5, the block, its router, 8 experts of 5 (itself,
// three layers, activation); 4 matrices of attention, the router's, 8 x 3, and the gradients of both norms.
TEST(DeepSpeedHooks, SeeEveryExpert) {
  WorkloadSpec mixture = llama();
  mixture.model.experts.count = 8, mixture.model.experts.top_k = 2, mixture.model.experts.ffn = 1024;
  EXPECT_NEAR(more(mixture, 3, 2), 4 * ((9 + 2 + 8 * 5) * kModule + (4 + 1 + 8 * 3) * kMatrix), 1e-8);
  EXPECT_NEAR(more(mixture, 1, 0), 4 * (4 + 1 + 8 * 3 + 2) * 71e-6, 1e-8);
}

// A recomputed layer runs the hooks of its forward pass again: 12 x 99.21 + 6 x 83.59 us.
TEST(DeepSpeedHooks, AreCalledAgainByACheckpoint) {
  WorkloadSpec once = job("deepspeed@2024-transformers", 3), again = once;
  again.plan.recompute->kind = RecomputeKind::full;
  const HostProfile& host = framework(once.framework).host;
  EXPECT_NEAR(host_seconds(again) - host_seconds(once),
              4 * (seconds(host_time(host.forward + host.checkpoint)) + 12 * 99.21e-6 + 6 * 83.59e-6), 1e-8);
}

// PEFT wraps the 6 layers that have adapters here: 4 modules and 2 matrices more for each, and gradients of
// 2 x 6 matrices instead of 16 tensors.
TEST(DeepSpeedHooks, SeeEveryModuleOfAnAdapter) {
  const WorkloadSpec whole = job("deepspeed@2024-transformers", 1), adapted = with_adapters(whole);
  EXPECT_NEAR(more(adapted, 3, 2) - more(whole, 3, 2), 4 * (6 * 4 * kModule + 12 * kMatrix), 1e-8);
  EXPECT_NEAR(more(adapted, 1, 0), 4 * 12 * 71e-6, 1e-8);
}

// Trainer with DeepSpeed had neither tensor nor pipeline parallelism; Megatron-DeepSpeed has both.
TEST(DeepSpeedTransformers, DividesNoModel) {
  const auto tries = [](const char* framework, int tp, int pp) {
    WorkloadSpec workload = job(framework, 1);
    workload.model = complete(workload.model);
    workload.plan.tp = tp, workload.plan.pp = pp;
    (void)resolve(workload, 4);
  };
  EXPECT_NO_THROW(tries("deepspeed", 2, 2));
  EXPECT_NO_THROW(tries("deepspeed@2024-transformers", 1, 1));
  try {
    tries("deepspeed@2024-transformers", 2, 2);
    FAIL();
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.problems().size(), 2u);
    EXPECT_EQ(error.problems()[0].path, "workload.plan.tp");
    EXPECT_EQ(error.problems()[0].help,
              "set tp to 1, or use framework deepspeed, which is Megatron-DeepSpeed");
    EXPECT_EQ(error.problems()[1].path, "workload.plan.pp");
  }
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
