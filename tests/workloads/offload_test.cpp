// Optimiser states in host memory or on NVMe, and shards shared by only some ranks: what travels, what waits,
// what stays on the accelerator.
#include <gmock/gmock.h>

#include <numeric>

#include "sim/base/error.hpp"
#include "tests/workloads/fixtures.hpp"
#include "tests/workloads/replay.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::offload_test {
using namespace testing;
using program::OpKind;
using program::Phase;

// 4 layers of 12 h^2 + 13 h = 12,596,224 and an embedding of 53,248 rows, to which the head is tied.
constexpr double kAll = 4 * 12'596'224.0 + 53248.0 * 1024 + 2 * 1024;  // ... and the final norm

WorkloadSpec small(std::string framework, int zero, Offload offload = Offload::cpu) {
  WorkloadSpec workload;
  workload.model = gpt(4, 1024, 16);
  workload.framework = std::move(framework);
  workload.plan.zero = zero;
  workload.plan.offload = offload;
  workload.host = {8, BytesPerSecond(400e9)};
  return workload;
}
double copied(const program::Program& program, int direction) {
  double sum = 0;
  for (const auto& op : program.classes[0].ops)
    if (op.kind == OpKind::host_copy && op.slot == direction) sum += static_cast<double>(op.bytes.value());
  return sum;
}
double host_seconds(const program::Program& program) {
  double sum = 0;
  for (const auto& op : program.classes[0].ops)
    if (op.kind == OpKind::host_work) sum += seconds(op.duration);
  return sum;
}
double bytes(const program::Program& program, program::CollectiveKind kind, Phase phase) {
  double sum = 0;
  for (const auto& op : program.classes[0].ops)
    if (op.kind == OpKind::collective && op.collective == kind && op.phase == phase && op.bytes > Bytes(4))
      sum += static_cast<double>(op.bytes.value());
  return sum;
}

// Each of 8 ranks copies gradients down, 4 Psi / N, and parameters up, 2 Psi / N. Stage 3 keeps them in 16
// bits too, which go down and come up again: 2 Psi / N. Adam on the host passes 28 Psi / N bytes, at an
// eighth of 0.43 x 400 GB/s.
TEST(Offload, GradientsGoDownAndParametersComeBack) {
  for (const int zero : {1, 2, 3}) {
    const auto program = training_step(small("deepspeed", zero), a100(), 8);
    program::validate(program);
    const double kept = zero == 3 ? 2 : 0;
    EXPECT_NEAR(copied(program, 0), (4 + kept) * kAll / 8, 64);
    EXPECT_NEAR(copied(program, 1), (2 + kept) * kAll / 8, 64);
    EXPECT_NEAR(host_seconds(program), 28 * kAll / 8 / (0.43 * 400e9 / 8), 1e-9);
  }
}

// DeepSpeed sums gradients on the host, in 16 bits. Three micro-batches of stage 2 send 2, 2 and at last 4
// bytes (fp32) a parameter down, and 0, 2 and 2 up, before the parameters' 2. Stage 3: 2, 2, 2 + 4 down, 2, 2
// and 2 up. Stage 1 reduces once a step, 4 down.
TEST(Offload, GradientsOfMicroBatchesAreSummedOnTheHost) {
  const auto both = [](int zero) {
    WorkloadSpec workload = small("deepspeed", zero);
    workload.plan.grad_accumulation = 3;
    const auto program = training_step(workload, a100(), 8);
    program::validate(program);
    return std::pair(copied(program, 0) / (kAll / 8), copied(program, 1) / (kAll / 8));
  };
  EXPECT_NEAR(both(1).first, 4, 1e-5);
  EXPECT_NEAR(both(1).second, 2, 1e-5);
  EXPECT_NEAR(both(2).first, 2 + 2 + 4, 1e-5);
  EXPECT_NEAR(both(2).second, 2 + 2 + 2, 1e-5);
  EXPECT_NEAR(both(3).first, 2 + 2 + 2 + 4, 1e-5);
  EXPECT_NEAR(both(3).second, 2 + 2 + 2 + 2, 1e-5);
}

