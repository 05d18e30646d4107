// The `workload` section of a scenario as plain structs: what the user wrote, nothing derived. std::optional
// means "left out": the framework's default set (framework.hpp) or the accelerator count fills it in
// plan.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"
#include "workloads/compute/spread.hpp"
#include "workloads/schedule/kinds.hpp"

namespace topsim::workloads {

enum class AttentionKind : std::uint8_t { mha, gqa, mla };
// flash: the fastest kernel for the chip (FlashAttention-3 or cuDNN on Hopper). sdpa, sdpa2026: PyTorch's
// choice.
enum class AttentionKernel : std::uint8_t { flash, flash2025, sdpa, sdpa2026, flash2, flash1, unfused };
enum class Task : std::uint8_t { pretrain, finetune, lora, prefill, decode };
[[nodiscard]] constexpr bool serves(Task task) {
  return task == Task::prefill || task == Task::decode;
}
// nf4: weights beside adapters alone, with an fp32 maximum for 64 of them (bitsandbytes); nf4_double: with 8
// bits for 64 and one fp32 for 256 of these (QLoRA's double quantisation, section 3).
enum class Precision : std::uint8_t {
  fp32,
  tf32,
  fp16,
  bf16,
  fp8,
  mxfp8,
  fp8_blockwise,
  nvfp4,
  nf4,
  nf4_double
};
// The format of weights that a product in more bits reads and expands (GPTQ, AWQ, Marlin's kernels).
enum class WeightFormat : std::uint8_t { fp8, int8, int4, nvfp4, mxfp4 };
enum class RecomputeKind : std::uint8_t { none, selective, full };
enum class Offload : std::uint8_t { none, cpu, nvme };
enum class TensorOverlap : std::uint8_t { none, async, userbuffers, micro_pipeline };
// Products are computed in parts, each while the rows of another part are exchanged.
[[nodiscard]] constexpr bool divides_products(TensorOverlap overlap) {
  return overlap == TensorOverlap::userbuffers || overlap == TensorOverlap::micro_pipeline;
}
// How tokens reach their experts: one copy for each expert (Megatron's all-to-all), all tokens to all ranks
// (Megatron's all-gather), or one copy for each node or rank that holds some of them (DeepEP; HybridEP also
// pads each expert's rows for 8-bit products as they are sorted).
enum class TokenDispatcher : std::uint8_t { alltoall, allgather, deepep, hybridep };
[[nodiscard]] constexpr bool sends_one_copy(TokenDispatcher dispatcher) {
  return dispatcher == TokenDispatcher::deepep || dispatcher == TokenDispatcher::hybridep;
}
// Over which ranks the maxima of delayed scaling are shared after every pass: all of a stage, or its tensor
// and context ranks.
enum class AmaxReduction : std::uint8_t { none, tensor, all };
enum class ContextKind : std::uint8_t { ring, all_gather, ulysses };

struct AttentionSpec {
  std::optional<AttentionKind> kind;  // mha, or gqa with fewer kv_heads; mla needs the five ranks below
  std::optional<AttentionKernel> kernel;
  bool causal = true;
  int q_lora_rank = 0, kv_lora_rank = 0, qk_nope_head_dim = 0, qk_rope_head_dim = 0, v_head_dim = 0;
  int window = 0;        // keys that a token sees at most, itself the last, or half on each side; 0: all
  int full_every = 0;    // one layer in so many sees all; 0: none where there is a window
  bool qk_norm = false;  // each head's queries and keys are normed
  bool scaled_rotary = false;  // YaRN's factor on queries and keys, which no fused rotation knows
};

struct ExpertSpec {
  int count = 0;  // 0: a dense model
  int top_k = 1;
  int shared = 0;                // experts every token visits
  int ffn = 0;                   // width of one expert; 0: ModelSpec::ffn
  int every = 1;                 // one layer in so many has experts, the last of them
  double capacity_factor = 0;    // 0: no capacity, no token is dropped
  int node_limit = 0;            // nodes on which the experts of one token lie; 0: any
  bool pad_to_capacity = false;  // every expert computes capacity_factor times the mean, zeros included
  double imbalance = 1;          // rows of the most loaded rank's experts over the mean
  bool biases = false;           // behind the second product, times the router's probability
};

// The function between the two products of a feed-forward network; of gated networks, of the gate.
enum class Activation : std::uint8_t { gelu, relu, squared_relu, silu };
// How a token's position enters. alibi: a bias of the scores, or nothing.
enum class Positions : std::uint8_t { learned, rotary, alibi };

struct ModelSpec {
  std::string name;         // of configs/models; empty for an inline object
  std::string description;  // "Llama-3 70B"
  std::string source;       // where the shape comes from
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  int kv_heads = 0;  // 0: as many as heads
  int head_dim = 0;  // 0: hidden / heads
  int ffn = 0;       // 0: 4 x hidden
  int vocab = 0;
  bool gated_ffn = false;                // SwiGLU: three matrices
  std::optional<Activation> activation;  // gelu, with gates silu
  std::optional<Positions> positions;    // learned, with gates rotary
  std::optional<bool> biases;            // of linear layers; without gates
  bool tied_embeddings = false;          // LM head shares the embedding's weights
  bool clamped_ffn = false;              // the activation's inputs are clamped first (gpt-oss)
  bool parallel_residual = false;        // x + attention(norm(x)) + network(norm(x))
  bool shared_norm = true;               // ... of one norm (PaLM, GPT-J), else of two (GPT-NeoX-20B)
  AttentionSpec attention;
  int dense_layers = 0;  // mixture-of-experts models: leading layers with a dense FFN
  // Multi-token prediction: modules of a layer and a pass through the LM head. Unset: in a pretraining as
  // many as the published model's had, where the framework trains them (complete_model).
  std::optional<int> prediction_layers;
  int published_predictions = 0;
  ExpertSpec experts;
  int sequence = 0;  // used when the workload gives none
};
[[nodiscard]] inline int predictions_of(const ModelSpec& model) {
  return model.prediction_layers.value_or(0);
}

struct RecomputeSpec {
  RecomputeKind kind = RecomputeKind::none;
  std::optional<int> layers;  // full recompute of this many layers a stage; unset: all of them
};

struct ZeroGroup {
  enum class Kind : std::uint8_t { all, node, ranks } kind = Kind::all;
  int ranks = 0;
};

struct PlanSpec {
  int tp = 1, pp = 1, cp = 1;
  std::optional<int> ep;   // 1
  std::optional<int> etp;  // tp, as in Megatron, where the ranks allow
  std::optional<int> dp;   // follows from the accelerators
  int virtual_stages = 1;
  // Empty: equal stages; else one entry per stage (times virtual stages, in model order).
  std::vector<int> stage_layers;
  std::optional<Schedule> schedule;
  std::optional<int> micro_batch;  // 1; decode: a replica's requests, a part for each stage
  std::optional<int> global_batch, grad_accumulation;  // at most one of the two
  std::optional<bool> sequence_parallel;
  std::optional<int> zero;  // 0-3
  ZeroGroup zero_group;
  std::optional<int> hsdp_shard;
  Offload offload = Offload::none;
  bool offload_activations = false;  // what layers keep for the backward pass waits in host memory
  std::optional<RecomputeSpec> recompute;
  std::vector<std::string> recompute_modules;  // what selective recompute does again; empty: as usual
  std::optional<bool> overlap_grad_reduce, overlap_param_gather, overlap_p2p;
  bool reduce_each_micro_batch = false;  // DDP without no_sync
  std::optional<Bytes> bucket_size;      // of the gradient reduction
  std::optional<double> wrap_least;      // parameters of a part that FSDP makes a unit
  std::optional<TensorOverlap> tp_overlap;
  ContextKind cp_kind = ContextKind::ring;
  std::optional<TokenDispatcher> token_dispatcher;  // alltoall
  std::optional<int> dispatcher_sms;                // of DeepEP's and HybridEP's kernels
  bool overlap_expert_exchange = false;             // of two passes behind each other's kernels
  int redundant_experts = 0;                 // inference: copies of experts on other ranks, all layers alike
  std::optional<double> memory_utilization;  // inference: share of the accelerator's memory
  std::vector<std::string> rank_order;       // fastest first; empty: tp, cp, ep, dp, pp
};

// Number formats per part; a single name sets `gemm` and lets the rest follow (plan.hpp).
struct PrecisionSpec {
  Precision gemm = Precision::bf16;
  std::optional<Precision> attention, attention_core, gradients, optimizer, parameters_all_gather, dispatch;
  std::optional<Precision> moments;            // beside a master copy
  std::optional<Precision> frozen_weights;     // task lora
  std::optional<Precision> kv_cache;           // inference
  std::optional<WeightFormat> weights;         // inference: of layers, as memory holds them
  std::optional<WeightFormat> expert_weights;  // ... of routed experts, where theirs differ
  std::optional<AmaxReduction> amax_reduction;
};

struct LoraSpec {
  int rank = 16;
  std::optional<std::vector<std::string>> targets;  // targets_of()
  std::optional<bool> share_expert_adapters;        // one for all experts of a rank
  bool dropout = false;                             // of each adapter's input
};
[[nodiscard]] inline std::vector<std::string> targets_of(const LoraSpec& lora) {
  return lora.targets.value_or(std::vector<std::string>{"qkv", "proj", "fc1", "fc2"});
}

// Measured times of one micro-batch through one stage, replayed instead of the compute model; one entry for
// all stages alike, or one per stage.
struct StageTimes {
  std::vector<Duration> forward, backward_input, backward_weight, transfer;
};

struct ComputeSpec {
  std::optional<double> gemm_efficiency;  // share of the data sheet's rate; replaces the tile model
  int sm_margin = 0;                      // units that matrix products leave to communication
  std::optional<Duration> launch_overhead;
  bool launch_blocking = false;  // CUDA_LAUNCH_BLOCKING=1: the host waits for every kernel
  std::optional<bool> cuda_graph;
  std::vector<std::string> graph_parts;     // of a layer, that are launched from graphs of their own
  bool fused_experts = false;               // FC1, activation and their casts in one kernel
  std::optional<bool> fused_cross_entropy;  // the loss works on the logits as they are
  int loss_chunks = 1;                      // of tokens whose logits exist at a time
  std::optional<double> host_factor;
  // Applied when the program runs: rank -> compute time factor, 1.1: ten per cent slower.
  std::map<std::string, double> slow_ranks;
  StageTimes stage_times;
  // Of a node's NVMe together, for offload: eight PCIe 4.0 x4 drives as DGX H100 has them for data, 6.5 GB/s
  // read and 3.5 GB/s written each (Samsung PM9A3 data sheet; recalled).
  BytesPerSecond nvme_read{52e9}, nvme_write{28e9};
  double clock = 1;                  // power or thermal derating of the compute clock
  double chip_spread = kChipSpread;  // between accelerators of one model (compute/spread.hpp); 0: all alike
};

// Several documents share a sequence; attention stays inside each.
struct PackingSpec {
  bool on = false;
  std::optional<int> documents;  // of equal length; unset: attention as of one, which is the most it can cost
};

struct TraceSpec {
  std::string format, path;
  std::string groups;  // Chakra: JSON file of process groups; empty: beside the trace, or in it
};

// The facts of nodes and accelerators that a plan depends on. Not part of a scenario: filled in from the
// topology.
struct MachineFacts {
  int accelerators = 8;
  BytesPerSecond memory_bandwidth{614.4e9};  // two sockets of eight DDR5-4800 channels
  Bytes memory{};                            // 0: not known
  // The last year of the software with which most of such accelerators' results were measured: one after
  // their successors came (topology::succeeded_in); 0: today's. set_of() depends on it.
  int software_year = 0;
  bool nccl = false;  // NCCL's or RCCL's accelerators: GPUs
};

struct WorkloadSpec {
  ModelSpec model;
  PlanSpec plan;
  std::optional<int> sequence;
  std::optional<int> predictions_per_sequence;  // tokens that the head sees; all
  std::optional<bool> dropout;                  // of attention, branches and embedding
  Task task = Task::pretrain;
  std::optional<LoraSpec> lora;
  PackingSpec packing;
  PrecisionSpec precision;
  std::string framework = "megatron";  // optionally @release
  ComputeSpec compute;
  std::optional<TraceSpec> trace;
  MachineFacts host;
};
}  // namespace topsim::workloads
