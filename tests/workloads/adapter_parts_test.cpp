// Adapters on queries, keys and values, gate and up, each alone: PEFT's default for Llama is q and v.
#include <gmock/gmock.h>

#include "sim/base/error.hpp"
#include "tests/workloads/adapters.hpp"
#include "tests/workloads/fixtures.hpp"
#include "workloads/host/host.hpp"
#include "workloads/layer/lora.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads::adapter_parts_test {
using namespace testing;
using Targets = std::vector<std::string>;

// Llama-3 8B on one accelerator, 4096 tokens, adapters of rank 16. Queries have 4096 columns, keys and values
// 1024 each; gate and up 14336.
constexpr double kTokens = 4096, kHidden = 4096, kRank = 16, kQueries = 4096, kKeys = 1024, kFfn = 14336;

PiecePair layer(const Plan& plan) {
  const topology::Accelerator accelerator = h100();
  const ComputeModel compute(accelerator, {});
  return adapted_layer(adapted("ddp", {"q"}).model, LayerKind::dense, plan, compute, RecomputeKind::none);
}
KernelCost sum(const PieceList& list) {
  KernelCost cost;
  for (const Piece& piece : list.pieces()) cost += piece.cost;
  return cost;
}
double parameters(const char* framework, Targets targets) {
  return adapter_parameters(adapted("ddp", {"q"}).model, LayerKind::dense,
                            plan_of(framework, std::move(targets)))
      .dense;
}
double kept(const Plan& plan) {
  return layer_activation_bytes(adapted("ddp", {"q"}).model, plan, RecomputeKind::none, LayerKind::dense);
}

// PEFT prints "trainable params: 3,407,872" for q_proj and v_proj of rank 8; with rank 16 twice as many: 16 x
// 32 layers x (q 4096 + 4096, v 4096 + 1024).
TEST(AdapterParts, QueriesAndValuesAloneTrainWhatPeftPrints) {
  for (const char* framework : {"ddp", "fsdp", "deepspeed", "megatron"})
    EXPECT_EQ(32 * parameters(framework, {"q", "v"}), 2 * 3'407'872) << framework;
}

// Named one by one or together they are the same adapters of separate layers. Megatron's fused layer has one
// A for all of them, and three where they are named: two more of 4096 x 16; gate and up one more.
TEST(AdapterParts, PartsNamedOneByOneAreTheWholeOfSeparateLayers) {
  EXPECT_EQ(parameters("fsdp", {"q", "k", "v"}), parameters("fsdp", {"qkv"}));
  EXPECT_EQ(parameters("fsdp", {"gate", "up"}), parameters("fsdp", {"fc1"}));
  EXPECT_EQ(sum(layer(plan_of("fsdp", {"q", "k", "v"})).forward).seconds,
            sum(layer(plan_of("fsdp", {"qkv"})).forward).seconds);
  EXPECT_EQ(parameters("megatron", {"q", "k", "v"}) - parameters("megatron", {"qkv"}), 2 * kHidden * kRank);
  EXPECT_EQ(parameters("megatron", {"gate", "up"}) - parameters("megatron", {"fc1"}), kHidden * kRank);
  EXPECT_EQ(parameters("ddp", {"up"}), kRank * (kHidden + kFfn));
}

// torchtune's adapter of values: X A, (X A) B, scale and sum forward; backward scale, four products, the sum
// of the input's gradients. 2 FLOPs for each of three products with its 16 x (4096 + 1024) weights and token.
TEST(AdapterParts, EachHasItsOwnNarrowProducts) {
  const PiecePair both = layer(plan_of("fsdp", {"q", "v"})), one = layer(plan_of("fsdp", {"q"}));
  EXPECT_EQ(sum(both.forward).kernels - sum(one.forward).kernels, 4);
  EXPECT_EQ(sum(both.backward).kernels - sum(one.backward).kernels, 6);
  const double flops =
      sum(both.forward).flops + sum(both.backward).flops - sum(one.forward).flops - sum(one.backward).flops;
  EXPECT_NEAR(flops, 3 * 2 * kTokens * kRank * (kHidden + kKeys), 1);
  const ModelSpec model = adapted("fsdp", {"q"}).model;
  EXPECT_NEAR(adapter_flops_per_sequence(model, plan_of("fsdp", {"q", "v"})) -
                  adapter_flops_per_sequence(model, plan_of("fsdp", {"q"})),
              32 * flops, 32);
}

