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

std::array<Framework, 5> make_table() {
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

  Framework ddp;
  ddp.name = "ddp";
  ddp.release = "2024";
  ddp.summary = "PyTorch DistributedDataParallel: first bucket 1 MiB, then 25 MiB, all-reduced in order";
  ddp.family = FrameworkFamily::ddp;
  ddp.supported = false;

  Framework fsdp = ddp;
  fsdp.name = "fsdp";
  fsdp.summary = "PyTorch FSDP2 (fully_shard)";
  fsdp.family = FrameworkFamily::fsdp;

  Framework deepspeed = ddp;
  deepspeed.name = "deepspeed";
  deepspeed.summary = "DeepSpeed ZeRO";
  deepspeed.family = FrameworkFamily::deepspeed;
  return {megatron, megatron2022, ddp, fsdp, deepspeed};
}

}  // namespace

std::span<const Framework> frameworks() {
  static const std::array<Framework, 5> table = make_table();
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
