#include "workloads/host/host.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "sim/base/error.hpp"
#include "tests/workloads/fixtures.hpp"
#include "tests/workloads/replay.hpp"
#include "workloads/framework.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::host_test {
using namespace testing;

// Two published modules (host.cpp). nn.Linear is a module and an operator, 3.5 + 10 us. Megatron's
// ColumnParallelLinear has 3 views and 2 Functions more: 3.5 + 10 + 3 x 2.5 + 2 x 26 = 73 us; 74 were
// measured.
TEST(Host, TimesOfCallsAddUpToPublishedModules) {
  EXPECT_NEAR(seconds(host_time({1, 0, 0, 1})), 13.5e-6, 1e-9);
  EXPECT_NEAR(seconds(host_time({1, 3, 2, 1})), 74e-6, 2e-6);
}

WorkloadSpec job() {
  WorkloadSpec workload;
  workload.model = gpt(2, 1024, 16);
  workload.framework = "megatron@2022";
  workload.plan.grad_accumulation = 3;
  workload.plan.recompute = RecomputeSpec{};
  return workload;
}

double launches(const program::Program& program) {
  Duration sum{};
  for (const program::Op& op : program.classes.front().ops) sum += op.launch;
  return seconds(sum);
}
double host_seconds(const WorkloadSpec& workload) {
  return launches(training_step(workload, a100(), 1));
}

// Launched one by one, kernels of a stream begin 0.9 us after the one before them, from a graph 0.5. At 1 us
// a launch the launches of the step count its kernels.
TEST(Host, KernelsOfAGraphFollowEachOtherSooner) {
  WorkloadSpec stream = job();
  stream.compute.launch_overhead = std::chrono::microseconds(1);
  WorkloadSpec graph = stream;
  graph.compute.cuda_graph = true;
  const auto busy = [](const WorkloadSpec& workload) {
    const program::Program step = training_step(workload, a100(), 1);
    Duration sum{};
    for (const program::Op& op : step.classes.front().ops)
      if (op.kind == program::OpKind::compute) sum += op.duration;
    return seconds(sum);
  };
  const double kernels = host_seconds(graph) * 1e6;
  EXPECT_GT(kernels, 6 * 20);  // 2 layers x 3 micro-batches, each with 20 at least
  EXPECT_NEAR(busy(stream) - busy(graph), kernels * 0.4e-6, 10 * 0.4e-6);
}

// Inference has no backward pass: without a graph Megatron's set, whose calls are Transformer Engine's in
// training, takes plain modules' as ddp does. Both have the same kernels.
TEST(Host, CallsPlainModulesForInferenceWithoutAGraph) {
  WorkloadSpec decode = job();
  decode.task = Task::decode, decode.plan.grad_accumulation.reset(), decode.compute.cuda_graph = false;
  const auto host = [&](const char* framework) {
    decode.framework = framework;
    return host_seconds(decode);
  };
  EXPECT_NEAR(host("megatron"), host("ddp"), 0.05 * host("ddp"));
}

// The factor for calls in a step applies to Python, not to products and kernels that C++ issues one by one.
TEST(Host, CallsTakeLongerInAStepAndLoopsOfCppDoNot) {
  EXPECT_NEAR(seconds(host_time({1, 0, 0, 1}, 2)), 27e-6, 1e-9);
  EXPECT_NEAR(seconds(host_time({0, 0, 0, 0, 0, 1, 1}, 2)), seconds(host_time({0, 0, 0, 0, 0, 1, 1})), 1e-12);
}

// Full recompute of 2 layers x 3 micro-batches runs the forward pass again and adds the checkpoint's own
// calls.
TEST(Host, FullRecomputePaysTheForwardAgainAndTheCheckpoint) {
  WorkloadSpec again = job();
  again.plan.recompute->kind = RecomputeKind::full;
  const HostProfile& host = framework("megatron@2022").host;
  EXPECT_NEAR(host_seconds(again) - host_seconds(job()),
              6 * seconds(host_time(host.forward + host.checkpoint, host.in_step)), 1e-9);
}

// torchtitan's selective recompute is a checkpoint of each layer too: the host runs the whole forward pass
// again.
TEST(Host, SelectiveRecomputeOfOperatorsPaysTheForwardAgainToo) {
  WorkloadSpec kept = job();
  kept.framework = "fsdp";
  WorkloadSpec again = kept;
  again.plan.recompute = RecomputeSpec{RecomputeKind::selective, {}};
  const HostProfile& host = framework("fsdp").host;
  EXPECT_NEAR(host_seconds(again) - host_seconds(kept),
              6 * seconds(host_time(host.forward + host.checkpoint)), 1e-9);
}

