// Kernels that only move numbers between the matmuls: copies of queries, keys and values, biases, the dense
// gradient of the embedding table, copies and averages of gradients.
#include <gtest/gtest.h>

#include "tests/workloads/fixtures.hpp"
#include "workloads/layer/layer_kernels.hpp"
#include "workloads/model.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::copies_test {
using namespace testing;

constexpr double kBandwidth = 0.8 * 3.35e12;  // bytes per second of a fused kernel on an H100

struct Seconds {
  double forward = 0, backward = 0;
};
Seconds sums(const PiecePair& pair) {
  Seconds result;
  for (const Piece& piece : pair.forward.pieces()) result.forward += piece.cost.seconds;
  for (const Piece& piece : pair.backward.pieces()) result.backward += piece.cost.seconds;
  return result;
}
Plan plan_of(const ModelSpec& model, const std::string& framework, int tp) {
  WorkloadSpec workload;
  workload.model = model;
  workload.framework = framework;
  workload.plan.tp = tp, workload.plan.global_batch = 8;
  workload.plan.recompute = RecomputeSpec{};
  return resolve(workload, 8);
}
Seconds layer(const ModelSpec& model, const Plan& plan) {
  static const topology::Accelerator accelerator = h100();
  return sums(
      transformer_layer(model, LayerKind::dense, plan, ComputeModel(accelerator, {}), RecomputeKind::none));
}
// What the plan's copies around the attention core add, as numbers read or written per token.
Seconds copied(const ModelSpec& model, const Plan& plan) {
  Plan without = plan;
  without.core_copies = CoreCopies::packed;
  const Seconds all = layer(model, plan), some = layer(model, without);
  const double number = plan.tokens() * 2 / kBandwidth;
  return {(all.forward - some.forward) / number, (all.backward - some.backward) / number};
}

// A copy of a slice writes 3.35e9 numbers per second on each of 132 units, so in the time in which kBandwidth
// moves this many numbers, reads and writes.
constexpr double kSliced = kBandwidth / (2 * 132 * 3.35e9);

// Llama-3 70B, heads of 128; a copy reads and writes. Tensor 4: 16 query heads (q = 2048 numbers) in 2 groups
// (k = v = 256). Queries of several groups are copied, 2048, and values, 256, slices both; backward the
// gradients of all three are joined, 2 x 2560. Tensor 8: 8 query heads (1024) of one group (128), so the
// queries' reshape needs no copy: 128, and backward 2 x 1280.
TEST(Copies, TransformerEngineCopiesGroupedQueriesAndValues) {
  const ModelSpec model = complete(llama3_70b());
  const Seconds four = copied(model, plan_of(model, "megatron", 4));
  EXPECT_NEAR(four.forward, kSliced * (2048 + 256), 1e-6);
  EXPECT_NEAR(four.backward, 2 * 2560, 1e-6);
  const Seconds eight = copied(model, plan_of(model, "megatron", 8));
  EXPECT_NEAR(eight.forward, kSliced * 128, 1e-6);
  EXPECT_NEAR(eight.backward, 2 * 1280, 1e-6);
  // Without rotary embedding and with as many keys as queries, Transformer Engine reads the result of the
  // fused projection as it is (layout sbh3d).
  const ModelSpec plain = complete(gpt(2, 1024, 16));
  const Seconds none = copied(plain, plan_of(plain, "megatron", 1));
  EXPECT_EQ(none.forward, 0);
  EXPECT_EQ(none.backward, 0);
}