// One accelerator's engine partitions and copies as on many, a partition being all: the same bytes with N =
// 1. Adam reads what the last micro-batch sent.
TEST(Offload, OneAcceleratorSumsGradientsOnTheHost) {
  const auto both = [](int zero, int micro_batches) {
    WorkloadSpec workload = small("deepspeed", zero);
    workload.plan.grad_accumulation = micro_batches;
    const auto program = training_step(workload, a100(), 1);
    program::validate(program);
    return std::pair(copied(program, 0) / kAll, copied(program, 1) / kAll);
  };
  EXPECT_NEAR(both(1, 3).first, 4, 1e-5);
  EXPECT_NEAR(both(1, 3).second, 2, 1e-5);
  EXPECT_NEAR(both(2, 1).first, 4, 1e-5);
  EXPECT_NEAR(both(2, 1).second, 2, 1e-5);
  EXPECT_NEAR(both(2, 3).first, 2 + 2 + 4, 1e-5);
  EXPECT_NEAR(both(2, 3).second, 2 + 2 + 2, 1e-5);
  EXPECT_NEAR(both(3, 3).first, 2 + 2 + 2 + 4, 1e-5);
  EXPECT_NEAR(both(3, 3).second, 2 + 2 + 2 + 2, 1e-5);
}

// How often computing waits for a copy.
int waits_for_copies(const WorkloadSpec& workload, std::uint32_t accelerators) {
  const auto program = training_step(workload, a100(), accelerators);
  const auto& rank = program.classes[0];
  int waits = 0;
  for (std::size_t i = 0; i < rank.ops.size(); ++i)
    if (rank.ops[i].kind == OpKind::compute)
      for (const std::uint32_t before : rank.dependencies_of(i))
        waits += rank.ops[before].kind == OpKind::host_copy;
  return waits;
}

// Without overlap_comm these copies are on the compute stream, which stands still: all gradients are one
// bucket, so once in each of two micro-batches, and at last for the parameters. Stage 3 likewise.
TEST(Offload, AccumulatingStopsTheAccelerator) {
  WorkloadSpec workload = small("deepspeed", 2);
  workload.plan.grad_accumulation = 2;
  EXPECT_EQ(waits_for_copies(workload, 8), 3);
  EXPECT_EQ(waits_for_copies(workload, 1), 3);
  workload.plan.zero = 3;
  workload.plan.overlap_grad_reduce = false;
  EXPECT_EQ(waits_for_copies(workload, 8), 3);
  EXPECT_EQ(waits_for_copies(workload, 1), 3);
}

// NVMe: 12 Psi / N bytes are read at an eighth of 52 GB/s and written at an eighth of 28 GB/s, in turn with
// Adam.
TEST(Offload, NvmeReadsAndWritesTheStates) {
  const double cpu = host_seconds(training_step(small("deepspeed", 2), a100(), 8));
  const auto program = training_step(small("deepspeed", 2, Offload::nvme), a100(), 8);
  EXPECT_NEAR(host_seconds(program) - cpu, 12 * kAll * (1 / 52e9 + 1 / 28e9), 1e-9);
}

// FSDP2's host adds the shards of all but the first micro-batch: 12 Psi / 8 bytes each at an eighth of 0.43 x
// 400 GB/s, and the copies of three. FSDP1 adds on the accelerator.
TEST(Offload, TheHostOfFsdp2AddsWhatMicroBatchesBring) {
  const auto of = [](const char* framework, int micro_batches) {
    WorkloadSpec workload = small(framework, 3);
    workload.plan.micro_batch = 1, workload.plan.grad_accumulation = micro_batches;
    return training_step(workload, a100(), 8);
  };
  const auto three = of("fsdp", 3);
  program::validate(three);
  EXPECT_NEAR(host_seconds(three) - host_seconds(of("fsdp", 1)), 2 * 12 * kAll / (0.43 * 400e9), 1e-6);
  EXPECT_NEAR(copied(three, 0), 3 * 4 * kAll / 8, 192);
  EXPECT_DOUBLE_EQ(host_seconds(of("fsdp@2024-flat", 3)), host_seconds(of("fsdp@2024-flat", 1)));
}

// Megatron's gradients stay in their buffers until the update, shards of eight too: 4 Psi / 8, beside those
// of the unit that is at work.
TEST(Offload, GradientsOfMegatronStayOnTheAccelerator) {
  const MemoryUse here = memory_use(small("megatron", 3, Offload::none), a100(), 8),
                  away = memory_use(small("megatron", 3), a100(), 8);
  EXPECT_DOUBLE_EQ(away.stages[0].gradients, here.stages[0].gradients);
  EXPECT_GT(away.stages[0].gradients, 4 * kAll / 8);
}

