// Megatron-FSDP: --use-megatron-fsdp of Megatron-Core 0.14 (2025; --use-custom-fsdp in 0.11 to 0.13).
// Files are those of megatron/core/distributed/fsdp/src/megatron_fsdp unless another is named.
#include "workloads/framework/rows.hpp"

namespace topsim::workloads {
namespace {
// megatron_fsdp.py, _register_fsdp_hooks. Forward: a hook before and one behind every layer, the Function
// that frees its parameters backward, a view of its output. Backward: that Function, and for each parameter a
// hook and the copy of its gradient into a buffer. Layers of experts are counted without them.
void add_hooks(HostProfile& host) {
  host.forward.functions += 1;
  host.forward.views += 1;
  host.forward.modules += 2;
  host.backward.functions += 1;
  host.backward.modules += host.parameter_tensors;
  host.backward.operators += host.parameter_tensors;
}
}  // namespace

// Stage 3 is optim_grads_params: every TransformerLayer is a unit (mcore_fsdp_adapter.py: fsdp_unit_modules).
// Stage 2, optim_grads, has no units: buckets as in Megatron's optimiser, each gathered once a step;
// gradients are reduced in them with every micro-batch (_process_post_backward_gradients:
// grad_reduce_every_bprop). nccl_ub (registered buffers, fewer SMs) is Megatron-Bridge's for some models and
// is not described.
Framework megatron_2025_fsdp() {
  Framework row = megatron_2025();
  row.release = "2025-fsdp";
  row.summary = "Megatron-FSDP (--use-megatron-fsdp): what megatron's zero 2 and 3 mean; a unit a layer";
  row.sharded = {};
  row.start_order = StartOrder::compute_first;  // its guide: "Disable CUDA_DEVICE_MAX_CONNECTIONS"
  row.zero = row.most_zero = 3;
  row.least_zero = 2;
  // Megatron-Bridge's page on Megatron-FSDP has pipelines among what code supports and evidence may lack; no
  // recipe of its has one.
  row.pipelines_sharded = false;
  // param_and_grad_buffer.py, _get_parameter_groups: expert parameters of a unit are a group of buckets of
  // their own, over the ranks that hold the same experts.
  row.shards_experts = true;
  // num_distributed_optimizer_instances (mcore_fsdp_adapter.py, _init_dist_index); outer_dp_sharding_strategy
  // no_shard: each set of shards is updated by all that hold it. _process_post_backward_gradients:
  // outer_fsdp_group_grad_reduce with the last micro-batch.
  row.hybrid_shards = row.replicas_at_end = true;
  // A unit's buckets are coalesced into one call (bucket_to_bucket_group).
  row.reduces_units = true;
  row.overlaps_shards = true;  // MegatronFSDP.__init__ turns overlap_grad_reduce and overlap_param_gather on
  // Parameters outside units are gathered where they are first read and have no hook that releases them:
  // finish_grad_sync does. They are 16-bit buckets even if the layers' are fp8 (ParameterGroup.dtype).
  row.ends_stay = true;
  // A bucket is one flat buffer whose parts the parameters are (DataParallelBuffer.fetch_bucket,
  // set_param_data), and a rank's shard is a part of another (get_shard_from_local_buffer).
  row.copies_gathered = false;
  // all_gather_params: beside the unit that is needed the next ones, in either direction, up to
  // suggested_AG_prefetch_size. With fsdp_double_buffer, as Megatron-Bridge's recipes and the user guide
  // (docs/discussions/megatron-fsdp-user-guide) set it, two units in all: need_skip_prefetch.
  row.prefetch_forward = true;
  row.prefetched_least = 5e8;  // megatron_fsdp.py, suggested_AG_prefetch_size: half of 1e9
  // FixedPoolAllocator, UB_BUFFER_NUM: gradients of two units. The next unit's are copied into the second
  // buffer while the first one's are reduced (_enforce_double_buffer_limit). Gathers and reductions share
  // get_fsdp_group, so one communicator; an independent one for gathers (create-all-gather-group) is newer.
  row.double_buffers = true;
  row.outstanding_reductions = 2;
  row.drains_reductions = true;  // _root_post_backward: grad_reduce_pipeline.reset()
  // The user guide requires --no-gradient-accumulation-fusion, until Transformer Engine 2.10
  // (mcore_fsdp_adapter.py): _grad_acc copies every gradient into its buffer.
  row.fused_accumulation = false;
  row.bucket_copies = 1;
  // gradient_reduce_preprocessing: average_in_collective is not supported (Megatron-Bridge, training/
  // config.py); fp32 gradients are multiplied by ncclRedOpCreatePreMulSum, 16-bit ones by a kernel before.
  row.gradient_passes = 2;
  row.divides_in_sum = true;
  add_hooks(row.host);
  return row;
}
}  // namespace topsim::workloads
