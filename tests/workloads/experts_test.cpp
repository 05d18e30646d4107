// Mixtures of experts: what is sent, computed, held, and by which ranks.
#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "sim/base/error.hpp"
#include "tests/workloads/mixtures.hpp"
#include "tests/workloads/replay.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::experts_test {
using namespace testing;
using program::CollectiveKind;
using program::Dimension;
using program::OpKind;

// All-to-alls of each layer and micro-batch: tokens to the experts and back, forward and backward, 512 tokens
// x 2 experts x 1024 x 2 B = 2 MiB each; and probabilities beside the dispatch, forward and backward, 512 x 2
// x 4 B = 4 KiB.
TEST(Experts, FourAllToAllsALayerAndMicroBatchCarryTheTokens) {
  const auto program = training_step(small_moe(1, 4), h100(), 8);
  program::validate(program);
  int tokens = 0, probabilities = 0;
  for (const auto& op : collectives(program, Dimension::expert)) {
    if (op.collective != CollectiveKind::all_to_all) continue;
    if (op.bytes == Bytes(2 << 20)) ++tokens;
    if (op.bytes == Bytes(4 << 10)) ++probabilities;
  }
  EXPECT_EQ(tokens, 4 * 4 * 2);
  EXPECT_EQ(probabilities, 2 * 4 * 2);
}

// Full recompute adds a dispatch and a combine, 6 instead of 4; the dense layer of four sends nothing.
TEST(Experts, RecomputeSendsAgainAndDenseLayersDoNot) {
  WorkloadSpec workload = small_moe(1, 4);
  workload.model.dense_layers = 1;
  workload.plan.recompute = RecomputeSpec{RecomputeKind::full, {}};
  const auto program = training_step(workload, h100(), 8);
  const auto ops = collectives(program, Dimension::expert);
  EXPECT_EQ(std::count_if(ops.begin(), ops.end(), [](const auto& op) { return op.bytes == Bytes(2 << 20); }),
            6 * 3 * 2);
}

// Every third layer of the model has experts, leading dense layers or not: layers 2 and 5 of 0 to 7, and
// behind three dense ones 5 alone. Each sends twice forward and twice backward in each of two micro-batches.
TEST(Experts, StandInTheLastOfSoManyLayers) {
  WorkloadSpec workload = small_moe(1, 4);
  workload.model.layers = 8, workload.model.experts.every = 3;
  const auto sent = [&](int leading) {
    workload.model.dense_layers = leading;
    int experts = 0;
    for (int layer = 0; layer < 8; ++layer) experts += kind_of(workload.model, layer) == LayerKind::experts;
    EXPECT_EQ(count_of(workload.model, LayerKind::experts), experts);
    const auto ops = collectives(training_step(workload, h100(), 8), Dimension::expert);
    return std::count_if(ops.begin(), ops.end(), [](const auto& op) { return op.bytes == Bytes(2 << 20); });
  };
  EXPECT_EQ(kind_of(workload.model, 2), LayerKind::experts);
  EXPECT_EQ(kind_of(workload.model, 7), LayerKind::dense);
  EXPECT_EQ(sent(0), 4 * 2 * 2);
  EXPECT_EQ(sent(3), 4 * 1 * 2);
  EXPECT_EQ(sent(6), 0);
}

// Megatron's layout: the ranks of a stage are divided into expert groups, with the parts of an expert (etp)
// fastest.
TEST(Experts, RanksAreGroupedAsMegatronGroupsThem) {
  // tp 2 x dp 4 = 8 ranks, ep 4 with whole experts (etp 1): a group is four neighbours, whatever their tensor
  // group.
  const auto whole = training_step(small_moe(2, 4, 1), h100(), 8);
  EXPECT_THAT(groups(whole, Dimension::expert),
              ::testing::ElementsAre(::testing::ElementsAre(0, 1, 2, 3), ::testing::ElementsAre(4, 5, 6, 7)));
  EXPECT_THAT(groups(whole, Dimension::expert_data),
              ::testing::ElementsAre(::testing::ElementsAre(0, 4), ::testing::ElementsAre(1, 5),
                                     ::testing::ElementsAre(2, 6), ::testing::ElementsAre(3, 7)));
  // Without etp, etp = tp: experts in two parts, so the ranks of a group are two apart.
  const auto parts = training_step(small_moe(2, 4), h100(), 8);
  EXPECT_THAT(groups(parts, Dimension::expert),
              ::testing::ElementsAre(::testing::ElementsAre(0, 2, 4, 6), ::testing::ElementsAre(1, 3, 5, 7)));
  EXPECT_TRUE(groups(parts, Dimension::expert_data).empty());
}

