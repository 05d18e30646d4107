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
}  // namespace topsim::workloads::served_models_test
