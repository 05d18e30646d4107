// The plan of a job with nothing left open: what the user wrote, the framework's defaults and
// the accelerator count, combined and checked. All later code works on it and refuses nothing
// more.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "workloads/framework.hpp"
#include "workloads/schedule/schedule.hpp"
#include "workloads/spec.hpp"

namespace topsim::workloads {

// What a step is, and what `sequence` and the batches count:
//   pretrain, finetune, lora   forward, backward and update of global_batch sequences
//   prefill                    forward of global_batch prompts of `sequence` tokens; fills their caches
//   decode                     one more token for each of global_batch requests, `sequence` tokens cached
// Inference takes micro_batch requests through a stage together; a replica's requests are on its stages at
// the same time, and the next token of each request waits for the previous one.

// Low-rank adapters beside frozen weights; rank 0: everything is trained.
struct PlanAdapters {
  int rank = 0;
  bool q = false, k = false, v = false, proj = false;
  bool gate = false, up = false, fc2 = false;  // a network without gates has `up` alone
  // Queries, keys, values, gate and up are separate layers (PEFT on transformers' and torchtitan's modules);
  // else Megatron's two fused ones.
  bool apart = false;
  // Each has an adapter of its own: as separate layers have, and fused ones whose parts targets name
  // (Megatron-Bridge's CanonicalLoRA); else the fused layer has one.
  bool qkv_each = false, gate_each = false;
  bool one_for_experts = false;  // of a rank, else each expert has its own
  bool dropout = false;          // of each adapter's input
  bool casts = false;            // each adapter's input, to fp32 and back
  bool exchanges = false;        // answers of row-parallel layers by all-to-all (layer/lora.hpp)
  AdapterFacts facts;
  [[nodiscard]] bool qkv() const { return q || k || v; }
  [[nodiscard]] bool fc1() const { return gate || up; }
};

// What ZeRO and FSDP divide, and when.
struct PlanShards {
  double gradients = 1, optimizer = 1, parameters = 1;  // parts that each is divided into
  int ranks = 1;                                        // of the dp x cp ranks, those that share one set
  bool by_unit = false;                                 // parameters gathered unit by unit (step/units.cpp)
  // FSDP on one rank: nothing is gathered, but a unit's parameters are copied, in 16 bits, as if it were.
  bool unit_copies = false;
  bool reshard_after_forward = false;
  bool reduce_at_end = false;  // a stage's units, after the whole of its last backward pass
};

struct PlanExperts {
  // Experts are divided differently from the rest (ep > 1, or etp other than tp), so other ranks hold the
  // same ones: tp x cp x dp = etp x ep x copies.
  bool on_own_ranks = false;
  int copies = 1;  // of one direction of DualPipe
  double gradient_shards = 1, optimizer_shards = 1;
  int shards = 1;        // of the copies, those that share one set of shards where units are gathered
  double load = 1;       // rows that the busiest rank computes over the mean
  int slots = 0;         // experts and redundant copies of them, on all ranks
  bool padding = false;  // rows are known beforehand
  bool fused = false;    // the first product, its activation and their casts in one kernel
  bool overlap = false;  // tasks are paired to hide all-to-alls (schedule/tasks.hpp)
  TokenDispatcher dispatcher = TokenDispatcher::alltoall;
  double dispatch_bytes = 2;  // of one element on its way to an expert
  int dispatcher_units = 0;   // that DeepEP's and HybridEP's kernels hold
  [[nodiscard]] bool fused_dispatch() const { return sends_one_copy(dispatcher); }
};

// Where gradients of micro-batches are summed (step/offload.hpp): on the accelerator; on the host, exchanged
// between micro-batches (DeepSpeed's stage 2); on the host, exchanged in each of them (its stage 3); by the
// host, which adds what each brings (FSDP2).
enum class GradientSums { here, between, in_each, by_host };

// What is kept in host memory or on NVMe.
struct PlanOffload {
  Offload to = Offload::none;  // optimiser states
  bool parameters = false;     // shards, too
  bool activations = false;    // of layers; the step holds two at a time
  bool gradients = false;      // leave the accelerator as they are reduced
  GradientSums sums = GradientSums::here;
  double gradient_bytes = 4;                            // of each on the host
  double adam_rate = 0, nvme_read = 0, nvme_write = 0;  // bytes per second, this rank's part of the node
};

// The cost of the host's part in a step.
struct PlanHost {
  Duration launch{}, collective_launch{};  // to issue one kernel, one collective
  Duration gap{};                          // from the end of a kernel to the start of the next
  bool counts_calls = false;               // layers cost what `profile` counts, else one launch per kernel
  bool launch_blocking = false;            // the host waits for every kernel that it launches
  StartOrder start_order = StartOrder::compute_first;
  bool graph = false;  // the step is one CUDA graph: the host never reads back or waits
  bool graph_attention = false, graph_router = false, graph_mlp = false;  // graphs of parts of a layer
  HostProfile profile;
  double factor = 1;            // how much slower the host is than the one its times were taken on
  int interpreter_threads = 1;  // of a single process, that take turns at launching what Python issues
  // ... and a call of Python in a step of this framework than one in a loop.
  [[nodiscard]] double call_factor() const { return factor * (counts_calls ? profile.in_step : 1); }
  // Seconds between so many kernels.
  [[nodiscard]] double gaps(double kernels) const { return kernels * seconds(gap); }
};

// Of engines that serve: the experts are divided over the tensor ranks alone.
[[nodiscard]] constexpr bool divides_experts(int tp, int ep, int etp, TokenDispatcher dispatcher) {
  return ep * etp == tp && (ep == 1 || dispatcher == TokenDispatcher::alltoall);
}

struct Plan : KernelFacts, ExchangeFacts {
  Task task = Task::pretrain;
  int tp = 1, pp = 1, dp = 1, cp = 1, ep = 1, etp = 1;
  int virtual_stages = 1;         // chunks of the model on one rank
  std::vector<int> stage_layers;  // layers of every global stage in model order, pp x virtual_stages entries
  [[nodiscard]] bool even_stages() const {
    return std::adjacent_find(stage_layers.begin(), stage_layers.end(), std::not_equal_to<>()) ==
           stage_layers.end();
  }
  Schedule schedule = Schedule::one_f_one_b;
  // The order of every stage, where the schedule is made for this plan's times; empty: see schedule/.
  std::vector<std::vector<StageTask>> orders;
  int micro_batch = 1;
  int micro_batches = 1;  // per replica and step
  int smaller = 0;        // prefill: so many of them, the last ones, have one prompt fewer
  int global_batch = 1;
  int sequence = 0;
  int queries = 0;      // tokens of a sequence that one pass computes: all, or one when decoding
  int predictions = 0;  // tokens of a sequence that the head sees; 0: all
  int documents = 1;    // that share a sequence; attention stays inside each
  bool sequence_parallel = false;
  int zero = 0;
  RecomputeSpec recompute;
  // What selective recompute computes again: the attention core, latent attention's up projections, the
  // experts' activation, both norms, the dense network, attention's output projection.
  struct Again {
    bool core = true, latent = false, activation = false, norms = false, mlp = false, projection = false;
    // torchtitan's "op": whatever is between the attention core and every first of two products in the order
    // wq wk wv wo w1 w3 w2, whose results are kept; also those of reduce-scatters. 8-bit products too:
    // torchao calls torch.mm (float8_linear.py), which the policy sees before the tensors make it a scaled
    // one.
    bool operators = false;
    bool scatters = false;   // the reduce-scatters too
    bool between = false;    // all that is between products, whose results are kept, and the core
    bool to_the_end = true;  // full recompute: the last product of a dense layer too (framework.hpp)
  } again;
  bool overlap_grad_reduce = false, overlap_param_gather = false, overlap_p2p = false;
  bool aligns_exchanges = false;  // of stages, where they overlap (framework.hpp)
  ContextKind cp_kind = ContextKind::ring;
  TensorOverlap tp_overlap = TensorOverlap::none;
  Precision gemm = Precision::bf16;         // linear layers
  Precision activations = Precision::bf16;  // stored, sent, LM head
  Precision attention_core = Precision::bf16;
  Precision kv_cache = Precision::bf16;
  AmaxReduction amax_reduction = AmaxReduction::none;
  double gradient_bytes = 4;            // reduced over the data-parallel group, per parameter
  double kept_gradient_bytes = 4;       // of reduced ones
  double read_gradient_bytes = 4;       // ... as the update reads them
  double memory_share = 1;              // of an accelerator's memory, that a step may fill
  double parameter_bytes = 2;           // working copy
  double expert_bytes = 2;              // inference: of a routed expert's parameter, as memory holds it
  double narrow_copy_bytes = 0;         // kept beside it, of each parameter that is no end's
  double gathered_parameter_bytes = 2;  // sent by the parameter all-gather
  double bucket_elements = 0;           // gradients of one bucket; 0: all in one
  double first_bucket_elements = 0;     // of the first one to fill; 0: as the others
  double wrap_least = 0;                // FSDP: parts of so many parameters are units; 0: every layer is
  bool reduce_every_micro_batch = false;
  bool cast_weights = false;  // fp32 weights, cast for every forward pass
  PlanShards shards;
  PlanExperts experts;
  PlanOffload offload;
  PlanHost host;
  bool single_process = false;  // one process drives all replicas (step/single_process.hpp)
  PlanAdapters adapters;
  Precision frozen_weights = Precision::bf16;  // of task lora
  // Bytes beside each parameter that is updated: copies_for_update, when its 16-bit gradient's fp32 copy is
  // made; else a foreach Adam's temporary.
  double update_copy = 0;
  int domain_ranks = 0;          // ranks joined by NVLink; 0: all
  bool mixed_precision = true;   // fp32 master weights beside the working copy
  double optimizer_bytes = 4;    // of each number that the optimiser keeps
  double moment_bytes = 4;       // ... of each of the two moments
  bool precision_aware = false;  // the optimiser reads 16-bit gradients, else fp32 copies of them
  bool synchronises_p2p = false;
  bool plain_softmax = false;  // stored scores beyond KernelFacts::fused_softmax_keys
  bool qkv_apart = false;      // queries, keys and values are separate products (KernelFacts::gate_apart)
  LossBytes loss;
  int loss_chunks = 1;
  std::vector<std::string> rank_order;  // fastest first: tp, cp, ep, dp, pp
  // Measured times to replay instead of the model: pp entries each (transfer: one for each stage's messages,
  // or empty: the network carries them). The step is then the schedule alone, without gradients' reduction
  // and optimiser.
  StageTimes stage_times;
  [[nodiscard]] int first_layer_of(int global_stage) const {
    return std::accumulate(stage_layers.begin(), stage_layers.begin() + global_stage, 0);
  }
  // Stages update without waiting for the norm over all stages, which is checked afterwards (zero bubble).
  [[nodiscard]] bool validates_afterwards() const { return traits(schedule).made_for_plan; }
  [[nodiscard]] bool replays() const { return !stage_times.forward.empty(); }