// The optimiser's states leave the accelerator, and sharded gradients too; with FSDP also the parameters'
// fp32 shards, which are copied up for each gather.
TEST(Offload, FreesTheAccelerator) {
  const MemoryUse here = memory_use(small("deepspeed", 2, Offload::none), a100(), 8),
                  away = memory_use(small("deepspeed", 2), a100(), 8);
  EXPECT_EQ(away.peak().optimizer, 0);
  EXPECT_LT(away.peak().gradients, here.peak().gradients);
  EXPECT_DOUBLE_EQ(away.peak().weights, here.peak().weights);
  const MemoryUse whole = memory_use(small("fsdp", 3, Offload::none), a100(), 8),
                  sharded = memory_use(small("fsdp", 3), a100(), 8);
  EXPECT_DOUBLE_EQ(whole.peak().weights - sharded.peak().weights, 4 * kAll / 8);
  // 4-byte shards go up for the forward gathers of all units and the backward gathers of all layers but the
  // last.
  const double layer = layer_parameters(complete(small("fsdp", 3).model)).total();
  EXPECT_NEAR(copied(training_step(small("fsdp", 3), a100(), 8), 1), 4 * (kAll + 3 * layer) / 8, 64);
}

// torchtune's 70B_full.yaml: dtype bf16, fsdp_cpu_offload, AdamW. Weights, gradients and moments are 2 bytes:
// 2 Psi / N of gradients go down, Adam reads four and writes three (14), and the shards that go up are half
// of fp32's. The host holds 2 + 2 + 4. DeepSpeed's master copy is fp32.
TEST(Offload, FsdpKeepsStatesInTheParametersFormat) {
  WorkloadSpec narrow = small("fsdp", 3);
  narrow.precision.optimizer = Precision::bf16;
  const auto program = training_step(narrow, a100(), 8), wide = training_step(small("fsdp", 3), a100(), 8);
  program::validate(program);
  EXPECT_NEAR(copied(program, 0), 2 * kAll / 8, 64);
  EXPECT_NEAR(copied(program, 1), copied(wide, 1) / 2, 64);
  EXPECT_NEAR(host_seconds(program), 14 * kAll / 8 / (0.43 * 400e9 / 8), 1e-9);
  EXPECT_NEAR(memory_use(narrow, a100(), 8).host, 8 * kAll, 64);
  narrow.framework = "deepspeed";
  EXPECT_THROW((void)training_step(narrow, a100(), 8), ConfigError);
}

// With a free network the step grows by the host's work, less the Adam that the accelerator no longer runs.
TEST(Offload, TheAcceleratorWaitsForTheHost) {
  const auto program = training_step(small("deepspeed", 2), a100(), 8);
  const auto without = training_step(small("deepspeed", 2, Offload::none), a100(), 8);
  const auto away = free_network().run(program), here = free_network().run(without);
  EXPECT_GT(here.busy[0], away.busy[0]);
  EXPECT_NEAR(seconds(away.step - here.step), host_seconds(program) - seconds(here.busy[0] - away.busy[0]),
              1e-9);
}

TEST(Offload, OneAcceleratorOffloadsToo) {
  const auto program = training_step(small("deepspeed", 1), a100(), 1);
  program::validate(program);
  EXPECT_NEAR(copied(program, 0), 4 * kAll, 8);
  EXPECT_THROW((void)training_step(small("ddp", 0), a100(), 8), ConfigError);
}

// ZeRO-Offload (Ren et al. 2021, abstract) claims 13 billion parameters on one V100 of 32 GB. Here 10.3
// billion: weights in 16 bits, and one bucket of 5e8 gradients that waits for its copy. With stage 1
// gradients stay on the accelerator, 20 GB more.
TEST(Offload, TenBillionParametersTrainOnOneV100) {
  WorkloadSpec workload = small("deepspeed", 2);
  workload.model = gpt(50, 4096, 32);
  workload.plan.recompute = RecomputeSpec{RecomputeKind::full, std::nullopt};
  topology::Accelerator v100 = a100();
  v100.memory = Bytes(32LL << 30);
  const MemoryUse use = memory_use(workload, v100, 1);
  EXPECT_NEAR(use.peak().gradients, 2 * 5e8, 1);
  EXPECT_TRUE(use.fits());
  workload.plan.zero = 1;
  const double all = total_parameters(complete(workload.model));
  EXPECT_NEAR(memory_use(workload, v100, 1).peak().gradients, 2 * all, 1e-3 * all);
}

