#include "workloads/compute/compute_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/base/error.hpp"

namespace topsim::workloads {
namespace {

// Formats to look up, closest first: constants and rates of a format that the catalogue does not list are
// those of the next.
std::array<std::string_view, 4> lookup_order(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return {"fp32", "tf32", "", ""};
    case Precision::tf32:
      return {"tf32", "fp32", "", ""};
    case Precision::fp16:
      return {"fp16", "bf16", "fp32", ""};
    case Precision::bf16:
      return {"bf16", "fp16", "fp32", ""};
    case Precision::fp8:
    case Precision::mxfp8:
    case Precision::fp8_blockwise:
      return {"fp8", "bf16", "fp16", "fp32"};
    case Precision::nvfp4:
      return {"fp4", "fp8", "bf16", "fp16"};
  }
  return {};
}

template <class Map>
const typename Map::mapped_type* find_by(const Map& map, Precision precision) {
  for (const std::string_view name : lookup_order(precision)) {
    if (name.empty()) continue;
    const auto found = map.find(name);
    if (found != map.end()) return &found->second;
  }
  return nullptr;
}

// Of the product that a chip's sustained rate is measured with.
constexpr double kEdge = 8192;

constexpr std::array<std::pair<double, double>, 6> kTiles{
    {{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}}};

// Share of the peak that flash attention reaches on long sequences, and the depth each row of tiles pays on
// top (prologue, softmax rescaling, the half-empty diagonal tile).
struct FlashConstants {
  int compute_capability;  // from this one on
  double forward, backward;
  double key_offset;
};
// Hopper: fitted on the causal sweep of ai-dynamo/aiconfigurator@095f58a (context_attention_perf of h100_sxm,
// bf16, head size 128, 4 k to 16 k tokens; mean error 9 %). Agrees with cuDNN on an H100 at 8 k tokens, 582
// TFLOP/s without a mask (meta-pytorch/tritonbench#141). Backward against forward: FlashAttention-3 (Shah et
// al. 2024, figures 5-6) 0.55 / 0.65. A100: FlashAttention-2 at head size 128, causal, 0.52 of 312 TFLOP/s at
// 2 k tokens, 0.70 at 16 k; 0.41 and 0.60 backward (Dao 2023, figures 4-6; recalled).
// Blackwell: cuDNN 9.19's training kernels, causal, 2 k to 32 k tokens, forward and backward
// (NVIDIA/cudnn-frontend benchmark/sdpa_benchmark_training/results, gb200_919 and gb300_919, llama3.1 and
// dsv3; held to them in tests/workloads/attention_test.cpp). FlashAttention-4 on a GB200 agrees: 1,393 and
// 1,114 TFLOP/s at 4 k (Dao-AILab/flash-attention pull request 2605). TensorRT-LLM's prefill kernels are
// others, which no training library launches. GB300 has twice the exponentials a clock.
constexpr std::array<FlashConstants, 4> kFlash{
    {{103, 0.82, 0.635, 550}, {100, 0.71, 0.60, 650}, {90, 0.595, 0.50, 1152}, {0, 0.73, 0.62, 384}}};
// cuDNN 9.13, of NVIDIA's containers of September 2025, on a B200 and a GB300: 8 k to 32 k tokens, causal
// (benchmark/sdpa_benchmark_training/artifacts, bb37575d; below 8 k PyTorch's own calls are in the times).
// Brought in after 9.19's constants took megatron-bridge's rows of 2025 from -4 % to -9.5 %: as measurements
// of kernels, but those rows are no test of it.
constexpr std::array<FlashConstants, 2> kFirstOnBlackwell{
    {{103, 0.77, 0.574, 1150}, {100, 0.672, 0.536, 1150}}};
// The same sweeps in fp8, of the fp8 rate.
constexpr std::array<FlashConstants, 2> kFlash8{{{103, 0.64, 0.385, 800}, {100, 0.455, 0.35, 800}}};
// Heads of 64 numbers on Blackwell need as many exponentials as those of 128 for half the products:
// FlashAttention-4, causal, 4 k: 902 of 1,393 TFLOP/s forward, 713 of 1,114 backward (same pull request).
constexpr double kNarrowHeads = 0.65;
// Backward in 8 bits cuDNN has less of them to offer, and computes the keys outside a window too: 9.23 on a
// GB200, 256 heads of 64, 128 keys of 32 k seen, 91.5 ms in fp8 and 107 in MXFP8, as long as all keys before
// a token take at 962 and 822 TFLOP/s; 1.78 and 2.07 ms at 4 k (benchmark/sdpa_benchmark_training/results/
// gpt_oss/gb200, 20260529). Forward, and in 16 bits both ways, the window is what is computed: 0.21 and 0.455
// ms at 4 k.
constexpr double kNarrowHeads8Backward = 0.5;
// FlashAttention-2 uses none of Hopper's instructions: "35% utilization on the H100" (Shah et al. 2024,
// abstract; recalled). Brought in after a published 32k-token FSDP row read 50 % too fast: that row is no
// test of it.
constexpr FlashConstants kFlash2OnHopper{90, 0.35, 0.35, 384};
// The first FlashAttention reached 30-50 % of an A100 forward and 25-35 % backward (Dao 2023, sections 1 and
// 3, recalled; its abstract says 25-40 % over all). Later parts as version 2 does there against an A100.
// Brought in after MosaicML's rows read the faster the longer the sequence: they are no test of it.
constexpr FlashConstants kFlash1{0, 0.40, 0.30, 384};
constexpr FlashConstants kFlash1OnHopper{90, 0.19, 0.17, 384};

// What dropout adds to a flash kernel and its backward pass: random numbers are made for every score. 0.695
// and 0.728 ms on a GB200 (FlashAttention-2, NVIDIA/TransformerEngine pull request 3313); cuDNN 1.03 on an
// H200, 1.09 on a B300 (issue 3312). Ma et al. (arXiv 2410.07531) find far more in 8 bits.
constexpr double kFlashDropout = 1.05;

// Share of the rate at heads of 128 that narrower ones have; linear in between.
double narrowness(int compute_capability, const AttentionShape& shape, double at_64) {
  const double width = (shape.head_dim + shape.value_dim) / 2;
  if (compute_capability < 100 || width >= 128) return 1;
  return 1 - (1 - at_64) * (128 - std::max(width, 64.0)) / 64;
}

const FlashConstants& flash_constants(int compute_capability, AttentionKernel kernel, Precision precision) {
  if (bytes_of(precision) == 1)
    for (const FlashConstants& row : kFlash8)
      if (compute_capability >= row.compute_capability) return row;
  if (kernel == AttentionKernel::flash1) return compute_capability >= 90 ? kFlash1OnHopper : kFlash1;
  if (compute_capability == 90 && kernel == AttentionKernel::flash2) return kFlash2OnHopper;
  if (kernel == AttentionKernel::flash2025)
    for (const FlashConstants& row : kFirstOnBlackwell)
      if (compute_capability >= row.compute_capability) return row;
  for (const FlashConstants& row : kFlash)
    if (compute_capability >= row.compute_capability) return row;
  return kFlash.back();
}
}  // namespace

