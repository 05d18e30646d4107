#include "workloads/host/host.hpp"

#include <gtest/gtest.h>

#include "tests/workloads/fixtures.hpp"
#include "workloads/framework.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads {
namespace {
using namespace testing;

// The two published figures: nn.Linear is a module and an operator, 3.5 + 10 us; Megatron's
// ColumnParallelLinear has 3 views and 2 Functions more, 3.5 + 10 + 3 x 2.5 + 2 x 26 = 73 us of the 74 that
// were measured.
TEST(Host, TimesOfCallsAddUpToPublishedModules) {
  EXPECT_NEAR(seconds(host_time({1, 0, 0, 1})), 13.5e-6, 1e-9);
  EXPECT_NEAR(seconds(host_time({1, 3, 2, 1})), 74e-6, 2e-6);
}

WorkloadSpec job() {
  WorkloadSpec workload;
  workload.model = gpt(2, 1024, 16);
  workload.framework = "megatron@2022";
  workload.plan.grad_accumulation = 3;
  workload.plan.recompute = RecomputeSpec{};
  return workload;
}

double host_seconds(const WorkloadSpec& workload) {
  Duration sum{};
  const program::Program program = training_step(workload, a100(), 1);
  for (const program::Op& op : program.classes.front().ops) sum += op.launch;
  return seconds(sum);
}

// 2 layers x 3 micro-batches; each does its forward again, and saves and restores what full recompute needs.
TEST(Host, FullRecomputePaysTheForwardAgainAndTheCheckpoint) {
  WorkloadSpec again = job();
  again.plan.recompute->kind = RecomputeKind::full;
  const HostProfile& host = framework("megatron@2022").host;
  EXPECT_NEAR(host_seconds(again) - host_seconds(job()),
              6 * seconds(host_time(host.forward + host.checkpoint)), 1e-9);
}

TEST(Host, ASlowHostNeedsAsManyTimesMore) {
  WorkloadSpec slow = job();
  slow.compute.host_factor = 2.5;
  EXPECT_NEAR(host_seconds(slow), 2.5 * host_seconds(job()), 1e-9);
}

// A graph of some hundred kernels, 2 us each, costs far less than the calls that would launch them.
TEST(Host, AGraphLeavesLaunchesOnly) {
  WorkloadSpec graph = job();
  graph.compute.cuda_graph = true;
  EXPECT_LT(host_seconds(graph), 0.2 * host_seconds(job()));
  EXPECT_GT(host_seconds(graph), 0);
}

// A given launch time is the whole of the host: no calls are counted beside it.
TEST(Host, AGivenLaunchTimeReplacesTheCount) {
  WorkloadSpec given = job();
  given.compute.launch_overhead = Duration(1'000'000);
  WorkloadSpec graph = job();
  graph.compute.cuda_graph = true;
  EXPECT_NEAR(host_seconds(given) * 2, host_seconds(graph), 0.3 * host_seconds(graph));
}
}  // namespace
}  // namespace topsim::workloads
