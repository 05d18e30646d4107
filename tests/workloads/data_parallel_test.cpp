// What data-parallel frameworks send: how much, in which order, and when.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "sim/base/error.hpp"
#include "tests/workloads/exchanged.hpp"
#include "tests/workloads/fixtures.hpp"
#include "tests/workloads/replay.hpp"
#include "workloads/model.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::data_parallel_test {
using namespace testing;
using program::CollectiveKind;
using program::OpKind;
using program::Phase;

constexpr double kMiB = 1024.0 * 1024;

// With a scale a tensor Megatron gathers weights in 8 bits, embedding, final norm and head in 16: twice its
// bytes exceed those in 16 bits by the ends'. Of adapters nothing belongs to the ends.
TEST(ParametersOf8Bits, AreGatheredAsTheyAreKeptAndEndsIn16Bits) {
  const auto gathered = [](WorkloadSpec workload, std::optional<Precision> sent) {
    workload.precision.parameters_all_gather = sent;
    return bytes(collectives(training_step(workload, h100(), 8), Phase::parameter_sync));
  };
  WorkloadSpec all = small("megatron");
  all.precision.gemm = Precision::fp8;
  const ModelSpec model = complete(all.model);
  const double ends = embedding_parameters(model) + head_parameters(model) + final_norm_parameters(model);
  EXPECT_NEAR(2 * gathered(all, {}) - gathered(all, Precision::bf16), 2 * ends, 1);
  WorkloadSpec adapters = all;
  adapters.task = Task::lora;
  EXPECT_NEAR(gathered(adapters, {}), 2 * gathered(adapters, Precision::fp8), 1);
}

// On one rank a tied head is the embedding itself, so 51200 x 1024 fewer gradients are sent, of 4 B each,
// whether parameters are whole or in shards.
TEST(TiedHead, IsSentOnceWithTheTable) {
  const double head = 51200.0 * 1024;
  for (const char* framework : {"ddp", "megatron", "fsdp"}) {
    WorkloadSpec apart = small(framework), tied = small(framework);
    tied.model.tied_embeddings = true;
    const auto sent = [](const WorkloadSpec& workload) {
      return bytes(collectives(training_step(workload, a100(), 8), Phase::gradient_sync));
    };
    EXPECT_NEAR(sent(apart) - sent(tied), 4 * head, 1) << framework;
  }
  // On two stages each end has a copy of its own: nothing is saved.
  WorkloadSpec stages = small("megatron"), tied = small("megatron");
  tied.model.tied_embeddings = true;
  stages.plan.pp = tied.plan.pp = 2;
  stages.plan.grad_accumulation = tied.plan.grad_accumulation = 2;
  const auto scattered = [](const WorkloadSpec& workload) {
    double sum = 0;
    for (const auto& op : collectives(training_step(workload, a100(), 8), Phase::gradient_sync))
      if (op.collective == CollectiveKind::reduce_scatter) sum += static_cast<double>(op.bytes.value());
    return sum;
  };
  EXPECT_EQ(scattered(stages), scattered(tied));
}

// fp32 gradients in reverse order of the layers. The head (51200 x 1024 x 4 B = 200 MiB) overfills the first
// bucket of 1 MiB. fc2 (16 MiB) and fc1 (16 MiB) together exceed 25 MiB and close the second; projection (4
// MiB), qkv (12 MiB) and fc2 of the next layer (16 MiB) the third.
TEST(DistributedDataParallel, BucketsFillInReverseOrder) {
  const auto program = training_step(small("ddp"), a100(), 8);
  program::validate(program);
  const auto sent = collectives(program, Phase::gradient_sync);
  for (const auto& op : sent) EXPECT_EQ(op.collective, CollectiveKind::all_reduce);
  ASSERT_GE(sent.size(), 4u);
  EXPECT_NEAR(static_cast<double>(sent[0].bytes.value()), 200 * kMiB, 1);
  EXPECT_NEAR(static_cast<double>(sent[1].bytes.value()) / kMiB, 32, 0.1);  // fc2, fc1
  EXPECT_NEAR(static_cast<double>(sent[2].bytes.value()) / kMiB, 32, 0.1);  // proj, qkv, fc2 of the next
  EXPECT_DOUBLE_EQ(bytes(sent), 4 * parameters_of(small("ddp").model));
}

