#include "workloads/compute/flash_cost.hpp"

#include <algorithm>
#include <cmath>

namespace topsim::workloads {
namespace {

// Factor by which dropout slows a flash kernel and its backward pass, because random numbers are made for
// every score. 0.695 and 0.728 ms on a GB200 (FlashAttention-2, NVIDIA/TransformerEngine pull request 3313);
// cuDNN 1.03 on an H200, 1.09 on a B300 (issue 3312). Ma et al. (arXiv 2410.07531) find far more in 8 bits.
constexpr double kFlashDropout = 1.05;

// 0 for heads of 128 and wider ones, 1 for heads of 64 and narrower ones.
double narrowness(double width) {
  return width >= 128 ? 0 : (128 - std::max(width, 64.0)) / 64;
}

// Kernels are compiled for heads of 32 and 64 numbers and wider ones: others compute padded (FlashAttention
// 1: fmha.h, run_fmha_fwd_hdim32, 64 and 128).
double padded(double head, double step) {
  return head > 64 ? step * std::ceil(head / step) : head > 32 ? 64 : 32;
}
}  // namespace

// Forward two products, Q K^T and P V, and a tile holds queries; backward five, Q K^T again, dO V^T, P^T dO,
// dS K and dS^T Q, and a tile holds keys.
KernelCost flash_cost(const topology::Accelerator& accelerator, const AttentionShape& shape,
                      const FlashPass& pass, FlashDirection direction, double element) {
  if (shape.batch <= 0 || shape.heads <= 0 || shape.queries <= 0 || shape.keys <= 0) return {};
  const bool forward = direction == FlashDirection::forward;
  const double head = padded(shape.head_dim, pass.head_step), value = padded(shape.value_dim, pass.head_step);
  const double flops_per_pair = 2 * (forward ? head + value : 3 * head + 2 * value);
  const double narrow = narrowness((head + value) / 2);
  TileSchedule schedule = pass.schedule;
  schedule.splits = schedule.splits && !shape.dropout;
  const bool windowed = shape.window > 0 && shape.window < (shape.causal ? 1 : 2) * shape.keys;
  if (shape.causal || windowed) schedule.start += pass.mask_start;
  if (windowed) schedule.start += pass.window_start;
  if (pass.start_at_64 > 0) schedule.start += narrow * (pass.start_at_64 - schedule.start);
  // Of all queries that see a key a rank with a part of them has its share.
  const double window = forward ? shape.window : shape.window * shape.queries / shape.keys;
  const AttentionTiles tiles{.heads = shape.batch * shape.heads,
                             .rows = forward ? shape.queries : shape.keys,
                             .keys = forward ? shape.keys : shape.queries,
                             .causal = shape.causal,
                             .window = window};
  const double keys = keys_until_done(tiles, schedule, accelerator.compute_units);
  const double places = std::max(1, accelerator.compute_units) * schedule.at_once;
  const double compute = (shape.dropout ? kFlashDropout : 1) * flops_per_pair * schedule.rows * keys *
                         places / (pass.rate * (1 - narrow * (1 - pass.at_64)));
  const double bytes = element * shape.batch * (shape.head_dim + shape.value_dim) *
                       (shape.queries * shape.heads + shape.keys * shape.kv_heads);
  const double memory =
      (forward ? 1 : 2.5) * bytes / (accelerator.memory_bandwidth.value() * accelerator.fused_fraction);
  KernelCost cost;
  cost.seconds = std::max(compute, memory);
  cost.memory_seconds = memory > compute ? memory : 0;
  cost.complete(1, accelerator.fused_fraction);
  return cost;
}
}  // namespace topsim::workloads
