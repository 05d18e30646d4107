#include "workloads/framework/rows.hpp"

namespace topsim::workloads {
namespace {
// Hooks of DeepSpeed 0.14, in Python. parameter_offload.py, _register_hooks_recursively: two hooks before and
// two after every module's forward pass, which fetch and release its parameters and apply two autograd
// Functions whose backward passes fetch and release them again; partitioned_param_coordinator.py,
// fetch_sub_module and release_sub_module loop over parameters. Opcodes that these, their decorators
// (compiler.disable, instrument_w_nvtx, no_grad), range_push, named_parameters and streams execute in Python
// 3.11 (those that 3.11 added are left out): 1,805 for a module without parameters forward, 1,384 backward.
// Each matrix that is waited for, released, and gathered ahead adds 2,095 and 2,093 (all_gather_coalesced
// with AllGatherHandle, __release_param, _partition_param); norms persist (10 x hidden) and add 143, not
// counted. Calls into C: of a module wait_stream, three; of a matrix the gather's empty and free_param's, and
// to, narrow, view, to, record_stream and two events. Collectives are counted where they are launched.
// Functions contain their Python.
// A gradient: its hook (stage_1_and_2.py, reduce_partition_and_remove_grads; stage3.py,
// create_reduce_and_remove_grad_hooks), as long as a Function in Python; copied into the bucket, averaged and
// kept; narrow and views of each.
// Norms' and biases' gradients have hooks as those of matrices do.
// Modules of a Llama layer: as kEagerDdp counts them, with the gate's and the rotary embedding's. PEFT wraps
// a layer: base_layer, dropout, A and B.
constexpr HookCalls kHooks{
    .module = {{.views = 3, .functions = 2, .opcodes = 1805}, {.views = 3, .functions = 2, .opcodes = 1384}},
    .matrix = {{.operators = 2, .views = 7, .opcodes = 2095}, {.operators = 2, .views = 7, .opcodes = 2093}},
    .gradient = {.operators = 3, .views = 6, .functions = 1},
    .modules = 14,
    .adapter = 4,
};
}  // namespace

// DeepSpeed: runtime/zero/config.py and stage_1_and_2.py. Buckets of 5e8 elements in 16 bits; overlap_comm
// is off for stages 1 and 2 and on for 3; the default reduction of stages 1 and 2 is an all-reduce of the
// bucket (use_multi_rank_bucket_allreduce). Fused Adam, eager kernels.
Framework deepspeed() {
  Framework row = ddp();
  row.name = "deepspeed";
  row.summary =
      "DeepSpeed ZeRO around Megatron's layers: 5e8-element buckets, all-reduced in stages 1 and 2; "
      "stage 3 by layer";
  row.family = FrameworkFamily::deepspeed;
  row.sequence_parallel = row.selective_operators = false;
  // runtime/activation_checkpointing/checkpointing.py, CheckpointFunction
  row.checkpoints_stop = false;
  row.batch_first_shards = false;  // Megatron's tensor parallelism
  row.gathers_narrow = false;
  row.gathers_inputs_again = true;
  row.eager_norms = row.eager_final_norm = false;  // Megatron-DeepSpeed uses apex's
  row.bias_kernels = true;
  row.core_copies = CoreCopies::own;
  row.gate_apart = false;
  row.ring_fp32 = row.dynamic_scales = row.wide_inputs = false;
  row.fused_adam = true;
  row.zero = 1;
  row.most_zero = 3;
  row.pipelines_sharded = false;
  row.tp_overlap = TensorOverlap::async;
  row.overlap_grad_reduce = row.overlap_param_gather = false;
  row.gradients_fp32 = row.parameters_fp32 = false;
  row.bucket = row.first_bucket = Bytes(0);
  row.bucket_elements = 5e8;
  row.bucket_elements_per_rank = 0;
  row.exposed_buckets = true;
  // stage_1_and_2.py and stage3.py, reduce_independent_p_g_buckets_and_remove_grads: elements_in_ipg_bucket +
  // numel > reduce_bucket_size. Stage 0 checks afterwards (engine.py, allreduce_no_retain).
  row.buckets_never_exceed = true;
  row.bucket_copies = 1;
  row.scatter_gradients = false;
  row.host = megatron_2022().host;
  row.loss = Framework{}.loss;  // Megatron-DeepSpeed's own cross entropy
  row.split_loss.reset();
  row.message_buffers = false;
  row.prefetch_forward = true;
  // runtime/zero/partitioned_param_coordinator.py, fetch_sub_module: while numel_prefetching <
  // stage3_prefetch_bucket_size (config.py: 5e7), the next parameter joins the gather.
  row.prefetch_elements = 5e7;
  row.outstanding_reductions = 2;  // stage3.py, max_param_reduce_events
  row.live_parameters = 1e9;       // stage3_max_live_parameters
  // stage_1_and_2.py, step: single_grad_partition, freed after _optimizer_step; stage3.py,
  // _prepare_fp32_grad_for_sub_group and _release_sub_group, sub_group_size elements at a time.
  row.copies_for_update = true;
  row.update_elements = 1e9;
  row.accumulates_on_host = true;  // step/offload.hpp
  return row;
}

// DeepSpeed around a model of transformers (4.38 to 4.47), as Trainer sets it up: layers in eager PyTorch as
// in fsdp@2024-flat, with transformers' own default of scaled_dot_product_attention (since 4.36;
// modeling_utils.py, _autoset_attn_implementation), the engine as above. The optimiser is the configuration's
// AdamW, FusedAdam. integrations/deepspeed.py, trainer_config_finalize, for "auto": reduce_bucket_size
// hidden^2, stage3_prefetch_bucket_size 0.9 hidden^2 (and stage3_param_persistence_threshold 10 hidden, which
// norms are below: they have no share in what is gathered worth telling apart).
// gradient_checkpointing_enable is reentrant by default: a layer is run to its end again.
Framework deepspeed_transformers() {
  Framework row = deepspeed();
  const Framework modules = fsdp_flat(), engine = row;
  row.release = "2024-transformers";
  row.summary =
      "DeepSpeed ZeRO 1 to 3 around an eager transformers model, as Hugging Face's Trainer sets it: hooks in "
      "Python, buckets of hidden^2";
  static_cast<KernelFacts&>(row) = modules;
  row.attention = AttentionKernel::sdpa;
  row.complex_rotary = false;
  row.fused_adam = engine.fused_adam;
  row.message_buffers = engine.message_buffers;
  row.loss = modules.loss;
  row.split_loss = modules.split_loss;
  row.host = ddp().host;
  row.host.hooks = kHooks;
  row.tp_overlap = TensorOverlap::none;
  row.bucket_squares = 1;
  row.prefetch_squares = 0.9;
  row.whole_models = true;
  return row;
}

// Megatron-DeepSpeed and its forks before FlashAttention (microsoft/Megatron-DeepSpeed 1619965,
// EleutherAI/gpt-neox, THUDM's GLM-130B): layers as in megatron@2021.
Framework deepspeed_2022() {
  Framework row = deepspeed();
  row.release = "2022";
  row.summary = "Megatron-DeepSpeed of 2021 and 2022 run with --deepspeed: ZeRO and pipeline are DeepSpeed's";
  row.recompute = RecomputeKind::full;
  row.tp_overlap = TensorOverlap::none;
  row.attention = AttentionKernel::unfused;
  row.fused_softmax_keys = 2048;
  row.fused_kernels = row.apex_norms = row.dropout = true;
  // deepspeed/runtime/pipe/engine.py: is_pipe_partitioned wherever there is model parallelism.
  row.splits_messages = true;
  return row;
}
}  // namespace topsim::workloads