// Megatron's fused softmax needs a multiple of 4 heads. With 2, in each of 2 layers x 3 micro-batches,
// forward a module and 5 operators replace its Function (26 us), and backward 6 operators.
TEST(Host, MegatronsSoftmaxInOperatorsIsCalledOneByOne) {
  WorkloadSpec plain = job();
  plain.model.heads = plain.model.kv_heads = 2;
  plain.model.head_dim = 0;
  const double in_step = framework("megatron@2022").host.in_step;
  EXPECT_NEAR(host_seconds(plain) - host_seconds(job()),
              6 * in_step * (5 * 10e-6 - 26e-6 + 3.5e-6 + 6 * 10e-6 - 26e-6), 1e-9);
}

TEST(Host, ASlowHostNeedsAsManyTimesMore) {
  WorkloadSpec slow = job();
  slow.compute.host_factor = 2.5;
  EXPECT_NEAR(host_seconds(slow), 2.5 * host_seconds(job()), 1e-9);
}

// A graph of some hundred kernels, 2 us each, costs the host far less than the calls that would launch them.
TEST(Host, AGraphLeavesLaunchesOnly) {
  WorkloadSpec graph = job();
  graph.compute.cuda_graph = true;
  EXPECT_LT(host_seconds(graph), 0.2 * host_seconds(job()));
  EXPECT_GT(host_seconds(graph), 0);
}

// CUDA_LAUNCH_BLOCKING=1: the host waits for every kernel, so on one accelerator the step is calls + kernels.
// Without it the host runs ahead, and the step is shorter by what that hides.
TEST(Host, BlockingLaunchesAddTheHostToTheKernels) {
  const auto step = [](const WorkloadSpec& workload) {
    const program::Program program = training_step(workload, a100(), 1);
    double kernels = 0;
    for (const program::Op& op : program.classes.front().ops) kernels += seconds(op.duration);
    Replay alone = free_network();
    alone.launches = true;
    return std::pair(seconds(alone.run(program).step), kernels + launches(program));
  };
  WorkloadSpec blocked = job();
  blocked.compute.launch_blocking = true;
  const auto [apart, sum] = step(blocked);
  EXPECT_NEAR(apart, sum, 1e-9);
  const auto [beside, same] = step(job());
  EXPECT_EQ(same, sum);
  EXPECT_LT(beside, 0.9 * sum);
}

// Every op makes the host wait, collectives of tensor parallelism included.
TEST(Host, BlockingLaunchesWaitForCollectivesToo) {
  WorkloadSpec blocked = job();
  blocked.plan.tp = 2;
  blocked.compute.launch_blocking = true;
  const program::Program program = training_step(blocked, a100(), 2);
  for (const program::Op& op : program.classes.front().ops)
    EXPECT_TRUE(op.host_sync || op.kind == program::OpKind::send || op.kind == program::OpKind::recv);
}

TEST(Host, GraphsAndDualPipeCannotBlock) {
  WorkloadSpec blocked = job();
  blocked.compute.launch_blocking = true;
  WorkloadSpec graph = blocked, dualpipe = blocked;
  graph.compute.cuda_graph = true;
  EXPECT_THROW((void)training_step(graph, a100(), 1), ConfigError);
  dualpipe.framework = "megatron";
  dualpipe.plan.pp = 2, dualpipe.plan.grad_accumulation = 8;
  dualpipe.plan.schedule = Schedule::dualpipe;
  EXPECT_THROW((void)training_step(dualpipe, a100(), 4), ConfigError);
  dualpipe.compute.launch_blocking = false;
  EXPECT_NO_THROW((void)training_step(dualpipe, a100(), 4));
}

// Host time of one dense Megatron layer, forward and backward, on one of four tensor ranks.
double host_of_dense_layer(Precision precision, TensorOverlap overlap) {
  WorkloadSpec workload = job();
  workload.model = complete(workload.model);
  workload.framework = "megatron";
  workload.plan.tp = 4, workload.plan.tp_overlap = overlap;
  workload.precision.gemm = precision;
  PiecePair layer;
  for (PieceList* list : {&layer.forward, &layer.backward}) {
    KernelCost kernel;
    kernel.kernels = 1;
    list->compute(Part::attention, kernel);
  }
  set_host_time(layer, LayerKind::dense, workload.model, resolve(workload, 4), RecomputeKind::none);
  return layer.forward.pieces().front().cost.host + layer.backward.pieces().front().cost.host;
}

