// Default sets: what a framework release does where a scenario leaves it open. One table for each release,
// never per case. A figure of the host (launch times) says where it comes from beside its row in
// framework.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "workloads/spec.hpp"

namespace topsim::workloads {

enum class FrameworkFamily : std::uint8_t { megatron, fsdp, ddp, dataparallel, deepspeed };

struct Framework {
  std::string_view name;     // "megatron"
  std::string_view release;  // "2024"; the first row of a name is what the bare name means
  std::string_view summary;  // one line for lists and messages
  FrameworkFamily family = FrameworkFamily::megatron;
  bool supported = true;

  // Plan.
  RecomputeKind recompute = RecomputeKind::none;
  AttentionKernel attention = AttentionKernel::flash;
  bool sequence_parallel = true;  // with tp > 1
  int zero = 1;
  bool overlap_grad_reduce = true, overlap_param_gather = true;
  bool overlap_p2p = true;  // with virtual stages only: 1F1B sends and receives in exposed pairs
  TensorOverlap tp_overlap = TensorOverlap::async;

  // Kernels.
  bool fused_kernels = true;         // norms, bias + activation, bias + dropout + residual, Adam
  bool fused_cross_entropy = false;  // one pass instead of float copies of the logits
  bool dropout = false;

  // Gradients.
  bool gradients_fp32 = true;     // accumulated and reduced in fp32
  double bucket_elements = 40e6;  // Megatron: the larger of this and 1e6 x dp
  double bucket_elements_per_rank = 1e6;

  // Host.
  Duration launch{};        // to issue one kernel, eager
  Duration graph_launch{};  // the same inside a CUDA graph
  bool cuda_graph = false;
  bool synchronises_p2p = false;  // the host waits for every exposed pipeline message
};

// All rows; names repeat, releases of one name newest first.
[[nodiscard]] std::span<const Framework> frameworks();
// "megatron" or "megatron@2022". Throws ConfigError with the known ones.
[[nodiscard]] const Framework& framework(std::string_view name);
}  // namespace topsim::workloads
