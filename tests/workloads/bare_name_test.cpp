// What a framework without a release means: today's set, or that of its accelerators' time.
#include <gtest/gtest.h>

#include <string>

#include "tests/workloads/fixtures.hpp"
#include "workloads/framework.hpp"
#include "workloads/model.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::bare_name_test {
using namespace testing;

WorkloadSpec job_on(const char* accelerator, const char* framework = "megatron") {
  static const topology::Catalogue catalogue = topology::Catalogue::load("configs");
  WorkloadSpec workload;
  workload.model = gpt(8, 1024, 16);
  workload.sequence = 2048;
  workload.framework = framework;
  workload.host = host_facts(catalogue.accelerator(accelerator));
  return workload;
}

std::string set_for(const WorkloadSpec& workload) {
  const Framework& set = framework_of(workload);
  return std::string(set.name) + '@' + std::string(set.release);
}

// A100 succeeded V100 and T4 in 2020, H100 succeeded A100 (and A800, sold later) in 2022, B200 succeeded H100
// in 2024: the sets of 2021, 2023 and 2025, the last of which is the newest.
TEST(BareName, IsTheSetOfTheYearAfterTheSuccessorCame) {
  EXPECT_EQ(set_for(job_on("v100-sxm2-32gb")), "megatron@2021");
  EXPECT_EQ(set_for(job_on("t4")), "megatron@2021");
  EXPECT_EQ(set_for(job_on("a100-sxm4-80gb")), "megatron@2023");
  EXPECT_EQ(set_for(job_on("a800-sxm4-80gb")), "megatron@2023");
  EXPECT_EQ(set_for(job_on("h100-sxm5")), "megatron@2025");
  EXPECT_EQ(set_for(job_on("b200")), "megatron@2025");
  EXPECT_EQ(set_for(job_on("mi250x")), "megatron@2025");  // another maker's: as before
  EXPECT_EQ(set_for(job_on("a100-sxm4-80gb", "deepspeed")), "deepspeed@2022");
  EXPECT_EQ(set_for(job_on("a100-sxm4-80gb", "ddp")), "ddp@2024");  // the only one
}

TEST(BareName, StatedReleasesStay) {
  EXPECT_EQ(set_for(job_on("v100-sxm2-32gb", "megatron@2025")), "megatron@2025");
  EXPECT_EQ(set_for(job_on("h100-sxm5", "megatron@2022")), "megatron@2022");
}

TEST(BareName, IsNoOlderThanWhatTheJobAsksFor) {
  const auto with = [](auto&& change) {
    WorkloadSpec workload = job_on("a100-sxm4-80gb");
    change(workload);
    return set_for(workload);
  };
  EXPECT_EQ(with([](WorkloadSpec& w) { w.model.gated_ffn = true; }), "megatron@2024");
  EXPECT_EQ(with([](WorkloadSpec& w) { w.model.kv_heads = 4; }), "megatron@2024");
  EXPECT_EQ(with([](WorkloadSpec& w) { w.model.kv_heads = 16; }),
            "megatron@2023");  // what complete() fills in
  EXPECT_EQ(with([](WorkloadSpec& w) { w.model.experts.count = 8; }), "megatron@2024");
  EXPECT_EQ(with([](WorkloadSpec& w) { w.sequence = 4096; }), "megatron@2023");
  EXPECT_EQ(with([](WorkloadSpec& w) { w.sequence = 8192; }), "megatron@2024");
  WorkloadSpec flash = job_on("a100-sxm4-80gb", "fsdp");  // llm-foundry's has FlashAttention already
  flash.sequence = 8192;
  EXPECT_EQ(set_for(flash), "fsdp@2023");
  EXPECT_EQ(with([](WorkloadSpec& w) { w.plan.cp = 2; }), "megatron@2024");
  EXPECT_EQ(with([](WorkloadSpec& w) { w.task = Task::lora; }), "megatron@2024");
  EXPECT_EQ(with([](WorkloadSpec& w) { w.plan.tp_overlap = TensorOverlap::async; }), "megatron@2023");
  EXPECT_EQ(with([](WorkloadSpec& w) { w.plan.tp_overlap = TensorOverlap::userbuffers; }), "megatron@2024");
  EXPECT_EQ(with([](WorkloadSpec& w) { w.plan.zero_group.kind = ZeroGroup::Kind::node; }), "megatron@2024");
  EXPECT_EQ(with([](WorkloadSpec& w) { w.compute.cuda_graph = true; }), "megatron@2024");
  WorkloadSpec flat = job_on("a100-sxm4-80gb", "fsdp");
  EXPECT_EQ(set_for(flat), "fsdp@2023");
  flat.plan.tp = 2;
  EXPECT_EQ(set_for(flat), "fsdp@2024");
  // Servers and shards of everything are of today.
  EXPECT_EQ(with([](WorkloadSpec& w) { w.task = Task::decode; }), "megatron@2025");
  EXPECT_EQ(with([](WorkloadSpec& w) { w.plan.zero = 1; }), "megatron@2023");
  EXPECT_EQ(with([](WorkloadSpec& w) { w.plan.zero = 3; }), "megatron@2025-fsdp");
}

TEST(BareName, IsTheReleaseThatDescribesTheAcceleratorOrHasTheCompiler) {
  EXPECT_EQ(set_for(job_on("h100-sxm5", "maxtext")), "maxtext@2024-gpu");
  EXPECT_EQ(set_for(job_on("tpu-v5p", "maxtext")), "maxtext@2025");
  WorkloadSpec workload = job_on("h100-sxm5", "fsdp");
  EXPECT_EQ(set_for(workload), "fsdp@2024");
  workload.plan.tp_overlap = TensorOverlap::micro_pipeline;
  EXPECT_EQ(set_for(workload), "fsdp@2024-compile");
}
}  // namespace topsim::workloads::bare_name_test