// Gradients of a rank's experts are reduced over the ranks that hold the same ones, all others over all
// data-parallel ranks.
TEST(Experts, GradientsOfExpertsAreReducedOverTheirOwnGroup) {
  const WorkloadSpec workload = small_moe(1, 4);
  const auto program = training_step(workload, h100(), 8);
  const ModelSpec model = complete(workload.model);
  const LayerParameters layer = layer_parameters(model, LayerKind::experts);
  const auto scattered = [&](Dimension dimension) {
    double sum = 0;
    for (const auto& op : collectives(program, dimension))
      if (op.collective == CollectiveKind::reduce_scatter) sum += static_cast<double>(op.bytes.value());
    return sum;
  };
  EXPECT_DOUBLE_EQ(scattered(Dimension::expert_data), 4.0 * 4 * layer.routed() / 4);  // fp32, layers, ep
  EXPECT_DOUBLE_EQ(
      scattered(Dimension::data),
      4.0 * (4 * (layer.split() + layer.whole()) + 2 * head_parameters(model) + 1024));  // final norm
}

TEST(Experts, OnEveryDataParallelRankOnceNeedNoReduction) {
  const auto program = training_step(small_moe(1, 8), h100(), 8);
  EXPECT_TRUE(collectives(program, Dimension::expert_data).empty());
  EXPECT_FALSE(collectives(program, Dimension::data).empty());
}

// Every model FLOP is done by exactly one rank, whatever divides the experts, and padding counts none.
TEST(Experts, FlopsOfTheOpsAreThoseOfTheModel) {
  for (const auto& [tp, ep, etp] : {std::tuple{1, 1, 1}, {1, 8, 1}, {2, 4, 1}, {2, 2, 2}, {4, 1, 4}}) {
    WorkloadSpec workload = small_moe(tp, ep, etp);
    workload.model.experts.capacity_factor = 1.5, workload.model.experts.pad_to_capacity = true;
    const auto program = training_step(workload, h100(), 8);
    EXPECT_NEAR(flops_of_all_ranks(program) / program.facts.model_flops.value(), 1, 1e-12)
        << tp << " " << ep << " " << etp;
  }
  for (const int tp : {1, 2}) {
    const auto program = training_step(small_deepseek(tp, 4), h100(), 8);
    EXPECT_NEAR(flops_of_all_ranks(program) / program.facts.model_flops.value(), 1, 1e-12);
  }
}

double expert_seconds(const WorkloadSpec& workload) {
  const auto program = training_step(workload, h100(), 8);
  double sum = 0;
  for (const auto& op : program.classes[0].ops)
    if (op.kind == OpKind::compute && program.labels[op.label].find("experts") == 0)
      sum += seconds(op.duration);
  return sum;
}

// The rank with most rows sets the time of all: its products have more rows, its exchange more bytes.
TEST(Experts, TheBusiestRankSetsTheTimeAndCapacityLimitsIt) {
  WorkloadSpec even = small_moe(1, 8), uneven = even, capped = even;
  even.sequence = uneven.sequence = capped.sequence = 8192;
  uneven.model.experts.imbalance = capped.model.experts.imbalance = 2;
  capped.model.experts.capacity_factor = 1.25;
  // Products of 16384 or 32768 rows have many waves: twice the rows take twice the time, within 3 %.
  EXPECT_NEAR(expert_seconds(uneven) / expert_seconds(even), 2, 0.06);
  EXPECT_NEAR(expert_seconds(capped) / expert_seconds(even), 1.25, 0.04);
  const auto most = [](const WorkloadSpec& workload) {
    Bytes bytes{};
    for (const auto& op : collectives(training_step(workload, h100(), 8), Dimension::expert))
      bytes = std::max(bytes, op.bytes);
    return bytes;
  };
  EXPECT_EQ(most(uneven), most(even) * 2);
}

