// torch.nn.DataParallel: what its one process sends between devices, what waits for device 0, what each
// device holds.
#include <gmock/gmock.h>

#include <numeric>

#include "sim/base/error.hpp"
#include "tests/workloads/fixtures.hpp"
#include "tests/workloads/replay.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::single_process_test {
using namespace testing;
using program::CollectiveKind;
using program::OpKind;
using program::Phase;

// 4 layers of 12 h^2 + 13 h = 12,596,224; embedding of 51200 words and 2048 positions, to which the head is
// tied; final norm.
constexpr double kParameters = 4 * 12'596'224.0 + (51200.0 + 2048) * 1024 + 2 * 1024;
constexpr double kLogits = 2048.0 * 51200;  // of one replica

WorkloadSpec small(int accumulation = 1) {
  WorkloadSpec workload;
  workload.model = gpt(4, 1024, 16);
  workload.framework = "dataparallel";
  workload.plan.grad_accumulation = accumulation;
  return workload;
}

double bytes(const program::RankProgram& device, OpKind kind, CollectiveKind collective = {}) {
  double sum = 0;
  for (const auto& op : device.ops)
    if (op.kind == kind && (kind != OpKind::collective || op.collective == collective))
      sum += static_cast<double>(op.bytes.value());
  return sum;
}
Duration launches(const program::RankProgram& device, Phase phase) {
  Duration sum{};
  for (const auto& op : device.ops)
    if (op.phase == phase && op.kind == OpKind::compute) sum += op.launch;
  return sum;
}

// For each micro-batch all fp32 parameters are broadcast before the forward pass, and all fp32 gradients
// reduced after the backward pass.
TEST(DataParallel, BroadcastsAllParametersAndReducesAllGradientsEveryMicroBatch) {
  for (const int accumulation : {1, 2}) {
    const auto program = training_step(small(accumulation), a100(), 8);
    program::validate(program);
    ASSERT_EQ(program.classes.size(), 8u);
    for (const auto& device : program.classes) {
      EXPECT_DOUBLE_EQ(bytes(device, OpKind::collective, CollectiveKind::broadcast),
                       accumulation * 4 * kParameters);
      EXPECT_DOUBLE_EQ(bytes(device, OpKind::collective, CollectiveKind::reduce),
                       accumulation * 4 * kParameters);
    }
  }
}

// Buckets close at 10 MiB: the embedding (208 MiB), then for each layer qkv (12 MiB), proj with fc1 (20 MiB)
// and fc2 (16 MiB). Norms go with their neighbours. The final norm, left over, is a bucket of its own.
TEST(DataParallel, BucketsHoldTenMebibytes) {
  const auto program = training_step(small(), a100(), 8);
  std::vector<std::int64_t> sent;
  for (const auto& op : program.classes[3].ops)
    if (op.kind == OpKind::collective && op.collective == CollectiveKind::broadcast)
      sent.push_back(op.bytes.value());
  ASSERT_EQ(sent.size(), 1u + 4 * 3 + 1);
  EXPECT_EQ(sent[0], 4 * (51200 + 2048) * 1024);
  EXPECT_EQ(sent.back(), 4 * 2 * 1024);
  sent.pop_back();
  for (const std::int64_t each : sent) EXPECT_GE(each, 10 << 20);
}

// Outputs go to device 0 in 16 bits and their gradients back; inputs go out, 8 bytes per token.
TEST(DataParallel, WholeOutputsTravelToDevice0) {
  const auto program = training_step(small(), a100(), 8);
  EXPECT_DOUBLE_EQ(bytes(program.classes[0], OpKind::recv), 7 * 2 * kLogits);
  EXPECT_DOUBLE_EQ(bytes(program.classes[0], OpKind::send), 7 * (2 * kLogits + 8 * 2048));
  EXPECT_DOUBLE_EQ(bytes(program.classes[5], OpKind::send), 2 * kLogits);
  EXPECT_DOUBLE_EQ(bytes(program.classes[5], OpKind::recv), 2 * kLogits + 8 * 2048);
}

// Device 0 computes the loss of the whole batch; no replica's backward pass begins before.
TEST(DataParallel, ReplicasWaitForTheLossOnDevice0) {
  const auto program = training_step(small(), a100(), 4);
  const auto result = free_network().run(program);
  Duration loss{};
  for (std::size_t i = 0; i < program.classes[0].ops.size(); ++i)
    if (program.labels[program.classes[0].ops[i].label].rfind("loss", 0) == 0)
      loss = std::max(loss, result.ended[0][i]);
  ASSERT_GT(loss.count(), 0);
  for (std::size_t d = 1; d < 4; ++d) {
    const auto& ops = program.classes[d].ops;
    for (std::size_t i = 0; i < ops.size(); ++i)
      if (ops[i].kind == OpKind::compute && ops[i].phase == Phase::backward) {
        EXPECT_GE(result.ended[d][i] - ops[i].duration, loss);
        break;
      }
    EXPECT_LT(result.busy[d], result.busy[0]);  // only device 0 has loss and optimiser
  }
}

// One Python interpreter launches the forward kernels of 8 replicas in turn, 8 times as slowly. Backward
// passes have autograd's own threads and are not slowed. Measured on device 1, which has neither loss nor
// optimiser, against a job of 2 replicas.
TEST(DataParallel, TheInterpreterLaunchesForwardPassesInTurn) {
  const auto two = training_step(small(), a100(), 2), eight = training_step(small(), a100(), 8);
  EXPECT_EQ(launches(eight.classes[1], Phase::forward).count(),
            4 * launches(two.classes[1], Phase::forward).count());
  EXPECT_EQ(launches(eight.classes[1], Phase::backward).count(),
            launches(two.classes[1], Phase::backward).count());
}

// Device 0 holds 22 bytes per parameter and the outputs of the whole batch in 16 and 32 bits; other devices
// hold 10 bytes.
TEST(DataParallel, Device0HoldsGradientsTwiceTheOptimiserAndAllOutputs) {
  const MemoryUse use = memory_use(small(), a100(), 8);
  ASSERT_EQ(use.stages.size(), 2u);
  const double all = kParameters;
  const MemoryParts &first = use.stages[0], &other = use.stages[1];
  EXPECT_DOUBLE_EQ(first.weights + first.gradients + first.optimizer, 22 * all);
  EXPECT_DOUBLE_EQ(other.weights + other.gradients + other.optimizer, 10 * all);
  EXPECT_DOUBLE_EQ(first.activations - other.activations, 8 * 6 * kLogits);
  EXPECT_EQ(use.fullest, 0u);
  EXPECT_DOUBLE_EQ(memory_use(small(2), a100(), 8).stages[0].gradients, 12 * all);
}

TEST(DataParallel, CutsTheBatchAndNothingElse) {
  WorkloadSpec workload = small();
  workload.plan.tp = 2;
  try {
    (void)training_step(workload, a100(), 8);
    FAIL() << "a replica of DataParallel is one device";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.problems()[0].message, ::testing::HasSubstr("copies the whole model to every device"));
  }
}
}  // namespace topsim::workloads::single_process_test
