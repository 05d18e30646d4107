#include "workloads/framework/rows.hpp"

namespace topsim::workloads {
// InternEvo 0.2 (internlm/solver/optimizer/hybrid_zero_optim.py, configs/7B_sft.py): 16-bit gradients are
// all-reduced in buckets of 512 Mi elements during the backward pass; the states of a whole tensor have one
// owner, which broadcasts the tensor after the update (overlap_sync_param False). FlashAttention 1.0.5
// (InternLM doc/en/install.md of July 2023), whose package also contains rotary embedding and cross entropy;
// apex norms of fp32 copies; silu and product in two kernels.
Framework internevo() {
  Framework row = ddp();
  row.name = "internevo";
  row.release = "2023";
  row.summary = "InternEvo (InternLM): gradients all-reduced, ZeRO 1 by whole tensors and broadcasts";
  row.family = FrameworkFamily::megatron;
  row.zero = row.most_zero = 1;
  row.sequence_parallel = row.selective_operators = false;
  row.checkpoints_stop = false;  // internlm/solver/activation_checkpoint.py, CheckpointFunction
  row.gathers_narrow = false;
  row.batch_first_shards = false;  // flash-attn's ColumnParallelLinear, as Megatron's
  row.gathers_inputs_again = true;
  row.tp_overlap = TensorOverlap::none;
  row.ring_fp32 = row.dynamic_scales = row.wide_inputs = false;
  row.overlap_param_gather = false;
  row.gradients_fp32 = row.parameters_fp32 = false;
  row.bucket = row.first_bucket = Bytes(0);
  row.bucket_elements = 512.0 * 1024 * 1024;
  row.bucket_elements_per_rank = 0;
  row.bucket_copies = 2;
  row.scatter_gradients = false;
  row.whole_tensor_shards = true;
  row.copies_for_update = true;  // hybrid_zero_optim.py, step: flat_fp32_avg_grads
  row.attention = AttentionKernel::flash1;
  row.core_copies = CoreCopies::packed;  // flash_attn_unpadded_qkvpacked_func; w1 and w3 are apart
  row.eager_norms = false;
  row.fused_cross_entropy = true;
  return row;
}
}  // namespace topsim::workloads