// Two all-reduces exceed 100 MiB and take 300 us here, all others nothing. The head's starts early and hides
// behind the backward pass; the embedding's comes at its end and is exposed. So the step grows by 300 us, not
// 600.
TEST(DistributedDataParallel, AllReduceHidesBehindTheBackwardPass) {
  const WorkloadSpec workload = small("ddp");
  const auto program = training_step(workload, a100(), 8);
  Replay slow = free_network();
  const Duration alone = slow.run(program).step;
  slow.collective = [](const program::Op& op, const program::Communicator&) {
    return op.phase == Phase::gradient_sync && op.bytes > Bytes(100 << 20) ? from_microseconds(300)
                                                                           : Duration{};
  };
  const auto result = slow.run(program);
  EXPECT_LT(seconds(result.step - alone), 310e-6);
  EXPECT_GT(seconds(result.step - alone), 250e-6);
}

TEST(DistributedDataParallel, AccumulationReducesOnce) {
  const auto once = training_step(small("ddp", 1), a100(), 8),
             often = training_step(small("ddp", 4), a100(), 8);
  EXPECT_EQ(collectives(once, Phase::gradient_sync).size(), collectives(often, Phase::gradient_sync).size());
}

// Without no_sync each of four backward passes sends all gradients, after copies into buckets, waits, and
// copies them back. Gradients are still added up: what each pass computes stays the same.
TEST(DistributedDataParallel, WithoutNoSyncEachMicroBatchReduces) {
  WorkloadSpec each = small("ddp", 4);
  each.plan.reduce_each_micro_batch = true;
  const auto once = training_step(small("ddp", 4), a100(), 8), often = training_step(each, a100(), 8);
  program::validate(often);
  EXPECT_DOUBLE_EQ(bytes(collectives(often, Phase::gradient_sync)),
                   4 * bytes(collectives(once, Phase::gradient_sync)));
  const auto busy = [](const program::Program& program, bool copies) {
    double sum = 0;
    for (const auto& op : program.classes[0].ops)
      if (op.kind == OpKind::compute && (op.phase == Phase::gradient_sync) == copies)
        sum += seconds(op.duration);
    return sum;
  };
  EXPECT_NEAR(busy(often, true), 4 * busy(once, true), 1e-9);
  EXPECT_NEAR(busy(often, false), busy(once, false), 1e-9);
  // Without overlap all gradients go at once, at the end of every backward pass: 4 all-reduces, not one of 4
  // times the size.
  WorkloadSpec late = small("ddp", 4), each_late = each;
  late.plan.overlap_grad_reduce = each_late.plan.overlap_grad_reduce = false;
  const auto one = collectives(training_step(late, a100(), 8), Phase::gradient_sync),
             four = collectives(training_step(each_late, a100(), 8), Phase::gradient_sync);
  ASSERT_EQ(one.size(), 1u);
  ASSERT_EQ(four.size(), 4u);
  for (const auto& op : four) EXPECT_EQ(op.bytes, one[0].bytes);
  for (const char* framework : {"fsdp", "megatron", "deepspeed"}) {
    each.framework = framework;
    EXPECT_THROW((void)training_step(each, a100(), 8), ConfigError) << framework;
  }
}

// 2 bytes per gradient instead of 4, of the same buckets of fp32 gradients: 16 MiB of the second's 32. Copies
// into buckets and back move 4 x 4 bytes a gradient; a cast 4 + 2, the division of the cast 2 + 2 and the
// cast back 2 + 4 as many again.
TEST(DistributedDataParallel, GradientsMayBeSentIn16Bits) {
  WorkloadSpec workload = small("ddp");
  const auto wide = training_step(workload, a100(), 8);
  workload.precision.gradients = Precision::bf16;
  const auto narrow = training_step(workload, a100(), 8);
  const auto sent = collectives(narrow, Phase::gradient_sync);
  EXPECT_DOUBLE_EQ(bytes(sent), 2 * parameters_of(workload.model));
  EXPECT_EQ(sent.size(), collectives(wide, Phase::gradient_sync).size());
  EXPECT_NEAR(static_cast<double>(sent[1].bytes.value()) / kMiB, 16, 0.1);
  const auto copying = [](const program::Program& program) {
    double sum = 0;
    for (const auto& op : program.classes[0].ops)
      if (op.kind == OpKind::compute && op.phase == Phase::gradient_sync) sum += seconds(op.duration);
    return sum;
  };
  EXPECT_NEAR(copying(narrow) / copying(wide), 2, 0.05);
}