// Megatron's own core attention, h = 1024. Forward the heads' answers are brought into token order, h.
// Backward dQ and dK are scaled, 4 h, and joined with dV, 6 h.
TEST(Copies, MegatronsOwnAttentionPutsItsAnswerInOrder) {
  const ModelSpec model = complete(gpt(2, 1024, 16));
  const Seconds own = copied(model, plan_of(model, "megatron@2022", 1));
  EXPECT_NEAR(own.forward, kSliced * 1024, 1e-6);
  EXPECT_NEAR(own.backward, 10 * 1024, 1e-6);
  // Before a flash kernel, queries, keys and values are copied instead, 3 h; backward their gradients are
  // joined, 6 h.
  Plan flash = plan_of(model, "megatron@2022", 1);
  flash.attention = AttentionKernel::flash;
  EXPECT_NEAR(copied(model, flash).forward, kSliced * 3 * 1024, 1e-6);
  EXPECT_NEAR(copied(model, flash).backward, 6 * 1024, 1e-6);
}

// Tensor 8 of Llama-3 70B under FSDP: keys and values of one group (2 x 128) are read and written for 8 heads
// (2 x 1024). Backward those gradients are read and summed.
TEST(Copies, PyTorchRepeatsKeysAndValues) {
  const ModelSpec model = complete(llama3_70b());
  const Seconds repeated = copied(model, plan_of(model, "fsdp@2024-compile", 8));
  EXPECT_NEAR(repeated.forward, 2 * 128 + 2 * 1024, 1e-6);
  EXPECT_NEAR(repeated.backward, 2 * 128 + 2 * 1024, 1e-6);
  // Not compiled, a copy whose operand repeats writes 2 x 1024 numbers one by one.
  const Plan eager = plan_of(model, "fsdp@2024", 8);
  EXPECT_NEAR(copied(model, eager).forward, kSliced * 2 * 1024, 1e-6);
}

// wq, wk and wv are three products, w1 and w3 two. Each has its own gradient of the input, 8192 numbers per
// token, so 3 more than one joined product has. Compiled, the next kernel reads each of them: 3 passes.
// Operator by operator each is added, two reads and a write: 9. Forward takes the same time, at a fixed
// matmul efficiency.
TEST(Copies, ProductsApartHaveGradientsOfTheirInputToAdd) {
  static const topology::Accelerator accelerator = h100();
  ComputeSettings settings;
  settings.gemm_efficiency = 0.5;
  const ComputeModel compute(accelerator, settings);
  const ModelSpec model = complete(llama3_70b());
  for (const auto& [framework, passes] : {std::pair{"fsdp@2024-compile", 3.0}, {"fsdp", 9.0}}) {
    const Plan plan = plan_of(model, framework, 1);
    Plan joined = plan;
    joined.gate_apart = joined.qkv_apart = false;
    const Seconds apart =
        sums(transformer_layer(model, LayerKind::dense, plan, compute, RecomputeKind::none));
    const Seconds one =
        sums(transformer_layer(model, LayerKind::dense, joined, compute, RecomputeKind::none));
    EXPECT_NEAR(apart.forward, one.forward, 1e-9) << framework;
    EXPECT_NEAR(apart.backward - one.backward, passes * plan.tokens() * 8192 * 2 / kBandwidth, 1e-9)
        << framework;
  }
  EXPECT_FALSE(plan_of(model, "megatron", 1).gate_apart);
  // InternEvo: one product of queries, keys and values (FlashAttention's packed ones), two of gate and up.
  EXPECT_TRUE(plan_of(model, "internevo", 1).gate_apart);
  EXPECT_FALSE(plan_of(model, "internevo", 1).qkv_apart);
}

// In both passes.
void expect_longer(const Seconds& longer, const Seconds& shorter, double seconds) {
  EXPECT_NEAR(longer.forward - shorter.forward, seconds, 1e-9);
  EXPECT_NEAR(longer.backward - shorter.backward, seconds, 1e-9);
}

// Rotation by complex numbers runs in fp32 and in separate kernels: 20 bytes per number of queries and keys
// (1024 + 128) where the fused kernel moves 4, in both passes.
TEST(Copies, ComplexRotaryEmbeddingIsNotFused) {
  const ModelSpec model = complete(llama3_70b());
  Plan plan = plan_of(model, "fsdp@2024-compile", 8);
  const Seconds complex = layer(model, plan);
  plan.complex_rotary = false;
  const Seconds fused = layer(model, plan);
  expect_longer(complex, fused, 16 * plan.tokens() * 1152 / kBandwidth);
}

