#include "workloads/compute/compute_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/base/error.hpp"
#include "topology/generation.hpp"
#include "workloads/compute/flash_cost.hpp"
#include "workloads/compute/formats.hpp"
#include "workloads/compute/tiles.hpp"

namespace topsim::workloads {
namespace {

// Formats to look up, closest first: a format that the catalogue does not list takes the constants and rates
// of the next one.
std::array<std::string_view, 5> lookup_order(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return {"fp32", "tf32"};
    case Precision::tf32:
      return {"tf32", "fp32"};
    case Precision::fp16:
      return {"fp16", "bf16", "fp32"};
    case Precision::bf16:
      return {"bf16", "fp16", "fp32"};
    case Precision::fp8:
    case Precision::mxfp8:
    case Precision::fp8_blockwise:
      return {"fp8", "bf16", "fp16", "fp32"};
    case Precision::nvfp4:
      return {"nvfp4", "fp4", "fp8", "bf16", "fp16"};
    case Precision::nf4:
    case Precision::nf4_double:  // never multiplied
      return {};
  }
  return {};
}

// The same on this chip.
std::array<std::string_view, 5> lookup_order(const topology::Accelerator& accelerator, Precision precision) {
  if (precision == Precision::bf16 && widens_bf16(accelerator)) return {"bf16", "fp32", "fp16"};
  // AMD's matrix cores multiply fp32 as it is; "fp32" is the rate of the vector units.
  if (precision == Precision::fp32 && accelerator.dense_flops.contains("fp32_tensor"))
    return {"fp32_tensor", "fp32", "tf32"};
  return lookup_order(precision);
}

template <class Map>
const typename Map::mapped_type* find_by(const Map& map, const std::array<std::string_view, 5>& order) {
  for (const std::string_view name : order) {
    if (name.empty()) continue;
    const auto found = map.find(name);
    if (found != map.end()) return &found->second;
  }
  return nullptr;
}

// Edge of the matrix product with which a chip's sustained rate is measured.
constexpr double kEdge = 8192;

// Rows of an odd number of 16-bit numbers are loaded one number at a time (cuBLAS on an A100:
// cutlass_75_..._align1, pegainfer pull request 1046), which takes twice as long there. GPT-2's 50,257
// columns cost 8.8 ms more than 50,304 in a step of 8,192 tokens (rasbt/LLMs-from-scratch, ch05/10: 112,046
// and 127,345 tokens/s on an A100); the head's three products, with rows of 768, cost 8.5 more here. An H100
// showed no difference for 2,501 (float8_experimental pull request 145); other chips were not seen.
constexpr double kOddRows = 2;
}  // namespace

std::string_view units_of(Precision precision) {
  return precision == Precision::nvfp4 ? "fp4" : lookup_order(precision).front();
}

ComputeModel::ComputeModel(const topology::Accelerator& accelerator, ComputeSettings settings)
    : accelerator_(accelerator), settings_(settings) {
  for (const auto& [precision, rate] : accelerator.sustained_flops) {
    const auto dense = accelerator.dense_flops.find(precision);
    const auto fitted = accelerator.gemm.find(precision);
    if (dense == accelerator.dense_flops.end() || fitted == accelerator.gemm.end()) continue;
    const double alone = tiled({kEdge, kEdge, kEdge}, dense->second, fitted->second).seconds;
    held_[precision] = std::min(1.0, alone * rate / (2 * kEdge * kEdge * kEdge));
  }
}

double ComputeModel::held(Precision precision) const {
  const double* share = find_by(held_, lookup_order(accelerator_, precision));
  return settings_.clock * (share != nullptr ? *share : 1);
}

FlopsPerSecond ComputeModel::peak(Precision precision) const {
  const double* rate = find_by(accelerator_.dense_flops, lookup_order(accelerator_, precision));
  if (rate == nullptr) {
    std::vector<std::string_view> known;
    for (const auto& [format, of_format] : accelerator_.dense_flops) known.push_back(format);
    throw ConfigError(
        {Problem{{},
                 "workload.precision",
                 fmt::format("the catalogue has no {} rate for {}", name_of(precision), accelerator_.id),
                 {},
                 fmt::format("it has {}; or add one under \"dense\" of its entry in "
                             "configs/hardware/accelerators.json",
                             fmt::join(known, ", ")),
                 {}}});
  }
  return FlopsPerSecond(*rate);
}