// A recomputed layer keeps its input, 2 s b h = 2 x 2048 x 1024 bytes. Four layers' are copied down and up in
// each of two micro-batches; on the accelerator the inputs of two layers are left, however many there are.
TEST(Offload, ActivationsWaitInHostMemory) {
  WorkloadSpec workload = small("megatron", 1, Offload::none);
  workload.plan.recompute = RecomputeSpec{RecomputeKind::full, std::nullopt};
  workload.plan.global_batch = 16;
  const double kept = 2.0 * 2048 * 1024;
  const MemoryUse here = memory_use(workload, a100(), 8);
  workload.plan.offload_activations = true;
  const MemoryUse away = memory_use(workload, a100(), 8);
  EXPECT_NEAR(here.peak().activations - away.peak().activations, (4 - 2) * kept, 1);
  const auto program = training_step(workload, a100(), 8);
  program::validate(program);
  EXPECT_NEAR(copied(program, 0), 2 * 4 * kept, 8);
  EXPECT_NEAR(copied(program, 1), 2 * 4 * kept, 8);
  // A layer that is not recomputed keeps 34 s b h bytes, less masks; that is copied too.
  workload.plan.recompute = RecomputeSpec{};
  EXPECT_GT(copied(training_step(workload, a100(), 8), 0), 10 * 2 * 4 * kept);
  workload.task = Task::prefill;
  EXPECT_THROW((void)training_step(workload, a100(), 8), ConfigError);
}

// Shards over groups of 4 of 16 ranks: gradients are reduce-scattered inside a group, and each shard is
// all-reduced with the other three groups; a group holds the optimiser once.
TEST(ShardGroups, AreScatteredInsideAndSummedBetween) {
  WorkloadSpec workload = small("megatron", 1, Offload::none);
  workload.plan.zero_group = {ZeroGroup::Kind::ranks, 4};
  const auto program = training_step(workload, a100(), 16);
  program::validate(program);
  EXPECT_NEAR(bytes(program, program::CollectiveKind::reduce_scatter, Phase::gradient_sync), 4 * kAll, 8);
  EXPECT_NEAR(bytes(program, program::CollectiveKind::all_reduce, Phase::gradient_sync), kAll, 64);
  EXPECT_DOUBLE_EQ(memory_use(workload, a100(), 16).peak().optimizer * 4, 12 * kAll);
}

// A node of 8 with tp 2 holds 4 replicas, which share; with tp 8 it holds one.
TEST(ShardGroups, ANodeHoldsAsManyReplicasAsFit) {
  WorkloadSpec workload = small("megatron", 1, Offload::none);
  workload.model = complete(workload.model);
  workload.plan.zero_group = {ZeroGroup::Kind::node, 0};
  workload.plan.tp = 2;
  EXPECT_EQ(resolve(workload, 32).shards.ranks, 4);
  workload.plan.tp = 8;
  EXPECT_THROW((void)resolve(workload, 32), ConfigError);
  workload.plan.tp = 1, workload.plan.zero = 0;
  EXPECT_THROW((void)resolve(workload, 32), ConfigError);
}

// User buffers cut a gather into seven exchanges that hide behind tiles of its own product. Without them
// whole gathers are exposed where they are launched.
TEST(UserBuffers, GathersHideBehindTheirOwnProduct) {
  const auto exposed = [](TensorOverlap overlap) {
    WorkloadSpec workload = llama3_70b_on_64();
    workload.plan.tp_overlap = overlap;
    const auto program = training_step(workload, h100(), 64);
    program::validate(program);
    Replay network = free_network();
    const Duration alone = network.run(program).step;
    network.collective = [](const program::Op& op, const program::Communicator& group) {
      if (group.dimension != program::Dimension::tensor) return Duration{};
      // 300 GB/s for the bytes that each rank receives.
      const double share = op.collective == program::CollectiveKind::send_recv ? 1 : 7.0 / 8;
      return from_seconds(static_cast<double>(op.bytes.value()) * share / 300e9);
    };
    return seconds(network.run(program).step - alone);
  };
  const double none = exposed(TensorOverlap::none), async = exposed(TensorOverlap::async),
               tiles = exposed(TensorOverlap::userbuffers);
  EXPECT_LT(async, none);
  EXPECT_LT(tiles, 0.5 * async);
}
TEST(UserBuffers, NeedSequenceParallelism) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.plan.tp_overlap = TensorOverlap::userbuffers;
  workload.plan.sequence_parallel = false;
  EXPECT_THROW((void)training_step(workload, h100(), 64), ConfigError);
}

