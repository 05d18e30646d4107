// Mixtures of experts where tokens are generated: which experts are read, and what the tensor ranks send.
#include <gmock/gmock.h>

#include "sim/base/error.hpp"
#include "tests/workloads/mixtures.hpp"
#include "tests/workloads/replay.hpp"
#include "workloads/layer/blocks.hpp"
#include "workloads/memory/memory.hpp"

namespace topsim::workloads::generating_experts_test {
using namespace testing;
using program::CollectiveKind;
using program::OpKind;

// An H100 reads weights at 0.83 of 3.35 TB/s.
constexpr double kWeights = 0.83 * 3.35e12;

// Shapes of Qwen3-30B-A3B's experts: 8 of 128 per token, h 2048, width 768, so 3 x 2048 x 768 numbers of 2
// bytes.
constexpr double kExpert = 3.0 * 2048 * 768 * 2;
WorkloadSpec generating(int batch, int tp = 1, int ep = 1, Task task = Task::decode) {
  WorkloadSpec workload;
  workload.model = gpt(1, 2048, 32, 1024, 512);
  workload.model.gated_ffn = true, workload.model.kv_heads = 8;
  workload.model.experts.count = 128, workload.model.experts.top_k = 8, workload.model.experts.ffn = 768;
  workload.task = task;
  if (task == Task::decode) workload.sequence = 16;  // hardly a cache
  if (ep > 1) workload.plan.etp = 1;
  workload.plan.tp = tp, workload.plan.ep = ep, workload.plan.micro_batch = batch;
  return workload;
}
program::Program step(const WorkloadSpec& workload) {
  auto program = training_step(workload, h100(), static_cast<std::uint32_t>(workload.plan.tp));
  program::validate(program);
  return program;
}
double busy(const WorkloadSpec& workload) {
  double sum = 0;
  const auto program = step(workload);
  for (const auto& op : program.classes[0].ops)
    if (op.kind == OpKind::compute) sum += seconds(op.duration);
  return sum;
}

// Experts read, of 128 with 8 per token: by one token 8; by two 8 + 8 x 120 / 128 = 15.5; by sixteen 128 (1 -
// (120 / 128)^16) = 82.42. Everything else in a layer hardly grows: one more token's cache and activations
// are some 200 KB, 2 % of an expert.
TEST(GeneratingExperts, ReadOnlyThoseThatHaveTokens) {
  const double one = busy(generating(1)), two = busy(generating(2)), sixteen = busy(generating(16));
  EXPECT_NEAR((two - one) * kWeights / kExpert, 7.5, 0.1);
  EXPECT_NEAR((sixteen - one) * kWeights / kExpert, 74.42, 1);
}

// gpt-oss keeps its experts in MXFP4, 0.5 + 1 / 32 bytes, beside 16 bits of everything else. All 128 are
// held; sixteen tokens read 74.42 more than one.
TEST(GeneratingExperts, MayBeNarrowerThanTheRest) {
  const auto narrow = [](int batch) {
    WorkloadSpec workload = generating(batch);
    workload.precision.expert_weights = WeightFormat::mxfp4;
    return workload;
  };
  constexpr double kNarrow = kExpert / 2 * (0.5 + 1.0 / 32);
  EXPECT_NEAR((busy(narrow(16)) - busy(narrow(1))) * kWeights / kNarrow, 74.42, 4);
  EXPECT_NEAR((busy(generating(1)) - busy(narrow(1))) * kWeights, 8 * (kExpert - kNarrow), 0.01 * kExpert);
  const auto held = [](const WorkloadSpec& workload) {
    return memory_use(workload, h100(), 1).peak().weights;
  };
  EXPECT_NEAR(held(generating(1)) - held(narrow(1)), 128 * (kExpert - kNarrow), 1);
  WorkloadSpec dense = narrow(1);
  dense.model.experts = {};
  EXPECT_THROW((void)resolve(dense, 1), ConfigError);
  WorkloadSpec trained = narrow(1);
  trained.task = Task::pretrain;
  EXPECT_THROW((void)resolve(trained, 1), ConfigError);
}

// Two ranks with 64 experts each: B tokens visit 64 q of them, q = 1 - (120 / 128)^B, 41.21 for B = 16 and 4
// for B = 1. Both wait for the one that has more: the larger of two normal variables is expected 0.590
// deviations above the mean (Blom: the quantile of 1.625 / 2.25; exactly 0.564), a deviation being
// sqrt(64 q (1 - q)), 3.83 and 1.94. That makes 43.47 and 5.14.
TEST(GeneratingExperts, RanksOfTheirOwnWaitForTheOneThatReadsMost) {
  const double one = busy(generating(1, 2, 2)), sixteen = busy(generating(16, 2, 2));
  EXPECT_NEAR((sixteen - one) * kWeights / kExpert, 38.33, 1);
}

// The rank with 3 times the mean of the rows reads 64 (1 - (1 - 3 x 8 / 128)^B) experts: 12 for one token,
// all 64 for 64 of them, whatever the deviation.
TEST(GeneratingExperts, TheBusiestRankReadsMoreExperts) {
  const Plan even = resolve(generating(1, 2, 2), 2);
  WorkloadSpec uneven_workload = generating(1, 2, 2);
  uneven_workload.plan.ep = 4, uneven_workload.plan.tp = 4;
  uneven_workload.model.experts.imbalance = 3;
  const Plan uneven = resolve(uneven_workload, 4);
  // 4 ranks of 32: q = 24 / 128, the largest of four is 1.05 deviations (quantile of 3.625 / 4.25) above.
  const double q = 24.0 / 128, mean = 32 * q;
  EXPECT_NEAR(visited_experts(8, uneven, 1), mean + 1.05 * std::sqrt(mean * (1 - q)), 0.01);
  EXPECT_NEAR(visited_experts(8, uneven, 64), 32, 0.01);
  EXPECT_NEAR(visited_experts(8, even, 1), 4 + 0.590 * 1.936, 0.01);
}

// With tensor ranks alone every rank has all tokens: experts that lie whole on them answer what arrives, and
// one all-reduce sums (vLLM, use_all2all_kernels). With tp 8 and ep 8 a rank has 16 experts of 768 columns,
// with tp 8 alone 128 of 96: the same weights. DeepEP's kernels, where asked for, dispatch.
TEST(GeneratingExperts, OnTensorRanksAloneNothingIsDispatched) {
  const auto sent = [](const WorkloadSpec& workload) {
    const auto program = training_step(workload, h100(), 8);
    return std::pair(collectives(program, program::Dimension::tensor).size(),
                     collectives(program, program::Dimension::expert).size());
  };
  EXPECT_EQ(sent(generating(16, 8, 8)), sent(generating(16, 8, 1)));
  EXPECT_EQ(sent(generating(16, 8, 8)).second, 0U);
  WorkloadSpec dispatched = generating(16, 8, 8);
  dispatched.plan.token_dispatcher = TokenDispatcher::deepep;
  EXPECT_GT(sent(dispatched).second, 0U);
  const auto weights = [](int ep) { return memory_use(generating(16, 8, ep), h100(), 8).stages[0].weights; };
  EXPECT_DOUBLE_EQ(weights(8), weights(1));
}

// DeepEP carries rows in 8 bits with an fp32 scale for 128 numbers to experts that read 8 bits, and answers
// in 16: 1 + 4 / 128 bytes a number. Experts that read 16 bits are sent 16.
TEST(GeneratingExperts, AreSentWhatTheyRead) {
  WorkloadSpec workload = generating(16, 1, 8);
  workload.plan.token_dispatcher = TokenDispatcher::deepep;
  EXPECT_DOUBLE_EQ(resolve(workload, 8).experts.dispatch_bytes, 2);
  workload.precision.gemm = Precision::fp8;
  EXPECT_DOUBLE_EQ(resolve(workload, 8).experts.dispatch_bytes, 1 + 4.0 / 128);
  workload.task = Task::pretrain;
  EXPECT_DOUBLE_EQ(resolve(workload, 8).experts.dispatch_bytes, 2);
  workload.precision.dispatch = Precision::fp8;
  EXPECT_DOUBLE_EQ(resolve(workload, 8).experts.dispatch_bytes, 1 + 4.0 / 128);
}

// With many tokens every expert is read, and the work is that of 8 experts per token: 2 FLOPs for each of 8 x
// 3 x 2048 x 768 weights, twice as much for twice the tokens.
TEST(GeneratingExperts, WorkFollowsTheTokens) {
  const auto flops = [](int batch) { return step(generating(batch)).facts.model_flops.value(); };
  EXPECT_NEAR(flops(64) / flops(32), 2, 1e-12);
  EXPECT_NEAR(flops_of_all_ranks(step(generating(64))) / flops(64), 1, 1e-3);
}

// One layer on 8 tensor ranks: all-reduces after the embedding, after attention and after the experts, each
// of 512 tokens x 2048 x 2 B = 2 MiB. Nothing is sent in an expert group.
TEST(GeneratingExperts, TensorRanksSumOnceALayer) {
  const auto program = step(generating(1, 8, 1, Task::prefill));
  int sums = 0;
  for (const auto& op : collectives(program, program::Dimension::tensor)) {
    if (op.collective != CollectiveKind::all_reduce) continue;
    EXPECT_EQ(op.bytes.value(), 512 * 2048 * 2);
    ++sums;
  }
  EXPECT_EQ(sums, 3);
  EXPECT_THAT(collectives(program, program::Dimension::expert), ::testing::IsEmpty());
}

// One call of the host runs the products of all experts: 128 cost it as much as 8.
TEST(GeneratingExperts, AreOneCallOfTheHost) {
  WorkloadSpec many = generating(1, 1, 1, Task::prefill), few = many;
  few.model.experts.count = 8;
  const auto host = [](const WorkloadSpec& workload) {
    double sum = 0;
    const auto program = step(workload);
    for (const auto& op : program.classes[0].ops) sum += seconds(op.launch);
    return sum;
  };
  EXPECT_NEAR(host(many), host(few), 1e-9);
}

WorkloadSpec on_ranks(int ep, int redundant) {
  WorkloadSpec workload = generating(16);
  workload.plan.ep = ep, workload.plan.etp = 1, workload.plan.redundant_experts = redundant;
  return workload;
}

// 128 experts and 16 copies on 48 ranks are 3 per rank, 128 on 64 ranks 2. With 16 requests per rank all of
// them have tokens (an expert has none with probability (136/144)^768), and a rank computes 16 x 8 rows
// either way. The difference is reading one more expert's weights.
TEST(GeneratingExperts, CopiesFillRanksThatExpertsDoNot) {
  const auto busy_on = [](int ep, int redundant) {
    double sum = 0;
    const auto program = training_step(on_ranks(ep, redundant), h100(), static_cast<std::uint32_t>(ep));
    for (const auto& op : program.classes[0].ops)
      if (op.kind == OpKind::compute) sum += seconds(op.duration);
    return sum;
  };
  EXPECT_NEAR((busy_on(48, 16) - busy_on(64, 0)) * kWeights / kExpert, 1, 0.02);
  const auto weights = [](int ep, int redundant) {
    return memory_use(on_ranks(ep, redundant), h100(), static_cast<std::uint32_t>(ep)).stages[0].weights;
  };
  EXPECT_NEAR(weights(48, 16) - weights(64, 0), kExpert, 1);
}

TEST(GeneratingExperts, CopiesAreOfRanksThatGenerate) {
  const auto help_of = [](const WorkloadSpec& workload) {
    try {
      (void)training_step(workload, h100(), 48);
    } catch (const ConfigError& error) {
      return error.problems().front().help;
    }
    return std::string("nothing refused");
  };
  EXPECT_THAT(help_of(on_ranks(48, 0)), ::testing::HasSubstr("\"redundant_experts\": 16"));
  EXPECT_THAT(help_of(on_ranks(48, 15)), ::testing::HasSubstr("\"redundant_experts\": 16"));
  EXPECT_THAT(help_of(on_ranks(1, 16)), ::testing::HasSubstr("ep above 1"));
  WorkloadSpec training = on_ranks(48, 16);
  training.task = Task::pretrain;
  EXPECT_THAT(help_of(training), ::testing::HasSubstr("task"));
}

// Four tensor ranks beside two replicas, eight ranks with 16 experts each: a decode step has one token of
// each request, whatever its cache holds and whatever is said of rows that training splits.
TEST(GeneratingExperts, ADecodeStepSplitsNoSequence) {
  WorkloadSpec workload = generating(16, 4, 8);
  workload.sequence = 4097;
  const Plan open = resolve(workload, 8);
  EXPECT_FALSE(open.sequence_parallel);
  EXPECT_FALSE(open.sliced_experts());
  workload.plan.sequence_parallel = false;
  EXPECT_EQ(resolve(workload, 8).tokens(), open.tokens());
  // Of training that is refused.
  workload.task = Task::pretrain;
  EXPECT_THROW((void)resolve(workload, 8), ConfigError);
}

// 2 prompts of 1,023 tokens on 4 ranks are 2,046 rows, padded to 2,048.
TEST(GeneratingExperts, PromptsArePaddedForTheRanksThatSplitThem) {
  WorkloadSpec workload = generating(2, 4, 8, Task::prefill);
  workload.sequence = 1023;
  const Plan plan = resolve(workload, 8);
  EXPECT_TRUE(plan.sequence_parallel);
  EXPECT_EQ(plan.tokens(), 2048);
  workload.plan.ep = workload.plan.etp = 1, workload.plan.tp = 1;
  EXPECT_EQ(resolve(workload, 8).tokens(), 2046);
}

// Two micro-batches, four layers, two exchanges each: 16 exchanges of 5 us, shorter than the kernels between
// them. One batch after the other waits for all 16; in turns, each batch's exchanges hide behind the other's
// kernels, except the first and the last.
TEST(GeneratingExperts, TwoBatchesHideEachOthersExchanges) {
  using namespace topsim::literals;
  const auto waited = [](bool in_turns) {
    WorkloadSpec workload = on_ranks(8, 0);
    workload.model.layers = 4, workload.plan.micro_batch = 64, workload.plan.grad_accumulation = 2;
    workload.plan.overlap_expert_exchange = in_turns;
    const auto program = training_step(workload, h100(), 8);
    program::validate(program);
    const auto step = [&](Duration exchange) {
      Replay replay;
      replay.launches = false;
      replay.collective = [=](const program::Op& op, const program::Communicator&) {
        return op.collective == CollectiveKind::all_to_all ? exchange : Duration{};
      };
      return replay.run(program).step;
    };
    return step(5_us) - step(Duration{});
  };
  EXPECT_GE(waited(false), 16 * 5_us);
  EXPECT_LE(waited(true), 3 * 5_us);
  WorkloadSpec odd = on_ranks(8, 0);
  odd.plan.overlap_expert_exchange = true, odd.plan.grad_accumulation = 3;
  EXPECT_THROW((void)training_step(odd, h100(), 8), ConfigError);
}
}  // namespace topsim::workloads::generating_experts_test