// For each micro-batch: forward, 16-bit gathers of the root (embedding and head, one unit) and of four
// layers; backward, of three layers, since root and last layer stay gathered; and five reduce-scatters in
// fp32.
TEST(FullySharded, WireBytesAreGathersTwiceAndOneReduction) {
  for (const int accumulation : {1, 3}) {
    const WorkloadSpec workload = small("fsdp", accumulation);
    const auto program = training_step(workload, a100(), 8);
    program::validate(program);
    const double all = parameters_of(workload.model);
    const double layer = layer_parameters(complete(workload.model)).total();
    const auto gathers = collectives(program, Phase::parameter_sync);
    EXPECT_DOUBLE_EQ(bytes(gathers), accumulation * 2 * (all + 3 * layer));
    EXPECT_EQ(gathers.size(), accumulation * 8u);
    EXPECT_EQ(static_cast<double>(gathers.front().bytes.value()), 2 * (all - 4 * layer));
    const auto reductions = collectives(program, Phase::gradient_sync);
    EXPECT_DOUBLE_EQ(bytes(reductions), accumulation * 4 * all);
    for (const auto& op : reductions) EXPECT_EQ(op.collective, CollectiveKind::reduce_scatter);
    EXPECT_EQ(static_cast<double>(reductions.back().bytes.value()), 4 * (all - 4 * layer));
    EXPECT_EQ(reductions.size(), accumulation * 5u);
  }
}

// FSDP of PyTorch 1 and 2.1 has the same root, but reshards the last layer too: 5 gathers forward, 4
// backward.
TEST(FullySharded, TheFirstReleaseReshardsTheLastLayerToo) {
  const auto gathers = collectives(training_step(small("fsdp@2023"), a100(), 8), Phase::parameter_sync);
  EXPECT_EQ(gathers.size(), 9u);
}

TEST(FullySharded, Zero2KeepsParametersForTheBackwardPass) {
  WorkloadSpec workload = small("fsdp");
  workload.plan.zero = 2;
  EXPECT_DOUBLE_EQ(bytes(collectives(training_step(workload, a100(), 8), Phase::parameter_sync)),
                   2 * parameters_of(workload.model));
}

// Eight gathers of 50 us, each shorter than a layer's kernels. The first of the step is exposed, since
// nothing runs before it; most others are hidden, so the step grows by less than four.
TEST(FullySharded, GathersArePrefetched) {
  WorkloadSpec workload = small("fsdp");
  workload.plan.micro_batch = 8;
  const auto program = training_step(workload, a100(), 8);
  const double grown = growth_by_parameter_sync(program, from_microseconds(50));
  EXPECT_GE(grown, 50e-6);
  EXPECT_LT(grown, 4 * 50e-6);
}

// At most one reduce-scatter is outstanding. Where each takes 100 ms, far longer than a unit computes, the
// compute stream stalls before every next one of the five.
TEST(FullySharded, ASlowReduceScatterStallsTheNextUnit) {
  const auto program = training_step(small("fsdp"), a100(), 8);
  Replay network = free_network();
  network.collective = [](const program::Op& op, const program::Communicator&) {
    return op.phase == Phase::gradient_sync && op.bytes > Bytes(4) ? from_microseconds(100000) : Duration{};
  };
  const auto& ops = program.classes[0].ops;
  const auto ended = network.run(program).ended[0];
  Duration previous{};
  int seen = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind != OpKind::collective || ops[i].phase != Phase::gradient_sync || ops[i].bytes <= Bytes(4))
      continue;
    // The op before a reduce-scatter copies the unit's gradients into the buffer; the last reduction ended
    // before.
    EXPECT_GE(ended[i - 1], previous);
    ++seen;
    previous = ended[i];
  }
  EXPECT_EQ(seen, 5);
}

