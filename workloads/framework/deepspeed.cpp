#include "workloads/framework/rows.hpp"

namespace topsim::workloads {
// DeepSpeed: runtime/zero/config.py and stage_1_and_2.py. Buckets of 5e8 elements in 16 bits; overlap_comm
// is off for stages 1 and 2 and on for 3; the default reduction of stages 1 and 2 is an all-reduce of the
// bucket (use_multi_rank_bucket_allreduce). Fused Adam, eager kernels.
Framework deepspeed() {
  Framework row = ddp();
  row.name = "deepspeed";
  row.summary = "DeepSpeed ZeRO: 5e8-element buckets, all-reduced in stages 1 and 2; stage 3 by layer";
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