std::string_view units_of(Precision precision) {
  return lookup_order(precision).front();
}

ComputeModel::ComputeModel(const topology::Accelerator& accelerator, ComputeSettings settings)
    : accelerator_(accelerator), settings_(settings) {
  for (const auto& [precision, rate] : accelerator.sustained_flops) {
    const auto dense = accelerator.dense_flops.find(precision);
    const auto fitted = accelerator.gemm.find(precision);
    if (dense == accelerator.dense_flops.end() || fitted == accelerator.gemm.end()) continue;
    const double alone = tiled_seconds({kEdge, kEdge, kEdge}, dense->second, fitted->second);
    held_[precision] = std::min(1.0, alone * rate / (2 * kEdge * kEdge * kEdge));
  }
}

double ComputeModel::held(Precision precision) const {
  const double* share = find_by(held_, precision);
  return settings_.clock * (share != nullptr ? *share : 1);
}

FlopsPerSecond ComputeModel::peak(Precision precision) const {
  const double* rate = find_by(accelerator_.dense_flops, precision);
  if (rate == nullptr)
    throw ConfigError(fmt::format("the catalogue has no {} rate for {}", name_of(precision), accelerator_.id),
                      "add it under dense_flops of the accelerator's entry in configs/hardware");
  return FlopsPerSecond(*rate);
}

