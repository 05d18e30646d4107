// A mixture of experts as transformers computes it: one expert after the other.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/workloads/mixtures.hpp"

namespace topsim::workloads::looped_experts_test {
using namespace testing;

// transformers' loop: forward, and again in a full recompute, the host waits before each of E = 8 experts of
// 4 layers in both micro-batches; the backward pass asks for nothing. Products, their FLOPs and gradients are
// those of other frameworks.
TEST(LoopedExperts, AreAskedForOneByOne) {
  WorkloadSpec workload = small_moe(1, 1);
  const auto of = [&](std::string_view framework, RecomputeKind kind) {
    workload.framework = framework;
    workload.plan.recompute = RecomputeSpec{kind, {}};
    return training_step(workload, h100(), 8);
  };
  const auto waits = [&](const program::Program& program) {
    const auto& ops = program.classes[0].ops;
    return std::count_if(ops.begin(), ops.end(),
                         [](const auto& op) { return op.kind == program::OpKind::compute && op.host_sync; });
  };
  EXPECT_EQ(waits(of("fsdp@2024-flat", RecomputeKind::none)), 8 * 4 * 2);
  EXPECT_EQ(waits(of("fsdp@2024-flat", RecomputeKind::full)), 2 * 8 * 4 * 2);
  const auto flops = [](const program::Program& program) {
    double sum = 0;
    for (const auto& op : program.classes[0].ops) sum += op.flops.value();
    return sum;
  };
  const double loop = flops(of("fsdp@2024-flat", RecomputeKind::none));
  EXPECT_NEAR(loop, flops(of("fsdp@2024", RecomputeKind::none)), 1e-9 * loop);
}

// DeepSpeed around the same modules; and what the loop has not, experts on other ranks, is Megatron's way.
TEST(LoopedExperts, AreTransformersAlone) {
  const auto waits = [](std::string_view framework, int ep) {
    WorkloadSpec workload = small_moe(1, ep);
    workload.framework = framework;
    workload.plan.recompute = RecomputeSpec{RecomputeKind::none, {}};
    const auto program = training_step(workload, h100(), 8);
    const auto& ops = program.classes[0].ops;
    return std::count_if(ops.begin(), ops.end(),
                         [](const auto& op) { return op.kind == program::OpKind::compute && op.host_sync; });
  };
  EXPECT_EQ(waits("deepspeed@2024-transformers", 1), 8 * 4 * 2);
  EXPECT_EQ(waits("fsdp@2024", 1), 4 * 2);  // once a layer, for the counts of all experts
  EXPECT_LT(waits("fsdp@2024-flat", 2), 8 * 4 * 2);
}
}  // namespace topsim::workloads::looped_experts_test
