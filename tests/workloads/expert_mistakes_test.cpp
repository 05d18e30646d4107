// What is wrong with a plan of experts, and what would do.
#include <gmock/gmock.h>

#include <string>

#include "sim/base/error.hpp"
#include "tests/workloads/expect_mistake.hpp"
#include "tests/workloads/mixtures.hpp"
#include "workloads/model.hpp"
#include "workloads/plan.hpp"

namespace topsim::workloads::expert_mistakes_test {
using namespace testing;

TEST(ExpertMistakes, SayWhatWouldDo) {
  const auto with_model = [](WorkloadSpec workload) {
    workload.model = complete(workload.model);
    return workload;
  };
  WorkloadSpec odd = small_moe(1, 8);
  odd.model.experts.count = 12;  // 6 divides the experts but not the 8 ranks
  expect_mistake(with_model(odd), "plan.ep", "is 4");
  WorkloadSpec split = with_model(small_moe(2, 8));  // 8 ranks hold 8 whole experts, not 8 x 2 parts
  EXPECT_EQ(resolve(split, 8).etp, 1);
  split.plan.etp = 2;
  expect_mistake(split, "plan.etp", "\"etp\": 1");
  // Pairs of passes need chunks, and hide no exchanges of layers that are computed again.
  WorkloadSpec paired = with_model(small_moe(1, 4));
  paired.plan.pp = 2, paired.plan.overlap_expert_exchange = true;
  expect_mistake(paired, "plan.overlap_expert_exchange", "virtual_stages to 2");
  paired.plan.virtual_stages = 2;
  EXPECT_TRUE(resolve(paired, 8).experts.overlap);
  paired.plan.recompute = RecomputeSpec{RecomputeKind::full, 1};
  expect_mistake(paired, "plan.recompute", "leave overlap_expert_exchange out");
  WorkloadSpec folded = with_model(small_moe(1, 4));
  folded.plan.pp = 2, folded.plan.overlap_expert_exchange = true, folded.plan.schedule = Schedule::zb_v;
  expect_mistake(folded, "plan.overlap_expert_exchange", "interleaved");
  WorkloadSpec six = with_model(small_moe(1, 3, 1));  // 3 and 2 divide six experts, 2 alone the 8 ranks
  six.model.experts.count = 6, six.model.experts.ffn = 1536;
  expect_mistake(six, "plan.ep", "ep = 2 would");
  six.plan.etp = 3;  // no ep with three parts divides them
  expect_mistake(six, "plan.ep", "\"etp\": 1 with ep = 2 would");
  WorkloadSpec dense = with_model(small_moe(1, 2));
  dense.model.experts = {};
  expect_mistake(dense, "plan.ep", "leave ep and etp out");
  dense.plan.ep.reset(), dense.precision.dispatch = Precision::fp8;
  expect_mistake(dense, "precision.dispatch", "leave it out");
  WorkloadSpec gathered = with_model(small_moe(1, 4));
  gathered.plan.token_dispatcher = TokenDispatcher::allgather;
  gathered.precision.dispatch = Precision::fp8;
  expect_mistake(gathered, "precision.dispatch", "alltoall, deepep or hybridep");
  gathered.plan.token_dispatcher = TokenDispatcher::deepep;
  for (const int ep : {1, 4}) {  // sizes may be varied
    gathered.plan.ep = ep;
    EXPECT_NO_THROW((void)resolve(gathered, 8)) << ep;
  }
  WorkloadSpec unsplit = with_model(small_moe(2, 4));
  unsplit.plan.sequence_parallel = false;
  expect_mistake(unsplit, "plan.sequence_parallel", "leave sequence_parallel out");
  WorkloadSpec latent = with_model(small_deepseek(1, 4));
  latent.model.attention.kv_lora_rank = 0;
  expect_mistake(latent, "model.attention.kv_lora_rank", "512");
}
}  // namespace topsim::workloads::expert_mistakes_test