const topology::GemmConstants& ComputeModel::constants_of(Precision precision) const {
  static const topology::GemmConstants kDefault;
  const auto* found = find_by(accelerator_.gemm, precision);
  return found != nullptr ? *found : kDefault;
}

double ComputeModel::tiled_seconds(const GemmShape& shape, double peak_rate,
                                   const topology::GemmConstants& constants) const {
  const double units = std::max(1, accelerator_.compute_units);
  double best = std::numeric_limits<double>::infinity();
  for (const auto& [tm, tn] : kTiles) {
    const double tiles = shape.batch * std::ceil(shape.m / tm) * std::ceil(shape.n / tn);
    const double waves = std::ceil(tiles / units);
    const double efficiency = constants.peak_fraction / (1 + constants.tile_penalty * (1 / tm + 1 / tn));
    best = std::min(best,
                    waves * units * tm * tn * 2 * (shape.k + constants.k_offset) / (peak_rate * efficiency));
  }
  return best;
}

KernelCost ComputeModel::gemm(const GemmShape& shape, Precision precision, GemmOutput output) const {
  if (shape.m <= 0 || shape.n <= 0 || shape.k <= 0 || shape.batch <= 0) return {};
  const double peak_rate = peak(precision).value();
  const topology::GemmConstants& constants = constants_of(precision);
  const double flops = 2 * shape.batch * shape.m * shape.n * shape.k;

  double compute = 0;
  if (settings_.gemm_efficiency) {
    compute = flops / (peak_rate * *settings_.gemm_efficiency * settings_.clock);
  } else {
    compute = tiled_seconds(shape, peak_rate * held(precision), constants);
    if (const double* best = find_by(accelerator_.achievable_flops, precision);
        best != nullptr && *best > 0 && *best <= peak_rate)
      compute = std::max(compute, flops / (*best * held(precision)));
  }
  const double element = bytes_of(precision);
  const double result = output == GemmOutput::accumulate_32 ? 8 : std::max(2.0, element);
  const double bytes =
      shape.batch * (element * (shape.m * shape.k + shape.n * shape.k) + result * shape.m * shape.n);
  const double memory = bytes / (accelerator_.memory_bandwidth.value() * constants.memory_fraction);

  KernelCost cost;
  const double fixed = settings_.gemm_efficiency ? 0 : seconds(constants.fixed);
  cost.seconds = std::max(compute, memory) + fixed;
  cost.memory_seconds = memory > compute ? memory : 0;
  cost.flops = flops;
  cost.kernels = 1;
  return cost;
}

ComputeModel::Disagreement ComputeModel::disagreement(Precision precision) const {
  if (settings_.gemm_efficiency) return {};
  const double peak_rate = peak(precision).value();
  for (const std::string_view name : lookup_order(precision)) {
    const auto measured = accelerator_.measured_flops.find(name);
    const auto dense = accelerator_.dense_flops.find(name);
    // Another format's figure stands for this one's where both run at one rate.
    if (measured == accelerator_.measured_flops.end() || dense == accelerator_.dense_flops.end() ||
        dense->second != peak_rate)
      continue;
    const auto [least, most] = measured->second;
    if (least == most) return {};
    const KernelCost product = gemm({kEdge, kEdge, kEdge}, precision);
    const double alone = (product.seconds - seconds(constants_of(precision).fixed)) * settings_.clock;
    const double used = product.flops / alone;
    return {std::min(1.0, used / most), std::max(1.0, used / least)};
  }
  return {};
}