// No rank has more than all rows. With two groups of experts the busiest has at most twice the mean; with one
// group it has the mean, whatever `imbalance` says.
TEST(Experts, ImbalanceEndsAtAllRowsOnOneRank) {
  const auto load = [](int ep, double imbalance) {
    WorkloadSpec workload = small_moe(1, ep);
    workload.model.experts.imbalance = imbalance;
    workload.model = complete(workload.model);
    return resolve(workload, 8).experts.load;
  };
  EXPECT_DOUBLE_EQ(load(2, 2), 2);
  EXPECT_DOUBLE_EQ(load(1, 16), 1);
  EXPECT_THROW((void)load(2, 2.5), ConfigError);
}

// DeepEP sends a token once to each node that holds some of its experts. 8 experts on two nodes of 4 ranks, 2
// per token: both lie on one node in 2 x (4 x 3)/(8 x 7) = 3/7 of all pairs, so there are 2 - 3/7 = 11/7
// copies. Inside one NVLink domain of 8 ranks with an expert each, every expert gets a copy.
TEST(Experts, DeepEPSendsACopyToEachNodeThatHoldsSome) {
  WorkloadSpec workload = small_moe(1, 8);
  workload.plan.token_dispatcher = TokenDispatcher::deepep;
  const auto sent = [&](int domain) {
    const auto program = training_step(workload, h100(), 8, domain);
    const auto ops = collectives(program, Dimension::expert);
    EXPECT_EQ(ops.size(), 4u * 4 * 2);  // counts and probabilities travel along
    return static_cast<double>(ops.front().bytes.value());
  };
  EXPECT_NEAR(sent(4), 512 * 1024 * 2 * 11 / 7.0, 1);
  EXPECT_NEAR(sent(8), 512 * 1024 * 2 * 2, 1);
  // Routing limited to one node sends one copy; in 8 bits its numbers have half the bytes, and an
  // fp32 scale for 128 of them.
  workload.model.experts.node_limit = 1;
  EXPECT_NEAR(sent(4), 512 * 1024 * 2, 1);
  workload.precision.dispatch = Precision::fp8;
  EXPECT_NEAR(sent(4), 512 * 1024 * (1 + 4.0 / 128), 1);
}

// The host reads the counts of tokens before it launches the exchange; padded experts need none.
TEST(Experts, HostWaitsForCountsUnlessExpertsArePadded) {
  WorkloadSpec workload = small_moe(1, 4);
  const auto waits = [&] {
    const auto program = training_step(workload, h100(), 8);
    const auto& ops = program.classes[0].ops;
    return std::count_if(ops.begin(), ops.end(), [&](const auto& op) {
      return op.host_sync && program.labels[op.label].find("router") == 0;
    });
  };
  EXPECT_EQ(waits(), 4 * 2);
  workload.model.experts.capacity_factor = 1, workload.model.experts.pad_to_capacity = true;
  EXPECT_EQ(waits(), 0);
}

// With whole optimisers 18 bytes a parameter: matrices / tp; router and norms (2 h per layer, h at the end)
// whole; experts / (ep x etp).
TEST(Experts, StatesFollowWhoHoldsWhat) {
  WorkloadSpec workload = small_moe(2, 4, 1);
  workload.plan.zero = 0;
  const MemoryParts parts = memory_use(workload, h100(), 8).peak();
  const ModelSpec model = complete(workload.model);
  const LayerParameters layer = layer_parameters(model, LayerKind::experts);
  const double mine =
      4 * (layer.split() / 2 + layer.router + 2 * 1024 + layer.routed() / 4) + head_parameters(model) + 1024;
  EXPECT_NEAR(parts.weights + parts.gradients + parts.optimizer, 18 * mine, 1);
  // Two ranks share the optimiser of each expert; four share that of the rest.
  workload.plan.zero = 1;
  const double dense = mine - layer.routed();
  EXPECT_NEAR(memory_use(workload, h100(), 8).peak().optimizer, 12 * (dense / 4 + layer.routed() / 2), 1);
}

