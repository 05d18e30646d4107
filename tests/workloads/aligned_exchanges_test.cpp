// When Megatron's stages exchange gradients and weights: not each as it can, but all at the same time.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "tests/workloads/fixtures.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::aligned_exchanges_test {
using namespace testing;
using program::OpKind;
using program::Phase;
using ::testing::ElementsAre;

// 4 stages of `chunks` chunks of one layer, 8 micro-batches, 2 replicas.
WorkloadSpec pipeline(int chunks) {
  WorkloadSpec workload;
  workload.framework = "megatron";
  workload.model = gpt(4 * chunks, 1024, 16);
  workload.model.tied_embeddings = false;
  workload.plan.pp = 4;
  workload.plan.virtual_stages = chunks;
  workload.plan.grad_accumulation = 8;
  return workload;
}

// Of a stage: how many of its passes have begun when each exchange of `exchanged` is launched.
std::vector<std::size_t> passes_before(const program::RankProgram& stage, Phase exchanged, Phase pass) {
  std::set<std::pair<int, std::uint32_t>> begun;
  std::vector<std::size_t> counts;
  for (const program::Op& op : stage.ops) {
    if (op.kind == OpKind::compute && op.phase == pass) begun.emplace(op.micro_batch, op.layer);
    if (op.kind == OpKind::collective && op.phase == exchanged && op.bytes > Bytes(1000))
      counts.push_back(begun.size());
  }
  return counts;
}

// Backward passes come in groups of 4 micro-batches: chunk 1, chunk 0, chunk 1, chunk 0. The first stage is
// done with chunk 1 after 12 of 16 and reduces it then; stage r, r passes ahead of it, after 12 + r. Chunk 0
// goes when everything is over, and all but the first stage's first chunk in one bucket.
TEST(AlignedExchanges, StagesReduceAChunkWhenTheFirstIsDoneWithItsOwn) {
  const auto program = training_step(pipeline(2), a100(), 8);
  program::validate(program);
  for (std::size_t r = 1; r < 4; ++r)
    EXPECT_THAT(passes_before(program.classes[r], Phase::gradient_sync, Phase::backward),
                ElementsAre(12 + r, 16))
        << r;
  const auto first = passes_before(program.classes[0], Phase::gradient_sync, Phase::backward);
  EXPECT_EQ(first.front(), 12U);
  EXPECT_TRUE(std::all_of(first.begin() + 1, first.end(), [](std::size_t n) { return n == 16; }));
}

// Forward passes: chunks 0, 1, 2 of four micro-batches each. Chunks 0 and 1 are gathered at once, chunk 2
// when the first stage begins with chunk 1, after 4 passes: stage r then has r more behind it in its order.
TEST(AlignedExchanges, StagesGatherTheNextChunkWhenTheFirstDoes) {
  const auto program = training_step(pipeline(3), a100(), 8);
  for (std::size_t r = 1; r < 4; ++r)
    EXPECT_THAT(passes_before(program.classes[r], Phase::parameter_sync, Phase::forward),
                ElementsAre(0, 0, 4 - r))
        << r;
}

// Without virtual stages the first stage alone reduces in its last backward pass, 40 million gradients at a
// time (a layer of 4096 has 201 million); the others have their bubble for it, and one bucket.
TEST(AlignedExchanges, OneChunkIsReducedInTheBubble) {
  WorkloadSpec workload = pipeline(1);
  workload.model.hidden = 4096;
  const auto program = training_step(workload, a100(), 8);
  for (std::size_t r = 0; r < 4; ++r) {
    const auto& ops = program.classes[r].ops;
    const auto is_reduction = [](const program::Op& op) {
      return op.kind == OpKind::collective && op.phase == Phase::gradient_sync && op.bytes > Bytes(1000);
    };
    const auto reduced = std::find_if(ops.begin(), ops.end(), is_reduction);
    const bool in_the_pass = std::any_of(reduced, ops.end(), [](const program::Op& op) {
      return op.kind == OpKind::compute && op.phase == Phase::backward;
    });
    EXPECT_EQ(in_the_pass, r == 0) << r;
    if (r > 0) {
      EXPECT_EQ(std::count_if(ops.begin(), ops.end(), is_reduction), 1) << r;
    }
  }
}
}  // namespace topsim::workloads::aligned_exchanges_test