KernelCost ComputeModel::memory_bound(double bytes, MemoryKernel kind, double kernels) const {
  if (bytes <= 0) return {};
  double share = accelerator_.fused_fraction;
  if (!settings_.fused) {
    switch (kind) {
      case MemoryKernel::norm:
        share = accelerator_.norm_fraction_eager;
        break;
      case MemoryKernel::elementwise:
        share = accelerator_.elementwise_fraction_eager;
        break;
      case MemoryKernel::add:
        share = accelerator_.add_fraction_eager;
        break;
      case MemoryKernel::optimizer:  // kernels over lists of tensors are written by hand in either case
        break;
    }
  }
  KernelCost cost;
  cost.seconds = cost.memory_seconds =
      bytes / (accelerator_.memory_bandwidth.value() * share) + kernels * seconds(settings_.memory_fixed);
  cost.kernels = kernels;
  return cost;
}

double AttentionShape::mean_keys() const {
  if (!causal) return keys;
  return window > 0 && window < keys ? window * (1 - window / (2 * keys)) : keys / 2;
}

namespace {
double score_flops(const AttentionShape& shape) {
  const double pairs = shape.queries * shape.mean_keys();
  return 2 * shape.batch * shape.heads * pairs * (shape.head_dim + shape.value_dim);
}

// matmuls: how many of the forward's two the pass does (forward 1, backward 2.5 of its FLOPs).
KernelCost flash(const topology::Accelerator& accelerator, const AttentionShape& shape, double peak_rate,
                 double share, double matmuls, double key_offset, double element) {
  // One work item a 128-row query tile of a head; too few items leave compute units empty.
  const double items = shape.batch * shape.heads * std::ceil(shape.queries / 128);
  const double filled = std::min(1.0, items / std::max(1, accelerator.compute_units));
  const double work = matmuls * 2 * shape.batch * shape.heads * shape.queries *
                      (shape.mean_keys() + key_offset) * (shape.head_dim + shape.value_dim);
  const double bytes = element * shape.batch *
                       (shape.queries * shape.heads * (shape.head_dim + shape.value_dim) +
                        shape.keys * shape.kv_heads * (shape.head_dim + shape.value_dim));
  KernelCost cost;
  const double at_64 = matmuls > 1 && element == 1 ? kNarrowHeads8Backward : kNarrowHeads;
  const double compute =
      (shape.dropout ? kFlashDropout : 1) * work /
      (peak_rate * share * narrowness(accelerator.compute_capability, shape, at_64) * filled);
  const double memory =
      (matmuls > 1 ? 2.5 : 1) * bytes / (accelerator.memory_bandwidth.value() * accelerator.fused_fraction);
  cost.seconds = std::max(compute, memory);
  cost.memory_seconds = memory > compute ? memory : 0;
  return cost;
}
}  // namespace

// Tensor cores load 16 bytes at a time: "efficiency is best" (cuBLAS 11), or they work at all (before), where
// dimensions are multiples of 8 in 16 bits (NVIDIA, Matrix Multiplication Background User's Guide, 4). Heads
// of 150, 180 or 108 numbers put every other head off that grid; their products then run at the rate of plain
// fp32. Brought in after BLOOM's trial runs, whose such shapes are 30 % slower than their neighbours: they
// are no test of it.
KernelCost ComputeModel::product_of_heads(const GemmShape& shape, double head_dim,
                                          Precision precision) const {
  KernelCost cost = gemm(shape, precision);
  const auto plain = accelerator_.dense_flops.find("fp32");
  if (std::fmod(head_dim, 8) != 0 && plain != accelerator_.dense_flops.end())
    cost.seconds = std::max(cost.seconds, cost.flops / plain->second);
  return cost;
}

