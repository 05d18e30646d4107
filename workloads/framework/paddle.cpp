#include "workloads/framework/rows.hpp"

namespace topsim::workloads {
// PaddleNLP's Trainer on Paddle 2.5.1, as FlagPerf ran it in October 2023 (training/nvidia/llama1_7B-paddle
// and gpt3_13B-paddle: paddle-2.5.1, a pre-release of paddlenlp 2.6; fp16 at level O2). "fleet" below is
// python/paddle/distributed/fleet of Paddle. Every layer is eager.
Framework paddle() {
  Framework row = ddp();
  row.name = "paddle";
  row.release = "2023";
  row.summary = "PaddleNLP on Paddle 2.5: ZeRO 1 and 2 by whole tensors, exposed; tensor parallelism too";
  row.family = FrameworkFamily::megatron;
  row.sequence_parallel = row.selective_operators = row.gathers_narrow = row.batch_first_shards = false;
  row.gathers_inputs_again = true;
  row.ring_fp32 = row.dynamic_scales = row.wide_inputs = row.message_buffers = false;
  // fleet/recompute/recompute.py: RecomputeFunction, and its form without reentry, run all of a layer
  // (recalled).
  row.checkpoints_stop = false;

  // Third-party flash-attention at 18106c1 (cmake/external/flashattn.cmake, flash_attn_kernel.cu with
  // cu_seqlens), the first version; PaddlePaddle/flash-attention's "Bump to fa2" is younger. Queries, keys
  // and values are products of their own (fuse_attention_qkv 0), read and written in place.
  row.attention = AttentionKernel::flash1;
  row.core_copies = CoreCopies::apart;
  // paddlenlp/transformers/llama/modeling.py: rms_norm_fused calls fused_ln, whose kernels are "copied from
  // NVIDIA apex" (model_zoo/gpt-3/external_ops); the rotary embedding is not fused (apply_rotary_pos_emb),
  // and in Paddle 2.5 a slice is a copy (recalled). GPT's nn.LayerNorm is one kernel too, of unknown rate.
  row.eager_norms = row.eager_final_norm = false;
  row.apex_norms = row.rotary_in_copies = true;
  // F.linear is a matmul and an addition, as Paddle's RFC on choosing kernels takes apart (fuse_matmul_bias
  // of fleet/layers/mpu/mp_layers.py is off), and RowParallelLinear adds its bias after the all-reduce.
  row.adds_biases = true;
  // mp_layers.py, ColumnParallelLinear: _c_identity(x) of each layer, whose backward pass is
  // all_reduce_on_calc_stream (mp_ops.py). This release has no mp_async_allreduce.
  row.reduces_inputs_apart = true;
  // LlamaPretrainingCriterion, GPTPretrainingCriterion: prediction_scores.astype("float32"). Cast 4;
  // cross_entropy_kernel.cu, VectorizedSoftmaxForward, reads for maximum, sum and answer and writes, 16; its
  // gradient 8, cast back 4. Held: logits, their copy, the softmax; then softmax, gradient and its cast.
  row.loss = {.held = 10, .forward_copies = 20, .forward_own = 1, .backward_copies = 12, .backward_own = 1};
  // c_softmax_with_cross_entropy_op.cu: cast 4, maximum 4, difference 8, exponentials 8, sum 4, quotient 8.
  // Backward: softmax copied 8, changed at the label and scaled 8, cast back 4.
  row.split_loss =
      LossBytes{.held = 10, .forward_copies = 36, .forward_own = 1, .backward_copies = 20, .backward_own = 1};

  // paddlenlp/trainer/trainer.py, _wrap_model: stage 1 is fleet's DygraphShardingOptimizer, stage 2
  // group_sharded_parallel(level="os_g"); with a pipeline stage 1 only. amp_master_grad is off: gradients of
  // 16 bits, added up by autograd. Adam is a kernel for each tensor that reads them as they are
  // (phi/kernels/gpu/adamw_kernel.cu, AdamWKernelMEM).
  row.zero = 1;
  row.most_zero = 2;
  row.pipelines_sharded = false;
  row.gradients_fp32 = row.fp16_gradients_fp32 = row.parameters_fp32 = false;
  row.fused_adam = row.copies_for_update = true;
  // dygraph_sharding_optimizer.py, reduce_gradients: all_reduce of each gradient, after the last micro-batch.
  // group_sharded_stage2.py, _get_reduce_fn: in the backward pass of every micro-batch, reduce to the
  // tensor's owner; small ones together in a GradStorage of buffer_max_size = 2**23. Both on the compute
  // stream. Owners broadcast what they have updated (_sharding_sync_parameters, _broadcast_params). The
  // division by the number of ranks, once a step, is left out.
  row.overlap_grad_reduce = row.overlap_param_gather = row.scatter_gradients = false;
  row.whole_tensor_shards = row.reduces_to_owners = row.exposed_buckets = true;
  row.bucket = row.first_bucket = Bytes(0);
  row.bucket_elements = 8388608;
  row.bucket_elements_per_rank = 0;
  row.bucket_copies = 0;
  // p2p_communication.py: enable_partial_send_recv, which PaddleNLP leaves on: send_partial, recv_partial and
  // allgather_partial. The host waits for no message.
  row.splits_messages = true;
  return row;
}
}  // namespace topsim::workloads