  [[nodiscard]] bool shards_experts() const { return shards.by_unit && experts.on_own_ranks; }
  // Attention with stored scores is one kernel per operator (ddp, fsdp), not a fused softmax.
  [[nodiscard]] bool eager_softmax() const { return eager_norms && !fused_kernels; }
  [[nodiscard]] bool frozen() const { return adapters.rank > 0; }
  // Frozen weights in NF4: a kernel makes a copy in 16 bits before each product, in both passes.
  [[nodiscard]] bool nf4() const {
    return frozen() && (frozen_weights == Precision::nf4 || frozen_weights == Precision::nf4_double);
  }
  [[nodiscard]] bool inference() const { return serves(task); }
  // DDP's buckets keep the weights' format, whatever is sent of them.
  [[nodiscard]] double bucket_gradient_bytes() const {
    return bucket_copies > 1 ? kept_gradient_bytes : gradient_bytes;
  }
  // DeepEP's low-latency kernels, those of decode steps: a token goes to each of its experts over the link
  // that reaches it, without a stop in between, to where the expert's product reads it; answers are summed on
  // arrival (deepseek-ai/DeepEP, csrc/kernels/internode_ll.cu).
  [[nodiscard]] bool low_latency_exchange() const {
    return task == Task::decode && experts.dispatcher == TokenDispatcher::deepep;
  }
  // All local experts in one kernel, which reads only the experts that have tokens (vLLM and SGLang,
  // fused_moe: moe_align_block_size).
  [[nodiscard]] bool one_expert_kernel() const { return experts.fused || inference(); }
  // All experts are here, computed one after the other as the host asks for their rows; none drops tokens.
  [[nodiscard]] bool looped_experts() const {
    return expert_loop && !inference() && ep == 1 && etp == 1 && tp == 1 && !experts.padding &&
           experts.load == 1;
  }
  // Experts are divided over the tensor ranks, each of which has all tokens; nothing is dispatched.
  [[nodiscard]] bool sliced_experts() const {
    return inference() && divides_experts(tp, ep, etp, experts.dispatcher);
  }
  [[nodiscard]] int ranks() const { return tp * pp * dp * cp; }
  // Two copies of the model run through the ranks from both ends (DualPipe).
  [[nodiscard]] bool mirrored() const { return traits(schedule).second_chunk == SecondChunk::mirrored; }
  // Parts of the model on one rank. DualPipe: two, one for each direction.
  [[nodiscard]] int chunks() const { return mirrored() ? 2 : virtual_stages; }
  // Ranks of the same tensor and pipeline coordinates that hold the same weights; DualPipe's two directions
  // hold everything twice.
  [[nodiscard]] int replicas() const { return dp * cp * (mirrored() ? 2 : 1); }
  // The first and the last part of the model are on one rank.
  [[nodiscard]] bool ends_meet() const {
    return mirrored() || traits(schedule).second_chunk == SecondChunk::on_return;
  }
  // How many layers of a stage are recomputed in full: its first ones.
  [[nodiscard]] int layers_recomputed(int layers) const {
    if (recompute.kind != RecomputeKind::full) return 0;
    return std::min(layers, recompute.layers.value_or(layers));
  }
  // The recompute of one layer. With full recompute of some layers the others keep everything.
  [[nodiscard]] RecomputeKind recompute_of(bool in_full) const {
    if (in_full) return RecomputeKind::full;
    return recompute.kind == RecomputeKind::full ? RecomputeKind::none : recompute.kind;
  }
  [[nodiscard]] int global_stages() const { return pp * virtual_stages; }
  [[nodiscard]] bool is_smaller(int batch) const { return batch >= micro_batches - smaller; }
  // Tokens of one micro-batch that one context-parallel rank holds. Prompts that the tensor ranks split are
  // padded to a multiple of them (vLLM, model_executor/models/utils.py: sequence_parallel_chunk_impl).
  [[nodiscard]] double tokens() const {
    const double all = static_cast<double>(micro_batch) * queries / cp;
    return inference() && sequence_parallel ? std::ceil(all / tp) * tp : all;
  }
  // Of them, those that the head sees.
  [[nodiscard]] double predicted() const {
    return predictions > 0 ? static_cast<double>(micro_batch) * predictions / cp : tokens();
  }
  // The stage of the model that a rank's chunk `chunk` is: j pp + r, the V shape of ZB-V, or the mirrored
  // stage of DualPipe.
  [[nodiscard]] int global_stage(int stage, int chunk) const;
};

// REQUIRES: the model is complete() (model.hpp). Throws ConfigError with every mistake at once; paths are
// those of a scenario ("workload.plan.tp").
[[nodiscard]] Plan resolve(const WorkloadSpec& workload, std::uint32_t accelerators);
// The workload with what the scripts of its release (MLPerf's) set in places that it leaves open.
[[nodiscard]] WorkloadSpec scripted(WorkloadSpec workload);
// The recompute and the ZeRO stage of a plan, with the framework's default where it gives none.
[[nodiscard]] int zero_meant(const PlanSpec& spec, const Framework& defaults);
[[nodiscard]] RecomputeSpec recompute_meant(const PlanSpec& spec, const Framework& defaults);
[[nodiscard]] Schedule schedule_meant(const PlanSpec& spec);
// The LM head is the word embedding itself, on the rank that holds it.
[[nodiscard]] inline bool shares_table(const ModelSpec& model, const Plan& plan) {
  return model.tied_embeddings && (plan.pp == 1 || plan.ends_meet());
}
// Multi-token prediction embeds words again, on the last stage: a copy of an embedding that is not tied to
// the head there (Megatron-Core, GPTModel: an embedding where mtp_process). Its gradients are summed with the
// first stage's.
[[nodiscard]] inline bool copies_embedding(const ModelSpec& model, const Plan& plan) {
  return predictions_of(model) > 0 && !plan.inference() && plan.pp > 1 && !plan.ends_meet() &&
         !model.tied_embeddings;
}
}  // namespace topsim::workloads