const double* ComputeModel::measured_best(Precision precision) const {
  const auto order = lookup_order(accelerator_, precision);
  if (accelerator_.achievable_flops.contains(order.front())) return accelerator_.best_product(order.front());
  for (const std::string_view name : order)
    if (accelerator_.dense_flops.contains(name)) return accelerator_.best_product(name);
  return nullptr;
}

const topology::GemmConstants& ComputeModel::constants_of(Precision precision) const {
  static const topology::GemmConstants kDefault;
  const auto* found = find_by(accelerator_.gemm, lookup_order(accelerator_, precision));
  return found != nullptr ? *found : kDefault;
}

Tiling ComputeModel::tiled(const GemmShape& shape, double peak_rate, const topology::GemmConstants& constants,
                           int margin) const {
  return tiling_of(shape, accelerator_, peak_rate, constants, margin, settings_.memory_fixed);
}

// A norm that reaches 0.59 of the bandwidth alone does not hold back a ring that moves 0.3 of it; copies and
// sums that reach 0.87 and more do (tests/golden/accelerator, h100-sxm5-ring.json).
void KernelCost::complete(double count, double reached) {
  constexpr double kFills = 0.7;
  filling = reached >= kFills ? memory_seconds : 0;
  squares = seconds * seconds / std::max(1.0, count);
}

KernelCost ComputeModel::gemm(const GemmShape& shape, Precision precision, GemmOutput output,
                              int margin) const {
  if (shape.m <= 0 || shape.n <= 0 || shape.k <= 0 || shape.batch <= 0) return {};
  const double peak_rate = peak(precision).value();
  const topology::GemmConstants& constants = constants_of(precision);
  const double flops = 2 * shape.batch * shape.m * shape.n * shape.k;

  const int units = std::max(1, accelerator_.compute_units);
  margin = std::min(std::max(margin, settings_.sm_margin), units / 2);
  const double missing = static_cast<double>(units) / (units - margin);
  Tiling tiling = tiled(shape, peak_rate * held(precision), constants, margin);
  if (settings_.gemm_efficiency)
    tiling.seconds = missing * flops / (peak_rate * *settings_.gemm_efficiency * settings_.clock);
  else if (const double* best = measured_best(precision); best != nullptr)
    tiling.seconds = std::max(tiling.seconds, missing * flops / (*best * held(precision)));
  const double element = bytes_of(precision);
  if (shape.odd_rows && element == 2 && topology::is_a100(accelerator_)) tiling.seconds *= kOddRows;
  const double compute = tiling.seconds;
  const double result = output == GemmOutput::accumulate_32 ? 8 : std::max(2.0, element);
  const double weight = (shape.weight_bytes > 0 ? shape.weight_bytes : element) + shape.scale_bytes;
  const double bytes =
      shape.batch * (element * shape.m * shape.k + weight * shape.n * shape.k + result * shape.m * shape.n);
  const double memory = bytes / (accelerator_.memory_bandwidth.value() * constants.memory_fraction);

  KernelCost cost;
  const double fixed = settings_.gemm_efficiency ? 0 : seconds(constants.fixed);
  cost.seconds = std::max(compute, memory) + fixed;
  cost.memory_seconds = memory > compute ? memory : 0;
  cost.flops = flops;
  cost.kernels = 1;
  cost.complete(1, constants.memory_fraction);
  if (memory <= compute) {
    cost.grids = product_grid(tiling.tiles, cost.seconds, units, margin,
                              tile_order(accelerator_, settings_.fixed_tiles));
    cost.grids.traffic = memory;
  }
  return cost;
}

