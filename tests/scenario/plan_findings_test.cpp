// How a run understands what a plan says.
#include "sim/scenario/findings/plan_findings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/framework.hpp"

namespace topsim::scenario::plan_findings_test {
using testing::HasSubstr;
using testing::Not;
using workloads::WorkloadSpec;

WorkloadSpec job() {
  WorkloadSpec workload;
  workload.model.layers = 8, workload.model.hidden = 2048, workload.model.heads = 16;
  workload.model.vocab = 51200;
  workload.plan.tp = 8;
  return workload;
}
std::string words(const WorkloadSpec& workload) {
  std::string all;
  for (const report::Finding& finding : plan_findings(workload))
    all += finding.message + "; " + finding.remedy + "\n";
  return all;
}

// If 0.8 was meant as a speed, as in the fault gpu_slow, the factor is 1 / 0.8 = 1.25.
TEST(PlanFindings, SayThatASlowRankIsAFastOne) {
  WorkloadSpec slow = job();
  slow.compute.slow_ranks = {{"3", 1.25}};
  EXPECT_EQ(words(slow), "");
  slow.compute.slow_ranks = {{"3", 0.8}};
  EXPECT_THAT(words(slow), HasSubstr("rank 3 is faster than the others"));
  EXPECT_THAT(words(slow), HasSubstr("1.25 makes it 0.8 times as fast"));
}

// Modules that predict further tokens are trained; a decode step yields one token of each request.
TEST(PlanFindings, SayThatPredictionLayersDoNotSpeculate) {
  WorkloadSpec model = job();
  model.model.prediction_layers = 1;
  EXPECT_EQ(words(model), "");
  model.task = workloads::Task::decode;
  EXPECT_THAT(words(model), HasSubstr("prediction_layers has no effect"));
}

// Sets of 2025 for PyTorch are named by how it runs, so its newest plain year is 2024; Megatron has one of
// 2025.
TEST(PlanFindings, SayWhichSetAYearWithoutItsOwnIs) {
  WorkloadSpec later = job();
  later.framework = "fsdp@2026";
  EXPECT_THAT(words(later), HasSubstr("fsdp@2026 is fsdp@2024, and there are newer sets"));
  EXPECT_THAT(words(later), HasSubstr("fsdp@2025-eager"));
  for (const char* plain : {"fsdp", "fsdp@2024", "fsdp@2025-eager", "megatron@2026", "ddp@2025"}) {
    later.framework = plain;
    EXPECT_EQ(words(later), "") << plain;
  }
}

// DeepSpeed has no set of 2023: the year means the one of 2022, whose layers store attention's scores.
// 2020 means megatron@2021, which lacks both. The next set that has what is lacking is named.
TEST(PlanFindings, SayWhatTheSetOfAYearWithoutItsOwnHasNot) {
  WorkloadSpec old = job();
  old.framework = "deepspeed@2023";
  EXPECT_THAT(words(old), HasSubstr("deepspeed@2023 is deepspeed@2022, which has no FlashAttention"));
  EXPECT_THAT(words(old), HasSubstr("scores are stored (deepspeed@2024 has it)"));
  old.framework = "megatron@2020";
  EXPECT_THAT(
      words(old),
      HasSubstr("scores are stored, no distributed optimiser unless zero is 1 (megatron@2024 has both)"));
  // What the scenario says itself does not come from the set.
  old.plan.zero = 1;
  EXPECT_THAT(words(old), HasSubstr("which has no FlashAttention: attention scores are stored (megatron@"));
  EXPECT_THAT(words(old), Not(HasSubstr("distributed optimiser")));
  old.model.attention.kernel = workloads::AttentionKernel::flash2;
  EXPECT_EQ(words(old), "");
  for (const char* both : {"megatron@2023", "megatron@2022", "megatron@2021", "megatron@2019"})
    EXPECT_EQ(workloads::lacks_of(workloads::framework(both)),
              "no FlashAttention: attention scores are stored, no distributed optimiser unless zero is 1");
  EXPECT_EQ(workloads::lacks_of(workloads::framework("megatron@2024")), "");
  EXPECT_EQ(workloads::lacks_of(workloads::framework("deepspeed@2024-transformers")), "");
}

// 50,257 words over 8 ranks are 6282.1 each. The next multiple of 128 x 8 is 50 x 1024 = 51,200.
TEST(PlanFindings, SayHowAnUnevenVocabularyIsDivided) {
  EXPECT_EQ(words(job()), "");
  WorkloadSpec odd = job();
  odd.model.vocab = 50257;
  EXPECT_THAT(words(odd), HasSubstr("6282.1 words"));
  EXPECT_THAT(words(odd), HasSubstr("vocab = 51200"));
  odd.plan.tp = 1;
  EXPECT_EQ(words(odd), "");
}

// GPT-2's table has 1,024 rows. Rotary positions have no table, and a model that says nothing no limit.
TEST(PlanFindings, SayThatATableOfPositionsIsLongerThanTheModels) {
  WorkloadSpec long_job = job();
  long_job.sequence = 65536;
  EXPECT_EQ(words(long_job), "");
  long_job.model.name = "gpt2", long_job.model.sequence = 1024;
  EXPECT_THAT(words(long_job),
              HasSubstr("gpt2 has learned positions for 1024 tokens, and a sequence has 65536"));
  EXPECT_THAT(words(long_job), HasSubstr("workload.model.sequence=65536"));
  long_job.model.positions = workloads::Positions::rotary;
  EXPECT_EQ(words(long_job), "");
  long_job.model.positions.reset();
  long_job.sequence = 1024;
  EXPECT_EQ(words(long_job), "");
}

// tp 2 x cp 4 on 4 key-value heads: two ranks share each head. 8 heads would be one each.
TEST(PlanFindings, SayThatUlyssesRepeatsKeyValueHeads) {
  WorkloadSpec shared = job();
  shared.plan.tp = 2, shared.plan.cp = 4, shared.plan.cp_kind = workloads::ContextKind::ulysses;
  shared.model.kv_heads = 4;
  EXPECT_THAT(words(shared), HasSubstr("repeat"));
  shared.model.kv_heads = 8;
  EXPECT_EQ(words(shared), "");
}

TEST(PlanFindings, SayWhoseBytesImbalanceCounts) {
  WorkloadSpec uneven = job();
  uneven.model.experts.count = 8, uneven.model.experts.imbalance = 2, uneven.plan.ep = 8;
  EXPECT_THAT(words(uneven), HasSubstr("2 times the mean"));
  uneven.plan.ep = 1;  // a single rank has all rows
  EXPECT_EQ(words(uneven), "");
}

TEST(PlanFindings, SayThatVirtualStagesAreInterleaved) {
  WorkloadSpec stages = job();
  stages.plan.pp = 2, stages.plan.virtual_stages = 2;
  EXPECT_EQ(words(stages), "");
  stages.plan.schedule = workloads::Schedule::one_f_one_b;
  EXPECT_THAT(words(stages), HasSubstr("runs as the interleaved schedule"));
}
}  // namespace topsim::scenario::plan_findings_test