// They read one input of 2 bytes a number, which any of them keeps; one without an adapter saves its inner
// result of 16 columns. Cast for each adapter (PEFT), it saves its own copy of the input too. Without any the
// input is not kept.
TEST(AdapterParts, TheSharedInputIsKeptForAnyOfThem) {
  EXPECT_NEAR(kept(plan_of("fsdp", {"q", "k", "v"})) - kept(plan_of("fsdp", {"q", "v"})), 2 * kTokens * kRank,
              1);
  EXPECT_NEAR(kept(plan_of("ddp", {"q", "k", "v"})) - kept(plan_of("ddp", {"q", "v"})),
              2 * kTokens * (kRank + kHidden), 1);
  EXPECT_NEAR(kept(plan_of("fsdp", {"v", "proj"})) - kept(plan_of("fsdp", {"proj"})),
              2 * kTokens * (kHidden + kRank), 1);
  EXPECT_NEAR(kept(plan_of("fsdp", {"up", "proj"})) - kept(plan_of("fsdp", {"proj"})),
              2 * kTokens * (kHidden + kRank), 1);
}

// Megatron-Bridge joins the answers of 4096 + 1024 columns, zeros for the keys, into the fused layer's 6144
// and adds these: (5120 + 6144) + 3 x 6144 numbers of 2 bytes, in two kernels; separate layers add each its
// own, 3 x 5120 in two kernels.
TEST(AdapterParts, PartsOfAFusedLayerAreJoinedAndAddedToAllOfIt) {
  const Plan joined = plan_of("megatron", {"q", "v"});
  Plan apart = joined;
  apart.adapters.apart = true;
  const KernelCost more = sum(layer(joined).forward), less = sum(layer(apart).forward);
  EXPECT_EQ(more.kernels - less.kernels, 0);
  const double numbers = 5120 + 6144 + 3 * 6144 - 3 * 5120;
  EXPECT_NEAR(more.seconds - less.seconds, 2 * numbers * kTokens / (0.8 * 3.35e12), 1e-9);
}

// Prices of host/host.cpp for one adapter of torchtune: 4 operators and 3 modules forward, 8 operators
// backward: 130.5 us.
TEST(AdapterParts, TheHostCallsTheNamedOnesAlone) {
  const auto host = [](Targets targets) {
    const Plan plan = plan_of("fsdp", std::move(targets));
    PiecePair pair = layer(plan);
    set_host_time(pair, LayerKind::dense, adapted("ddp", {"q"}).model, plan, RecomputeKind::none);
    return sum(pair.forward).host + sum(pair.backward).host;
  };
  EXPECT_NEAR(host({"q", "v"}) - host({"q"}), 130.5e-6, 1e-9);
  EXPECT_NEAR(host({"q", "k", "v"}) - host({"q"}), 2 * 130.5e-6, 1e-9);
}

// Megatron-Bridge's CanonicalLoRA gives experts one adapter of both gate and up, of 4096 + 2 x 1024; PEFT's
// experts have one of `up` alone. 8 experts, whose adapters are their own.
TEST(AdapterParts, ExpertsOfMegatronHaveOneAdapterOfGateAndUp) {
  const auto routed = [](const char* framework) {
    WorkloadSpec mixture = adapted(framework, {"up"});
    mixture.model.experts.count = 8, mixture.model.experts.top_k = 2, mixture.model.experts.ffn = 1024;
    mixture.lora->share_expert_adapters = false;
    return adapter_parameters(mixture.model, LayerKind::experts, resolve(mixture, 1)).dense;
  };
  EXPECT_EQ(routed("megatron"), 8 * kRank * (kHidden + 2 * 1024));
  EXPECT_EQ(routed("deepspeed"), 8 * kRank * (kHidden + 1024));
}

// A remedy for memory keeps the targets in attention as they are named.
TEST(AdapterParts, ARemedyLeavesOutTheNetworksAlone) {
  WorkloadSpec workload = adapted("fsdp", {"q", "v", "up", "fc2"});
  topology::Accelerator accelerator = h100();
  accelerator.memory = Bytes(std::int64_t{33} << 30);
  try {
    require_fit(workload, accelerator, 1);
    FAIL() << "it fits";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.problems()[0].help, ::testing::HasSubstr(R"(lora.targets = ["q", "v"])"));
  }
}

TEST(AdapterParts, AWholeAndItsPartAreNotNamedTogether) {
  const auto path_and_help = [](const WorkloadSpec& workload) -> std::pair<std::string, std::string> {
    try {
      (void)resolve(workload, 1);
    } catch (const ConfigError& error) {
      return {error.problems()[0].path, error.problems()[0].help};
    }
    return {};
  };
  EXPECT_EQ(path_and_help(adapted("fsdp", {"qkv", "v"})),
            (std::pair<std::string, std::string>{"workload.lora.targets[1]",
                                                 "leave v out, or name the parts of qkv alone"}));
  WorkloadSpec plain = adapted("fsdp", {"gate"});
  plain.model.gated_ffn = false;
  EXPECT_EQ(path_and_help(plain), (std::pair<std::string, std::string>{"workload.lora.targets[0]",
                                                                       "name fc1, their first matrix"}));
}
}  // namespace topsim::workloads::adapter_parts_test