double on_host(const WorkloadSpec& workload, std::uint32_t accelerators) {
  return memory_use(workload, a100(), accelerators).host;
}

// Master copy 4, both moments 8, gradient 4: 16 bytes of every parameter, once in a node of eight ranks that
// share them all, half of them in each of two nodes. Ranks that share nothing keep all of it each.
// DeepSpeed's ZeRO-3 sums gradients there in 16 bits (stage3.py, grad_partitions_flat_buffer): 2 more. With
// NVMe the states are on the drives.
TEST(HostMemory, SixteenBytesOfEachParameterThatANodesRanksUpdate) {
  EXPECT_NEAR(on_host(small("fsdp", 3), 8), 16 * kAll, 64);
  EXPECT_NEAR(on_host(small("fsdp", 3), 16), 8 * kAll, 64);
  EXPECT_NEAR(on_host(small("deepspeed", 3), 8), 18 * kAll, 64);
  EXPECT_NEAR(on_host(small("deepspeed", 1), 8), 16 * kAll, 64);
  EXPECT_NEAR(on_host(small("deepspeed", 0), 8), 8 * 16 * kAll, 64);
  EXPECT_NEAR(on_host(small("deepspeed", 3), 1), 18 * kAll, 64);  // alone too
  EXPECT_EQ(on_host(small("deepspeed", 3, Offload::nvme), 8), 0);
  EXPECT_EQ(on_host(small("deepspeed", 3, Offload::none), 8), 0);
}

// Two stages on two nodes: the first has the table of 51,200 tokens and 2,048 positions, the second a copy of
// the tokens' and the final norm. A node with both stages holds the sum.
TEST(HostMemory, IsOfTheNodeWhoseStageNeedsMost) {
  WorkloadSpec workload = small("megatron", 1);
  workload.plan.pp = 2;
  const double layers = 2 * 12'596'224.0, first = layers + 53248.0 * 1024,
               second = layers + 51200.0 * 1024 + 2 * 1024;
  EXPECT_NEAR(on_host(workload, 16), 16 * first, 64);
  workload.host.accelerators = 16;
  EXPECT_NEAR(on_host(workload, 16), 16 * (first + second), 64);
}

// What four layers keep leaves each of eight accelerators for their host.
TEST(HostMemory, HoldsOffloadedActivations) {
  WorkloadSpec workload = small("megatron", 0, Offload::none);
  workload.model = complete(workload.model);
  const Plan plan = resolve(workload, 8);
  const double layer = layer_activation_bytes(workload.model, plan, plan.recompute_of(false));
  workload.plan.offload_activations = true;
  EXPECT_NEAR(on_host(workload, 8), 8 * 4 * layer, 1e-6 * layer);
}

// 15 bytes a parameter are too few; two nodes would do.
TEST(HostMemory, IsRefusedWhereItDoesNotFit) {
  WorkloadSpec workload = small("fsdp", 3);
  workload.host.memory = Bytes(static_cast<std::int64_t>(16 * kAll));
  EXPECT_TRUE(memory_use(workload, a100(), 8).fits());
  workload.host.memory = Bytes(static_cast<std::int64_t>(15 * kAll));
  EXPECT_FALSE(memory_use(workload, a100(), 8).fits());
  EXPECT_TRUE(memory_use(workload, a100(), 8).fits_accelerator());
  EXPECT_TRUE(memory_use(workload, a100(), 16).fits());
  try {
    require_fit(workload, a100(), 8);
    FAIL();
  } catch (const ConfigError& error) {
    const Problem& problem = error.problems().front();
    EXPECT_EQ(problem.path, "workload.plan.offload");
    // 16 x 104,914,944 = 1.56 GiB, of 1.47.
    EXPECT_THAT(problem.message,
                ::testing::HasSubstr("needs 1.6 GiB of host memory per node, a node has 1.5 GiB"));
    EXPECT_THAT(problem.help, ::testing::HasSubstr("offload = none would fit, or 2 times as many nodes"));
  }
  workload.host.memory = Bytes{};  // not known
  EXPECT_NO_THROW(require_fit(workload, a100(), 8));
}
}  // namespace topsim::workloads::offload_test
