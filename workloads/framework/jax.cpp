// JAX: programs that XLA compiles whole.
#include "workloads/framework/rows.hpp"

namespace topsim::workloads {
namespace {
using namespace topsim::literals;

// XLA's runtime launches kernels one by one from C++ (xla_gpu_graph_level=0 in the script below). Forward:
// four products and the core's two, a norm's statistics and its scaling twice, softmax 3, biases with
// residual, activation or transposition 5. Backward: both products of each forward one 12, softmax 2, norms
// 3 each, sums of biases 4, activation, residuals and transpositions 6 (estimated; a step waits for none of
// them).
constexpr HostProfile kLaunches{
    .forward = {.launches = 18},
    .backward = {.launches = 30},
    .checkpoint = {},
    .parameter_tensors = 12,
};
}  // namespace

// Pax of mid-2023 (google/paxml and google/praxis) on GPUs as NVIDIA's JAX-Toolbox runs it:
// paxml/contrib/gpu/scripts_gpu/configs.py (GPT5B, GPT175B: the mesh axis fsdp; GPT126M: data) and
// run_pile_multinode.sh at 04516ac8.
Framework pax() {
  Framework row;
  row.name = "pax";
  row.release = "2023";
  row.summary = "Pax on GPUs: layers in a compiled loop that gathers shards as it goes; 16-bit gradients";
  row.family = FrameworkFamily::jax;
  row.hybrid_shards = true;
  row.zero = row.most_zero = 3;
  // configs.py: USE_REPEATED_LAYER (praxis/layers/repeats.py: nn.scan). The script's flags pipeline no
  // collective over passes (none of xla_gpu_enable_pipelined_*, xla_gpu_enable_while_loop_double_buffering);
  // within a pass gathers, reduce-scatters and all-reduces are asynchronous (xla_gpu_enable_async_*,
  // xla_gpu_enable_latency_hiding_scheduler).
  row.loops_over_layers = true;
  // Without shards GPT126M is unrolled: all-reduces hide behind the whole backward pass, combined up to
  // --xla_gpu_all_reduce_combine_threshold_bytes=51200, so that every matrix has its own.
  row.bucket = Bytes(51'200);
  row.bucket_elements_per_rank = 0;
  // praxis/base_layer.py: variables are fp32 and cast to fprop_dtype (bf16) where a layer reads them, on each
  // shard before the gather; the cast's transpose widens the gradient of a product after it is summed over
  // the ranks. NVIDIA/JAX-Toolbox pull request 674 on the sizes of both: "BF16 weights and gradients".
  row.parameters_fp32 = true;
  row.casts_stay = false;  // of a layer, in the loop that multiplies by them
  row.gradients_fp32 = false;
  row.widens_reduced = true;
  // XLA joins the cast with what reads it. Steps of one accelerator without a loop over shards say so too:
  // with wide reads they are up to 7.5 % slow, else within 5 (tests/scripts/test_accelerator_steps.py).
  row.widens_in_update = true;
  row.copies_gathered = false;  // XLA's collectives write their results in place
  row.fused_accumulation = false;
  // JAX-Toolbox sets CUDA_DEVICE_MAX_CONNECTIONS=1, "since XLA already orders launches" (its READMEs;
  // recalled).
  row.start_order = StartOrder::launches;
  row.tp_overlap = TensorOverlap::none;  // xla_gpu_threshold_for_windowed_einsum_mib: off
  // paxml/tasks/lm/model_params.py, TransformerLmSpmdAdafactor: CHECKPOINT_POLICY = SAVE_NOTHING, which
  // reaches repeated layers only; XLA removes what no gradient reads. SAVE_DOT_WITH_NO_BATCH_DIM (GPT5B) is
  // selective recompute here (praxis/layers/checkpoint_policy.py).
  row.recompute = RecomputeKind::full;
  row.checkpoints_stop = true;
  row.keeps_products = true;
  // The loop stacks what layers keep. A product is a library's call, which neither writes into a slice of the
  // stack nor reads one before dynamic slice fusion, by default off until June 2026 (openxla/xla pull
  // requests 43381 and 43831; jax issue 13356, "Significant Overhead with nn.scan", on an A100).
  row.copies_kept_products = true;
  // praxis/layers/attentions.py, DotProductAttention: batched products and softmax; the script sets
  // xla_gpu_enable_triton_softmax_fusion=false. With ENABLE_TE=1 Transformer Engine's attention: kernel
  // flash.
  row.attention = AttentionKernel::unfused;
  row.softmax_in_loops = true;
  row.core_copies = CoreCopies::packed;  // COMBINE_QKV
  row.gate_apart = true;                 // praxis/layers/transformers.py: ffn_layer1 and ffn_layer1_gate
  row.bias_kernels = true;
  // paxml/tasks/lm/params/c4.py, TransformerLmSpmdAdam: EMBEDDING_LOOKUP_STYLE = 'matmul'
  // (praxis/layers/embedding_softmax.py: one_hot, then project_last_dim).
  row.looks_up_by_product = true;
  // embedding_softmax.py, FullSoftmax: fp32 in registers; maximum, sum of exponentials, loss and argmax each
  // read the 16-bit logits, the gradient is read and written beside them.
  row.fused_cross_entropy = true;
  row.fused_loss = {.held = 4, .forward_own = 4, .backward_own = 2};
  row.host = kLaunches;
  return row;
}

namespace {
// Loops whose collectives XLA pipelines (xla_gpu_enable_pipelined_all_gather, _reduce_scatter, _all_reduce):
// what the next pass reads is gathered during this one, and what this pass has summed is reduced during the
// next (openxla/xla, xla/service/gpu/gpu_compiler.cc: CollectivePipeliner, kBackward and kForward). All
// gathers of a layer are one (all_gather_combine_threshold_bytes is more than a layer has). So layers behave
// like FSDP's units (step/units.cpp), but for copies: XLA's collectives read and write in place.
void pipeline_loops(Framework& row) {
  row.loops_over_layers = row.joins_gradients = false;
  row.prefetch_forward = row.gathers_what_is_read = true;
}
}  // namespace

// Pax of March 2024 on GPUs (ghcr.io/nvidia/jax:pax-2024-03-04) as NVIDIA/dgxc-benchmarking runs it
// (paxml/configure.sh and paxml_mod_configs.py at 143b90dd): with Transformer Engine.
Framework pax_2024() {
  Framework row = pax();
  row.release = "2024";
  row.summary =
      "Pax on GPUs with pipelined collectives: the next layer's shards are gathered beside this one";
  pipeline_loops(row);
  row.bucket = 512_MiB;  // all_reduce_combine_threshold_bytes
  // CHECKPOINT_POLICY = SAVE_DOT_ONLY: results of all products; Transformer Engine's attention is none.
  row.recompute = RecomputeKind::selective;
  row.attention = AttentionKernel::flash2025;  // ENABLE_TE=1, NVTE_FUSED_ATTN=1
  row.softmax_in_loops = false;
  // Transformer Engine, jax/layernorm.py: layernorm_fwd_fp8 writes fp8 (recalled).
  row.casts_in_norms = true;
  return row;
}

// MaxText of mid-2024 (google/maxtext, MaxText/configs/base.yml at 01c78bbf) on TPUs, whose defaults are
// fp32 weights, bf16 activations, scan_layers, one axis fsdp over the slice (ici_fsdp_parallelism -1; the
// axis data is zero 0, a part of the chips hsdp_shard), AdamW in fp32.
Framework maxtext() {
  Framework row = pax();
  row.name = "maxtext";
  row.release = "2024";
  row.on_gpus = "2024-gpu";
  row.summary = "MaxText on TPUs: layers in a compiled loop that gathers shards as it goes; full remat";
  row.expert_products = ExpertProducts::together;  // MaxText/layers/moe.py: megablox
  // A whole step is one program of the accelerator.
  row.cuda_graph = true;
  row.graph_launch = Duration{};
  // Gathers are asynchronous (xla_enable_async_all_gather, by default where a TPU can, openxla/xla
  // docs/flags_guidance.md at 28192b98). That list has no such flag for reduce-scatters, and that for
  // all-reduces is off; a v4's program has plain ones.
  row.overlap_grad_reduce = false;
  row.bucket = Bytes(0);
  // MaxText/layers/attentions.py at 5bdb877e, tpu_flash_attention: the Pallas kernel splash attention, in
  // blocks of 512; queries, keys and values are products of their own (fused_qkv, fused_mlp: False).
  row.attention = AttentionKernel::flash;
  row.softmax_in_loops = row.bias_kernels = false;
  row.core_copies = CoreCopies::apart;
  row.looks_up_by_product = false;   // use_iota_embed: False
  row.copies_kept_products = false;  // XLA fuses slices with products on a TPU
  // remat_policy: full. layers/models.py, get_remat_policy: "minimal" is checkpoint_dots_with_no_batch_dims,
  // selective recompute here; attention is no product that it sees.
  // logits_dot_in_fp32: the logits are fp32, in one bf16 pass of the units (JAX's default precision on TPUs).
  // max_utils.py, cross_entropy_with_logits: maximum, sum and loss each read them, the gradient is read and
  // written beside them.
  row.fused_loss = {.held = 8, .forward_copies = 12, .backward_copies = 8};
  return row;
}

// MaxText of December 2024 on GPUs (ghcr.io/nvidia/jax:maxtext-2024-12-09) as NVIDIA/dgxc-benchmarking runs
// it (maxtext/configure.sh at 0b71cfda).
Framework maxtext_gpu() {
  Framework row = maxtext();
  row.release = "2024-gpu";
  row.on_gpus = {};
  row.summary = "MaxText on GPUs: pipelined collectives, cuDNN's attention, 8-bit gathers of 8-bit products";
  row.attention = AttentionKernel::flash2025;
  pipeline_loops(row);
  row.bucket = 2_GiB;      // all_reduce_combine_threshold_bytes
  row.cuda_graph = false;  // xla_gpu_graph_level=0
  row.overlap_grad_reduce = true;
  // logits_dot_in_fp32=false; the loss as above, in registers from 16-bit logits.
  row.fused_loss = pax().fused_loss;
  row.copies_kept_products = true;
  row.looks_up_by_product = true;  // use_iota_embed=true (layers/embeddings.py: one_hot, then jnp.dot)
  // Flax, linen/fp8_ops.py: Fp8DotGeneralOp scales by maxima of earlier steps, so that the kernels between
  // products write 8 bits: XLA fuses casts into them, and the maxima too (fusions of several outputs,
  // recalled). The cast of weights follows their gather; XLA moves it before (xla/service/
  // collective_quantizer.cc; gpu/gpu_compiler.cc runs it).
  row.gathers_cast_weights = row.casts_in_norms = row.casts_where_made = true;
  return row;
}

// MaxText of 2025 (src/MaxText/configs/base.yml at 003b4169): logits_dot_in_fp32 is off, so the head's
// product writes bf16. cast_logits_to_fp32, the exponentials and the gradient's cast back are element by
// element, which XLA fuses into what reads them (recalled), so logits and gradient are in memory in 16 bits.
Framework maxtext_2025() {
  Framework row = maxtext();
  row.release = "2025";
  row.summary = "MaxText on TPUs since 2025: as 2024, but logits in bf16";
  row.fused_loss = {.held = 4, .forward_own = 3, .backward_own = 2};
  return row;
}
}  // namespace topsim::workloads
