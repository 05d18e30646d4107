// Megatron-LM and Megatron-Core.
#include "workloads/framework/rows.hpp"

namespace topsim::workloads {
namespace {
// Calls of the host in one layer and pass, counted in the source of each release. Kernels beyond operators
// are launched by Functions, whose time includes them.
//
// Megatron-LM v2 and Megatron-DeepSpeed (megatron/model/transformer.py), GPT layer. Forward: 4 matmuls, QKV
// bias, baddbmm, dropout, bmm, contiguous, 2 norms, softmax, GeLU, 2 bias-dropout-adds, and 4 reads and
// writes of random states around the dropout; 28 views; Functions: 2 norms, 2 copy_to, 2 reduce_from,
// softmax, GeLU, and 3 scripts. Backward: 8 + 4 matmuls, 4 bias sums, 12 gradient accumulations, 10 others.
// Where softmax runs as operators (fused_softmax.py) instead of as a Function: cast, product, mask,
// nn.Softmax, cast; backward as many, and a copy.
// Checkpoint (tensor_parallel/random.py): 12 reads and writes of states, the nested backward.
// A micro-batch (megatron/data/data_samplers, mpu/data.py: broadcast_data; utils.py:
// get_ltor_masks_and_position_ids): lengths to the accelerator, broadcast and read back; tokens flattened,
// copied and broadcast; 10 operators and 8 views for tokens, labels, masks and positions.
// In a step these calls, too, take longer than in loops. For the same layers in 16 bits on DGX A100
// (TRANSFORMER_IMPL=local, no recompute, timers on, 12 layers of 512, micro-batches of 4, 32 sequences on 8),
// Megatron-LM publishes iterations in tests/functional_tests/test_results/gpt3 and jet, medians over commits:
// tp1 pp1 60.1 ms, tp1 pp2 95.2, tp2 pp2 128.5, tp1 pp4 120.9, tp4 204.2. With 43 us of calls per parameter
// for --log-num-zeros-in-grad and a view for --log-params-norm in addition, these need 1.59, 2.01, 1.76,
// 1.87, 1.88 times the time of a loop on that host (1.35 of a DGX H100's).
constexpr HostProfile kMegatron2022{
    .forward = {.operators = 19, .views = 28, .functions = 11, .modules = 11},
    .backward = {.operators = 38, .views = 28, .functions = 11},
    .checkpoint = {.operators = 12, .functions = 2},
    .parameter_tensors = 12,
    .optimizer_operators = 2,
    .batch = {.operators = 13, .views = 8},
    .batch_collectives = 2,
    .waits_for_batch = true,
    .batch_everywhere = true,
    .in_step = 1.85,
    .plain_softmax = {.forward = {.operators = 5, .functions = -1, .modules = 1},
                      .backward = {.operators = 6, .functions = -1}},
    .frozen = {.operators = 4 + 4 + 12},  // matmuls of weights' gradients, bias sums, accumulations
};
// Megatron-Core with Transformer Engine. TEColumnParallelLinear forward takes 115 us on the same host as
// ColumnParallelLinear's 74 us (NVIDIA/TransformerEngine pull request 1191): a linear or an attention of
// Transformer Engine counts as 4 Functions forward, 3 backward. In addition rotary (2), split of QKV, SwiGLU
// and 3 scripts.
// Five tensors of a micro-batch are copied and, over a tensor group, broadcast (training/utils.py:
// get_batch_on_this_tp_rank), on the first and the last stage; nothing is read back.
// Frozen weights save the backward pass an operator for each of 8 tensors and, in each linear's Function, the
// call of cuBLASLt for the gradient (pytorch/module/linear.py: requires_wgrad).
// In a step a call takes twice as long as in the loops that timed it alone (why is not known). Megatron's
// functional tests publish iterations of a GPT of 12 layers, hidden 512, whose kernels need a tenth of that
// time on a DGX H100. In bf16, golden_values_dev_dgx_h100.json: 4 micro-batches, tensor parallel
// (gpt3_mcore_te_tp4_pp1_dist_optimizer_overlap_grad_reduce_param_gather), 227.5 ms; one
// (gpt3_mcore_te_tp1_pp1_dist_optimizer_fim_dataset) 60.1: 4.65 ms per layer, forward and backward. These
// calls, the collectives, what the tests leave unfused (attention's products, softmax and dropout, 12
// operators, separate operators that add gradients) and some 20 tensors filled because the tests are
// deterministic add up to 2.3 ms. In 8 bits, not deterministic, fused attention
// (gpt3_345m_weekly_dgx_h100_1N8G_mcore_nondet_tp1_pp1_fp8_no_model_parallel): 0.49 s for 8 micro-batches,
// 5.1 ms per layer where these calls, linears twice, add up to 2.6.
constexpr HostProfile kMegatron2024{
    .forward = {.operators = 12, .views = 15, .functions = 27, .modules = 11},
    .backward = {.operators = 20, .views = 15, .functions = 24},
    .checkpoint = {.operators = 12, .functions = 2},
    .parameter_tensors = 8,
    .optimizer_operators = 2,
    .batch = {.operators = 5},
    .batch_collectives = 4,
    .in_step = 2,
    .frozen = {.operators = 8, .products = 4},
};
// A mixture's layer of Megatron-Core 0.14 and 0.15 on Transformer Engine 2. Attention: two linears, the core
// counted as 3 Functions, a norm, rotary of queries and keys, the script of bias, dropout and residual;
// latent attention has three linears, two norms and six splits and joins more. Router (moe/router.py,
// moe_utils.py, fused): the norm before it (2), gating product, top-k, scores and balancing loss, their
// scaler, the forced balance. Exchange (moe/token_dispatcher.py): counts summed, reshaped and copied to the
// host, permute, tokens, probabilities, sort; the same back without the counts. DeepEP (fused_a2a.py)
// replaces them by dispatch, permute, unpermute, combine. Experts (moe/experts.py: TEGroupedMLP): two grouped
// linears and the activation; padding and its removal in 8 bits. Each local expert: in both linears two views
// and a product forward; backward two products, two views, the empty tensor that stands for a gradient
// already added (grouped_linear.py, handle_custom_ddp_from_mcore), a parameter's hook
// (distributed_data_parallel.py); in 8 bits, in both linears, a tensor made from a part of one allocation and
// a kernel each way (csrc/extensions/cast.cpp: split_quantize, bulk_allocate). Norms of queries and keys: a
// module, a Function and an operator each. Where forward and backward overlap, attention, dispatch, experts
// and combine are nodes with a graph of their own (pipeline_parallel/utils.py: ScheduleNode): forward an
// event waited for and one recorded, two streams set, an input detached; backward a pass of the autograd
// engine, its gradient recorded on the stream.
// Frozen weights save what they do in kMegatron2024, half of it in attention, and an operator less for each
// of two weights in shared experts; of each expert both products for gradients, the two empty tensors, the
// two hooks.
constexpr ExpertCalls kMegatronExperts{
    .counted = true,
    .attention = {.forward = {.operators = 6, .views = 8, .functions = 7, .modules = 6, .linears = 2},
                  .backward = {.operators = 10, .views = 8, .functions = 7, .linears = 2}},
    .latent = {.forward = {.operators = 6, .views = 4, .functions = 2, .modules = 3, .linears = 3},
               .backward = {.operators = 6, .views = 4, .functions = 2, .linears = 3}},
    .router = {.forward = {.operators = 12, .views = 6, .functions = 8, .modules = 3},
               .backward = {.operators = 12, .views = 6, .functions = 7}},
    .shared = {.forward = {.operators = 3, .views = 4, .functions = 2, .modules = 4, .linears = 2},
               .backward = {.operators = 3, .views = 4, .functions = 1, .linears = 2}},
    .exchange = {.forward = {.operators = 22, .views = 12, .functions = 6, .modules = 2},
                 .backward = {.operators = 14, .views = 8, .functions = 6}},
    .fused_exchange = {.forward = {.operators = 12, .views = 8, .functions = 5, .modules = 2},
                       .backward = {.operators = 8, .views = 6, .functions = 5}},
    .experts = {.forward = {.operators = 2, .views = 4, .functions = 1, .modules = 4, .linears = 2},
                .backward = {.operators = 2, .views = 4, .functions = 1, .linears = 2}},
    .each = {.forward = {.views = 4, .products = 2}, .backward = {.views = 6, .modules = 2, .products = 4}},
    .narrow = {.forward = {.functions = 2, .modules = 2}, .backward = {.functions = 2}},
    .each_narrow = {.forward = {.views = 2, .modules = 2, .launches = 2},
                    .backward = {.views = 2, .modules = 2, .launches = 2}},
    .normed_heads = {.forward = {.operators = 2, .functions = 2, .modules = 2},
                     .backward = {.operators = 2, .functions = 2}},
    .frozen_attention = {.operators = 4, .products = 2},
    .frozen_shared = {.operators = 2, .products = 2},
    .frozen_each = {.views = 2, .modules = 2, .products = 2},
    .node = {.forward = {.views = 4, .modules = 3}, .backward = {.views = 3, .functions = 1, .modules = 3}},
};

// An adapter of NeMo 2 and Megatron-Bridge (peft/lora_layers.py, LoRALinear; peft/utils.py,
// ParallelLinearAdapter): two parallel linears of Megatron-Core, each as published (host/host.cpp: a module,
// an operator, 3 views and 2 Functions), modules for wrapper, adapter and activation (nn.Identity),
// contiguous and reshape, x * (alpha / dim) behind the second linear, the sum. Bridge of 2026 scales before
// the second linear, and there only rank numbers a token. Backward: four products, scale, the sum of the
// input's gradients; gradients of weights are added by their products.
constexpr AdapterFacts kBridgeAdapter{
    .parallel_linears = true,
    .calls = {.forward = {.operators = 4, .views = 8, .functions = 4, .modules = 5},
              .backward = {.operators = 6, .views = 8, .functions = 4}},
};

// Removes what Transformer Engine's modules do with fp8.
void without_transformer_engine(Framework& row) {
  row.gathers_narrow = row.gathers_narrow_blocks = row.casts_in_norms = false;
  row.amax_reduction = AmaxReduction::none;
  row.reads_either_layout = row.scatters_narrow = row.swizzles_scales = false;
}
}  // namespace

Framework megatron_2024() {
  Framework row;
  row.name = "megatron";
  row.release = "2024";
  row.aligns_exchanges = true;
  row.summary =
      "Megatron-Core with Transformer Engine, distributed optimiser, flash attention; NeMo to 25.04";
  row.attention = AttentionKernel::flash2025;  // cuDNN of its time
  row.host = kMegatron2024;
  row.host.experts = kMegatronExperts;
  row.core_copies = CoreCopies::engine;
  // megatron/core/transformer/transformer_block.py: fp8_autocast around all layers of a block, its group
  // get_amax_reduction_group: tensor, data and context ranks unless tp_only_amax_red is set
  // (model_parallel_config.py: False).
  row.amax_reduction = AmaxReduction::all;
  row.shares_expert_adapters = true;  // Megatron-Bridge, peft/lora.py: share_expert_adapters
  row.adapter = kBridgeAdapter;
  // Transformer Engine reads logits for the softmax, then reads them and writes the gradient, which backward
  // multiplies by the loss's (pytorch/triton/cross_entropy.py: online_softmax_kernel, cross_entropy_kernel,
  // element_mul_kernel).
  row.fused_loss.forward_own = 3;
  // TELinear and TEGroupedLinear pass is_first_microbatch unless disable_parameter_transpose_cache is set
  // (megatron/core/extensions/transformer_engine.py); Transformer Engine then keeps both layouts, which
  // together are as large as 16-bit weights. NVIDIA's recipes keep no 16-bit weights (fp8_param_gather of
  // Megatron-Bridge, training/mixed_precision.py), except with scales of blocks of 128 and in NVFP4
  // (bf16_with_fp8_subchannel_scaling_mixed; "fp4_param and fp4_param_gather are not supported for now"); in
  // MXFP8 they gather 16 bits.
  row.keeps_narrow_weights = row.fp8_parameters = true;
  // Transformer Engine, pytorch/module: layernorm_linear.py and base.py (grad_output_preprocess) cast a
  // rank's rows of a norm's output and of a gradient; gather_along_first_dim (distributed.py) sends them as
  // they are, with their block scales, and transposes follow. Norms write fp8 themselves for delayed scaling
  // only (csrc/extensions/normalization.cpp, force_unfused_kernel). Where products accept either layout there
  // are no transposes (utils.py, is_non_tn_fp8_gemm_supported: data centre Blackwell).
  row.gathers_narrow = row.gathers_narrow_blocks = true;
  row.casts_in_norms = row.reads_either_layout = true;
  row.swizzles_scales = true;  // layer/narrow_casts.cpp
  // NeMo, userbuffers.py: userbuffers_fp8_h100_*, fp8_buf of proj_fprop and fc2_fprop; those for B200 have
  // none.
  row.scatters_narrow = true;
  // NeMo, collections/llm/fn/activation.py: squared_relu is pow(relu(x), 2), with "@torch.jit.script"
  // commented out.
  row.eager_squared_relu = true;
  // core/distributed/param_and_grad_buffer.py, start_grad_sync: grad_data.norm (check_for_nan_in_grad). The
  // collective computes the average (average_in_collective, as NeMo's recipes set it).
  row.gradient_passes = 1;
  // NeMo, collections/llm/recipes/precision/mixed_precision.py, and Megatron-Bridge, training/
  // mixed_precision.py: grad_reduce_in_fp32 is False in fp16_mixed, True in bf16_mixed.
  row.fp16_gradients_fp32 = false;
  row.synchronises_p2p = true;  // batch_p2p_sync defaults to true (model_parallel_config.py)
  return row;
}

// Megatron-Bridge since 0.1 (pull request 595) and the performance scripts of NeMo 2 before it
// (scripts/performance/helpers.py): cross_entropy_fusion_impl "te". NeMo of 2024 fuses too
// (gpt/model/base.py: cross_entropy_loss_fusion True), but "native": by the compiler, step by step.
Framework megatron_2025() {
  Framework row = megatron_2024();
  row.release = "2025";
  row.summary =
      "Megatron-Core as Megatron-Bridge sets it, NeMo from 25.09: Transformer Engine's cross entropy";
  row.sharded = "2025-fsdp";
  row.attention = AttentionKernel::flash;
  row.fixed_tiles = false;
  row.fused_cross_entropy = true;
  // Its fp8 is current scaling: fp8_recipe "tensorwise" (training/mixed_precision.py).
  row.dynamic_scales = true;
  row.eager_squared_relu = false;  // megatron/core/activations.py: @jit_fuser
  row.casts_in_norms = false;
  // Transformer Engine, pytorch/module/base.py: fill_userbuffers_buffer_for_all_gather copies a rank's rows
  // into the buffer; "MXFP8 scaling factors are communicated with blocking NCCL collectives" (pull request
  // 1711, April 2025). Before, norms wrote into it (layernorm_linear.py: ln_out of get_ubuf_output).
  row.copies_to_buffers = true;
  // Megatron-Bridge, recipes/deepseek/deepseek_v3.py: mtp_num_layers 1; its page on GLM-4.5: one layer.
  row.trains_predictions = true;
  return row;
}

// Megatron-Core 0.6 of April 2024, mixtures. moe/token_dispatcher.py orders rows by torch.gather, scatter and
// scatter_add, with an index for every number, twice each way, and in its all-to-all by index_select.
// GroupedMLP (moe/experts.py) has one weight for all experts: its gradients by grouped_gemm are 16-bit
// tensors, which distributed_data_parallel.py adds to fp32 ones (main_grad.add_), and silu(gate) * up is two
// operators.
Framework megatron_2024_core06() {
  Framework row = megatron_2024();
  row.release = "2024-core0.6";
  row.summary =
      "Megatron-Core 0.6: as 2024, but experts' rows move number by number (token_dispatcher "
      "allgather was its script's default)";
  row.early_experts = true;
  row.expert_products = ExpertProducts::grouped_gemm;
  return row;
}

Framework megatron_2022() {
  Framework row = megatron_2024();
  row.release = "2022";
  row.summary = "Megatron-LM of Korthikanti et al. 2022";
  row.attention = AttentionKernel::unfused;
  row.fused_softmax_keys = 4096;  // megatron/model/fused_softmax.py: is_kernel_available
  row.sequence_parallel = false;
  row.zero = 0;
  row.overlap_grad_reduce = row.overlap_param_gather = row.overlap_p2p = false;
  row.recompute = RecomputeKind::full;
  row.dropout = true;
  row.gradient_passes = 2;  // megatron/model/distributed.py: buffer_.data /= the group's size
  // megatron/core/tensor_parallel/layers.py: output + bias, grad_output.sum(dim=0); F.linear of three
  // dimensions adds its bias in a second kernel too (PyTorch before 1.12, aten/src/ATen/native/Linear.cpp).
  row.bias_kernels = true;
  row.core_copies = CoreCopies::own;
  row.host = kMegatron2022;
  without_transformer_engine(row);
  // Figure 1 of Korthikanti et al. shows 18 bytes per parameter in fp16.
  row.fp16_gradients_fp32 = true;
  // megatron/global_vars.py: _Timer.start and stop call torch.cuda.synchronize(); schedules.py times every
  // pass.
  row.timed_passes = true;
  row.splits_messages = true;  // scatter_gather_tensors_in_pipeline
  return row;
}

Framework megatron_2023() {
  Framework row = megatron_2022();
  row.release = "2023";
  row.summary = "Megatron-LM of late 2022 and 2023: as before, timers off unless asked for";
  row.timed_passes = false;  // megatron/timers.py: --timing-log-level 0
  // Its README recommends --recompute-activations, and full recompute only where memory is very short.
  row.recompute = RecomputeKind::selective;
  // megatron/arguments.py turns accumulate_allreduce_grads_in_fp32 on for bf16.
  row.fp16_gradients_fp32 = false;
  return row;
}

// megatron/mpu/layers.py: ColumnParallelLinear calls F.linear, whose gradient is all-reduced by
// copy_to_tensor_model_parallel_region before anything else runs (the asynchronous one came in early 2022);
// autograd accumulates. The same in microsoft/Megatron-DeepSpeed 1619965 and bigscience-workshop 119a0d2.
Framework megatron_2021() {
  Framework row = megatron_2022();
  row.release = "2021";
  row.since = "2020";  // fused kernels came in 2020 (Megatron-LM v2.0)
  row.summary =
      "Megatron-LM of SC'21, or Megatron-DeepSpeed without --deepspeed: nothing hides behind matmuls";
  row.tp_overlap = TensorOverlap::none;
  row.fused_softmax_keys = 2048;  // key_seq_len <= 2048
  row.fused_accumulation = false;
  row.apex_norms = true;       // megatron/model/fused_layer_norm.py: MixedFusedLayerNorm
  row.gradients_fp32 = false;  // --accumulate-allreduce-grads-in-fp32 is off in fp16
  row.bucket_copies = 2;       // megatron/model/distributed.py flattens gradients and copies them back
  return row;
}

// NVIDIA/Megatron-LM of 2019, mpu/transformer.py: scale, mask, softmax, dropout and residual are separate
// operators; norms and Adam are apex's, and the norms count as eager ones (apex's shares are measured for a
// fused set).
Framework megatron_2019() {
  Framework row = megatron_2021();
  row.release = "2019";
  row.since = {};
  row.summary = "the first Megatron-LM: scale, mask, softmax, dropout and residual one by one";
  row.fused_kernels = row.apex_norms = row.splits_messages = false;
  row.fused_softmax_keys = 0;
  return row;
}

// NVIDIA/Megatron-LM 782633c, megatron/model: rms_norm.py, transformer.py (swiglu of chunks, FlashAttention 2
// of the flash-attn package), and rotary_pos_emb.py, before Transformer Engine contained all of them.
Framework megatron_2023_llama() {
  Framework row = megatron_2024();
  row.release = "2023-llama";
  row.summary =
      "Megatron-LM of 2023 for Llama: norms, rotary embedding and SwiGLU in plain PyTorch, FlashAttention 2";
  row.fused_kernels = false;
  row.eager_norms = true;
  row.attention = AttentionKernel::flash2;
  row.fused_softmax_keys = 4096;
  row.overlap_grad_reduce = row.overlap_param_gather = false;
  row.core_copies = CoreCopies::own;
  row.gradient_passes = 2;
  row.host = kMegatron2022;
  without_transformer_engine(row);
  return row;
}
}  // namespace topsim::workloads
