// Exchanges of gradients and weights in Megatron's pipelines: all stages launch them at the same time, not
// each as soon as it could (Framework::aligns_exchanges).
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

// pp = 4 with `chunks` virtual stages of one layer each, 8 micro-batches, 2 replicas.
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

// For every exchange of phase `exchanged` in this stage's program: how many passes of kind `pass` have begun
// before it is launched.
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

// A stage runs 16 backward passes, in groups of 4 micro-batches: chunk 1, chunk 0, chunk 1, chunk 0. The
// first stage finishes chunk 1 after 12 passes and reduces it then. Stage r runs r passes ahead of it, so at
// that time it has run 12 + r. Chunk 0 is reduced at the end, after all 16. Only the first stage divides its
// first chunk into several buckets.
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

// Forward passes come in groups of 4 micro-batches too: chunk 0, chunk 1, chunk 2. Every stage gathers chunks
// 0 and 1 at the start, and chunk 2 when the first stage begins with chunk 1, after 4 passes. Stage r starts
// r passes later, so it has begun 4 - r by then.
TEST(AlignedExchanges, StagesGatherTheNextChunkWhenTheFirstDoes) {
  const auto program = training_step(pipeline(3), a100(), 8);
  for (std::size_t r = 1; r < 4; ++r)
    EXPECT_THAT(passes_before(program.classes[r], Phase::parameter_sync, Phase::forward),
                ElementsAre(0, 0, 4 - r))
        << r;
}

// Without virtual stages only the first stage reduces during its last backward pass, in buckets of 40 million
// gradients (a layer of hidden size 4096 has 201 million). The others have their bubble for it: one bucket,
// after the pass.
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
