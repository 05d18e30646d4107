#include "workloads/host/host.hpp"

#include <array>
#include <span>

#include "workloads/compute/compute_model.hpp"
#include "workloads/layer/lora.hpp"
#include "workloads/plan.hpp"

namespace topsim::workloads {
namespace {
using namespace topsim::literals;

double kernels_of(const PieceList& list) {
  double kernels = 0;
  for (const Piece& piece : list.pieces()) kernels += piece.collective ? 0 : piece.cost.kernels;
  return kernels;
}

void spread(PieceList& list, Duration total) {
  const double kernels = kernels_of(list);
  if (kernels > 0) list.set_host_time(seconds(total) / kernels);
}

// One replay of a graph made by Transformer Engine (make_graphed_callables): a module, a Function, a copy of
// the input into the graph's memory, the launch.
constexpr HostCalls kReplay{2, 0, 1, 1};
// The attention half's share of a layer's calls: 16 of a dense layer's 27 Functions (framework/).
constexpr double kAttentionShare = 0.6;
// "scheduling a te.Linear layer in FP8 takes more than 2x more time" (NVIDIA/TransformerEngine issue 761).
constexpr double kNarrowLinear = 2;
// The four linears of a dense layer, as the profiles count Transformer Engine's: 4 Functions forward, 3
// backward each (framework/megatron.cpp).
constexpr HostPasses kEngineLinears{{0, 0, 16, 0}, {0, 0, 12, 0}};

// One adapter of task lora; without the task all are 0.
HostPasses calls_of_adapter(const Plan& plan) {
  if (!plan.frozen()) return {};
  const AdapterFacts& facts = plan.adapters.facts;
  HostPasses passes = plan.adapters.casts ? facts.calls + facts.casts : facts.calls;
  if (plan.adapters.dropout && !facts.fused) passes = passes + HostPasses{{.operators = 1}, {.operators = 1}};
  return passes;
}

// Matrices of a layer that are frozen: of attention, and of one network or expert.
struct FrozenMatrices {
  double attention = 0, network = 0;
};
FrozenMatrices frozen_matrices(const ModelSpec& model, const Plan& plan) {
  return {plan.qkv_apart ? 4.0 : 2.0, model.gated_ffn && plan.gate_apart ? 3.0 : 2.0};
}
// What bitsandbytes calls for one of them in NF4 beside the product: a Function of Python with the operator
// that expands the weights, and with double quantisation two more for their maxima (MatMul4Bit,
// dequantize_4bit). A compiled layer has the operators alone.
HostPasses calls_of_nf4(const Plan& plan) {
  if (!plan.nf4()) return {};
  HostCalls calls{.operators = plan.frozen_weights == Precision::nf4_double ? 3.0 : 1.0};
  if (!plan.adapters.facts.fused) calls.functions = 1;
  return {calls, calls};
}

struct Block {
  std::array<Part, 3> parts;
  HostPasses calls;
};

// What a mixture's layer costs, block by block; a block is either a run of calls or one replay of its graph.
std::array<Block, 4> blocks_of(const ModelSpec& model, const Plan& plan) {
  const ExpertCalls& calls = plan.host.profile.experts;
  const bool narrow = bytes_of(plan.gemm) < bytes_of(plan.activations);
  const HostPasses replay{kReplay, kReplay};
  const double here = model.experts.count / static_cast<double>(plan.ep);
  const bool latent = model.attention.kind == AttentionKind::mla;
  HostPasses experts = calls.experts;
  if (!plan.sliced_experts())
    experts = experts + (plan.experts.fused_dispatch() ? calls.fused_exchange : calls.exchange);
  // One kernel for all experts is one call.
  const double called = plan.one_expert_kernel() ? 1 : here;
  HostPasses each = calls.each, shared = model.experts.shared > 0 ? calls.shared : HostPasses{};
  if (plan.frozen()) each.backward = each.backward + calls.frozen_each * -1;
  experts = experts + each * called;
  HostPasses each_narrow = calls.each_narrow;
  if (plan.gemm == Precision::fp8)
    for (HostCalls* one : {&each_narrow.forward, &each_narrow.backward}) one->launches *= kOwnScaleKernels;
  if (narrow) experts = experts + calls.narrow + each_narrow * called;
  HostPasses attention = latent ? calls.attention + calls.latent : calls.attention;
  if (model.attention.qk_norm) attention = attention + calls.normed_heads;
  if (plan.frozen()) attention.backward = attention.backward + calls.frozen_attention * -1;
  const AdapterCounts adapters = adapter_counts(model, plan);
  const HostPasses adapter = calls_of_adapter(plan);
  const FrozenMatrices matrices = frozen_matrices(model, plan);
  const HostPasses nf4 = calls_of_nf4(plan);
  attention = attention + adapter * adapters.attention + nf4 * matrices.attention;
  experts =
      experts + adapter * (adapters.expert * expert_adapters(model, plan)) + nf4 * (matrices.network * here);
  if (model.experts.shared > 0) {
    shared = shared + adapter * adapters.network + nf4 * matrices.network;
    if (plan.frozen()) shared.backward = shared.backward + calls.frozen_shared * -1;
  }
  // Separate nodes: attention, and for the experts dispatch, experts and combine.
  const HostPasses nodes = calls.node * (plan.experts.overlap ? 1 : 0);
  experts = experts + nodes * 3;
  const auto eager = [&](HostPasses passes) {
    for (HostCalls* one : {&passes.forward, &passes.backward}) one->linears *= narrow ? kNarrowLinear : 1;
    return passes;
  };
  return {
      {{{Part::attention, Part::norm, Part::norm},
        nodes + (plan.host.graph_attention ? replay : eager(attention))},
       {{Part::router, Part::router, Part::router}, plan.host.graph_router ? replay : eager(calls.router)},
       {{Part::dispatch, Part::experts, Part::combine}, eager(experts)},
       {{Part::mlp, Part::mlp, Part::mlp}, plan.host.graph_mlp ? replay : eager(shared)}}};
}

void spread(PieceList& list, const Block& block, const HostCalls& calls, const Plan& plan) {
  const auto ours = [&](Part part) {
    return part == block.parts[0] || part == block.parts[1] || part == block.parts[2];
  };
  double kernels = 0;
  for (const Piece& piece : list.pieces())
    kernels += !piece.collective && ours(piece.part) ? piece.cost.kernels : 0;
  if (kernels <= 0) return;
  const double each = seconds(host_time(calls, plan.host.profile.in_step)) * plan.host.factor / kernels;
  for (std::size_t i = 0; i < block.parts.size(); ++i)
    if (i == 0 || block.parts[i] != block.parts[i - 1]) list.set_host_time(block.parts[i], each);
}

// What an engine's hooks see of a layer of transformers: modules that are called, matrices, tensors that have
// a gradient.
struct Hooked {
  double modules = 0, matrices = 0, tensors = 0;
};
// A mixture's block (MixtralSparseMoeBlock, of 2024) has a router, and loops over all of its experts, each a
// module like a dense network. Adapters (PEFT, tuners/lora/layer.py, Linear.forward) are two matrices and
// more modules around each layer that they adapt; only they have gradients then.
Hooked hooked(const ModelSpec& model, LayerKind kind, const Plan& plan) {
  constexpr double kAttention = 4, kPair = 2;  // queries, keys, values, projection; A and B
  const bool mixture = kind == LayerKind::experts, shared = model.experts.shared > 0;
  const double network = model.gated_ffn ? 3 : 2;  // matrices; modules: it, and its activation, too
  const double experts = mixture ? model.experts.count / static_cast<double>(plan.ep) : 0;
  const double networks = mixture ? experts + int{shared} : 1, router = mixture ? 1 : 0;
  const double normed_heads = model.attention.qk_norm ? 2 : 0;
  const AdapterCounts counts = adapter_counts(model, plan);
  const double adapted = counts.attention + (mixture ? counts.expert * expert_adapters(model, plan) : 0) +
                         (mixture && !shared ? 0 : counts.network);
  const HookCalls& hooks = plan.host.profile.hooks;
  Hooked sum;
  // The profile's layer is gated and rotary. The block of a mixture is a module as its router is one.
  sum.modules = hooks.modules + normed_heads + hooks.adapter * adapted -
                (positions_of(model) == Positions::rotary ? 0 : 1) - (model.gated_ffn ? 0 : 1) +
                (networks - 1) * (network + 2) + 2 * router;
  const double own = kAttention + networks * network + router;
  sum.matrices = own + kPair * adapted;
  sum.tensors = plan.frozen() ? kPair * adapted
                              : own + (has_biases(model) ? own - router : 0) + normed_heads +
                                    norms_of_layer(model) * (model.gated_ffn ? 1 : 2);
  return sum;
}

HostPasses hook_calls(const ModelSpec& model, LayerKind kind, const Plan& plan) {
  const HookCalls& hooks = plan.host.profile.hooks;
  const Hooked layer = hooked(model, kind, plan);
  HostPasses calls = hooks.module * layer.modules + hooks.matrix * layer.matrices;
  calls.backward = calls.backward + hooks.gradient * layer.tensors;
  return calls;
}

void set_expert_host_time(PiecePair& layer, const ModelSpec& model, const Plan& plan,
                          RecomputeKind recompute) {
  const bool again = recompute == RecomputeKind::full;
  if (!plan.host.profile.experts.counted && plan.inference()) {
    // Attention as in a dense layer of the same modules; a call for each kernel of the mixture.
    const Block attention{{Part::attention, Part::norm, Part::norm},
                          {plan.host.profile.forward * kAttentionShare, {}}};
    return spread(layer.forward, attention, attention.calls.forward, plan);
  }
  if (!plan.host.profile.experts.counted) {  // counted as one operator per kernel
    const HostPasses hooks = hook_calls(model, LayerKind::experts, plan);
    const auto add = [&](PieceList& list, HostCalls calls) {
      if (host_time(calls) == Duration{}) return;
      calls.operators += kernels_of(list);
      spread(list, from_seconds(seconds(host_time(calls, plan.host.profile.in_step)) * plan.host.factor));
    };
    add(layer.forward, hooks.forward);
    add(layer.backward, again ? hooks.backward + hooks.forward : hooks.backward);
    return;
  }
  for (const Block& block : blocks_of(model, plan)) {
    spread(layer.forward, block, block.calls.forward, plan);
    spread(layer.backward, block, again ? block.calls.backward + block.calls.forward : block.calls.backward,
           plan);
  }
}

// What the products of a dense layer cost in user buffers in addition (TransformerEngine,
// common/comm_gemm_overlap/comm_gemm_overlap.cpp): split_overlap_ag calls cuBLASLt for each of t parts and
// sends and receives between them; split_overlap_rs does so for each of four, each scattered by a kernel.
// Forward two of each; backward two of the first and four bulk exchanges, a kernel each. Events of the
// streams are not counted.
HostPasses user_buffers(int ranks) {
  constexpr double kParts = 4;
  const HostCalls ring{.products = ranks - 1.0, .launches = 2 * (ranks - 1.0)};
  const HostCalls parts{.products = kParts - 1, .launches = kParts};
  return {ring * 2 + parts * 2, ring * 2 + HostCalls{.launches = 4}};
}

// A checkpoint calls the whole forward pass again, whatever of it was kept.
bool runs_twice(const Plan& plan, RecomputeKind recompute) {
  return recompute == RecomputeKind::full || (recompute == RecomputeKind::selective && plan.again.operators);
}
}  // namespace

// Published on a DGX H100:
//   nn.Linear forward 13.5 us = a module and an operator            NVIDIA/TransformerEngine issue 2053
//   Megatron's ColumnParallelLinear forward 74 us
//     = a module, an operator, 3 views and 2 Functions              its pull request 1191
// A call of nn.Module is 158 Python opcodes (dev-discuss.pytorch.org/t/110), some 20 ns each; a view has the
// dispatch of an operator without allocation and launch, 2 to 3 us (recalled). That leaves 26 us for a
// Function with Megatron's Python around it. A collective: the Python wrapper, two events and the launch
// count as two and a half operators (estimated).
// A linear layer of Transformer Engine 2: te.Linear forward takes 99.66 us on a GB200's host, which is 2.75
// times slower than a DGX H100's (issue 2053). One cuBLASLt call in a list (nvte_multi_tensor_gemm): eight
// products of 128 x 2048 x 2048, for which the accelerator needs a tenth of that time, take 267 us, 33 each
// (TransformerEngine pull request 3134, "multi-stream", 8e x 128, pure). Its host is not named; nn.Linear,
// which makes such a call among others, takes 37 us on a GB200's and 13.5 on a DGX H100's, so it was a
// GB200's, which needs 1.36 times a DGX H100's time (catalogue). A kernel launched from C++: an empty kernel
// takes 2.37 us beside an H100, 2.77 on a GH200 (arXiv 2504.11750, recalled). An opcode: 3.5 us / 158.
const HostTimes& host_times() {
  static const HostTimes times{10_us, 2500_ns, 26_us, 3500_ns, 25_us, 36_us, 24_us, 2400_ns, 22_ns};
  return times;
}

Duration host_time(const HostCalls& calls, double in_step) {
  const HostTimes& t = host_times();
  const double python = calls.operators * seconds(t.operation) + calls.views * seconds(t.view) +
                        calls.functions * seconds(t.function) + calls.modules * seconds(t.module) +
                        calls.linears * seconds(t.linear) + calls.opcodes * seconds(t.opcode);
  return from_seconds(in_step * python + calls.products * seconds(t.product) +
                      calls.launches * seconds(t.kernel));
}

void set_host_time(PiecePair& layer, LayerKind kind, const ModelSpec& model, const Plan& plan,
                   RecomputeKind recompute) {
  if (!plan.host.counts_calls) return;
  if (kind == LayerKind::experts) return set_expert_host_time(layer, model, plan, recompute);
  HostProfile host = plan.host.profile;
  const HostPasses hooks = hook_calls(model, kind, plan);
  host.forward = host.forward + hooks.forward;
  host.backward = host.backward + hooks.backward;
  if (plan.plain_softmax) {
    host.forward = host.forward + host.plain_softmax.forward;
    host.backward = host.backward + host.plain_softmax.backward;
  }
  if (plan.core_copies == CoreCopies::engine && bytes_of(plan.gemm) < bytes_of(plan.activations)) {
    host.forward = host.forward + kEngineLinears.forward * (kNarrowLinear - 1);
    host.backward = host.backward + kEngineLinears.backward * (kNarrowLinear - 1);
  }
  if (plan.tp_overlap == TensorOverlap::userbuffers && plan.sequence_parallel && plan.tp > 1) {
    const HostPasses more = user_buffers(plan.tp);
    host.forward = host.forward + more.forward;
    host.backward = host.backward + more.backward;
  }
  // Adapters are in the graph of their half of the layer.
  HostPasses adapters;
  if (plan.frozen()) {
    host.backward = host.backward + host.frozen * -1;
    const AdapterCounts counts = adapter_counts(model, plan);
    const FrozenMatrices matrices = frozen_matrices(model, plan);
    const auto eager = [&](double attention, double network) {
      return (plan.host.graph_attention ? 0 : attention) + (plan.host.graph_mlp ? 0 : network);
    };
    adapters = calls_of_adapter(plan) * eager(counts.attention, counts.network) +
               calls_of_nf4(plan) * eager(matrices.attention, matrices.network);
  }
  const auto scaled = [&](const HostCalls& calls, const HostCalls& of_adapters) {
    const double kept =
        (plan.host.graph_attention ? 0 : kAttentionShare) + (plan.host.graph_mlp ? 0 : 1 - kAttentionShare);
    const HostCalls replays = kReplay * (int{plan.host.graph_attention} + int{plan.host.graph_mlp});
    const Duration time = host_time((kept == 1 ? calls : calls * kept + replays) + of_adapters, host.in_step);
    return from_seconds(seconds(time) * plan.host.factor);
  };
  spread(layer.forward, scaled(host.forward, adapters.forward));
  if (runs_twice(plan, recompute))
    spread(layer.backward,
           scaled(host.backward + host.forward + host.checkpoint, adapters.backward + adapters.forward));
  else
    spread(layer.backward, scaled(host.backward, adapters.backward));
}
}  // namespace topsim::workloads