ComputeModel::Disagreement ComputeModel::disagreement(Precision precision) const {
  if (settings_.gemm_efficiency) return {};
  const double peak_rate = peak(precision).value();
  const auto order = lookup_order(accelerator_, precision);
  for (const std::string_view name : order) {
    const auto measured = accelerator_.measured_flops.find(name);
    const auto dense = accelerator_.dense_flops.find(name);
    // The figure of another format is used if both formats run at the same rate.
    const bool runs_so =
        dense == accelerator_.dense_flops.end() ? name == order.front() : dense->second == peak_rate;
    if (measured == accelerator_.measured_flops.end() || !runs_so) continue;
    const auto [least, most] = measured->second;
    if (least == most) return {};
    const KernelCost product = gemm({kEdge, kEdge, kEdge}, precision);
    const double alone = (product.seconds - seconds(constants_of(precision).fixed)) * settings_.clock;
    const double used = product.flops / alone;
    return {std::min(1.0, used / most), std::max(1.0, used / least)};
  }
  return {};
}

// index_select of 4,096 rows of 5,120 16-bit numbers takes 135.6 us, 619 GB/s read and written, where a
// kernel by rows takes 36.3 (pytorch issue 151612; 2.3 TB/s, an H100's). torch.gather also used one thread
// per number: 8,192 rows of 4,096 by an expanded index in 224 us, the same time per number within 4 % (issue
// 121389, which names no accelerator). scatter_add is assumed to be no slower, though its 16-bit sums are
// slower where many rows meet.
constexpr double kIndexedShare = 619e9 / 3.35e12;

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
      case MemoryKernel::optimizer:  // kernels over lists of tensors are hand-written in either case
      case MemoryKernel::indexed:
        break;
    }
  }
  if (kind == MemoryKernel::indexed) share = kIndexedShare;
  KernelCost cost;
  cost.seconds = cost.memory_seconds =
      bytes / (accelerator_.memory_bandwidth.value() * share) + kernels * seconds(settings_.memory_fixed);
  if (kind == MemoryKernel::indexed) cost.memory_seconds = 0;  // indices take the time, not bytes
  cost.kernels = kernels;
  cost.complete(kernels, share);
  return cost;
}

// Where an operand is not contiguous, PyTorch computes an address for each number and moves numbers one by
// one (aten/native/cuda/CUDALoops.cuh, launch_legacy_kernel). One operand: slice_copy writes 4.2 M 16-bit
// numbers in 23.2 us and 16.8 M in 71.3 on an H20's 78 units (FlagGems pull request 5961). Two: a B200
// rotates 67.1 M 16-bit queries and keys in 867.5 us (pytorch pull request 176223), of which a contiguous sum
// is 65; per number two products with factors of its position, half a negation and a join of slices. An
// H100 takes 11 % longer than that for a large rotation in fp32 (issue 141265). Other makers' chips were not
// seen.
constexpr double kStridedOne = 3.35e9, kStridedTwo = 1.51e9;  // numbers per second and compute unit

KernelCost ComputeModel::strided(const StridedResults& results, double bytes, double kernels,
                                 MemoryKernel kind) const {
  KernelCost cost = memory_bound(bytes, kind, kernels);
  if (accelerator_.compute_capability == 0 || accelerator_.compute_units == 0) return cost;
  const double one_by_one =
      (results.of_one / kStridedOne + results.of_two / kStridedTwo) / accelerator_.compute_units +
      kernels * seconds(settings_.memory_fixed);
  if (one_by_one <= cost.seconds) return cost;
  cost.seconds = one_by_one;
  cost.memory_seconds = 0;
  cost.complete(kernels, 0);
  return cost;
}

double AttentionShape::mean_keys() const {
  const double side = causal ? window : window / 2;
  const double seen = side > 0 && side < keys ? side * (1 - side / (2 * keys)) : keys / 2;
  return (causal ? 1 : 2) * seen;
}

namespace {
double score_flops(const AttentionShape& shape) {
  const double pairs = shape.queries * shape.mean_keys();
  return 2 * shape.batch * shape.heads * pairs * (shape.head_dim + shape.value_dim);
}
}  // namespace

FlashRates ComputeModel::flash_rates_of(AttentionKernel kernel, Precision precision) const {
  const Precision units = flash_units(accelerator_, precision);
  ProductRates product;
  product.peak = product.best = peak(units).value();
  if (const double* best = measured_best(units); best != nullptr) {
    product.best = *best;
    product.measured = true;
  } else if (const auto* gemm = find_by(accelerator_.gemm, lookup_order(accelerator_, units));
             gemm != nullptr) {
    product.best *= largest_tile_efficiency(*gemm);
  }
  FlashRates rates = flash_rates(accelerator_, kernel, units, product);
  for (FlashPass* pass : {&rates.forward, &rates.backward}) pass->rate *= held(units);
  return rates;
}

