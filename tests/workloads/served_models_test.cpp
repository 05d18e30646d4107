// What an accelerator keeps of a model that it serves, and what a server of a kind of model does not do.
#include <gmock/gmock.h>

#include "sim/base/error.hpp"
#include "tests/workloads/fixtures.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/plan.hpp"

namespace topsim::workloads::served_models_test {
using namespace testing;

WorkloadSpec serving(Task task) {
  WorkloadSpec workload;
  workload.model = llama3_70b();
  workload.task = task;
  workload.plan.tp = 8;
  workload.plan.global_batch = 64;
  return workload;
}

void expect_mistake(const WorkloadSpec& workload, const std::string& path, const std::string& help) {
  try {
    (void)resolve(workload, 8);
    FAIL() << path;
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.problems().size(), 1u) << error.what();
    EXPECT_EQ(error.problems()[0].path, "workload." + path);
    EXPECT_THAT(error.problems()[0].help, ::testing::HasSubstr(help));
  }
}

// An encoder reads a prompt once: no later token asks for its keys and values.
TEST(ServedModels, AnEncoderKeepsNoCacheAndGeneratesNothing) {
  WorkloadSpec workload = serving(Task::prefill);
  EXPECT_GT(memory_use(workload, h100(), 8).peak().kv_cache, 0);
  workload.model.attention.causal = false;
  EXPECT_EQ(memory_use(workload, h100(), 8).peak().kv_cache, 0);
  workload.task = Task::decode;
  expect_mistake(workload, "task", "prefill");
  workload.task = Task::prefill;
  workload.precision.kv_cache = Precision::fp8;
  expect_mistake(workload, "precision.kv_cache", "leave it out");
}

TEST(ServedModels, AdaptersAreTrainedOnly) {
  for (const Task task : {Task::prefill, Task::decode}) {
    WorkloadSpec workload = serving(task);
    workload.lora.emplace();
    expect_mistake(workload, "lora", "leave lora out");
  }
}

// One 8-bit scale for 16 numbers of NVFP4, 0.5 + 1/16 bytes each, and for 32 of MXFP8: a cache of 16 bits is
// 3.56 and 1.94 times as large, in memory and as attention reads it.
TEST(ServedModels, CachesInBlocksHaveTheirScales) {
  const topology::Accelerator accelerator = h100();
  const ComputeModel compute(accelerator, {});
  WorkloadSpec workload = serving(Task::decode);
  const auto kept = [&](Precision format) {
    workload.precision.kv_cache = format;
    return memory_use(workload, accelerator, 8).peak().kv_cache;
  };
  const auto read = [&](Precision format, double keys) {
    const AttentionShape shape{1, 8, 8, 1, keys, 128, 128};
    return compute.attention_decode(shape, Precision::bf16, format).seconds;
  };
  for (const auto& [format, bytes] :
       {std::pair(Precision::nvfp4, 0.5625), {Precision::mxfp8, 1.03125}, {Precision::fp8, 1.0}}) {
    EXPECT_DOUBLE_EQ(kept(format), kept(Precision::bf16) * bytes / 2);
    // 8 heads of 128 keys and 128 values for each of 2^20 tokens more, at 0.8 x 3.35 TB/s.
    EXPECT_NEAR(read(format, 2097152) - read(format, 1048576), bytes * 8 * 256 * 1048576 / (0.8 * 3.35e12),
                1e-9);
  }
}
}  // namespace topsim::workloads::served_models_test
