// Delayed scaling of fp8: after every pass the ranks of a stage reduce the maxima of their tensors
// (Transformer Engine).
#include <gmock/gmock.h>

#include "sim/base/error.hpp"
#include "tests/workloads/fixtures.hpp"
#include "workloads/model.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::amax_test {
using namespace testing;

// Llama-3 70B, tp 8 x pp 2 x dp 4, 32 micro-batches.
WorkloadSpec workload(const char* framework = "megatron@2024", Precision gemm = Precision::fp8) {
  WorkloadSpec result = llama3_70b_on_64();
  result.framework = framework;
  result.precision.gemm = gemm;
  return result;
}
struct Shared {
  int calls = 0;
  std::vector<std::int64_t> bytes;  // of the first two
  std::vector<std::size_t> members;
};
Shared shared(const WorkloadSpec& spec, std::uint32_t ranks = 64) {
  const program::Program program = training_step(spec, h100(), ranks);
  program::validate(program);
  Shared result;
  const program::RankProgram& first = program.classes[0];
  for (const auto& op : first.ops) {
    if (op.kind != program::OpKind::collective || program.labels[op.label].find("maxima") != 0) continue;
    if (++result.calls <= 2) result.bytes.push_back(op.bytes.value());
    if (result.calls > 1) continue;
    for (const RankId rank : program.members_of(program.communicator_slots[op.slot][0]))
      result.members.push_back(rank.index());
  }
  return result;
}

// One reduction after the forward and one after the backward pass of each of 32 micro-batches, over all 32
// ranks of the first stage. Bytes: 40 layers x 4 products x 3 maxima (input, weights, result) x 4 B. The
// first two calls are both forward, since the first of two stages begins with two forward passes.
TEST(Amax, IsReducedOverTheStageAfterEveryPass) {
  const Shared all = shared(workload());
  EXPECT_EQ(all.calls, 2 * 32);
  EXPECT_THAT(all.bytes, ::testing::UnorderedElementsAre(4 * 3 * 4 * 40, 4 * 3 * 4 * 40));
  ASSERT_EQ(all.members.size(), 32u);
  EXPECT_EQ(all.members.back(), 31u);
}

// A backward pass has 2 maxima for each product: gradients of its result and of its input. With pp = 1 the
// second call belongs to the first backward pass.
TEST(Amax, BackwardHasTwoMaximaAProduct) {
  WorkloadSpec spec = workload();
  spec.plan.pp = 1, spec.plan.dp = 8;
  EXPECT_THAT(shared(spec).bytes, ::testing::ElementsAre(4 * 3 * 4 * 80, 4 * 2 * 4 * 80));
}

// Transformer Engine's tp_only_amax_red: the 8 tensor ranks alone, or 8 x 2 with context parallelism.
TEST(Amax, OfTensorRanksAlone) {
  WorkloadSpec spec = workload();
  spec.precision.amax_reduction = AmaxReduction::tensor;
  EXPECT_THAT(shared(spec).members, ::testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  spec.plan.cp = 2, spec.plan.dp = 2;
  EXPECT_EQ(shared(spec).members.size(), 16u);
  spec.precision.amax_reduction = AmaxReduction::none;
  EXPECT_EQ(shared(spec).calls, 0);
}

// 16-bit products have no scales; block scales (MXFP8) and the current maximum of a tensor (megatron@2025)
// are local to a rank.
TEST(Amax, IsOfDelayedScalingAlone) {
  EXPECT_EQ(shared(workload("megatron@2024", Precision::bf16)).calls, 0);
  EXPECT_EQ(shared(workload("megatron@2024", Precision::mxfp8)).calls, 0);
  EXPECT_EQ(shared(workload("megatron@2025")).calls, 0);
  EXPECT_EQ(shared(workload("megatron@2022")).calls, 0);
}

// Every local expert's products have maxima of their own. Products of a layer: 2 in attention and 2 in each
// of 8 / 4 local experts, in 4 layers.
TEST(Amax, OfEveryExpert) {
  WorkloadSpec spec = workload();
  spec.model = gpt(4, 1024, 16);
  spec.model.gated_ffn = true;
  spec.model.experts.count = 8, spec.model.experts.top_k = 2, spec.model.experts.ffn = 2048;
  spec.plan = {};
  spec.plan.ep = 4, spec.plan.grad_accumulation = 1;
  EXPECT_THAT(shared(spec, 8).bytes, ::testing::ElementsAre(4 * 3 * (2 + 4) * 4, 4 * 2 * (2 + 4) * 4));
}

TEST(Amax, NothingElseKeepsMaxima) {
  WorkloadSpec spec = workload("megatron@2024", Precision::bf16);
  spec.model = complete(spec.model);
  spec.precision.amax_reduction = AmaxReduction::all;
  try {
    static_cast<void>(resolve(spec, 64));
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.problems().size(), 1u);
    EXPECT_EQ(error.problems()[0].path, "workload.precision.amax_reduction");
    EXPECT_THAT(error.problems()[0].help, ::testing::HasSubstr("megatron@2024"));
  }
}
}  // namespace topsim::workloads::amax_test