// tp 8 and ep 4 on 8 ranks (dp = cp = 1): each expert is on two ranks of the tensor group, which share its
// optimiser, reduce its gradients and gather its weights. Nobody shares the rest.
TEST(Experts, CopiesInATensorGroupShareTheirOptimiser) {
  WorkloadSpec workload = small_moe(8, 4, 1);
  workload.plan.zero = 1;
  const ModelSpec model = complete(workload.model);
  const LayerParameters layer = layer_parameters(model, LayerKind::experts);
  const double dense = 4 * (layer.split() / 8 + layer.whole()) + 2 * head_parameters(model) / 8 + 1024;
  EXPECT_DOUBLE_EQ(memory_use(workload, h100(), 8).peak().optimizer, 12 * (dense + layer.routed() / 2));
  const auto program = training_step(workload, h100(), 8);
  program::validate(program);
  double scattered = 0, gathered = 0;
  for (const auto& op : collectives(program, Dimension::expert_data)) {
    EXPECT_NE(op.collective, CollectiveKind::all_reduce);
    (op.collective == CollectiveKind::reduce_scatter ? scattered : gathered) +=
        static_cast<double>(op.bytes.value());
  }
  EXPECT_DOUBLE_EQ(scattered, 4 * layer.routed());  // 4 B x 4 layers / ep 4
  EXPECT_DOUBLE_EQ(gathered, 2 * layer.routed());
}

// A layer of experts keeps, for each arriving row, the input of FC1 (h), both halves of its output and the
// input of FC2 (3 f); for each token what every layer keeps (norms and their outputs 4 h, Q K V and context 4
// h, an fp32 sum of each head) and two fp32 scores for each of 8 experts.
TEST(Experts, ActivationsCountTheRowsThatArrive) {
  WorkloadSpec workload = small_moe(1, 4);
  workload.model = complete(workload.model);
  const Plan plan = resolve(workload, 8);
  const double tokens = 512, h = 1024, f = 2048;
  EXPECT_DOUBLE_EQ(
      layer_activation_bytes(workload.model, plan, RecomputeKind::none, LayerKind::experts),
      tokens * (2 * 8 * h + 4 * workload.model.heads + 8 * 8) + 2 * tokens * (2 * h + 2 * 3 * f));
}

// 1024 shared experts of width 2^22 have 2^32 columns, more than an int counts: beyond the first they take
// 1023 times what the second one takes.
TEST(Experts, ActivationsOfManyWideSharedOnesAreCountedBeyondAnInt) {
  const auto bytes = [](int shared) {
    WorkloadSpec workload = small_moe(1, 4);
    workload.model.experts.shared = shared, workload.model.experts.ffn = 1 << 22;
    workload.model = complete(workload.model);
    const Plan plan = resolve(workload, 8);
    return std::pair(layer_activation_bytes(workload.model, plan, RecomputeKind::none, LayerKind::experts),
                     stage_activations(workload.model, plan, 0).until_weight);
  };
  const auto one = bytes(1), two = bytes(2), many = bytes(1024);
  EXPECT_DOUBLE_EQ(many.first - one.first, 1023 * (two.first - one.first));
  EXPECT_DOUBLE_EQ(many.second - one.second, 1023 * (two.second - one.second));
}

WorkloadSpec dualpipe(Schedule schedule) {
  WorkloadSpec workload = small_deepseek(1, 2);
  workload.model.layers = 8, workload.model.dense_layers = 0;
  workload.model.vocab = 2048;  // the ends are no longer than a layer
  workload.plan.pp = 4, workload.plan.schedule = schedule, workload.plan.grad_accumulation = 8;
  return workload;
}

// DualPipe with pp 4: ranks r and p-1-r both hold the stages r and p-1-r. On 8 ranks that is four
// data-parallel copies of everything, and gradients are summed over both mirrored ranks.
TEST(DualPipe, HoldsEverythingTwiceAndSumsOverMirroredRanks) {
  const auto program = training_step(dualpipe(Schedule::dualpipe), h100(), 8);
  program::validate(program);
  EXPECT_NEAR(flops_of_all_ranks(program) / program.facts.model_flops.value(), 1, 1e-12);
  EXPECT_THAT(groups(program, Dimension::data),
              ::testing::ElementsAre(::testing::ElementsAre(0, 1, 6, 7), ::testing::ElementsAre(2, 3, 4, 5)));
  EXPECT_THAT(groups(program, Dimension::expert_data),
              ::testing::ElementsAre(::testing::ElementsAre(0, 6), ::testing::ElementsAre(1, 7),
                                     ::testing::ElementsAre(2, 4), ::testing::ElementsAre(3, 5)));
  const MemoryParts once = memory_use(dualpipe(Schedule::one_f_one_b), h100(), 8).stages[1],
                    twice = memory_use(dualpipe(Schedule::dualpipe), h100(), 8).stages[1];
  EXPECT_DOUBLE_EQ(twice.weights, 2 * once.weights);
}

