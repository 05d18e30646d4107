// Mixtures of experts where tokens are generated: which experts are read, and what the tensor ranks send.
#include <gmock/gmock.h>

#include "tests/workloads/mixtures.hpp"

namespace topsim::workloads::generating_experts_test {
using namespace testing;
using program::CollectiveKind;
using program::OpKind;

// An H100 reads weights at 0.83 of 3.35 TB/s.
constexpr double kWeights = 0.83 * 3.35e12;

// Shapes of Qwen3-30B-A3B's experts: 8 of 128 a token, h 2048, width 768: 3 x 2048 x 768 numbers of 2 bytes.
constexpr double kExpert = 3.0 * 2048 * 768 * 2;
WorkloadSpec generating(int batch, int tp = 1, int ep = 1, Task task = Task::decode) {
  WorkloadSpec workload;
  workload.model = gpt(1, 2048, 32, 1024, 512);
  workload.model.gated_ffn = true, workload.model.kv_heads = 8;
  workload.model.experts.count = 128, workload.model.experts.top_k = 8, workload.model.experts.ffn = 768;
  workload.task = task;
  if (task == Task::decode) workload.sequence = 16;  // hardly a cache
  if (ep > 1) workload.plan.etp = 1;
  workload.plan.tp = tp, workload.plan.ep = ep, workload.plan.micro_batch = batch;
  return workload;
}
program::Program step(const WorkloadSpec& workload) {
  auto program = training_step(workload, h100(), static_cast<std::uint32_t>(workload.plan.tp));
  program::validate(program);
  return program;
}
double busy(const WorkloadSpec& workload) {
  double sum = 0;
  const auto program = step(workload);
  for (const auto& op : program.classes[0].ops)
    if (op.kind == OpKind::compute) sum += seconds(op.duration);
  return sum;
}

// One token reads 8 experts; two read 8 + 8 x 120 / 128 = 15.5; sixteen 128 (1 - (120 / 128)^16) = 82.42.
// What else a layer does hardly grows: another token's cache and activations are some
// 200 KB, 2 % of an expert.
TEST(GeneratingExperts, ReadOnlyThoseThatHaveTokens) {
  const double one = busy(generating(1)), two = busy(generating(2)), sixteen = busy(generating(16));
  EXPECT_NEAR((two - one) * kWeights / kExpert, 7.5, 0.1);
  EXPECT_NEAR((sixteen - one) * kWeights / kExpert, 74.42, 1);
}

// On two ranks of 64 experts each, tokens of both visit 64 (1 - (120 / 128)^B): of 16 requests 41.21, of one
// 4.
TEST(GeneratingExperts, OnRanksOfTheirOwnToo) {
  const double one = busy(generating(1, 2, 2)), sixteen = busy(generating(16, 2, 2));
  EXPECT_NEAR((sixteen - one) * kWeights / kExpert, 37.21, 1);
}

// With many tokens every expert is read and the work is what each token's K experts are: 2 FLOPs for each of
// 8 x 3 x 2048 x 768 weights, twice for twice the tokens.
TEST(GeneratingExperts, WorkFollowsTheTokens) {
  const auto flops = [](int batch) { return step(generating(batch)).facts.model_flops.value(); };
  EXPECT_NEAR(flops(64) / flops(32), 2, 1e-12);
  EXPECT_NEAR(flops_of_all_ranks(step(generating(64))) / flops(64), 1, 1e-3);
}

// A layer on 8 tensor ranks: one all-reduce after attention and one after the experts, each of
// 512 tokens x 2048 x 2 B = 2 MiB, beside that of the embedding; nothing among experts.
TEST(GeneratingExperts, TensorRanksSumOnceALayer) {
  const auto program = step(generating(1, 8, 1, Task::prefill));
  int sums = 0;
  for (const auto& op : collectives(program, program::Dimension::tensor)) {
    if (op.collective != CollectiveKind::all_reduce) continue;
    EXPECT_EQ(op.bytes.value(), 512 * 2048 * 2);
    ++sums;
  }
  EXPECT_EQ(sums, 3);
  EXPECT_THAT(collectives(program, program::Dimension::expert), ::testing::IsEmpty());
}

// The host calls one product, not one an expert: 128 experts cost it what 8 do.
TEST(GeneratingExperts, AreOneCallOfTheHost) {
  WorkloadSpec many = generating(1, 1, 1, Task::prefill), few = many;
  few.model.experts.count = 8;
  const auto host = [](const WorkloadSpec& workload) {
    double sum = 0;
    const auto program = step(workload);
    for (const auto& op : program.classes[0].ops) sum += seconds(op.launch);
    return sum;
  };
  EXPECT_NEAR(host(many), host(few), 1e-9);
}
}  // namespace topsim::workloads::generating_experts_test