// Operator by operator, queries and keys (9 heads of 128 at tensor 8) take 10 kernels: a sum that moves 3
// numbers of 2 B; of one operand half of the numbers negated and the halves joined, of two both products.
TEST(Copies, EagerRotaryEmbeddingMovesNumbersOneByOne) {
  const ModelSpec model = complete(llama3_70b());
  Plan plan = plan_of(model, "fsdp@2024-flat", 8);
  const Seconds eager = layer(model, plan);
  plan.complex_rotary = true;
  const Seconds complex = layer(model, plan);
  const double numbers = plan.tokens() * 1152;
  expect_longer(eager, complex,
                numbers * (6 / kBandwidth + (1.5 / 3.35e9 + 2 / 1.51e9) / 132 - 20 / kBandwidth));
}

// The bias of the QKV projection, 3 h numbers per token: added in a kernel that reads and writes them; its
// gradient reads them once more.
TEST(Biases, OfTheProjectionAreKernelsOfTheirOwnBeforeTransformerEngine) {
  const ModelSpec model = complete(gpt(2, 1024, 16));
  Plan plan = plan_of(model, "megatron@2022", 1);
  const Seconds apart = layer(model, plan);
  plan.bias_kernels = false;
  const Seconds inside = layer(model, plan);
  const double number = plan.tokens() * 2 / kBandwidth;
  EXPECT_NEAR((apart.forward - inside.forward) / number, 6 * 1024, 1e-6);
  EXPECT_NEAR((apart.backward - inside.backward) / number, 3 * 1024, 1e-6);
}

// Biases of FC1 (4 h) and of both row-parallel layers (h each) are added by other kernels in every release.
// Their gradient is a sum that reads the layer's gradient once: here 1e6 numbers of 2 B. Llama has no biases.
TEST(Biases, LeaveTheirGradientsToAKernel) {
  static const topology::Accelerator accelerator = h100();
  const ComputeModel compute(accelerator, {});
  const ModelSpec model = complete(gpt(2, 1024, 16)), llama = complete(llama3_70b());
  const Plan plan = plan_of(model, "megatron", 1), other = plan_of(llama, "megatron", 8);
  EXPECT_NEAR(LayerKernels(model, plan, compute).bias_gradient(1e6).seconds, 2e6 / kBandwidth, 1e-15);
  EXPECT_EQ(LayerKernels(llama, other, compute).bias_gradient(1e6).seconds, 0);
}

// The gradient covers all rows of the table. Bytes per number: zeros in 16 bits 2; Megatron's hook reads
// them, 2, and adds them to fp32, 8. Compared are tables that differ by 1024 words of 1024 numbers.
TEST(Embedding, GradientOfTheTableIsDense) {
  static const topology::Accelerator accelerator = h100();
  const ComputeModel compute(accelerator, {});
  const auto backward = [&](int words, const std::string& framework) {
    const ModelSpec model = complete(gpt(2, 1024, 16, words));
    return sums(embedding(model, plan_of(model, framework, 1), compute)).backward;
  };
  EXPECT_NEAR(backward(9216, "megatron") - backward(8192, "megatron"), 12.0 * 1024 * 1024 / kBandwidth,
              1e-12);
  // FSDP with one micro-batch writes the 16-bit zeros alone.
  EXPECT_NEAR(backward(9216, "fsdp") - backward(8192, "fsdp"), 2.0 * 1024 * 1024 / kBandwidth, 1e-12);
}

