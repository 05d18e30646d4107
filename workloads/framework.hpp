// Defaults: what a framework release does where a scenario leaves it open. One row for each release, never
// for a case. Rows are in framework/, one function each, every fact with its source beside it. A plan copies
// the two structs of facts as a whole.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/host/host_calls.hpp"
#include "workloads/spec.hpp"

namespace topsim::workloads {

enum class FrameworkFamily : std::uint8_t { megatron, fsdp, ddp, dataparallel, deepspeed, jax };

// Which kernels start first of those of several streams that can start at one instant. With one queue to the
// device (CUDA_DEVICE_MAX_CONNECTIONS=1) those that the host launched first; else those of the compute
// stream, which need not wait for another stream's event (an H100 with either order of launches,
// tests/golden/accelerator/h100-sxm5-ring.json, ring_order).
enum class StartOrder : std::uint8_t {
  compute_first,
  launches,
  // Megatron-LM demands one queue where ranks share layers or sequences, before Blackwell
  // (training/arguments.py: "require setting the environment variable CUDA_DEVICE_MAX_CONNECTIONS to 1").
  launches_if_shared,
};

// How the experts of a rank are multiplied.
enum class ExpertProducts : std::uint8_t {
  apart,         // one kernel each
  grouped_gemm,  // the library of that name: one kernel where it was built for 8.0, else cuBLAS' for each
  grouped_mm,    // torch._grouped_mm: one kernel from 9.0 on; below, frameworks loop over experts
  together,      // one kernel
};

// How queries, keys and values get into the attention core's layout (layer/attention_copies.cpp).
enum class CoreCopies : std::uint8_t {
  packed,   // one product's result is read, and its gradient written, in place
  split,    // read in place; gradients of queries, keys and values are joined
  own,      // Megatron's own modules
  engine,   // Transformer Engine
  pytorch,  // separate products; keys and values repeated to as many heads as there are queries
  apart     // separate products, each read, and its gradient written, in place
};

// The loss, for each logit that a rank computes: bytes held at the peak, from the LM head to its gradient,
// and passes through memory, over copies in fp32 (bytes) and over the logits in their own width (times).
// Where `held` is what the forward pass keeps, `beside`: more of them while the loss runs.
struct LossBytes {
  double held = 0;
  double forward_copies = 0, forward_own = 0, backward_copies = 0, backward_own = 0;
  double beside = 0;
};

// How a framework implements a layer, its loss and its update. A plan copies them as a whole and switches off
// what it does not use (plan/kernels.cpp).
struct KernelFacts {
  AttentionKernel attention = AttentionKernel::flash;
  bool fused_kernels = true;        // norms, bias + activation, bias + dropout + residual, Adam
  bool eager_norms = false;         // norms and rotary embedding are written in single operators of PyTorch
  bool one_norm_kernel = false;     // ... but RMSNorm, which is one operator with a kernel of its own
  bool eager_final_norm = false;    // the norm before the LM head is, in training
  bool eager_squared_relu = false;  // squared ReLU in single operators
  bool complex_rotary = false;      // rotary embedding as a product of complex numbers
  bool softmax_in_loops = false;    // of stored scores: maximum, sum and quotient are kernels of their own
  // Most keys that Megatron's fused softmax takes; heads x sequences must be a multiple of 4. 0: any shape.
  int fused_softmax_keys = 0;
  bool bias_kernels = false;  // biases are added, and their gradients summed, beside the matmuls
  CoreCopies core_copies = CoreCopies::packed;
  // A gated network's gate and up are separate products; with CoreCopies::pytorch and apart so are queries,
  // keys and values of such models.
  bool gate_apart = false;
  // Products of one input are column-parallel layers of their own, in models without gates too, and each
  // reduces its own gradient of that input (Paddle), else their sum is reduced.
  bool reduces_inputs_apart = false;
  bool adds_biases = false;       // each bias is added by a kernel that reads and writes the product
  bool rotary_in_copies = false;  // rotary embedding in single operators whose slices are copies (Paddle)
  bool dropout = false;
  bool apex_norms = false;           // apex's first kernels for norms, else as other fused kernels
  bool fused_adam = true;            // one pass over gradient, weight and moments; else torch.optim's foreach
  bool fused_accumulation = true;    // the matmul adds to the gradients so far; else autograd does afterwards
  bool fused_cross_entropy = false;  // one pass instead of float copies of the logits
  // Every kernel of Inductor reads for itself until October 2025: a norm's gains are summed by another kernel
  // than the gradient of its input (pytorch pull request 165370), a cast into both layouts loads its input
  // for each (issue 133242).
  bool reads_again = false;
  // 8-bit matmuls keep input and weights uncast for the backward pass, and cast them there again.
  bool wide_inputs = false;
  bool keeps_narrow_weights = false;  // weights are cast once a step, for all micro-batches, and kept
  bool fp8_parameters = false;        // with one scale a tensor weights live and are gathered in 8 bits
  bool gathers_cast_weights = false;  // shards are cast to the width of 8-bit products, then gathered
  bool dynamic_scales = false;        // of narrow formats: the tensor's own maximum is read before it is cast
  // 8-bit formats under sequence parallelism: a rank casts its rows before they are gathered.
  bool gathers_narrow = false;
  bool casts_in_norms = false;       // a norm before a product writes fp8 where scales are known beforehand
  bool casts_where_made = false;     // ... and so does every kernel between products, in both passes
  bool reads_either_layout = false;  // fp8 products do, where the units can (Blackwell): no transposed copies
  bool copies_to_buffers = false;    // user buffers: a rank's rows, and MXFP8's scales gathered before them
  bool swizzles_scales = false;  // block scales of a product's operands are reordered by kernels of their own
  bool scatters_narrow = false;  // user buffers on a Hopper scatter fp8 results
  bool ring_fp32 = false;        // PyTorch's ring attention: fp32, every operator a kernel
  bool batch_first_shards = false;  // sequence parallelism cuts a dimension behind the batch's
  bool early_experts = false;       // as Megatron-Core 0.6 wrote them (framework/megatron.cpp)
  bool fixed_tiles = true;          // products of a library until 2024 (compute/grids.hpp)
  ExpertProducts expert_products = ExpertProducts::apart;
  bool expert_loop = false;  // the host asks for each expert's rows before it launches it (transformers)
  bool weighs_rows = false;  // by the probabilities of their experts, in fp32 and in operators of their own
  bool sends_probabilities = true;    // of tokens to their experts, beside the rows
  bool gathers_inputs_again = true;   // a column-parallel layer keeps its own rows of its input, not all
  bool copies_kept_products = false;  // recompute keeps results of products in a loop's stack, by copies
  bool looks_up_by_product = false;   // words: one-hot rows times the table, and in the backward pass too
  bool timed_passes = false;     // timers that wait for the accelerator around every pass of a micro-batch
  bool splits_messages = false;  // a tensor rank sends its part of a whole activation, gathered on arrival
  bool message_buffers = false;  // a pipeline's: one for each micro-batch of a step, until its end
};

// What data-parallel ranks exchange, and in which layout. Copied like KernelFacts (plan/replicas.cpp).
struct ExchangeFacts {
  double gradient_passes = 0;        // over gradients before they are sent: averaged, looked through for NaN
  double bucket_copies = 0;          // passes that copy gradients into buckets and back
  bool scatter_gradients = true;     // a sharded optimiser's gradients are reduce-scattered, else all-reduced
  bool whole_tensor_shards = false;  // a tensor's states have one owner, who broadcasts it after the update
  bool reduces_to_owners = false;    // ZeRO-2: a bucket's gradients are reduced to one rank, else as above
  bool prefetch_forward = false;     // ZeRO-3: the next unit's gather is launched before this one computes
  int outstanding_reductions = 1;    // ZeRO-3, FSDP
  bool root_unit = false;            // FSDP's root: what belongs to no layer is one unit, whole all step long
  bool keeps_last_layer = false;     // whole from its forward to its backward pass
  bool reduces_once = false;         // FSDP: gradients of a step, after its last micro-batch
  // Embedding, final norm and head are no layer's unit: gathered once a step, in 16 bits, and whole until the
  // update.
  bool ends_stay = false;
  double prefetched_least = 0;  // ends_stay: behind the embedding, gathers until the head has so many
  bool copies_gathered = true;  // out of the gather's buffer into parameters; else those are views of it
  bool casts_stay = true;       // 16-bit copies of all fp32 weights are kept; else of one unit
  bool joins_gradients = true;  // ZeRO-3: copied into the buffer that is reduced
  bool gathers_what_is_read = false;  // no embedding for its gradient, which a module's hook would gather
  bool double_buffers = false;        // gradients of two units have buffers of their own all the time
  bool drains_reductions = false;     // every backward pass that reduces ends when all its reductions have
  bool divides_in_sum = false;        // fp32 gradients are averaged by the reduction: no gradient_passes
  bool replicas_at_end = false;       // hybrid shards: summed over replicas after the last micro-batch only
  double prefetch_elements = 0;       // a gather takes matrices until it has so many; 0: a unit
  double prefetch_squares = 0;        // ... or until it has so many times the square of the hidden size
  double live_parameters = 0;         // gathered parameters held at most; 0: two units
  bool loops_over_layers = false;  // a compiled loop whose passes exchange matrix by matrix (step/loops.cpp)
  bool buckets_never_exceed = false;  // a bucket closes before what would not fit, else behind what fills it
  // fp32 copies of 16-bit gradients are made for the update and dropped after it; else they stay.
  bool copies_for_update = false;
  double update_elements = 0;  // ZeRO-3 updates so many at a time; 0: all
  // Offloaded gradients of micro-batches are summed there (step/offload.hpp).
  bool accumulates_on_host = false;
  bool host_adds = false;  // the thread that launches kernels waits for them and adds (FSDP2)
};

// What a low-rank adapter does beside its two products (task lora), by who wrote it. All of them multiply its
// output by alpha / rank and add it to the frozen product.
struct AdapterFacts {
  bool fused = false;             // compiled: no kernels of their own for scale, sum and dropout
  bool casts_input = false;       // to the adapters' width where that differs, and back for the product
  bool parallel_linears = false;  // tensor ranks divide both matrices (layer/lora.hpp)
  HostPasses calls{};             // of one, beside those of the frozen layer
  HostPasses casts{};             // beside those, where the input is cast
};

struct Framework : KernelFacts, ExchangeFacts {
  std::string_view name;     // "megatron"
  std::string_view release;  // "2024"; the first row of a name is what the bare name means
  std::string_view since;    // the year from which it holds, if before its release
  std::string_view summary;  // one line for lists and messages
  std::string_view on_gpus;  // of a set for TPUs: the release that says what GPUs do; else empty
  FrameworkFamily family = FrameworkFamily::megatron;