// All-to-alls of 20 us, about as long as a layer's experts: DualPipe hides them behind the kernels of the
// other direction, 1F1B waits for them.
TEST(DualPipe, HidesTheExchangesThat1F1BWaitsFor) {
  using namespace topsim::literals;
  const auto step = [](Schedule schedule, Duration exchange) {
    Replay replay;
    replay.launches = false;
    replay.message = [](Bytes) { return Duration{}; };
    replay.collective = [=](const program::Op& op, const program::Communicator&) {
      return op.collective == CollectiveKind::all_to_all ? exchange : Duration{};
    };
    return replay.run(training_step(dualpipe(schedule), h100(), 8)).step;
  };
  const Duration exchange = 20_us;
  const Duration exposed = step(Schedule::one_f_one_b, exchange) - step(Schedule::one_f_one_b, Duration{});
  const Duration hidden = step(Schedule::dualpipe, exchange) - step(Schedule::dualpipe, Duration{});
  // 1F1B: every micro-batch waits for 6 exchanges in each of 2 layers, and filling and draining 3 more stages
  // adds 3.
  EXPECT_EQ(exposed, (8 + 3) * 2 * 6 * exchange);
  // DualPipe, rank 1: it waits for one forward pass of rank 0, and runs ten passes without a partner: 4
  // forwards, a forward and a backward in the middle ("nothing to overlap with yet"), and the last 4
  // backwards. Each of the 11 exposes 3 exchanges in 2 layers. The paired passes expose less than two in all.
  const Duration alone = (1 + 4 + 2 + 4) * 2 * 3 * exchange;
  EXPECT_GE(hidden, alone);
  EXPECT_LT(hidden, alone + 2 * exchange);
}

// Interleaved 1F1B in pairs of tasks: the exchanges of one task hide behind the other's kernels, and a chunk
// of one more micro-batch is held.
TEST(Experts, PairedTasksHideExchangesAndHoldOneMoreChunk) {
  using namespace topsim::literals;
  WorkloadSpec plain = small_moe(1, 2), paired = plain;
  plain.plan.pp = paired.plan.pp = 2;
  plain.plan.virtual_stages = paired.plan.virtual_stages = 2;
  plain.plan.grad_accumulation = paired.plan.grad_accumulation = 8;
  plain.plan.overlap_p2p = true;
  paired.plan.overlap_expert_exchange = true;
  const auto step = [](const WorkloadSpec& workload, Duration exchange) {
    Replay replay;
    replay.launches = false;
    replay.message = [](Bytes) { return Duration{}; };
    replay.collective = [=](const program::Op& op, const program::Communicator&) {
      return op.collective == CollectiveKind::all_to_all ? exchange : Duration{};
    };
    const auto program = training_step(workload, h100(), 8);
    program::validate(program);
    return replay.run(program).step;
  };
  // Unpaired: 8 micro-batches in 2 chunks of a layer, and one more stage to fill; 6 exchanges each.
  EXPECT_EQ(step(plain, 20_us) - step(plain, Duration{}), (8 * 2 + 1) * 6 * 20_us);
  EXPECT_LT(step(paired, 20_us) - step(paired, Duration{}), (8 * 2 + 1) * 6 * 20_us / 2);
  const auto held = [](const WorkloadSpec& workload) {
    return memory_use(workload, h100(), 8).stages[0].activations;
  };
  // Stage 0 starts with 2 (p - 1) + (v - 1) p = 4 forwards, and one more before the first backward.
  EXPECT_DOUBLE_EQ(held(paired) / held(plain), 6.0 / 5);
}

// With ep = 1 the experts of a rank are on no other rank, so nothing of theirs is gathered after the update.
TEST(Experts, ThatNobodyElseHoldsAreNotGathered) {
  WorkloadSpec workload = small_moe(8, 1);
  workload.plan.zero = 1;
  workload.plan.overlap_param_gather = false;
  for (const int tp : {1, 2, 8}) {
    workload.plan.tp = tp;
    program::validate(training_step(workload, h100(), 8));
  }
  EXPECT_TRUE(collectives(training_step(workload, h100(), 8), Dimension::expert_data).empty());
}

}  // namespace topsim::workloads::experts_test