// A layer has four of Transformer Engine's linears, each counted as 4 Functions forward and 3 backward. In 8
// bits they take twice as long: 16 + 12 Functions more.
TEST(Host, LinearsIn8BitsAreScheduledTwiceAsLong) {
  const double in_step = framework("megatron").host.in_step;
  const double wide = host_of_dense_layer(Precision::bf16, TensorOverlap::async);
  for (const Precision narrow : {Precision::fp8, Precision::mxfp8})
    EXPECT_NEAR(host_of_dense_layer(narrow, TensorOverlap::async) - wide,
                (16 + 12) * in_step * seconds(host_times().function), 1e-9);
}

// tp 4. Four products in rings, two forward and two backward: each 3 products and 6 messages more. Two
// pipelined scatters forward: each 3 products and 4 kernels more. Four bulk exchanges backward: a kernel
// each. In all 4 x 3 + 2 x 3 = 18 products and 4 x 6 + 2 x 4 + 4 = 36 kernels.
TEST(Host, UserBuffersLaunchProductsInParts) {
  EXPECT_NEAR(host_of_dense_layer(Precision::bf16, TensorOverlap::userbuffers) -
                  host_of_dense_layer(Precision::bf16, TensorOverlap::async),
              18 * seconds(host_times().product) + 36 * seconds(host_times().kernel), 1e-9);
}

// A given launch time is all the host costs. At 1 us per kernel it is about half of a graph's 2 us.
TEST(Host, AGivenLaunchTimeReplacesTheCount) {
  WorkloadSpec given = job();
  given.compute.launch_overhead = Duration(1'000'000);
  WorkloadSpec graph = job();
  graph.compute.cuda_graph = true;
  EXPECT_NEAR(host_seconds(given) * 2, host_seconds(graph), 0.3 * host_seconds(graph));
}
// One layer with 16 experts, 4 on each of 4 ranks; one micro-batch.
WorkloadSpec mixture() {
  WorkloadSpec workload;
  workload.model = gpt(1, 1024, 16);
  workload.model.gated_ffn = true;
  workload.model.experts = {.count = 16, .top_k = 2, .ffn = 512};
  workload.plan.ep = 4, workload.plan.etp = 1;
  workload.plan.grad_accumulation = 1;
  workload.plan.token_dispatcher = TokenDispatcher::deepep;
  return workload;
}

double host_of(const WorkloadSpec& workload) {
  return launches(training_step(workload, h100(), 4));
}

double both(const HostPasses& passes) {
  const double in_step = framework("megatron").host.in_step;
  return seconds(host_time(passes.forward, in_step) + host_time(passes.backward, in_step));
}

// Each local expert adds, forward and backward together, 4 + 6 views (25 us) and 2 calls of a hook (7 us),
// twice as slow in a step, and 2 + 4 products of 24 us: 2 (25 + 7) + 144 us.
TEST(Host, EveryLocalExpertCostsItsOwnCalls) {
  const HostPasses each = framework("megatron").host.experts.each;
  EXPECT_NEAR(both(each), 208e-6, 1e-9);
  WorkloadSpec twice = mixture();
  twice.model.experts.count = 32;
  EXPECT_NEAR(host_of(twice) - host_of(mixture()), 4 * 208e-6, 1e-9);
  // All experts in one kernel are one call instead of four.
  WorkloadSpec fused = mixture();
  fused.compute.fused_experts = true;
  EXPECT_NEAR(host_of(mixture()) - host_of(fused), 3 * 208e-6, 1e-9);
}

// With overlapped exchanges attention, dispatch, experts and combine are separate nodes. Each adds forward 4
// views and 3 modules, 20.5 us, backward 3 views, a pass of the autograd engine (counted as a Function) and 3
// modules, 44 us; twice as slow in a step.
TEST(Host, OverlappedPartsAreLaunchedAsNodes) {
  const HostPasses node = framework("megatron").host.experts.node;
  EXPECT_NEAR(both(node), 2 * 64.5e-6, 1e-9);
  WorkloadSpec overlapped = mixture();
  overlapped.plan.overlap_expert_exchange = true;
  EXPECT_NEAR(host_of(overlapped) - host_of(mixture()), 4 * 2 * 64.5e-6, 1e-9);
}