// Under a pipeline the three reduce-scatters of a stage (embedding and two layers) follow the last backward
// pass. Between them run only the copies into their buffers.
TEST(FullySharded, UnderAPipelineNothingIsReducedBeforeTheLastBackwardEnds) {
  WorkloadSpec workload = small("fsdp", 4);
  workload.plan.pp = 2;
  const auto program = training_step(workload, a100(), 16);
  program::validate(program);
  const auto& ops = program.classes[0].ops;
  int reductions = 0;
  for (const auto& op : ops) {
    if (op.kind == OpKind::collective && op.phase == Phase::gradient_sync && op.bytes > Bytes(4))
      ++reductions;
    if (reductions > 0) {
      EXPECT_NE(op.phase, Phase::backward);
    }
  }
  EXPECT_EQ(reductions, 3);
}

// 32 ranks in shards of 8: each unit is reduce-scattered within 8 ranks, and then each eighth of it
// all-reduced over the four ranks that hold it. Rank 9 is in the shard group 8..15 and the replica group 1,
// 9, 17, 25.
TEST(FullySharded, HybridShardingReducesShardsOverReplicas) {
  WorkloadSpec workload = small("fsdp");
  workload.plan.hsdp_shard = 8;
  const auto program = training_step(workload, a100(), 32);
  program::validate(program);
  double over_replicas = 0, within = 0;
  for (const auto& op : collectives(program, Phase::gradient_sync)) {
    const auto members = program.members_of(program.communicator_slots[op.slot][9]);
    if (op.collective == CollectiveKind::all_reduce) {
      EXPECT_EQ(std::vector<RankId>(members.begin(), members.end()),
                (std::vector<RankId>{RankId(1), RankId(9), RankId(17), RankId(25)}));
      over_replicas += static_cast<double>(op.bytes.value());
    } else {
      EXPECT_EQ(members.size(), 8u);
      EXPECT_EQ(members[0], RankId(8));
      within += static_cast<double>(op.bytes.value());
    }
  }
  EXPECT_NEAR(over_replicas, within / 8, 8);
}

// Stages 1 and 2: an all-reduce of every bucket of 5e8 elements (here one) and a gather of the updated
// parameters, Psi numbers of 16 bits each; on the wire 2 Psi and 1 Psi. Stage 2 reduces after every
// micro-batch.
TEST(DeepSpeed, Stages1And2AllReduceBucketsAndGather) {
  for (const int stage : {1, 2}) {
    WorkloadSpec workload = small("deepspeed", 3);
    workload.plan.zero = stage;
    const auto program = training_step(workload, a100(), 8);
    program::validate(program);
    const double all = parameters_of(workload.model);
    const auto reductions = collectives(program, Phase::gradient_sync);
    for (const auto& op : reductions) EXPECT_EQ(op.collective, CollectiveKind::all_reduce);
    EXPECT_DOUBLE_EQ(bytes(reductions), (stage == 1 ? 1 : 3) * 2 * all);
    EXPECT_DOUBLE_EQ(bytes(collectives(program, Phase::parameter_sync)), 2 * all);
  }
}

// DeepSpeed's overlap_comm is off by default, so each bucket adds its whole 100 us to the step.
TEST(DeepSpeed, ReductionsAreExposedByDefault) {
  WorkloadSpec workload = small("deepspeed");
  workload.plan.bucket_size = Bytes(50 << 20);
  const auto program = training_step(workload, a100(), 8);
  const auto count = collectives(program, Phase::gradient_sync).size();
  ASSERT_GT(count, 2u);
  Replay network = free_network();
  const Duration alone = network.run(program).step;
  network.collective = [](const program::Op& op, const program::Communicator&) {
    return op.phase == Phase::gradient_sync && op.bytes > Bytes(4) ? from_microseconds(100) : Duration{};
  };
  EXPECT_NEAR(seconds(network.run(program).step - alone), static_cast<double>(count) * 100e-6, 1e-9);
}

// Stage 3, every micro-batch: one gather and one reduce-scatter of all parameters, in 16 bits. The backward
// pass finds them where the forward pass left them: 1.6e8 are fewer than the 1e9 that may live.
TEST(DeepSpeed, Stage3GathersOnceWhatMayLive) {
  WorkloadSpec workload = small("deepspeed", 2);
  workload.plan.zero = 3;
  const auto program = training_step(workload, a100(), 8);
  program::validate(program);
  const double all = parameters_of(workload.model);
  EXPECT_DOUBLE_EQ(bytes(collectives(program, Phase::parameter_sync)), 2 * 2 * all);
  EXPECT_DOUBLE_EQ(bytes(collectives(program, Phase::gradient_sync)), 2 * 2 * all);
}