  // Plan.
  RecomputeKind recompute = RecomputeKind::none;
  // Selective recompute chooses among operators (plan.hpp, Again::operators), else Megatron's modules.
  bool selective_operators = false;
  bool keeps_products = false;       // ... or keeps the results of all products but the attention core's
  bool recomputes_scatters = false;  // reduce-scatters are not among the operators whose results it keeps
  // Full recompute of a dense layer ends with what the backward pass reads, which is before its last product:
  // torch.utils.checkpoint without reentry. Megatron's, DeepSpeed's and InternEvo's own run all of it.
  bool checkpoints_stop = false;
  bool sequence_parallel = true;  // with tp > 1
  int zero = 1;
  int least_zero = 0, most_zero = 1;  // what the release supports
  bool pipelines_sharded = true;      // ZeRO 2 and 3 under a pipeline
  bool whole_models = false;          // no dimension but dp (plan/replicas.cpp)
  std::string_view sharded;           // the release of the same name that ZeRO 2 and 3 mean
  std::string_view compiled;          // the release that a bare name means with micro-pipelines
  std::string_view by_size;           // ... with units by size (PlanSpec::wrap_least)
  bool shards_experts = false;        // ZeRO-3 of experts on ranks of their own: units within their layers
  bool hybrid_shards = false;         // plan.hsdp_shard
  bool reduces_units = false;         // ZeRO-3 reduces a layer's gradients together, else in buckets
  bool overlaps_shards = false;       // ... and what ZeRO 2 and 3 exchange always overlaps
  bool overlap_grad_reduce = true, overlap_param_gather = true;
  // Stages of a pipeline launch overlapped exchanges at the same time: computing beside an exchange is
  // slower, and stages that are slow in turn add up (Megatron-Core, schedules.py: grad_sync_func,
  // param_sync_func; training.py: align_grad_reduce is on unless it is switched off).
  bool aligns_exchanges = false;
  bool overlap_p2p = true;  // with virtual stages only: 1F1B sends and receives in exposed pairs
  TensorOverlap tp_overlap = TensorOverlap::async;
  StartOrder start_order = StartOrder::launches_if_shared;
  AmaxReduction amax_reduction = AmaxReduction::none;  // of delayed scaling
  bool shares_expert_adapters = false;                 // task lora: one for all experts of a rank
  AdapterFacts adapter;                                // task lora
  bool lora_scripts = false;                           // task lora: what scripts set (scripts.cpp)
  bool gathers_narrow_blocks = false;                  // gathers_narrow of formats with block scales
  // megatron/core/tensor_parallel/cross_entropy.py: read in 16 bits, written in fp32; then in fp32 the
  // maximum (read), its subtraction, the exponentials and the division (read and written each) and the sum
  // (read). Backward scales by the loss's gradient (read, written) and writes 16 bits. Compiled
  // (fusions/fused_cross_entropy.py, what NeMo of 2024 turns on) these 38 and 14 bytes are 30 and 18, since
  // Inductor writes what is changed in place to a new tensor and copies it back (a comment there says so).
  // What is kept is the softmax, in the place of that fp32 copy, beside which are the logits forward and
  // their gradient backward.
  LossBytes loss{.held = 4,
                 .forward_copies = 36,
                 .forward_own = 1,
                 .backward_copies = 12,
                 .backward_own = 1,
                 .beside = 2};
  // Transformer Engine: its gradient overwrites the logits.
  LossBytes fused_loss{.held = 2, .forward_own = 1, .backward_own = 2};
  // Where tensor ranks share the vocabulary, if the loss differs then.
  std::optional<LossBytes> split_loss, split_fused_loss;

