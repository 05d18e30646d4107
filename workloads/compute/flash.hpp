// Rates of attention kernels that never store their scores, by architecture.
//
//   t = keys until the last tile is done (attention_tiles.hpp) x rows of a tile x FLOPs of a row and a key /
//       rate of one tile's place,   rate of a place = rate / (compute units x tiles at once)
//
// rate [FLOP/s]: of all units, on keys alone. It and the start of a tile are read from benchmarks of kernels,
// never from a step; flash.cpp names them row by row. Where a best matrix product was measured, no kernel is
// faster. Mean error on kernels of an H200, of which come only how cuDNN pads heads and what a tile alone on
// its unit takes: cuDNN 4 % (43 forward, 27 backward), FlashAttention-2 5 and 2 %. Few heads on other chips
// than Hoppers were never compared.
#pragma once

#include "topology/catalogue.hpp"
#include "workloads/compute/attention_tiles.hpp"
#include "workloads/spec.hpp"

namespace topsim::workloads {

struct FlashPass {
  double rate = 0;  // FLOP/s
  TileSchedule schedule{};
  double at_64 = 1;         // share of the rate at heads of 128 that heads of 64 have; linear in between
  double start_at_64 = 0;   // keys; 0: as heads of 128
  double mask_start = 0;    // keys that a tile's start costs more with a causal mask
  double window_start = 0;  // keys that a tile's start costs more with a window, whose edges are masked
  double head_step = 1;     // heads wider than 64 are padded to a multiple of so many numbers
};

struct FlashRates {
  FlashPass forward, backward;
  bool sees_window_backward = true;  // computes no key outside a window, backward too
};

// The format whose units the kernel multiplies with: 16 bits where no library has a kernel of 8.
[[nodiscard]] Precision flash_units(const topology::Accelerator& accelerator, Precision precision);

// Of these units, FLOP/s: the data sheet's rate; that of their best matrix product, measured or modelled.
struct ProductRates {
  double peak = 0, best = 0;
  bool measured = false;
};
[[nodiscard]] FlashRates flash_rates(const topology::Accelerator& accelerator, AttentionKernel kernel,
                                     Precision units, const ProductRates& product);
}  // namespace topsim::workloads
