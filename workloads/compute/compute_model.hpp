// Time of kernels that have one accelerator to themselves.
//
// GEMM of M x N x K, `batch` times (fitted on the 79 k measured GEMMs of Vidur, arXiv 2405.05465):
//   t = max( min over tiles (tm, tn) of  W SM tm tn 2 (K + k0) / (P e),   bytes / (BW beta) ) + t0
//   W = ceil(batch ceil(M/tm) ceil(N/tn) / (SM - margin))   waves over the compute units; where one wave
//       would leave units idle, K is divided among s tiles, W counts all and 8 s M N bytes pass through
//       memory
//   e = pf / (1 + c (1/tm + 1/tn))               share of the peak P a tile of that size reaches
//   P [FLOP/s] dense peak, BW [B/s] memory bandwidth, SM compute units; pf, k0, beta, t0 [s], c:
//   GemmConstants.
// Never faster than the measured best matmul (MAMF). Valid for dense matmuls of 1 GFLOP and more; mean
// absolute error on models held out of the fit: A100 6.0 %, H100 9.5 %, A40 6.9 %.
//
// A chip at its power limit lowers its clock, and sweeps are too short to reach it. Where the catalogue has
// the rate that an 8192-cube product sustains for minutes ("sustained"), P is derated, for matmuls and
// attention of that format, by the ratio of that rate to the model's for the same product. `compute.clock`
// derates further.
//
// Memory-bound kernel: t = bytes / (BW share), share by kind of kernel, fused or eager. PyTorch's operators
// on slices or repeated operands: no faster than a rate of numbers per compute unit (strided).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "topology/catalogue.hpp"
#include "workloads/compute/flash.hpp"
#include "workloads/compute/grids.hpp"
#include "workloads/compute/tiles.hpp"
#include "workloads/spec.hpp"

namespace topsim::workloads {

// The cost of one kernel or a run of them.
struct KernelCost {
  double seconds = 0;         // alone on the accelerator
  double memory_seconds = 0;  // part of it limited by memory bandwidth
  double flops = 0;           // model FLOPs; zero for what is only recomputed
  double kernels = 0;         // launches
  double host = 0;            // host time to issue them; 0: as one eager operator each
  double filling = 0;         // part of memory_seconds: kernels that leave others no bandwidth
  double squares = 0;         // sum of the squares of each kernel's seconds
  GridTimes grids{};          // of its matrix products
  KernelCost& operator+=(const KernelCost& other) {
    seconds += other.seconds;
    memory_seconds += other.memory_seconds;
    filling += other.filling;
    flops += other.flops;
    kernels += other.kernels;
    host += other.host;
    squares += other.squares;
    grids += other.grids;
    return *this;
  }
  friend KernelCost operator+(KernelCost a, const KernelCost& b) { return a += b; }
  friend KernelCost operator*(KernelCost a, double k) {
    a.seconds *= k, a.memory_seconds *= k, a.filling *= k, a.flops *= k, a.kernels *= k, a.host *= k,
        a.squares *= k;
    a.grids *= k;
    return a;
  }
  // This is one kernel, or `count` equal ones, which reach so much of the memory's bandwidth where it limits
  // them.
  void complete(double count, double reached);
};

// With which a tensor becomes 8 bits wide by a scale of its own: its maximum zeroed and found, the scale, the
// cast (Transformer Engine, Float8CurrentScalingQuantizer).
inline constexpr double kOwnScaleKernels = 4;

struct GemmShape {
  double m = 0, n = 0, k = 0;
  double batch = 1;
  double weight_bytes = 0;  // of one of the N x K numbers in memory; 0: as the product takes them
  bool odd_rows = false;    // an operand's or the result's rows in memory are an odd number of numbers
  bool grouped = false;     // one kernel multiplies all of the batch, each with a number of rows of its own
  double scale_bytes = 0;   // beside each of the N x K numbers, of the scales that blocks of them have
};

// Where a GEMM puts its result.
enum class GemmOutput : std::uint8_t {
  fresh,          // written in 16 bits
  accumulate_32,  // added to fp32 gradients: 8 bytes an element
};

// `indexed`: numbers picked or put by an index each, in PyTorch before 2.8.
enum class MemoryKernel : std::uint8_t { norm, elementwise, add, optimizer, indexed };

// Numbers that operators write from one operand (copies, joins, clamps) and from two (products).
struct StridedResults {
  double of_one = 0, of_two = 0;
};

// One attention core: softmax(Q K^T) V for `batch` sequences and `heads` heads on this accelerator.
struct AttentionShape {
  double batch = 1, heads = 1, kv_heads = 1, queries = 0, keys = 0, head_dim = 0, value_dim = 0;
  bool causal = true;
  bool dropout = false;
  double window = 0;            // AttentionSpec::window
  bool values_in_keys = false;  // latent attention, absorbed: the cache holds no values of their own
  [[nodiscard]] double mean_keys() const;  // of a query
};

struct ComputeSettings {
  std::optional<double> gemm_efficiency;  // replaces the tile model: share of the data sheet's rate
  double clock = 1;                       // derating of the compute rate
  bool fused = true;                      // memory-bound kernels are fused
  bool eager_softmax = false;             // attention with stored scores is written in PyTorch's operators
  bool plain_softmax = false;             // ... Megatron's operators, where its fused kernel does not fit
  int sm_margin = 0;                      // units that matrix products leave free
  Duration memory_fixed{};                // fixed time of a memory-bound kernel
  bool fixed_tiles = false;               // products of a library until 2024 (grids.hpp)
  bool looped_softmax = false;            // stored scores: reductions are kernels of their own
};

class ComputeModel {
 public:
  // REQUIRES: accelerator outlives the model.
  ComputeModel(const topology::Accelerator& accelerator, ComputeSettings settings);

