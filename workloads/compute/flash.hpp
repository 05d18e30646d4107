// Rates of attention kernels that never store their scores, by architecture.
//
//   t = flops x (keys + offset) / (keys x rate)       keys: that a query sees, in the mean
//
// rate [FLOP/s]: on long sequences; offset [keys]: depth that each row of tiles pays on top where a causal
// mask makes rows of different lengths (half-empty diagonal tiles, compute units that wait for the longest
// row, prologue, softmax rescaling); without a mask less, where a sweep says so. Both read from benchmarks
// of kernels, never from a step; flash.cpp names them row by row. Where a best matrix product was
// measured, no kernel is faster.
#pragma once

#include "topology/catalogue.hpp"
#include "workloads/spec.hpp"

namespace topsim::workloads {

struct FlashPass {
  double rate = 0;  // FLOP/s
  double key_offset = 0;
  // Where every query sees all keys:
  double unmasked_rate = 0;
  double unmasked_offset = 0;
};

struct FlashRates {
  FlashPass forward, backward;
  double forward_at_64 = 1, backward_at_64 = 1;  // share of the rate at heads of 128 that heads of 64 have
  bool sees_window_backward = true;              // computes no key outside a window, backward too
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