// Tensor cores load 16 bytes at a time: "efficiency is best" (cuBLAS 11), or they work at all (before), where
// dimensions are multiples of 8 in 16 bits (NVIDIA, Matrix Multiplication Background User's Guide, 4). Heads
// of 150, 180 or 108 numbers misalign every other head; their products then run at the rate of plain fp32.
// Added after BLOOM's trial runs, whose runs with such shapes are 30 % slower than their neighbours, so these
// runs are no test of it.
KernelCost ComputeModel::product_of_heads(const GemmShape& shape, double head_dim,
                                          Precision precision) const {
  KernelCost cost = gemm(shape, precision);
  const auto plain = accelerator_.dense_flops.find("fp32");
  if (std::fmod(head_dim, 8) != 0 && plain != accelerator_.dense_flops.end())
    cost.seconds = std::max(cost.seconds, cost.flops / plain->second);
  cost.squares = cost.seconds * cost.seconds;
  return cost;
}

KernelCost ComputeModel::attention_forward(const AttentionShape& shape, AttentionKernel kernel,
                                           Precision precision) const {
  KernelCost cost;
  if (kernel != AttentionKernel::unfused) {
    const FlashRates rates = flash_rates_of(kernel, precision);
    cost = flash_cost(accelerator_, shape, rates.forward, FlashDirection::forward, bytes_of(precision));
    cost.kernels = 1;
  } else {
    const double batch = shape.batch * shape.heads;
    const double scores = batch * shape.queries * shape.keys;
    cost = product_of_heads({shape.queries, shape.keys, shape.head_dim, batch}, shape.head_dim, precision);
    // Dropout reads, writes, and keeps one byte of mask per score.
    cost += softmax(scores, precision, true);
    if (shape.dropout)
      cost += memory_bound(scores * (2 * bytes_of(precision) + 1), MemoryKernel::elementwise);
    cost += product_of_heads({shape.queries, shape.value_dim, shape.keys, batch}, shape.value_dim, precision);
    cost.kernels += 4;  // transposes and views made contiguous
  }
  cost.flops = score_flops(shape);
  return cost;
}

KernelCost ComputeModel::attention_decode(const AttentionShape& shape, Precision precision,
                                          Precision cache) const {
  const double width = shape.head_dim + shape.value_dim;
  const double keys = shape.window > 0 ? std::min(shape.window, shape.keys) : shape.keys;
  const double cached = shape.kv_heads * (shape.values_in_keys ? shape.head_dim : width);
  const double bytes = shape.batch * (stored_bytes(cache) * cached * (keys + shape.queries) +
                                      bytes_of(precision) * width * shape.heads * shape.queries);
  KernelCost cost;
  cost.kernels = 2;
  cost.flops = 2 * shape.batch * shape.heads * shape.queries * keys * width;
  const double memory = bytes / (accelerator_.memory_bandwidth.value() * accelerator_.fused_fraction);
  const FlashPass pass = flash_rates_of(AttentionKernel::flash, precision).forward;
  const double compute = cost.flops / pass.rate * (1 + pass.schedule.start / std::max(1.0, keys));
  cost.seconds = std::max(memory, compute) + 2 * seconds(settings_.memory_fixed);
  if (memory >= compute) cost.memory_seconds = cost.seconds;
  cost.complete(1, accelerator_.fused_fraction);
  return cost;
}

KernelCost ComputeModel::attention_backward(const AttentionShape& shape, AttentionKernel kernel,
                                            Precision precision) const {
  KernelCost cost;
  if (kernel != AttentionKernel::unfused) {
    const FlashRates rates = flash_rates_of(kernel, precision);
    AttentionShape computed = shape;
    if (!rates.sees_window_backward) computed.window = 0;
    cost = flash_cost(accelerator_, computed, rates.backward, FlashDirection::backward, bytes_of(precision));
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
    cost += softmax(scores, precision, false);
    cost.kernels += 4;
  }
  cost.flops = 2 * score_flops(shape);
  return cost;
}
}  // namespace topsim::workloads
