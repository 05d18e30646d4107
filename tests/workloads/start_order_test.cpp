// How long the kernels of a step keep others waiting for units, and who starts first of those that can start
// together.
#include <gtest/gtest.h>

#include "tests/workloads/fixtures.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::start_order_test {
using namespace testing;

TEST(StartOrder, SquaresOfKernelsGiveWhatIsLeftOfTheOneUnderWay) {
  // A product of t and 4 equal kernels of 4 s together: an instant lies in the product with t / (t + 4 s) and
  // finds t / 2 left, else s / 2: (t^2 + 4 s^2) / (2 (t + 4 s)).
  const topology::Accelerator chip = h100();
  const ComputeModel compute(chip, {});
  const KernelCost product = compute.gemm({8192, 8192, 8192}, Precision::bf16);
  const KernelCost copies = compute.memory_bound(8e9, MemoryKernel::elementwise, 4);
  EXPECT_DOUBLE_EQ(product.squares, product.seconds * product.seconds);
  EXPECT_DOUBLE_EQ(copies.squares, copies.seconds * copies.seconds / 4);
  EXPECT_DOUBLE_EQ((product + copies).squares, product.squares + copies.squares);
  EXPECT_DOUBLE_EQ((copies * 3).squares, 3 * copies.squares);
}

TEST(StartOrder, OfKernelsThatTheMemoryLimitsThoseThatReachSevenTenthsOfItFillIt) {
  // PyTorch's own norms reach 0.35 here, its additions 0.84; a large product is limited by its units.
  const topology::Accelerator chip = h100();
  ComputeSettings eager;
  eager.fused = false;
  const ComputeModel compute(chip, eager);
  const KernelCost norm = compute.memory_bound(1e9, MemoryKernel::norm);
  const KernelCost sum = compute.memory_bound(1e9, MemoryKernel::add);
  EXPECT_EQ(norm.filling, 0);
  EXPECT_EQ(norm.memory_seconds, norm.seconds);
  EXPECT_EQ(sum.filling, sum.seconds);
  EXPECT_EQ(compute.gemm({8192, 8192, 8192}, Precision::bf16).filling, 0);
  EXPECT_DOUBLE_EQ((norm + sum).filling, sum.seconds);
}

TEST(StartOrder, OpsOfAStepSayHowLongTheirKernelsAre) {
  const program::Program program = training_step(small("ddp"), h100(), 2);
  int runs = 0;
  for (const program::Op& op : program.classes.front().ops) {
    if (op.kind != program::OpKind::compute || op.residual == 0) continue;
    ++runs;
    EXPECT_LE(op.residual, 0.5F);
    EXPECT_GT(op.first_kernel, 0);
    EXPECT_LE(op.first_kernel, 1);
  }
  EXPECT_GT(runs, 5);
}

bool in_launch_order(const char* framework, int tp, const topology::Accelerator& chip) {
  WorkloadSpec workload = small(framework);
  workload.plan.tp = tp;
  return training_step(workload, chip, 4).classes.front().in_launch_order;
}

TEST(StartOrder, MegatronDemandsOneQueueWhereRanksShareLayersBeforeBlackwell) {
  EXPECT_TRUE(in_launch_order("megatron", 2, h100()));
  EXPECT_FALSE(in_launch_order("megatron", 1, h100()));
  topology::Accelerator blackwell = h100();
  blackwell.compute_capability = 100;
  EXPECT_FALSE(in_launch_order("megatron", 2, blackwell));
}

TEST(StartOrder, JaxKeepsOneAndPyTorchDoesNot) {
  EXPECT_TRUE(in_launch_order("maxtext@2024-gpu", 1, h100()));
  EXPECT_FALSE(in_launch_order("fsdp", 1, h100()));
  EXPECT_FALSE(in_launch_order("deepspeed", 2, h100()));
}
}  // namespace topsim::workloads::start_order_test