// Norms of queries and keys: two operators and two Functions (20 + 52 us) forward and backward, and two
// modules (7 us) forward; twice as slow in a step.
TEST(Host, NormsOfHeadsAreCalledToo) {
  WorkloadSpec normed = mixture();
  normed.model.attention.qk_norm = true;
  EXPECT_NEAR(host_of(normed) - host_of(mixture()), 2 * (2 * 72e-6 + 7e-6), 1e-9);
}

// A graph of a part replaces its calls by one replay: two operators, a Function and a module, 20 + 26 + 3.5
// us, each way; twice as slow in a step.
TEST(Host, AGraphOfAPartReplacesThatPartsCallsOnly) {
  const ExpertCalls& calls = framework("megatron").host.experts;
  const auto saved = [](const HostPasses& passes) { return both(passes) - 4 * 49.5e-6; };
  WorkloadSpec graphed = mixture();
  graphed.compute.graph_parts = {"router"};
  EXPECT_NEAR(host_of(mixture()) - host_of(graphed), saved(calls.router), 1e-9);
  graphed.compute.graph_parts = {"attention", "router"};
  EXPECT_NEAR(host_of(mixture()) - host_of(graphed), saved(calls.router) + saved(calls.attention), 1e-9);
}

// 8 bits cost more host time: linears twice, padding, and a quantised tensor for each of 4 experts. With one
// scale per tensor (fp8) each needs four kernels, with block scales (mxfp8) one; two tensors each way.
TEST(Host, NarrowFormatsCostTheHostMore) {
  const ExpertCalls& calls = framework("megatron").host.experts;
  WorkloadSpec blocks = mixture(), tensors = mixture();
  blocks.precision.gemm = Precision::mxfp8, tensors.precision.gemm = Precision::fp8;
  const double linears = 4 * 2 * seconds(host_times().linear);  // 2 each way; attention and experts alike
  EXPECT_NEAR(host_of(blocks) - host_of(mixture()),
              2 * linears + both(calls.narrow) + 4 * both(calls.each_narrow), 1e-9);
  EXPECT_NEAR(host_of(tensors) - host_of(blocks), 4 * 3 * 4 * seconds(host_times().kernel), 1e-9);
}

// A host that reads the result of a run of kernels has launched all of them: with DeepEP the calls of
// attention and router come before it reads how many rows arrive, and of the exchange only its own after it.
TEST(Host, WhatItReadsItHasLaunchedBefore) {
  WorkloadSpec workload = mixture();
  workload.model = complete(workload.model);
  const program::Program program = training_step(workload, h100(), 4);
  const auto& ops = program.classes.front().ops;
  const auto read = std::find_if(ops.begin(), ops.end(), [](const program::Op& op) { return op.host_sync; });
  ASSERT_NE(read, ops.end());
  const program::Op& exchange = *std::find_if(
      read, ops.end(), [](const program::Op& op) { return op.kind == program::OpKind::collective; });
  ASSERT_EQ(exchange.collective, program::CollectiveKind::all_to_all);
  Duration before{};
  for (auto op = ops.begin(); op <= read; ++op) before += op->launch;
  const Plan plan = resolve(workload, 4);
  EXPECT_EQ(exchange.launch, from_seconds(seconds(plan.host.collective_launch) * plan.host.call_factor()));
  const HostProfile& profile = framework("megatron").host;
  const HostCalls& attention = profile.experts.attention.forward;
  EXPECT_GE(seconds(before), seconds(host_time(attention, profile.in_step) +
                                     host_time(profile.experts.router.forward, profile.in_step)));
}

// The host reads the counts of tokens back, unless the whole step is a graph. Then its own pace does not
// matter either.
TEST(Host, AGraphOfTheStepReadsNothingBack) {
  const auto reads = [](const WorkloadSpec& workload) {
    const program::Program program = training_step(workload, h100(), 4);
    int count = 0;
    for (const program::Op& op : program.classes.front().ops) count += op.host_sync;
    return count;
  };
  WorkloadSpec graph = mixture();
  graph.compute.cuda_graph = true;
  EXPECT_EQ(reads(mixture()) - reads(graph), 1);  // one read is left: the norm of the gradients
  WorkloadSpec slow = graph;
  slow.compute.host_factor = 3;
  EXPECT_EQ(host_of(slow), host_of(graph));
}
}  // namespace topsim::workloads::host_test
