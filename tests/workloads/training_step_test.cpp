#include "workloads/training_step.hpp"

#include <gtest/gtest.h>

#include "tests/workloads/fixtures.hpp"

namespace topsim::workloads {
namespace {
using namespace testing;

double flops_of_all_ranks(const program::Program& program) {
  std::vector<double> of_class;
  for (const auto& rank_program : program.classes) {
    double sum = 0;
    for (const auto& op : rank_program.ops) sum += op.flops.value();
    of_class.push_back(sum);
  }
  double total = 0;
  for (const auto rank_class : program.class_of_rank) total += of_class[rank_class];
  return total;
}

TEST(TrainingStep, FirstScenarioIsAValidProgram) {
  const auto program = training_step(llama3_70b_on_64(), h100(), 64);
  EXPECT_NO_THROW(program::validate(program));
  EXPECT_EQ(program.ranks, 64u);
  ASSERT_EQ(program.classes.size(), 2u);
  EXPECT_EQ(program.classes[0].name, "stage 0");
}

// Every model FLOP is done by exactly one rank, and recompute counts none.
TEST(TrainingStep, FlopsOfTheOpsAreThoseOfTheModel) {
  for (const auto kind : {RecomputeKind::none, RecomputeKind::selective, RecomputeKind::full}) {
    WorkloadSpec workload = llama3_70b_on_64();
    workload.plan.recompute = RecomputeSpec{kind, {}};
    const auto program = training_step(workload, h100(), 64);
    EXPECT_NEAR(flops_of_all_ranks(program) / program.facts.model_flops.value(), 1, 1e-12);
  }
}

// Cost follows the stages and not the replicas: 131,072 ranks take the ops of 16,384.
TEST(TrainingStep, ALargeJobIsAFewThousandOpsAStage) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.model = llama3_405b();
  workload.plan.pp = 16;
  workload.plan.stage_layers = {7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7};
  for (const int dp : {128, 1024}) {
    workload.plan.dp = dp;
    workload.plan.global_batch = 16 * dp;
    const auto program = training_step(workload, h100(), static_cast<std::uint32_t>(dp * 128));
    program::validate(program);
    for (const auto& stage : program.classes) EXPECT_LT(stage.ops.size(), 4000u);
  }
}
}  // namespace
}  // namespace topsim::workloads