  // `margin`: units left free at least.
  [[nodiscard]] KernelCost gemm(const GemmShape& shape, Precision precision,
                                GemmOutput output = GemmOutput::fresh, int margin = 0) const;
  [[nodiscard]] KernelCost memory_bound(double bytes, MemoryKernel kind, double kernels = 1) const;
  // PyTorch's operators with operands that are slices or repeat along a dimension.
  [[nodiscard]] KernelCost strided(const StridedResults& results, double bytes, double kernels = 1,
                                   MemoryKernel kind = MemoryKernel::elementwise) const;
  // Flash: one kernel; the causal half is not computed. Unfused: batched GEMMs on the full matrix and passes
  // over the scores.
  [[nodiscard]] KernelCost attention_forward(const AttentionShape& shape, AttentionKernel kernel,
                                             Precision precision) const;
  // One token a sequence against its cache of `keys`: read once, work split over the keys (Flash-Decoding,
  // 2023) and no faster than a flash kernel's products; a second kernel adds up the parts. `cache`: of keys
  // and values.
  [[nodiscard]] KernelCost attention_decode(const AttentionShape& shape, Precision precision,
                                            Precision cache) const;
  [[nodiscard]] KernelCost attention_backward(const AttentionShape& shape, AttentionKernel kernel,
                                              Precision precision) const;
  [[nodiscard]] FlopsPerSecond peak(Precision precision) const;
  // The factors on a large product's time at the fastest (at most 1) and the slowest (at least 1) rate that a
  // source measured; both 1 where there is only one source, or the user gives the rate.
  struct Disagreement {
    double fastest = 1, slowest = 1;
  };
  [[nodiscard]] Disagreement disagreement(Precision precision) const;
  [[nodiscard]] const topology::Accelerator& accelerator() const { return accelerator_; }

 private:
  [[nodiscard]] const topology::GemmConstants& constants_of(Precision precision) const;
  // The best product measured in this format, or in another that runs at its rate; null: none.
  [[nodiscard]] const double* measured_best(Precision precision) const;
  [[nodiscard]] FlashRates flash_rates_of(AttentionKernel kernel,
                                          Precision precision) const;  // that it holds
  // The passes through stored scores between their two products, without dropout.
  [[nodiscard]] KernelCost softmax(double scores, Precision precision, bool forward) const;
  // A product for each head, with heads of `head_dim` numbers adjacent in memory.
  [[nodiscard]] KernelCost product_of_heads(const GemmShape& shape, double head_dim,
                                            Precision precision) const;
  [[nodiscard]] Tiling tiled(const GemmShape& shape, double peak_rate,
                             const topology::GemmConstants& constants, int margin = 0) const;
  [[nodiscard]] double held(Precision precision) const;  // share of the clock that a step sustains

  const topology::Accelerator& accelerator_;
  ComputeSettings settings_;
  std::map<std::string, double, std::less<>> held_;  // by the power limit, by precision
};

[[nodiscard]] double bytes_of(Precision precision);  // of one stored element, scales not counted
// Of a weight, key or value in memory, with its share of its block's scale.
[[nodiscard]] double stored_bytes(Precision precision);
[[nodiscard]] std::string_view name_of(Precision precision);
[[nodiscard]] std::string_view units_of(Precision precision);  // the catalogue's name of the units it needs
}  // namespace topsim::workloads