  // Gradients.
  bool gradients_fp32 = true;       // accumulated and reduced in fp32
  bool fp16_gradients_fp32 = true;  // ... of fp16 too, else of bf16 alone
  bool parameters_fp32 = false;     // weights live in fp32 and are cast for use; else a 16-bit working copy
  bool narrow_states = false;       // weights and moments are 16 bits, without a master copy
  double bucket_elements = 40e6;    // Megatron: the larger of this and 1e6 x dp
  double bucket_elements_per_rank = 1e6;
  double bucket_squares = 0;         // of the hidden size; 0: as above
  bool widens_reduced = false;       // reduced gradients are kept in the width of the weights
  bool widens_in_update = false;     // ... by the kernels of the update, which read narrow ones
  Bytes bucket{}, first_bucket{};    // DDP counts bytes; 0: elements
  bool exposed_buckets = false;      // buckets exist without overlap too
  bool offloads_parameters = false;  // offload moves the shards of the parameters too

  // Host.
  HostProfile host;  // calls of one layer, eager
  // To issue one kernel inside a CUDA graph: about 2 us, assumed.
  Duration graph_launch{2'000'000};
  bool cuda_graph = false;
  bool synchronises_p2p = false;  // the host waits for every exposed pipeline message
  // A pretraining has the modules of multi-token prediction that the published model's had.
  bool trains_predictions = false;
};

// All rows; names repeat, releases of one name newest first.
[[nodiscard]] std::span<const Framework> frameworks();
// "megatron" or "megatron@2022"; a year without its own row uses the one before it, years before the first
// the oldest. Throws ConfigError with the known names.
[[nodiscard]] const Framework& framework(std::string_view name);
// What a set has not that readers expect of a framework today: "no FlashAttention: attention scores are
// stored, no distributed optimiser unless zero is 1"; empty if it has both. With a workload: less what that
// says itself.
[[nodiscard]] std::string lacks_of(const Framework& set, const WorkloadSpec& workload = {});
// The next set of the same name, called by its year, that lacks nothing of it; null if none does.
[[nodiscard]] const Framework* remedied_by(const Framework& set, const WorkloadSpec& workload);
[[nodiscard]] std::string full_name(const Framework& set);  // "megatron@2022"
// The set that a workload's framework names. Without a release that is the set of the time in which its
// accelerators were measured (MachineFacts::software_year) if it has what the workload asks for, else that of
// 2024, or the newest where ZeRO wants it; and the one for GPUs, or with the compiler, where sets differ by
// that.
[[nodiscard]] const Framework& set_of(const WorkloadSpec& workload);
// The release that a workload means: set_of() or, with ZeRO 2 and 3, the one that has them.
[[nodiscard]] const Framework& framework_of(const WorkloadSpec& workload);
// All accepted names: each name itself, its releases, and every year from its oldest to 2026.
[[nodiscard]] std::vector<std::string> framework_names();
}  // namespace topsim::workloads