// Before 2024 Megatron-LM divided the buffer by the group's size (buffer_.data /= ...): 4 bytes read and 4
// written per gradient at 0.8 x 2.039 TB/s, and 2 us. A single rank sends nothing and averages nothing.
TEST(MegatronDdp, GradientsAreAveragedInAPassBeforeTheyAreSent) {
  const auto job = [](const char* framework) {
    WorkloadSpec workload;
    workload.model = gpt(4, 1024, 16);
    workload.framework = framework;
    return workload;
  };
  const double parameters = total_parameters(complete(job("ddp").model)) - 2 * 1024;  // without the last norm
  const auto averaging = [&](std::uint32_t ranks) {
    double sum = 0;
    const auto program = training_step(job("megatron@2023"), a100(), ranks);
    for (const auto& op : program.classes[0].ops)
      if (op.kind == program::OpKind::compute && op.phase == program::Phase::gradient_sync)
        sum += seconds(op.duration);
    return sum;
  };
  EXPECT_NEAR(averaging(8), 8 * parameters / (0.8 * 2.039e12) + 2e-6, 1e-6);
  EXPECT_EQ(averaging(1), 0);
}

// FSDP2 copies what it gathered: 2 B read and 2 B written per parameter at 0.5 x 2.039 TB/s (eager), 2 us
// and 0.9 to the next kernel. fsdp@2023 uses the gather's buffer directly.
TEST(Fsdp, TheFirstReadsGatheredParametersInPlace) {
  const auto first_op = [](const char* framework) {
    WorkloadSpec workload;
    workload.model = gpt(8, 1024, 16);
    workload.framework = framework;
    const auto program = training_step(workload, a100(), 8);
    // The first kernel after the gather of the first unit: the table of 53,248 rows and the final norm, two
    // rows more.
    for (const auto& op : program.classes[0].ops)
      if (op.kind == program::OpKind::compute && op.phase == program::Phase::forward)
        return seconds(op.duration);
    return -1.0;
  };
  EXPECT_NEAR(first_op("fsdp"), 4 * 53250.0 * 1024 / (0.5 * 2.039e12) + 2.9e-6, 1e-9);
  EXPECT_EQ(first_op("fsdp@2023"), 0);
}

// Bytes per 16-bit gradient. fsdp@2023: joined, 2 read and 2 written, then divided, 2 and 2: 8. FSDP2 reads 2
// and writes 4 (fp32): 6.
TEST(Fsdp, TheFirstDividesGradientsBeforeTheyAreSummed) {
  const auto joined = [](const char* framework) {
    WorkloadSpec workload;
    workload.model = gpt(8, 1024, 16);
    workload.framework = framework;
    const program::Program step = training_step(workload, a100(), 8);
    double sum = 0;
    for (const auto& op : step.classes[0].ops)
      if (op.kind == program::OpKind::compute && op.phase == program::Phase::gradient_sync)
        sum += seconds(op.duration);
    return sum;
  };
  EXPECT_NEAR(joined("fsdp@2023") / joined("fsdp"), 8.0 / 6, 0.02);
}

// A norm's backward pass over 1,000 rows of 4,096 numbers in 16 bits reads gradient and input and writes a
// gradient: 3 x 2 bytes per number. Inductor's kernel for the gains reads both again: 5 x 2 bytes.
TEST(Norms, InductorSumsTheGainsInAKernelThatReadsAgain) {
  ModelSpec model = llama3_70b_on_64().model;
  static const topology::Accelerator accelerator = h100();
  const ComputeModel compute(accelerator, {});
  const auto seconds = [&](const std::string& framework) {
    const Plan plan = plan_of(model, framework, 1);
    return LayerKernels(model, plan, compute).norm_backward(1000, 4096).seconds;
  };
  EXPECT_NEAR(seconds("megatron@2024"), 1000 * 4096 * 3 * 2 / kBandwidth, 1e-12);
  EXPECT_NEAR(seconds("fsdp@2024-compile"), 1000 * 4096 * 5 * 2 / kBandwidth, 1e-12);
}
}  // namespace topsim::workloads::copies_test
