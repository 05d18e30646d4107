// PyTorch: DDP, DataParallel, FSDP.
#include <limits>

#include "workloads/framework/rows.hpp"

namespace topsim::workloads {
namespace {
using namespace topsim::literals;

// Plain PyTorch modules of a Llama layer: 7 linears, 2 norms of 8 operators, rotary 8, attention, 5 others.
// The backward pass has two products of each linear, and adds to gradients of 9 tensors: frozen weights save
// 7 and 9. FSDP adds about 6 operators, 20 views and a Function per unit and pass (_fsdp_param_group.py:
// copy-in, copy-out, resharding); DDP adds a hook per parameter in C++.
constexpr HostProfile kEagerDdp{
    .forward = {.operators = 36, .views = 16, .modules = 14},
    .backward = {.operators = 57, .views = 16},
    .checkpoint = {.operators = 6, .functions = 2},
    .parameter_tensors = 9,
    .frozen = {.operators = 16},
};
constexpr HostProfile kEagerFsdp{
    .forward = {.operators = 42, .views = 36, .functions = 2, .modules = 14},
    .backward = {.operators = 71, .views = 36, .functions = 2},
    .checkpoint = {.operators = 6, .functions = 2},
    .parameter_tensors = 9,
    .frozen = {.operators = 16},
};
// Compiled by layer: one call with its guards (the time of 2 Functions), kernels of the matmuls, attention
// and 5 fused ones; FSDP's hooks stay eager.
constexpr HostProfile kCompiledFsdp{
    .forward = {.operators = 19, .views = 20, .functions = 4, .modules = 1},
    .backward = {.operators = 30, .views = 20, .functions = 4},
    .checkpoint = {.operators = 6, .functions = 2},
    .parameter_tensors = 9,
    .frozen = {.operators = 7},
};
// Without those hooks: less what eager FSDP adds to eager DDP.
constexpr HostProfile kCompiledDdp{
    .forward = {.operators = 13, .functions = 2, .modules = 1},
    .backward = {.operators = 16, .functions = 2},
    .checkpoint = {.operators = 6, .functions = 2},
    .parameter_tensors = 9,
    .frozen = {.operators = 7},
};

// peft/tuners/lora/layer.py, Linear.forward: result + lora_B(lora_A(dropout(x))) * scaling, then
// result.to(its dtype). Modules: the wrapper, dropout (nn.Identity if it is 0), A and B, beside the frozen
// layer's own; operators: two products, scale, sum. Backward: four products, scale, the sum of the input's
// gradients, an addition to each weight's gradient.
// _cast_input_dtype: get_peft_model keeps adapters in fp32 (autocast_adapter_dtype), so the input is cast to
// it, and by autocast back to 16 bits for the product, as are both weights.
constexpr AdapterFacts kPeft{
    .casts_input = true,
    .calls = {.forward = {.operators = 4, .views = 1, .modules = 4}, .backward = {.operators = 8}},
    .casts = {.forward = {.operators = 4}, .backward = {.operators = 4}},
};
// torchtune/modules/peft/lora.py, LoRALinear.forward, which takes the linear's place: F.linear(x, weight) +
// (alpha / rank) * lora_b(lora_a(dropout(x))), in the parameters' dtype.
constexpr AdapterFacts kTorchtune{
    .calls = {.forward = {.operators = 4, .modules = 3}, .backward = {.operators = 8}},
};
// The same in a compiled layer: products stay calls of a library, Inductor makes scale and sum a part of the
// kernels beside them.
constexpr AdapterFacts kCompiledAdapter{
    .fused = true,
    .calls = {.forward = {.operators = 2}, .backward = {.operators = 4}},
};
}  // namespace

// PyTorch 2.4 eager with autocast: torch/nn/parallel/distributed.py (bucket_cap_mb = 25), reducer.hpp
// (kDefaultFirstBucketBytes). gradient_as_bucket_view is off: gradients are copied in and out.
Framework ddp() {
  Framework row;
  row.name = "ddp";
  row.release = "2024";
  row.summary = "PyTorch DistributedDataParallel: first bucket 1 MiB, then 25 MiB, all-reduced in order";
  row.family = FrameworkFamily::ddp;
  row.zero = row.most_zero = 0;
  row.tp_overlap = TensorOverlap::none;
  row.start_order = StartOrder::compute_first;
  row.fused_kernels = false;
  row.eager_norms = row.eager_final_norm = true;
  row.attention = AttentionKernel::sdpa;  // aten/src/ATen/native/transformers/cuda/sdp_utils.cpp
  row.ring_fp32 = true;
  row.core_copies = CoreCopies::pytorch;  // repeat_kv of torchtitan's and transformers' Llama
  row.gate_apart = true;                  // w1 and w3, wq, wk and wv there
  // torchtitan/parallelisms/parallelize_llama.py shards [batch, sequence, h] by Shard(1). NCCL joins along
  // the first dimension only: for any other, torch/distributed/_functional_collectives.py, all_gather_tensor
  // ends in torch.cat(torch.chunk(...)), and reduce_scatter_tensor begins so. The view for a batch of one
  // (torch/_utils.py, _maybe_view_chunk_cat) is newer than all releases here. Autograd keeps what a
  // redistribution gathered, like any input.
  row.batch_first_shards = true;
  row.gathers_inputs_again = false;
  // torchtitan/distributed/expert_parallel.py, _token_dispatch: only rows are sent, weighted before or
  // afterwards.
  row.sends_probabilities = false;
  // torchao/float8/float8_tensor_parallel.py: PrepareFloat8ModuleInput casts before it redistributes, and
  // NoopFwToFloat8BwDynamic does so with the gradient of a row-parallel layer. Only for tensors with one
  // scale.
  row.gathers_narrow = true;
  row.dynamic_scales = true;  // torchao/float8/float8_scaling_utils.py, hp_tensor_to_float8_dynamic
  row.wide_inputs = true;     // float8_linear.py, matmul_with_hp_or_float8_args: save_for_backward(input_hp)
  // torch.optim.AdamW is not fused by default; torchtitan/components/optimizer.py sets "foreach", not fused
  // either.
  row.fused_adam = false;
  row.parameters_fp32 = true;
  row.bucket = 25_MiB;
  row.first_bucket = 1_MiB;
  row.bucket_copies = 2;
  // A 16-bit reduction is a communication hook: 16 bits are on the wire alone, buckets and .grad stay in the
  // parameters' format (ddp_comm_hooks/default_hooks.py, _compress_hook).
  row.widens_reduced = true;
  row.fused_accumulation = false;
  // torchtitan's loss_fn, F.cross_entropy(pred.float()). Forward: cast; log_softmax reads three times and
  // writes (aten/src/ATen/native/cuda/SoftMax.cu, cunn_SoftMaxForward: no row of 128 k words fits shared
  // memory). Backward: nll_loss writes zeros, log_softmax reads its gradient, then gradient and answer, and
  // writes; cast. Bytes held: logits 2 and float logits 4 are freed when log-softmax 4 is there, then two
  // gradients of 4 follow: 12. The second gradient takes the place of the float logits; the third finds no
  // free place (2), so the allocator's peak is 14, with expandable segments (run_train.sh) or without.
  row.loss = {.held = 14, .forward_copies = 20, .forward_own = 1, .backward_copies = 24, .backward_own = 1};
  // torch/distributed/tensor/parallel/loss.py, _log_softmax: cast, maximum (read), its subtraction (read,
  // written), exponentials (read, written), their sum (read), its logarithm's subtraction (read, written).
  // _nll_loss_and_log_softmax_backward: zeros (written), exponentials (read, written), their sum (two read,
  // written), times the loss's gradient (read, written); cast. Bytes held: forward 2 + 4 + 4 + 4, of which 10
  // are freed; in the backward pass zeros and exponentials take 8 of these, the sum finds no free place: 18.
  row.split_loss =
      LossBytes{.held = 18, .forward_copies = 36, .forward_own = 1, .backward_copies = 36, .backward_own = 1};
  // flash-attn's: the gradient beside the logits, all of it in the backward pass.
  row.fused_loss = {.held = 4, .forward_own = 1, .backward_own = 2};
  // torch/distributed/pipelining/stage.py: args_recv_info, grad_recv_info and output_chunks have an entry for
  // each micro-batch; received inputs keep their gradients until clear_runtime_states. Until 2025-05 (pytorch
  // pull request 153383) all stages kept their outputs.
  row.message_buffers = true;
  // torchtitan/parallelisms/parallelize_llama.py of late 2024, before both DDP and FSDP:
  // _apply_ac_to_transformer_block, selective_ac_option "op".
  row.selective_operators = true;
  // Checkpoint_wrapper's default is without reentry, whose recompute stops at the last tensor that was saved
  // (torch/utils/checkpoint.py, _enable_checkpoint_early_stop); compiled, unused results are not in the
  // backward graph.
  row.checkpoints_stop = true;
  row.host = kEagerDdp;
  row.adapter = kPeft;
  return row;
}

// torch.compile of the whole model with its loss: Inductor turns softmax, sums and casts into passes over the
// 16-bit logits (recalled); the optimiser as karpathy/nanoGPT's model.py sets it (configure_optimizers,
// fused).
Framework ddp_compiled() {
  Framework row = ddp();
  row.release = "2024-compile";
  row.summary = "the same with torch.compile of the whole model, as nanoGPT: fused kernels, loss and Adam";
  row.fused_kernels = row.fused_adam = row.fused_cross_entropy = row.reads_again = true;
  row.eager_norms = row.eager_final_norm = false;
  row.fused_loss.forward_own = 2;
  row.host = kCompiledDdp;
  row.adapter = kCompiledAdapter;
  return row;
}

// torch/nn/parallel/data_parallel.py: buckets of 10 MiB (replicate.py, comm.py: buffer_size), no overlap.
Framework data_parallel() {
  Framework row = ddp();
  row.name = "dataparallel";
  row.summary = "torch.nn.DataParallel: one process; device 0 broadcasts parameters and gathers outputs";
  row.family = FrameworkFamily::dataparallel;
  row.selective_operators = false;
  row.overlap_grad_reduce = row.overlap_param_gather = false;
  row.bucket = 10_MiB;
  row.first_bucket = Bytes(0);
  row.exposed_buckets = true;
  row.widens_reduced = false;
  row.bucket_copies = 0;
  return row;
}

// PyTorch 2.5 fully_shard over fp32 shards with bf16 parameters and fp32 reductions, as torchtitan sets it:
// _fsdp_param_group.py, torchtitan/parallelisms/parallelize_llama.py (reshard_after_forward unless there is
// a pipeline; reduce_dtype float32).
Framework fsdp() {
  Framework row = ddp();
  row.name = "fsdp";
  row.summary = "PyTorch FSDP2 (fully_shard), a unit a layer; fp32 shards, bf16 gathers, fp32 reductions";
  row.family = FrameworkFamily::fsdp;
  row.compiled = "2024-compile";
  row.by_size = "2024-flat";
  row.shards_experts = row.hybrid_shards = row.reduces_units = true;
  row.zero = row.most_zero = 3;
  row.least_zero = 2;
  row.bucket = row.first_bucket = Bytes(0);
  row.bucket_copies = 0;
  // Reduced shards go back to the parameters' format: _fsdp_collectives.py, foreach_reduce
  // (_to_dtype_if_needed); in the first FSDP _runtime_utils.py, _cast_grad_to_param_dtype.
  row.widens_reduced = true;
  // fully_shard of the layers, then of the model: embedding, final norm and head are the one group of its
  // root, which is not resharded after the forward pass (_fsdp_state.py, _lazy_init: post_forward_mesh_info =
  // None) and reduced last; the last layer, whose backward pass comes next, is not resharded either
  // (parallelize_llama.py).
  row.root_unit = row.keeps_last_layer = true;
  row.offloads_parameters = true;  // CPUOffloadPolicy, _fsdp_api.py
  // _fsdp_collectives.py, foreach_reduce: the copy blocks where gradients are accumulated. FSDP1 accumulates
  // on the accelerator (_runtime_utils.py, _accumulate_sharded_grad).
  row.host_adds = true;
  // torchtitan/models/llama/model.py, apply_rotary_emb: xq.float(), view_as_complex. Inductor has no kernels
  // for complex numbers ("does not support code generation for complex operators"), so compiled models behave
  // the same.
  row.complex_rotary = true;
  row.host = kEagerFsdp;
  row.adapter = kTorchtune;
  return row;
}

// FSDP of PyTorch 1.13 to 2.1 as llm-foundry sets it (scripts/train/benchmarking/submit_benchmarks.py):
// attn_impl triton, the first FlashAttention; mixed_precision PURE reduces in bf16, backward_prefetch
// BACKWARD_PRE, limit_all_gathers; cross entropy of the flash-attn package.
Framework fsdp_2023() {
  Framework row = fsdp();
  row.release = "2023";
  row.host_adds = false;
  row.summary =
      "PyTorch FSDP as MosaicML's llm-foundry sets it: bf16 reductions, fused cross entropy, metrics";
  row.attention = AttentionKernel::flash1;
  row.core_copies = CoreCopies::split;  // llmfoundry/models/layers/attention.py: qkv.chunk(3, dim=2)
  row.complex_rotary = row.selective_operators = row.gate_apart = row.eager_final_norm = false;
  row.checkpoints_stop = false;  // that came with PyTorch 2.1
  // Its amp_fp8 is Transformer Engine's delayed scaling (composer/core/precision.py).
  row.dynamic_scales = row.wide_inputs = false;
  row.amax_reduction = AmaxReduction::all;  // no group given: the default one of all ranks
  // torch/distributed/fsdp/_flat_param.py: all_gather_into_tensor into the unsharded flat parameter; the
  // parameters are views of it, and the gradients of these views are joined.
  row.copies_gathered = false;
  row.gradients_fp32 = row.keeps_last_layer = false;
  // composer/optim/decoupled_weight_decay.py, DecoupledAdamW: one flat parameter after the other, so that the
  // temporary is a unit's shard, which is little.
  row.update_elements = 1;
  // algorithms/_comm_hooks/default_hooks.py, reduce_scatter_hook: grad.div_(gradient_predivide_factor). The
  // compute stream waits for no reduction before the end (_runtime_utils.py, _post_backward_final_callback).
  row.gradient_passes = 2;
  row.outstanding_reductions = std::numeric_limits<int>::max();
  row.fused_cross_entropy = true;
  // After every backward pass composer/trainer/trainer.py (_train_microbatch, _eval_train_metrics) updates
  // two metrics, LanguageCrossEntropy and LanguagePerplexity (llmfoundry/models/mpt/modeling_mpt.py). Each is
  // torch.nn.CrossEntropyLoss of all logits, under autocast: the forward pass of the eager loss. Here they
  // stand with the loss's backward pass.
  row.fused_loss.backward_copies += 2 * row.loss.forward_copies;
  row.fused_loss.backward_own += 2 * row.loss.forward_own;
  row.adapter = kPeft;
  row.adapter.casts_input = false;  // FSDP's parameters are 16 bits while they are whole
  return row;
}

// FSDP of PyTorch 2.6 (FullyShardedDataParallel) around a model of transformers 4.47 (models/llama,
// models/qwen2): rotate_half in 16 bits, repeat_kv, FlashAttention 2, MixedPrecision(param_dtype=bfloat16),
// whose reduce_dtype follows it.
Framework fsdp_flat() {
  Framework row = fsdp();
  const Framework first = fsdp_2023();
  row.release = "2024-flat";
  row.host_adds = false;
  row.summary = "PyTorch FSDP1 around a transformers model: flat parameters, bf16 gathers and reductions";
  row.complex_rotary = row.selective_operators = row.keeps_last_layer = row.gradients_fp32 = false;
  row.attention = AttentionKernel::flash2;
  row.expert_loop = true;  // models/mixtral/modeling_mixtral.py, MixtralSparseMoeBlock
  row.copies_gathered = first.copies_gathered;
  row.gradient_passes = first.gradient_passes;
  row.adapter = first.adapter;
  row.outstanding_reductions = first.outstanding_reductions;
  // loss/loss_utils.py, ForCausalLMLoss: float(), then logits[..., :-1, :].contiguous(), 8 bytes more
  // forward; backward zeros and a copy, 12.
  row.loss.forward_copies += 8;
  row.loss.backward_copies += 12;
  return row;
}

Framework fsdp_compiled() {
  Framework row = fsdp();
  row.release = "2024-compile";
  row.summary = "FSDP2 with torch.compile for each layer: fused element-wise kernels";
  row.fused_kernels = row.reads_again = true;
  row.eager_norms = false;
  row.host = kCompiledFsdp;
  row.adapter = kCompiledAdapter;
  return row;
}

// torchtitan since 2025-04 (pull request 1033, build_cross_entropy_loss) compiles the loss too: passes over
// the 16-bit logits, forward for the maximum and the sum, backward for the gradient. Under tensor parallelism
// the zeros into which _nll_loss_and_log_softmax_backward writes at an index are a separate tensor in fp32.
Framework fsdp_compiled_loss() {
  Framework row = fsdp_compiled();
  row.expert_products = ExpertProducts::grouped_mm;  // torchtitan/models/moe.py, use_grouped_mm
  row.fixed_tiles = false;
  row.release = "2025-compile";
  row.summary = "FSDP2 with torch.compile for each layer and for the loss, as torchtitan since April 2025";
  row.fused_cross_entropy = true;
  row.fused_loss = {.held = 4, .forward_own = 2, .backward_own = 2};
  row.split_fused_loss = LossBytes{.held = 8, .forward_own = 2, .backward_copies = 8, .backward_own = 2};
  // Since 2025-03 (pull request 965, "Don't save reduce scatter output for per op SAC"), for asynchronous
  // tensor parallelism.
  row.recomputes_scatters = true;
  row.fused_adam = true;  // since 2025-02 (pull request 881, "use Fused AdamW as default")
  return row;
}

// torchtitan since the summer of 2025 without torch.compile. torchtitan/models/llama3/infra/parallelize.py,
// apply_fsdp: fully_shard of the embedding, of every layer, and of final norm and head together, which alone
// are not resharded unless the policy is "always".
Framework fsdp_eager_2025() {
  Framework row = fsdp();
  row.expert_products = ExpertProducts::grouped_mm;  // torchtitan/models/moe.py, use_grouped_mm
  row.fixed_tiles = false;
  row.release = "2025-eager";
  row.summary = "FSDP2 as torchtitan since mid-2025, eager: fused Adam; embedding and head are units too";
  row.root_unit = row.keeps_last_layer = false;
  row.fused_adam = row.weighs_rows = true;
  return row;
}

// The same two around PyTorch 2.11 of 2026. nn.RMSNorm is one kernel since 2.9 (pytorch pull request 153666),
// and Inductor sums the gains of a norm in the norm's kernel (165370). scaled_dot_product_attention takes
// cuDNN's on a Hopper too, from 9.15 on (sdp_utils.cpp, check_prefer_cudnn_attention; on an H100 its times
// are those of cuDNN named, tests/golden/accelerator). On CDNA3 and CDNA4 its forward kernels are AOTriton's
// still, its backward ones aiter's (flash.cpp).
Framework fsdp_eager_2026() {
  Framework row = fsdp_eager_2025();
  row.release = "2026-eager";
  row.summary = "as 2025-eager around PyTorch 2.11: cuDNN's attention on a Hopper too, RMSNorm in one kernel";
  row.attention = AttentionKernel::sdpa2026;
  row.one_norm_kernel = true;
  row.eager_final_norm = false;
  return row;
}

Framework fsdp_compiled_2026() {
  Framework row = fsdp_compiled_loss();
  row.release = "2026-compile";
  row.summary = "as 2025-compile around PyTorch 2.11: cuDNN's attention on a Hopper too";
  row.attention = AttentionKernel::sdpa2026;
  row.reads_again = false;
  // As 2025-eager: torchtitan since July 2025 (pull request 1094).
  row.root_unit = row.keeps_last_layer = false;
  return row;
}

// NeMo AutoModel's own models with Transformer Engine (nemo_automodel, 2025 and 2026), as the recipes of its
// benchmarks set them. components/models/qwen3_moe/layers.py: q_proj, k_proj and v_proj are products of their
// own, whose results the norms of heads, the fused rotary embedding (rope_fusion) and Transformer Engine's
// attention read as they are, groups of heads included. Norms are Transformer Engine's, routed experts'
// activation, permutation and probabilities Megatron's (components/moe/megatron). Dense networks
// (components/moe/layers.py, MLP: F.silu(gate) * up) are counted as fused too.
// components/moe/parallelizer.py: fully_shard of every layer without reshard_after_forward; weights are bf16
// unless the model says otherwise, and so are the moments of torch.optim.Adam. components/moe/fsdp_mixin.py
// (enable_fsdp_optimizations): no reduction and no resharding before the last backward pass of a step.
Framework fsdp_automodel() {
  Framework row = fsdp_eager_2025();
  row.release = "2025-automodel";
  row.summary =
      "FSDP2 around NeMo AutoModel's own models: Transformer Engine, 16-bit states, fp32 reduced once";
  row.expert_products = ExpertProducts::grouped_gemm;  // components/moe/experts.py: grouped_gemm.ops.gmm
  row.weighs_rows = false;
  row.attention = AttentionKernel::flash;
  row.fused_kernels = row.sends_probabilities = true;
  row.eager_norms = row.eager_final_norm = row.complex_rotary = row.fused_adam = false;
  row.core_copies = CoreCopies::apart;
  row.zero = 2;
  row.narrow_states = row.reduces_once = true;
  // components/_peft/lora.py, LinearLoRA.forward: as torchtune's, F.dropout instead of a module.
  row.adapter.calls.forward = {.operators = 4, .views = 1, .modules = 2};
  // components/moe/parallelizer.py (005f6639) and distributed/config.py: MixedPrecisionPolicy with
  // reduce_dtype float32; without synchronisation FSDP2 sums in it.
  return row;
}
}  // namespace topsim::workloads