KernelCost ComputeModel::attention_forward(const AttentionShape& shape, AttentionKernel kernel,
                                           Precision precision) const {
  KernelCost cost;
  if (kernel != AttentionKernel::unfused) {
    const FlashConstants& constants = flash_constants(accelerator_.compute_capability, kernel, precision);
    cost = flash(accelerator_, shape, peak(precision).value() * held(precision), constants.forward, 1,
                 constants.key_offset, bytes_of(precision));
    cost.kernels = 1;
  } else {
    const double batch = shape.batch * shape.heads;
    const double scores = batch * shape.queries * shape.keys;
    cost = product_of_heads({shape.queries, shape.keys, shape.head_dim, batch}, shape.head_dim, precision);
    // Fused scale + mask + softmax reads and writes the scores; dropout reads, writes, and keeps a byte of
    // mask.
    cost +=
        memory_bound(scores * 2 * bytes_of(precision), MemoryKernel::elementwise, settings_.fused ? 1 : 3);
    if (shape.dropout)
      cost += memory_bound(scores * (2 * bytes_of(precision) + 1), MemoryKernel::elementwise);
    cost += product_of_heads({shape.queries, shape.value_dim, shape.keys, batch}, shape.value_dim, precision);
    cost.kernels += 4;  // transposes and views made contiguous
  }
  cost.flops = score_flops(shape);
  return cost;
}

KernelCost ComputeModel::attention_decode(const AttentionShape& shape, Precision precision) const {
  const double width = shape.head_dim + shape.value_dim;
  const double keys = shape.window > 0 ? std::min(shape.window, shape.keys) : shape.keys;
  const double bytes = bytes_of(precision) * shape.batch * width *
                       (shape.kv_heads * (keys + shape.queries) + shape.heads * shape.queries);
  KernelCost cost;
  cost.seconds = cost.memory_seconds =
      bytes / (accelerator_.memory_bandwidth.value() * accelerator_.fused_fraction) +
      2 * seconds(settings_.memory_fixed);
  cost.kernels = 2;
  cost.flops = 2 * shape.batch * shape.heads * shape.queries * keys * width;
  return cost;
}

KernelCost ComputeModel::attention_backward(const AttentionShape& shape, AttentionKernel kernel,
                                            Precision precision) const {
  KernelCost cost;
  if (kernel != AttentionKernel::unfused) {
    const FlashConstants& constants = flash_constants(accelerator_.compute_capability, kernel, precision);
    AttentionShape computed = shape;
    if (accelerator_.compute_capability >= 100 && bytes_of(precision) == 1) computed.window = 0;
    cost = flash(accelerator_, computed, peak(precision).value() * held(precision), constants.backward, 2.5,
                 constants.key_offset, bytes_of(precision));
    cost.kernels = 3;  // dO x O row sums, the main kernel, dQ conversion
  } else {
    const double batch = shape.batch * shape.heads;
    const double scores = batch * shape.queries * shape.keys;
    const auto product = [&](double m, double n, double k, double dim) {
      return product_of_heads({m, n, k, batch}, dim, precision);
    };
    cost = product(shape.queries, shape.keys, shape.value_dim, shape.value_dim);   // dP = dO V^T
    cost += product(shape.keys, shape.value_dim, shape.queries, shape.value_dim);  // dV = P^T dO
    cost += product(shape.queries, shape.head_dim, shape.keys, shape.head_dim);    // dQ = dS K
    cost += product(shape.keys, shape.head_dim, shape.queries, shape.head_dim);    // dK = dS^T Q
    if (shape.dropout)
      cost += memory_bound(scores * (2 * bytes_of(precision) + 1), MemoryKernel::elementwise);
    // Softmax backward reads the gradient and the probabilities, writes the gradient.
    cost +=
        memory_bound(scores * 3 * bytes_of(precision), MemoryKernel::elementwise, settings_.fused ? 1 : 3);
    cost.kernels += 4;
  }
  cost.flops = 2 * score_flops(shape);
  return cost;
}
}  // namespace topsim::workloads
