// The kernels of engines that serve a model, where they differ from those that train it.
#include <gmock/gmock.h>

#include "sim/base/error.hpp"
#include "tests/workloads/fixtures.hpp"
#include "tests/workloads/mixtures.hpp"
#include "workloads/layer/pieces.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::served_kernels_test {
using namespace testing;

WorkloadSpec decoding(Precision gemm = Precision::bf16) {
  WorkloadSpec workload;
  workload.model = complete(llama3_70b());
  workload.task = Task::decode;
  workload.plan.tp = 8, workload.plan.micro_batch = 16;
  workload.precision.gemm = gemm;
  return workload;
}
KernelCost layer(const WorkloadSpec& workload, std::optional<Part> part = {}) {
  const topology::Accelerator accelerator = h100();
  const ComputeModel compute(accelerator, {});
  const Plan plan = resolve(workload, 8);
  const PiecePair pieces =
      transformer_layer(workload.model, LayerKind::dense, plan, compute, RecomputeKind::none);
  KernelCost sum;
  for (const Piece& piece : pieces.forward.pieces())
    if (!piece.collective && (!part || piece.part == *part)) sum += piece.cost;
  return sum;
}

// fused_add_rms_norm: one kernel in front of each half of a layer reads the half's input and the residual and
// writes the sum and its norm, 4 times 16 rows of 8192 numbers of 2 bytes.
TEST(ServedKernels, NormsAddTheResidual) {
  const topology::Accelerator accelerator = h100();
  const ComputeModel compute(accelerator, {});
  const KernelCost norms = layer(decoding(), Part::norm);
  EXPECT_EQ(norms.kernels, 2);
  EXPECT_NEAR(norms.seconds, 2 * compute.memory_bound(4 * 16 * 8192 * 2, MemoryKernel::norm).seconds, 1e-12);
}

// Of the inputs of a layer's four products the norms write two in 8 bits and the activation one; the answer
// of attention is cast. Scales of blocks have kernels of their own for all four.
TEST(ServedKernels, WriteEightBitsWhereTheyCan) {
  const double wide = layer(decoding()).kernels;
  EXPECT_EQ(layer(decoding(Precision::fp8)).kernels, wide + 1);
  EXPECT_EQ(layer(decoding(Precision::fp8_blockwise)).kernels, wide + 4);
}

// YaRN's factor is in the sines that are kept: no kernel more, unlike in training.
TEST(ServedKernels, RotateWithAFactorAsWithout) {
  WorkloadSpec plain = decoding(), scaled = decoding();
  scaled.model.attention.scaled_rotary = true;
  EXPECT_EQ(layer(scaled).kernels, layer(plain).kernels);
  plain.task = scaled.task = Task::pretrain;
  EXPECT_GT(layer(scaled).kernels, layer(plain).kernels);
}

// 855,638,016 numbers a layer in matrices of 80 layers, on one of eight ranks: NVFP4 has 8 bits of scale for
// 16 numbers of 4 bits, MXFP8 8 bits for 32 of 8, MXFP4 for 32 of 4.
TEST(ServedKernels, WeightsInMemoryHaveTheirScales) {
  const double numbers = 80 * 855'638'016.0 / 8;
  const auto layers = [](const WorkloadSpec& workload) {
    const double ends = 2.0 * 128256 * 8192 / 8 * 2 + 8192 * 2;
    return memory_use(workload, h100(), 8).peak().weights - ends;
  };
  constexpr double kNorms = 0.001;
  EXPECT_NEAR(layers(decoding(Precision::fp8)) / numbers, 1, kNorms);
  WorkloadSpec stored = decoding();
  stored.precision.weights = WeightFormat::nvfp4;
  EXPECT_NEAR(layers(stored) / numbers, 0.5 + 1.0 / 16, kNorms);
  stored.precision.weights = WeightFormat::mxfp4;
  EXPECT_NEAR(layers(stored) / numbers, 0.5 + 1.0 / 32, kNorms);
}

// vLLM fills nine tenths of an accelerator. Weights of 70 billion parameters in 16 bits on two of them, 65.7
// GiB, and 80 GiB: 6.3 GiB are left for the cache of requests of 4,096 tokens, 80 layers x 2 x 4 heads x 128
// x 2 B each, 0.625 GiB: ten are too many with what passes through a layer.
TEST(ServedKernels, LeaveATenthOfTheMemory) {
  const auto fits = [](int requests, std::optional<double> share) {
    WorkloadSpec workload = decoding();
    workload.plan.tp = 2, workload.sequence = 4096, workload.plan.micro_batch = requests;
    workload.plan.memory_utilization = share;
    return memory_use(workload, h100(), 2).fits();
  };
  EXPECT_TRUE(fits(9, {}));
  EXPECT_FALSE(fits(11, {}));
  EXPECT_TRUE(fits(11, 0.95));
  WorkloadSpec training = decoding();
  training.task = Task::pretrain, training.plan.memory_utilization = 0.9;
  EXPECT_THROW((void)resolve(training, 8), ConfigError);
}

// Without a graph the host pays for attention's modules in a mixture as in a dense layer, 0.6 of its calls.
TEST(ServedKernels, AMixtureCostsItsHostAttentionToo) {
  const auto host = [](bool experts) {
    WorkloadSpec workload;
    workload.model = gpt(1, 2048, 32, 1024, 512);
    workload.model.gated_ffn = true, workload.model.kv_heads = 8;
    if (experts)
      workload.model.experts.count = 128, workload.model.experts.top_k = 8, workload.model.experts.ffn = 768;
    workload.task = Task::decode, workload.compute.cuda_graph = false;
    double sum = 0;
    const auto program = training_step(workload, h100(), 1);
    for (const auto& op : program.classes[0].ops) sum += seconds(op.launch);
    return sum;
  };
  EXPECT_GT(host(true), 0.6 * host(false));
}
}  // namespace topsim::workloads::served_kernels_test
