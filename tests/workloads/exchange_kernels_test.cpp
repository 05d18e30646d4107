// The kernels of DeepEP and HybridEP against their authors' tables, and where they stand in a step.
#include "workloads/layer/exchange_kernels.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/workloads/mixtures.hpp"

namespace topsim::workloads::exchange_kernels_test {
using namespace testing;
using program::CollectiveKind;
using program::Dimension;

topsim::topology::Accelerator chip(int capability) {
  topsim::topology::Accelerator result;
  result.compute_capability = capability;
  return result;
}

// Of one token's row of 7168 numbers, in bytes per nanosecond, which are GB/s.
double bandwidth(TokenExchange exchange, int capability, double element) {
  exchange.copies = 1, exchange.row = 7168 * element;
  if (!exchange.combine) exchange.probabilities = 4 * 8 * exchange.ranks;  // 8 experts a rank
  return exchange.row / (exchange_seconds(exchange, chip(capability)) * 1e9);
}

// deepseek-ai/DeepEP, docs/README_Hybrid-EP.md: kernels only, on GB200 with 32 SMs.
TEST(ExchangeKernels, HybridEPTakesOnNvl72WhatItsAuthorsMeasured) {
  for (const auto& [ranks, there, there8, back] : {std::tuple(8, 764.03, 713.98, 737.13),
                                                   {16, 706.95, 650.48, 666.26},
                                                   {24, 665.97, 577.96, 639.80},
                                                   {32, 642.23, 538.86, 605.15},
                                                   {36, 632.31, 489.27, 596.99}}) {
    TokenExchange exchange{.dispatcher = TokenDispatcher::hybridep, .ranks = 1.0 * ranks, .units = 32};
    EXPECT_NEAR(bandwidth(exchange, 100, 2) / there, 1, 0.02) << ranks;
    EXPECT_NEAR(bandwidth(exchange, 100, 1) / there8, 1, ranks == 36 ? 0.15 : 0.06) << ranks;
    exchange.combine = true;
    EXPECT_NEAR(bandwidth(exchange, 100, 2) / back, 1, 0.02) << ranks;
  }
  for (const auto& [ranks, there, back] :
       {std::tuple(8, 750.15, 684.27), {16, 661.93, 600.75}, {24, 637.80, 565.53}, {36, 612.85, 543.27}}) {
    TokenExchange exchange{.dispatcher = TokenDispatcher::hybridep, .ranks = 1.0 * ranks, .units = 16};
    EXPECT_NEAR(bandwidth(exchange, 100, 2) / there, 1, 0.04) << ranks;
    exchange.combine = true;
    EXPECT_NEAR(bandwidth(exchange, 100, 2) / back, 1, 0.04) << ranks;
  }
}

// The same page, with the host's call; SMs are the limit.
TEST(ExchangeKernels, DeepEPTakesOnBlackwellWhatItsSMsAllow) {
  for (const auto& [units, there, there8, back] :
       {std::tuple(16, 362.01, 248.86, 310.21), {24, 512.72, 350.97, 425.95}, {32, 615.78, 447.76, 519.57}}) {
    TokenExchange exchange{.dispatcher = TokenDispatcher::deepep, .ranks = 8, .units = units};
    EXPECT_NEAR(bandwidth(exchange, 100, 2) / there, 1, 0.06) << units;
    EXPECT_NEAR(bandwidth(exchange, 100, 1) / there8, 1, 0.11) << units;
    exchange.combine = true;
    EXPECT_NEAR(bandwidth(exchange, 100, 2) / back, 1, 0.06) << units;
  }
}

// Two boxes. HybridEP (the same page, H100, 16 SMs): 71.71 and 68.48 GB/s for a copy to each box in 16 and 8
// bits, back 62.95. Of 128 experts, 8 of which a token visits, 2 boxes hold some for 2 (1 - C(64,8)/C(128,8))
// = 1.994 copies, 16 ranks for 16 (1 - C(120,8)/C(128,8)) = 6.597. DeepEP (issue 493, H200, 24 SMs): 133.78
// and 124.92 GB/s for a copy to each rank, back 145.16.
TEST(ExchangeKernels, TwoBoxesOfHopperTakeWhatWasMeasuredThere) {
  TokenExchange hybrid{.dispatcher = TokenDispatcher::hybridep, .ranks = 8, .domains = 2, .units = 16};
  const double boxes = 1.994 / 6.597;
  EXPECT_NEAR(bandwidth(hybrid, 90, 2) * boxes / 71.71, 1, 0.02);
  EXPECT_NEAR(bandwidth(hybrid, 90, 1) * boxes / 68.48, 1, 0.02);
  hybrid.combine = true;
  EXPECT_NEAR(bandwidth(hybrid, 90, 2) * boxes / 62.95, 1, 0.02);
  TokenExchange deep{.dispatcher = TokenDispatcher::deepep, .ranks = 8, .domains = 2, .units = 24};
  EXPECT_NEAR(bandwidth(deep, 90, 2) / 133.78, 1, 0.02);
  EXPECT_NEAR(bandwidth(deep, 90, 1) / 124.92, 1, 0.02);
  deep.combine = true;
  EXPECT_NEAR(bandwidth(deep, 90, 2) / 145.16, 1, 0.02);
}

TEST(ExchangeKernels, AreNcclsWhereNobodyPublishedATime) {
  const TokenExchange one{.copies = 1, .row = 4096, .ranks = 8, .units = 20};
  EXPECT_EQ(exchange_seconds(one, chip(90)), 0);  // inside a box of Hopper
  TokenExchange two = one;
  two.domains = 2;
  EXPECT_GT(exchange_seconds(two, chip(90)), 0);
  EXPECT_EQ(exchange_seconds(two, chip(80)), 0);
  EXPECT_EQ(exchange_seconds(two, chip(0)), 0);
}

// Decoding, DeepEP's low-latency kernels send a copy for each expert: 16 tokens, 2 experts each, rows of 2
// KiB, there and back, whatever the nodes; a prompt's kernels send one to each of 2 nodes that has some. Each
// takes 24 ns a copy and 1/192 ns a byte. While messages are on their way they hold no SM, and what
// arrives lies in the order of the experts, so that no kernel sorts it.
TEST(ExchangeKernels, DecodeStepsSendACopyForEachExpert) {
  WorkloadSpec workload = small_moe(1, 8, 1);
  workload.task = Task::decode, workload.plan.grad_accumulation.reset(), workload.plan.micro_batch = 16;
  const auto sent_by = [&](TokenDispatcher dispatcher, Task task) {
    workload.plan.token_dispatcher = dispatcher, workload.task = task;
    if (task == Task::prefill) workload.sequence = 1, workload.plan.micro_batch = 16;
    std::vector<program::Op> result;
    for (const auto& op : collectives(training_step(workload, h100(), 8, 4), Dimension::expert))
      if (op.collective == CollectiveKind::all_to_all) result.push_back(op);
    return result;
  };
  const auto low_latency = sent_by(TokenDispatcher::deepep, Task::decode);
  ASSERT_EQ(low_latency.size(), 2u * 4);
  for (const auto& op : low_latency) {
    EXPECT_EQ(op.bytes, Bytes(16 * 2 * 2048));
    EXPECT_NEAR(seconds(op.duration), 32 * (24 + 2048 / 192.0) * 1e-9, 1e-11);
    EXPECT_EQ(op.units, 0);
  }
  EXPECT_LT(sent_by(TokenDispatcher::deepep, Task::prefill)[0].bytes, Bytes(16 * 2 * 2048));
}

// deepseek-ai/DeepEP's README, eight H800: 128 tokens, 8 experts each, rows of 7168 bytes and a scale in fp32
// for each 128 of them take 77 us, answers in 16 bits 114; a start takes 13.3.
TEST(ExchangeKernels, LowLatencyKernelsTakeInABoxWhatWasMeasured) {
  EXPECT_NEAR(low_latency_seconds(1024, 7168 + 4 * 56, chip(90)) * 1e6 + 13.3, 77, 2);
  EXPECT_NEAR(low_latency_seconds(1024, 14336, chip(90)) * 1e6 + 13.3, 114, 2);
  EXPECT_EQ(low_latency_seconds(1024, 14336, chip(80)), 0);
}

// The kernels of HybridEP and DeepEP hold Megatron's 16 and 20 SMs, or as many as the plan says.
TEST(ExchangeKernels, HoldAsManySMsAsThePlanSays) {
  const auto held = [](TokenDispatcher dispatcher, std::optional<int> sms) {
    WorkloadSpec workload = small_moe(1, 8);
    workload.plan.token_dispatcher = dispatcher, workload.plan.dispatcher_sms = sms;
    for (const auto& op : collectives(training_step(workload, h100(), 8, 4), Dimension::expert))
      if (op.collective == CollectiveKind::all_to_all) return static_cast<int>(op.units);
    return 0;
  };
  EXPECT_EQ(held(TokenDispatcher::hybridep, {}), 16);
  EXPECT_EQ(held(TokenDispatcher::deepep, {}), 20);
  EXPECT_EQ(held(TokenDispatcher::hybridep, 32), 32);
  EXPECT_THROW((void)held(TokenDispatcher::alltoall, 32), ConfigError);
  EXPECT_THROW((void)held(TokenDispatcher::hybridep, 132), ConfigError);  // an H100 has no more
  EXPECT_EQ(held(TokenDispatcher::hybridep, 131), 131);
}

// Forward, a layer's HybridEP gathers where the tokens of all 8 ranks go, a byte for each of 8 experts: 8 x
// 512 x 8. The backward pass knows. 4 layers, 2 micro-batches.
TEST(ExchangeKernels, HybridEPGathersTheMapOfTokensOnceALayer) {
  WorkloadSpec workload = small_moe(1, 8);
  workload.plan.token_dispatcher = TokenDispatcher::hybridep;
  const auto program = training_step(workload, h100(), 8);
  const auto ops = collectives(program, Dimension::expert);
  EXPECT_EQ(std::count_if(ops.begin(), ops.end(),
                          [](const auto& op) {
                            return op.collective == CollectiveKind::all_gather &&
                                   op.bytes == Bytes(8 * 512 * 8);
                          }),
            4 * 2);
}

// Over two boxes each exchange has its kernels' time: 512 tokens visit 2 of 8 experts on as many ranks, so
// 1024 copies of 2 KiB, there 7.8 ns + 2048 / 145 each, back 0.92 times that.
TEST(ExchangeKernels, TheirTimeIsInEveryExchange) {
  WorkloadSpec workload = small_moe(1, 8);
  workload.plan.token_dispatcher = TokenDispatcher::deepep;
  const auto program = training_step(workload, h100(), 8, 4);
  const double there = 1024 * (7.8 + 2048 / 145.0) * 1e-9;
  std::vector<double> times;
  for (const auto& op : collectives(program, Dimension::expert)) times.push_back(seconds(op.duration));
  EXPECT_EQ(times.size(), 4u * 4 * 2);
  EXPECT_NEAR(times[0], there, 1e-9);
  EXPECT_NEAR(times[1], 0.92 * there, 1e-9);
}
}  // namespace topsim::workloads::exchange_kernels_test