// Buckets of 1e7 gradients (20 MB). The head (5e7) goes alone. With ZeRO-2 the next bucket takes, in reverse
// order, the final norm 2 h, FC2 4 h^2 + h, FC1 4 h^2 + 4 h, a norm 2 h and the projection h^2 + h: 9 h^2 +
// 10 h = 9,447,424. QKV, 3 h^2 + 3 h, would exceed it and opens another. Without ZeRO a bucket closes behind
// what fills it, so QKV goes along. Stage 3 reduces whole units: head, four layers of 1.26e7 and table each
// fill a bucket.
TEST(DeepSpeed, BucketsCloseBeforeTheyOverflow) {
  const auto reductions = [](int stage) {
    WorkloadSpec workload = small("deepspeed");
    workload.plan.zero = stage;
    workload.plan.bucket_size = Bytes(20'000'000);
    return collectives(training_step(workload, a100(), 8), Phase::gradient_sync);
  };
  const double h = 1024;
  EXPECT_DOUBLE_EQ(static_cast<double>(reductions(2)[1].bytes.value()), 2 * (9 * h * h + 10 * h));
  EXPECT_DOUBLE_EQ(static_cast<double>(reductions(0)[1].bytes.value()), 2 * (12 * h * h + 13 * h));
  EXPECT_EQ(reductions(3).size(), 6u);
}

// Parameters of Llama-3 8B: q and o 4096 x 4096 each, k and v 1024 x 4096, gate, up and down 14336 x 4096.
// One gather takes matrices until it has 5e7 numbers. q, k, v and o have 41,943,040, with gate 100,663,296:
// the first gather; up and down, 58,720,256 each, are two more. 70B (h 8192, FFN 28672) needs five: q 67e6;
// k, v and o 84e6; gate, up and down 235e6 each.
TEST(DeepSpeed, Stage3GathersMatricesUntilTheBucketIsFull) {
  const auto first_layer = [](int hidden, int heads, int ffn) {
    WorkloadSpec workload = small("deepspeed");
    workload.model = llama3_70b();
    workload.model.layers = 2, workload.model.hidden = hidden, workload.model.heads = heads;
    workload.model.ffn = ffn;
    workload.plan.zero = 3;
    return collectives(training_step(workload, h100(), 8), Phase::parameter_sync);
  };
  // Forward: embedding, both layers, head. Backward, 8B: head and two layers, 5.3e8 + 2 x 2.2e8 = 9.6e8
  // numbers, fit in the 1e9 that may live and stay, so only the embedding is gathered again. 70B: the head
  // alone has 1.05e9 and only it stays; both layers and the embedding are gathered again.
  const auto small_layers = first_layer(4096, 32, 14336), large_layers = first_layer(8192, 64, 28672);
  ASSERT_EQ(small_layers.size(), 1u + 2 * 3 + 1 + 1);
  const double norms = 2 * 4096;
  EXPECT_EQ(static_cast<double>(small_layers[1].bytes.value()), 2 * (100'663'296 + norms));
  EXPECT_EQ(small_layers[2].bytes.value(), 2 * 58'720'256);
  EXPECT_EQ(small_layers[3].bytes.value(), 2 * 58'720'256);
  EXPECT_EQ(large_layers.size(), 1u + 2 * 5 + 1 + 2 * 5 + 1);
}

TEST(DataParallelPlan, StagesThatAFrameworkLacksAreRefused) {
  for (const auto& [name, zero] : {std::pair{"megatron@2024", 3}, {"ddp", 1}, {"fsdp", 1}}) {
    WorkloadSpec workload = small(name);
    workload.plan.zero = zero;
    EXPECT_THROW((void)training_step(workload, a100(), 8), ConfigError) << name;
  }
  WorkloadSpec workload = small("deepspeed");
  workload.plan.zero = 2, workload.plan.pp = 2;
  EXPECT_THROW((void)training_step(workload, a100(), 8), ConfigError);
}
}  // namespace topsim::workloads::data_parallel_test
