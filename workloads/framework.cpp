#include "workloads/framework.hpp"

#include <fmt/format.h>

#include <array>

#include "sim/base/error.hpp"

namespace topsim::workloads {
namespace {
using namespace topsim::literals;

// A kernel inside a CUDA graph: about 2 us (training-and-collectives.md 4.10).
constexpr Duration kGraph = 2_us;

// Calls of the host in one layer and pass, counted in the source of each release. Kernels beyond operators
// are launched by Functions, whose time includes them. Forward: {operators, views, Functions and scripts,
// modules}.
//
// Megatron-LM v2 and Megatron-DeepSpeed (megatron/model/transformer.py), GPT layer. Forward: 4 matmuls, QKV
// bias, baddbmm, dropout, bmm, contiguous, 2 norms, softmax, GeLU, 2 bias-dropout-adds, and 4 reads and
// writes of random states around the dropout; 28 views; Functions: 2 norms, 2 copy_to, 2 reduce_from,
// softmax, GeLU, and 3 scripts. Backward: 8 + 4 matmuls, 4 bias sums, 12 gradient accumulations, 10 others.
// Checkpoint (tensor_parallel/random.py): 12 reads and writes of states, the nested backward.
// A micro-batch (megatron/data/data_samplers, mpu/data.py: broadcast_data; utils.py:
// get_ltor_masks_and_position_ids): lengths to the accelerator, broadcast and read back; tokens flattened,
// copied and broadcast; 10 operators and 8 views for tokens, labels, masks and positions.
constexpr HostProfile kMegatron2022{
    {19, 28, 11, 11}, {38, 28, 11, 0}, {12, 0, 2, 0}, 12, 2, {13, 8, 0, 0}, 2, true, true};
// Megatron-Core with Transformer Engine. TEColumnParallelLinear forward 115 us on the same host as
// ColumnParallelLinear's 74 us (NVIDIA/TransformerEngine pull request 1191): a linear or an attention of
// Transformer Engine counts as 4 Functions forward, 3 backward. Beside them rotary (2), split of QKV, SwiGLU
// and 3 scripts.
// Five tensors of a micro-batch are copied and, over a tensor group, broadcast (training/utils.py:
// get_batch_on_this_tp_rank), on the first and the last stage; nothing is read back.
// In a step a call takes twice as long as in the loops that timed it alone (why is not known). Megatron's
// functional tests publish iterations of a GPT of 12 layers, hidden 512, whose kernels need a tenth of them
// on a DGX H100. Of bf16, golden_values_dev_dgx_h100.json: 4 micro-batches, tensor parallel
// (gpt3_mcore_te_tp4_pp1_dist_optimizer_overlap_grad_reduce_param_gather), 227.5 ms; one
// (gpt3_mcore_te_tp1_pp1_dist_optimizer_fim_dataset) 60.1: 4.65 ms a layer, forward and backward. These
// calls, the collectives, what the tests leave unfused (attention's products, softmax and dropout, 12
// operators, gradients added by one of their own) and some 20 tensors filled because the tests are
// deterministic make 2.3 ms. Of 8 bits, not deterministic, fused attention
// (gpt3_345m_weekly_dgx_h100_1N8G_mcore_nondet_tp1_pp1_fp8_no_model_parallel): 0.49 s for 8 micro-batches,
// 5.1 ms a layer where these calls, linears twice, make 2.6.
constexpr HostProfile kMegatron2024{
    {12, 15, 27, 11}, {20, 15, 24, 0}, {12, 0, 2, 0}, 8, 2, {5, 0, 0, 0}, 4, false, false, {}, 2};
// A mixture's layer of Megatron-Core 0.14 and 0.15 on Transformer Engine 2. Attention: two linears, the core
// counted as 3 Functions, a norm, rotary of queries and keys, the script of bias, dropout and residual;
// latent attention three linears, two norms and six splits and joins more. Router (moe/router.py,
// moe_utils.py, fused): the norm before it (2), gating product, top-k, scores and loss of the balance, their
// scaler, the forced balance. Exchange (moe/token_dispatcher.py): counts summed, reshaped and copied to the
// host, permute, tokens, probabilities, sort; back the same less the counts. DeepEP (fused_a2a.py) replaces
// them by dispatch, permute, unpermute, combine. Experts (moe/experts.py: TEGroupedMLP): two grouped linears
// and the activation; padding and its removal in 8 bits. Each local expert: in both linears two views and a
// product forward; backward two products, two views, the empty tensor that stands for a gradient already
// added (grouped_linear.py, handle_custom_ddp_from_mcore), a parameter's hook (distributed_data_parallel.py);
// in 8 bits, both linears, a tensor made of a part of one allocation and a kernel each way
// (csrc/extensions/cast.cpp: split_quantize, bulk_allocate). Norms of queries and keys: a module, a Function
// and an operator each. Where forward and backward overlap, attention, dispatch, experts and combine are
// nodes with a graph of their own (pipeline_parallel/utils.py: ScheduleNode): forward an event waited for
// and one recorded, two streams set, an input detached; backward a pass of the autograd engine, its gradient
// recorded on the stream.
constexpr ExpertCalls kMegatronExperts{true,
                                       {{6, 8, 7, 6, 2}, {10, 8, 7, 0, 2}},
                                       {{6, 4, 2, 3, 3}, {6, 4, 2, 0, 3}},
                                       {{12, 6, 8, 3}, {12, 6, 7, 0}},
                                       {{3, 4, 2, 4, 2}, {3, 4, 1, 0, 2}},
                                       {{22, 12, 6, 2}, {14, 8, 6, 0}},
                                       {{12, 8, 5, 2}, {8, 6, 5, 0}},
                                       {{2, 4, 1, 4, 2}, {2, 4, 1, 0, 2}},
                                       {{0, 4, 0, 0, 0, 2}, {0, 6, 0, 2, 0, 4}},
                                       {{0, 0, 2, 2}, {0, 0, 2, 0}},
                                       {{0, 2, 0, 2, 0, 0, 2}, {0, 2, 0, 2, 0, 0, 2}},
                                       {{2, 0, 2, 2}, {2, 0, 2, 0}},
                                       {{0, 4, 0, 3}, {0, 3, 1, 3}}};
// Plain PyTorch modules of a Llama layer: 7 linears, 2 norms of 8 operators, rotary 8, attention, 5 others;
// FSDP adds to a unit and pass about 6 operators, 20 views and a Function (_fsdp_param_group.py: copy-in,
// copy-out, resharding), DDP a hook a parameter in C++.
constexpr HostProfile kEagerDdp{{36, 16, 0, 14}, {57, 16, 0, 0}, {6, 0, 2, 0}, 9, 0};
constexpr HostProfile kEagerFsdp{{42, 36, 2, 14}, {71, 36, 2, 0}, {6, 0, 2, 0}, 9, 0};
// Compiled by layer: one call with its guards (2 Functions' time), kernels of the matmuls, attention and 5
// fused ones; the hooks of FSDP stay eager.
constexpr HostProfile kCompiledFsdp{{19, 20, 4, 1}, {30, 20, 4, 0}, {6, 0, 2, 0}, 9, 0};

std::array<Framework, 13> make_table() {
  Framework megatron;
  megatron.name = "megatron";
  megatron.release = "2024";
  megatron.summary = "Megatron-Core with Transformer Engine, distributed optimiser, flash attention";
  megatron.host = kMegatron2024;
  megatron.host.experts = kMegatronExperts;
  megatron.graph_launch = kGraph;
  // TELinear and TEGroupedLinear pass is_first_microbatch unless disable_parameter_transpose_cache is set
  // (megatron/core/extensions/transformer_engine.py); Transformer Engine then keeps both layouts, which
  // together are as large as 16-bit weights, and NVIDIA's recipes have no others (fp8_param).
  megatron.keeps_narrow_weights = true;
  // Transformer Engine, pytorch/module: layernorm_linear.py and base.py (grad_output_preprocess) cast a
  // rank's rows of a norm's output and of a gradient, gather_along_first_dim (distributed.py) sends them as
  // they are, block scales beside them, and transposes come after. Norms write fp8 themselves for delayed
  // scaling only (csrc/extensions/normalization.cpp, force_unfused_kernel). Where products take either layout
  // there are no transposes (utils.py, is_non_tn_fp8_gemm_supported: data centre Blackwell).
  megatron.gathers_narrow = megatron.gathers_narrow_blocks = true;
  megatron.casts_in_norms = megatron.reads_either_layout = true;
  // NeMo, userbuffers.py: userbuffers_fp8_h100_*, fp8_buf of proj_fprop and fc2_fprop; B200's have none.
  megatron.scatters_narrow = true;
  // NeMo, collections/llm/fn/activation.py: squared_relu is pow(relu(x), 2), its "@torch.jit.script" a
  // comment.
  megatron.eager_squared_relu = true;
  // core/distributed/param_and_grad_buffer.py, start_grad_sync: grad_data.norm (check_for_nan_in_grad). The
  // average is the collective's (average_in_collective, as NeMo's recipes set it).
  megatron.gradient_passes = 1;
  megatron.synchronises_p2p = true;  // batch_p2p_sync defaults to true (model_parallel_config.py)

  // Megatron-Bridge since 0.1 (pull request 595) and the performance scripts of NeMo 2 before it
  // (scripts/performance/helpers.py): cross_entropy_fusion_impl "te". NeMo of 2024 fuses too
  // (gpt/model/base.py: cross_entropy_loss_fusion True), but "native": by the compiler, step by step.
  Framework megatron2025 = megatron;
  megatron2025.release = "2025";
  megatron2025.summary = "Megatron-Core as Megatron-Bridge sets it: Transformer Engine's cross entropy";
  megatron2025.fused_cross_entropy = true;
  // Its fp8 is current scaling: fp8_recipe "tensorwise" (training/mixed_precision.py).
  megatron2025.dynamic_scales = true;
  megatron2025.eager_squared_relu = false;  // megatron/core/activations.py: @jit_fuser
  megatron2025.casts_in_norms = false;

  Framework megatron2022 = megatron;
  megatron2022.release = "2022";
  megatron2022.summary =
      "Megatron-LM of Korthikanti et al. 2022: unfused attention, no distributed optimiser";
  megatron2022.attention = AttentionKernel::unfused;
  megatron2022.sequence_parallel = false;
  megatron2022.zero = 0;
  megatron2022.overlap_grad_reduce = megatron2022.overlap_param_gather = megatron2022.overlap_p2p = false;
  megatron2022.recompute = RecomputeKind::full;
  megatron2022.dropout = true;
  megatron2022.gradient_passes = 2;  // megatron/model/distributed.py: buffer_.data /= the group's size
  // megatron/core/tensor_parallel/layers.py: output + bias, grad_output.sum(dim=0); F.linear of three
  // dimensions adds its bias in a second kernel too (PyTorch before 1.12, aten/src/ATen/native/Linear.cpp).
  megatron2022.bias_kernels = true;
  megatron2022.core_copies = CoreCopies::own;
  megatron2022.host = kMegatron2022;
  megatron2022.gathers_narrow = megatron2022.gathers_narrow_blocks = megatron2022.casts_in_norms = false;
  megatron2022.reads_either_layout = megatron2022.scatters_narrow = false;
  // megatron/global_vars.py: _Timer.start and stop call torch.cuda.synchronize(); schedules.py times every
  // pass.
  megatron2022.timed_passes = true;
  megatron2022.splits_messages = true;  // scatter_gather_tensors_in_pipeline

  Framework megatron2023 = megatron2022;
  megatron2023.release = "2023";
  megatron2023.summary = "Megatron-LM of late 2022 and 2023: as before, timers off unless asked for";
  megatron2023.timed_passes = false;  // megatron/timers.py: --timing-log-level 0

  // megatron/mpu/layers.py: ColumnParallelLinear calls F.linear, whose gradient is all-reduced by
  // copy_to_tensor_model_parallel_region before anything else runs (the asynchronous one came in early 2022);
  // autograd accumulates. So in microsoft/Megatron-DeepSpeed 1619965 and bigscience-workshop 119a0d2.
  Framework megatron2021 = megatron2022;
  megatron2021.release = "2021";
  megatron2021.summary = "Megatron-LM of SC'21 and Megatron-DeepSpeed: nothing hides behind matmuls";
  megatron2021.tp_overlap = TensorOverlap::none;
  megatron2021.fused_accumulation = false;
  megatron2021.apex_norms = true;       // megatron/model/fused_layer_norm.py: MixedFusedLayerNorm
  megatron2021.gradients_fp32 = false;  // --accumulate-allreduce-grads-in-fp32 is off in fp16
  megatron2021.bucket_copies = 2;  // megatron/model/distributed.py flattens gradients and copies them back

  // NVIDIA/Megatron-LM 782633c, megatron/model: rms_norm.py, transformer.py (swiglu of chunks, FlashAttention
  // 2 of the flash-attn package), and rotary_pos_emb.py, before Transformer Engine had all of them.
  Framework megatronllama = megatron;
  megatronllama.release = "2023-llama";
  megatronllama.summary =
      "Megatron-LM of 2023 for Llama: norms, rotary embedding and SwiGLU in plain PyTorch, FlashAttention 2";
  megatronllama.fused_kernels = false;
  megatronllama.eager_norms = true;
  megatronllama.attention = AttentionKernel::flash2;
  megatronllama.overlap_grad_reduce = megatronllama.overlap_param_gather = false;
  megatronllama.core_copies = CoreCopies::own;
  megatronllama.gradient_passes = 2;
  megatronllama.host = kMegatron2022;
  megatronllama.gathers_narrow = megatronllama.gathers_narrow_blocks = megatronllama.casts_in_norms = false;
  megatronllama.reads_either_layout = megatronllama.scatters_narrow = false;

  // PyTorch 2.4 eager with autocast: torch/nn/parallel/distributed.py (bucket_cap_mb = 25), reducer.hpp
  // (kDefaultFirstBucketBytes). gradient_as_bucket_view is off: gradients are copied in and out.
  Framework ddp;
  ddp.name = "ddp";
  ddp.release = "2024";
  ddp.summary = "PyTorch DistributedDataParallel: first bucket 1 MiB, then 25 MiB, all-reduced in order";
  ddp.family = FrameworkFamily::ddp;
  ddp.zero = ddp.most_zero = 0;
  ddp.tp_overlap = TensorOverlap::none;
  ddp.fused_kernels = false;
  ddp.eager_norms = true;
  ddp.attention = AttentionKernel::flash2;  // aten/src/ATen/native/transformers/cuda/flash_attn
  ddp.ring_fp32 = true;
  ddp.core_copies = CoreCopies::pytorch;  // repeat_kv of torchtitan's and transformers' Llama
  ddp.gate_apart = true;                  // w1 and w3, wq, wk and wv there
  // torchtitan/parallelisms/parallelize_llama.py shards [batch, sequence, h] by Shard(1). NCCL joins along
  // the first dimension: torch/distributed/_functional_collectives.py, all_gather_tensor ends in
  // torch.cat(torch.chunk(...)) for any other, reduce_scatter_tensor begins so. A view for a batch of one
  // (torch/_utils.py, _maybe_view_chunk_cat) is younger than all releases here. Autograd keeps what a
  // redistribution gathered, as any input.
  ddp.batch_first_shards = true;
  ddp.gathers_inputs_again = false;
  // torchao/float8/float8_tensor_parallel.py: PrepareFloat8ModuleInput casts before it redistributes, and
  // NoopFwToFloat8BwDynamic does with the gradient of a row-parallel layer. Tensors with one scale only.
  ddp.gathers_narrow = true;
  ddp.dynamic_scales = true;  // torchao/float8/float8_scaling_utils.py, hp_tensor_to_float8_dynamic
  ddp.wide_inputs = true;     // float8_linear.py, matmul_with_hp_or_float8_args: save_for_backward(input_hp)
  // torch.optim.AdamW unless asked for its fused one; so torchtitan/components/optimizer.py, "foreach": not
  // fused.
  ddp.fused_adam = false;
  ddp.parameters_fp32 = true;
  ddp.bucket = 25_MiB;
  ddp.first_bucket = 1_MiB;
  ddp.bucket_copies = 2;
  ddp.fused_accumulation = false;
  // torch.nn.functional.cross_entropy of float logits: log-softmax and its gradient in fp32, and 16-bit
  // logits.
  ddp.logit_bytes = 10;
  ddp.fused_logit_bytes = 4;  // flash-attn's: the gradient beside the logits, all of it backward
  ddp.fused_loss_forward = 1;
  // torchtitan/parallelisms/parallelize_llama.py of late 2024, before either of DDP and FSDP:
  // _apply_ac_to_transformer_block, selective_ac_option "op".
  ddp.selective_operators = true;
  // Checkpoint_wrapper's default is no reentry, whose recompute stops at the last tensor that was saved
  // (torch/utils/checkpoint.py, _enable_checkpoint_early_stop); compiled, what nobody reads is no part of the
  // backward graph.
  ddp.checkpoints_stop = true;
  ddp.host = kEagerDdp;
  ddp.graph_launch = kGraph;

  // torch/nn/parallel/data_parallel.py: buckets of 10 MiB (replicate.py, comm.py: buffer_size), nothing
  // overlaps.
  Framework data_parallel = ddp;
  data_parallel.name = "dataparallel";
  data_parallel.summary =
      "torch.nn.DataParallel: one process; device 0 broadcasts parameters and gathers outputs";
  data_parallel.family = FrameworkFamily::dataparallel;
  data_parallel.selective_operators = false;
  data_parallel.overlap_grad_reduce = data_parallel.overlap_param_gather = false;
  data_parallel.bucket = 10_MiB;
  data_parallel.first_bucket = Bytes(0);
  data_parallel.exposed_buckets = true;
  data_parallel.bucket_copies = 0;

  // PyTorch 2.5 fully_shard over fp32 shards with bf16 parameters and fp32 reductions, as torchtitan sets it:
  // _fsdp_param_group.py, torchtitan/parallelisms/parallelize_llama.py (reshard_after_forward unless there is
  // a pipeline; reduce_dtype float32).
  Framework fsdp = ddp;
  fsdp.name = "fsdp";
  fsdp.summary = "PyTorch FSDP2 (fully_shard), a unit a layer; fp32 shards, bf16 gathers, fp32 reductions";
  fsdp.family = FrameworkFamily::fsdp;
  fsdp.zero = fsdp.most_zero = 3;
  fsdp.least_zero = 2;
  fsdp.bucket = fsdp.first_bucket = Bytes(0);
  fsdp.bucket_copies = 0;
  // fully_shard of the layers, then of the model: embedding, final norm and head are its root's one group,
  // which is not resharded after the forward pass (_fsdp_state.py, _lazy_init: post_forward_mesh_info = None)
  // and reduced last; nor is the last layer, whose backward pass comes next (parallelize_llama.py).
  fsdp.root_unit = fsdp.keeps_last_layer = true;
  fsdp.offloads_parameters = true;  // CPUOffloadPolicy, _fsdp_api.py
  // torchtitan/models/llama/model.py, apply_rotary_emb: xq.float(), view_as_complex. Inductor makes no
  // kernels of complex numbers ("does not support code generation for complex operators"), so compiled ones
  // do it too.
  fsdp.complex_rotary = true;
  fsdp.host = kEagerFsdp;

  // FSDP of PyTorch 1.13 to 2.1 as llm-foundry sets it (scripts/train/benchmarking/submit_benchmarks.py):
  // attn_impl triton, the first FlashAttention; mixed_precision PURE
  // reduces in bf16, backward_prefetch BACKWARD_PRE, limit_all_gathers; cross entropy of the flash-attn
  // package.
  Framework fsdp2023 = fsdp;
  fsdp2023.release = "2023";
  fsdp2023.summary = "PyTorch FSDP as MosaicML's llm-foundry sets it: bf16 reductions, fused cross entropy";
  fsdp2023.attention = AttentionKernel::flash1;
  fsdp2023.core_copies = CoreCopies::split;  // llmfoundry/models/layers/attention.py: qkv.chunk(3, dim=2)
  fsdp2023.complex_rotary = fsdp2023.selective_operators = fsdp2023.gate_apart = false;
  fsdp2023.checkpoints_stop = false;  // that came with PyTorch 2.1
  // Its amp_fp8 is Transformer Engine's delayed scaling (composer/core/precision.py).
  fsdp2023.dynamic_scales = fsdp2023.wide_inputs = false;
  // torch/distributed/fsdp/_flat_param.py: all_gather_into_tensor into the unsharded flat parameter, of which
  // the parameters are views; the gradients of these views are joined.
  fsdp2023.copies_gathered = false;
  fsdp2023.gradients_fp32 = fsdp2023.keeps_last_layer = false;
  fsdp2023.fused_cross_entropy = true;

  Framework compiled = fsdp;
  compiled.release = "2024-compile";
  compiled.summary = "the same with torch.compile for each layer: fused element-wise kernels";
  compiled.fused_kernels = true;
  compiled.eager_norms = false;
  compiled.host = kCompiledFsdp;

  // DeepSpeed: runtime/zero/config.py and stage_1_and_2.py. Buckets of 5e8 elements in 16 bits; overlap_comm
  // is off for stages 1 and 2 and on for 3; the default reduction of stages 1 and 2 is an all-reduce of the
  // bucket (use_multi_rank_bucket_allreduce). Fused Adam, eager kernels.
  Framework deepspeed = ddp;
  deepspeed.name = "deepspeed";
  deepspeed.summary = "DeepSpeed ZeRO: 5e8-element buckets, all-reduced in stages 1 and 2; stage 3 by layer";
  deepspeed.family = FrameworkFamily::deepspeed;
  deepspeed.sequence_parallel = deepspeed.selective_operators = false;
  deepspeed.checkpoints_stop =
      false;  // runtime/activation_checkpointing/checkpointing.py, CheckpointFunction
  deepspeed.batch_first_shards = false;  // Megatron's tensor parallelism
  deepspeed.gathers_narrow = false;
  deepspeed.gathers_inputs_again = true;
  deepspeed.eager_norms = false;  // Megatron-DeepSpeed takes apex's
  deepspeed.bias_kernels = true;
  deepspeed.core_copies = CoreCopies::own;
  deepspeed.gate_apart = false;
  deepspeed.ring_fp32 = deepspeed.dynamic_scales = deepspeed.wide_inputs = false;
  deepspeed.fused_adam = true;
  deepspeed.zero = 1;
  deepspeed.most_zero = 3;
  deepspeed.pipelines_sharded = false;
  deepspeed.tp_overlap = TensorOverlap::async;
  deepspeed.overlap_grad_reduce = deepspeed.overlap_param_gather = false;
  deepspeed.gradients_fp32 = deepspeed.parameters_fp32 = false;
  deepspeed.bucket = deepspeed.first_bucket = Bytes(0);
  deepspeed.bucket_elements = 5e8;
  deepspeed.bucket_elements_per_rank = 0;
  deepspeed.exposed_buckets = true;
  deepspeed.bucket_copies = 1;
  deepspeed.scatter_gradients = false;
  deepspeed.host = kMegatron2022;
  deepspeed.logit_bytes = 4;  // Megatron-DeepSpeed's own cross entropy
  deepspeed.prefetch_forward = true;
  // runtime/zero/partitioned_param_coordinator.py, fetch_sub_module: while numel_prefetching <
  // stage3_prefetch_bucket_size (config.py: 5e7), the next parameter joins the gather.
  deepspeed.prefetch_elements = 5e7;
  deepspeed.outstanding_reductions = 2;  // stage3.py, max_param_reduce_events
  deepspeed.live_parameters = 1e9;       // stage3_max_live_parameters

  // InternEvo 0.2 (internlm/solver/optimizer/hybrid_zero_optim.py, configs/7B_sft.py): 16-bit gradients
  // all-reduced in buckets of 512 Mi elements behind the backward pass; a whole tensor's states have one
  // owner, who broadcasts it after the update (overlap_sync_param False). FlashAttention 1.0.5 (InternLM
  // doc/en/install.md of July 2023), whose package also brings rotary embedding and cross entropy; apex norms
  // of fp32 copies, silu and product in two kernels.
  Framework internevo = ddp;
  internevo.name = "internevo";
  internevo.release = "2023";
  internevo.summary = "InternEvo (InternLM): gradients all-reduced, ZeRO 1 by whole tensors and broadcasts";
  internevo.family = FrameworkFamily::megatron;
  internevo.zero = internevo.most_zero = 1;
  internevo.sequence_parallel = internevo.selective_operators = false;
  internevo.checkpoints_stop = false;  // internlm/solver/activation_checkpoint.py, CheckpointFunction
  internevo.gathers_narrow = false;
  internevo.batch_first_shards = false;  // flash-attn's ColumnParallelLinear, as Megatron's
  internevo.gathers_inputs_again = true;
  internevo.tp_overlap = TensorOverlap::none;
  internevo.ring_fp32 = internevo.dynamic_scales = internevo.wide_inputs = false;
  internevo.overlap_param_gather = false;
  internevo.gradients_fp32 = internevo.parameters_fp32 = false;
  internevo.bucket = internevo.first_bucket = Bytes(0);
  internevo.bucket_elements = 512.0 * 1024 * 1024;
  internevo.bucket_elements_per_rank = 0;
  internevo.bucket_copies = 2;
  internevo.scatter_gradients = false;
  internevo.whole_tensor_shards = true;
  internevo.attention = AttentionKernel::flash1;
  internevo.core_copies = CoreCopies::packed;  // flash_attn_unpadded_qkvpacked_func; w1 and w3 are apart
  internevo.eager_norms = false;
  internevo.fused_cross_entropy = true;

  return {megatron2025,  megatron, megatron2023, megatronllama, megatron2022, megatron2021, ddp,
          data_parallel, fsdp,     fsdp2023,     compiled,      deepspeed,    internevo};
}

}  // namespace

std::span<const Framework> frameworks() {
  static const std::array<Framework, 13> table = make_table();
  return table;
}

const Framework& framework(std::string_view name) {
  const std::size_t at = name.find('@');
  const std::string_view base = name.substr(0, at);
  const std::string_view release = at == std::string_view::npos ? std::string_view() : name.substr(at + 1);
  std::string known;
  for (const Framework& row : frameworks()) {
    if (row.name == base && (release.empty() || row.release == release)) return row;
    known += fmt::format("{}{}@{}", known.empty() ? "" : ", ", row.name, row.release);
  }
  Problem problem;
  problem.path = "workload.framework";
  problem.message = fmt::format("unknown framework \"{}\"", name);
  problem.help = "known: " + known;
  throw ConfigError({problem});
}
}  // namespace topsim::workloads
