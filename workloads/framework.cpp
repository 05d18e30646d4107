#include "workloads/framework.hpp"

#include <fmt/format.h>

#include <array>

#include "sim/base/error.hpp"

namespace topsim::workloads {
namespace {
using namespace topsim::literals;

// Launch times: an eager PyTorch operator costs the host 5-8 us (dispatch, autograd, cudaLaunchKernel), a
// kernel inside a CUDA graph about 2 us: training-and-collectives.md 4.10.
constexpr Duration kEager = 6_us, kGraph = 2_us;

std::array<Framework, 7> make_table() {
  Framework megatron;
  megatron.name = "megatron";
  megatron.release = "2024";
  megatron.summary = "Megatron-Core with Transformer Engine, distributed optimiser, flash attention";
  megatron.launch = kEager;
  megatron.graph_launch = kGraph;
  megatron.synchronises_p2p = true;  // batch_p2p_sync defaults to true (model_parallel_config.py)

  Framework megatron2022 = megatron;
  megatron2022.release = "2022";
  megatron2022.summary =
      "Megatron-LM of SC'21 and of Korthikanti et al. 2022: unfused attention, no distributed optimiser";
  megatron2022.attention = AttentionKernel::unfused;
  megatron2022.sequence_parallel = false;
  megatron2022.zero = 0;
  megatron2022.overlap_grad_reduce = megatron2022.overlap_param_gather = megatron2022.overlap_p2p = false;
  megatron2022.recompute = RecomputeKind::full;
  megatron2022.dropout = true;

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
  ddp.hopper_attention = false;  // aten/src/ATen/native/transformers/cuda/flash_attn is version 2
  ddp.parameters_fp32 = true;
  ddp.bucket = 25_MiB;
  ddp.first_bucket = 1_MiB;
  ddp.bucket_copies = 2;
  ddp.launch = kEager;
  ddp.graph_launch = kGraph;

  // torch/nn/parallel/data_parallel.py: buckets of 10 MiB (replicate.py, comm.py: buffer_size), nothing
  // overlaps.
  Framework data_parallel = ddp;
  data_parallel.name = "dataparallel";
  data_parallel.summary =
      "torch.nn.DataParallel: one process; device 0 broadcasts parameters and gathers outputs";
  data_parallel.family = FrameworkFamily::dataparallel;
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
  fsdp.offloads_parameters = true;  // CPUOffloadPolicy, _fsdp_api.py

  Framework compiled = fsdp;
  compiled.release = "2024-compile";
  compiled.summary = "the same with torch.compile for each layer: fused element-wise kernels";
  compiled.fused_kernels = true;

  // DeepSpeed: runtime/zero/config.py and stage_1_and_2.py. Buckets of 5e8 elements in 16 bits; overlap_comm
  // is off for stages 1 and 2 and on for 3; the default reduction of stages 1 and 2 is an all-reduce of the
  // bucket (use_multi_rank_bucket_allreduce). Fused Adam, eager kernels.
  Framework deepspeed = ddp;
  deepspeed.name = "deepspeed";
  deepspeed.summary = "DeepSpeed ZeRO: 5e8-element buckets, all-reduced in stages 1 and 2; stage 3 by layer";
  deepspeed.family = FrameworkFamily::deepspeed;
  deepspeed.sequence_parallel = false;
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
  deepspeed.prefetch_forward = true;
  deepspeed.outstanding_reductions = 2;  // stage3.py, max_param_reduce_events
  deepspeed.live_parameters = 1e9;       // stage3_max_live_parameters

  return {megatron, megatron2022, ddp, data_parallel, fsdp, compiled, deepspeed};
}

}  // namespace

std::span<const Framework> frameworks() {
  static const std::array<Framework, 7> table = make_table();
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
