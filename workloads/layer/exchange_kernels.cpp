#include "workloads/layer/exchange_kernels.hpp"

#include <algorithm>

#include "topology/generation.hpp"

namespace topsim::workloads {
namespace {

// Nanoseconds per copy. Sources state bandwidths for rows of 7168 numbers in 16 and 8 bits, and with random
// routing a token's copies follow (expert_feed_forward.cpp); two widths give a part per copy and per byte.

// HybridEP inside one NVLink domain of Blackwell (deepseek-ai/DeepEP, docs/README_Hybrid-EP.md, kernels
// only): 764, 707, 666, 642 and 632 GB/s in 16 bits on 8, 16, 24, 32 and 36 GB200 with 32 SMs, 714 to 489 in
// 8; back, summed, 737 to 597. Rows leave with a probability for every expert of the domain and cross links
// unless they stay on the rank. For each copy a warp looks at every rank. 16 bits are met within 2 %, 8 bits
// within 6 % up to 32 ranks. With 16 SMs 1.02 to 1.07 times as long, back 1.08 to 1.13; 8 bits on 24 and more
// ranks take 1.6 to 1.9 times as long, which is not counted. A B200 (735 and 674 GB/s with 16) is no
// different.
constexpr double kHybridEpByte = 1 / 714.0;
struct PerCopy {
  double copy, rank;
};
constexpr PerCopy kHybridEpThere{0.6, 0.03}, kHybridEpBack{1.2, 0.09};
constexpr double kHybridEpFew = 1.04, kHybridEpFewBack = 1.10;
constexpr int kHybridEpAll = 32, kHybridEpHalf = 16;

// HybridEP over several boxes of H100, by two of them, where the NICs are not the limit (the same page): 71.7
// and 68.5 GB/s for a copy to each box in 16 and 8 bits with 16 SMs, back 63.0; 8 SMs do as well.
constexpr double kHybridEpBoxCopy = 1.5, kHybridEpBoxByte = 1 / 250.0, kHybridEpBoxBack = 1.17;
constexpr int kHybridEpBoxUnits = 8;

// DeepEP inside one domain of Blackwell (the same page; with its host's call): SMs limit it, 362, 513, 616
// GB/s in 16 bits and 249, 351, 448 in 8 with 16, 24, 32 of them on 8 GB200; then links (646 GB/s with 48
// SMs of a B200). Back: 310, 426, 520. Met within 11 %.
constexpr double kDeepEpCopy = 290, kDeepEpByte = 1 / 40.0, kDeepEpLink = 1 / 650.0, kDeepEpBack = 1.19;

// DeepEP over several boxes, by two of H200 (deepseek-ai/DeepEP issue 493): 133.8 and 124.9 GB/s over NVLink
// in 16 and 8 bits with 24 SMs, back 145.2. Two boxes of H800 take as long (its README: 43 GB/s to each box).
// 20 SMs do as well (DeepSeek-V3 report, 3.2.2).
constexpr double kDeepEpBoxCopy = 7.8, kDeepEpBoxByte = 1 / 145.0, kDeepEpBoxBack = 0.92;
constexpr int kDeepEpBoxUnits = 20;

// DeepEP's low-latency kernels inside a box (its README, eight H800, 128 tokens with 8 experts each: 77 us
// for rows of 7168 + 4 x 56 bytes, 114 for 14336), less the 13.3 us of a start. Over more boxes the NICs are
// the limit, so the other ten times of that table are no part of this.
constexpr double kLowLatencyCopy = 24, kLowLatencyByte = 1 / 192.0;

// With fewer SMs than suffice.
double times_longer(int suffice, int units) {
  return std::max(1.0, static_cast<double>(suffice) / units);
}

double hybridep(const TokenExchange& exchange, bool blackwell) {
  const double row = exchange.row + exchange.probabilities;
  if (!blackwell) {
    return (kHybridEpBoxCopy + kHybridEpBoxByte * row) * times_longer(kHybridEpBoxUnits, exchange.units) *
           (exchange.combine ? kHybridEpBoxBack : 1);
  }
  const double missing = std::clamp(
      static_cast<double>(kHybridEpAll - exchange.units) / (kHybridEpAll - kHybridEpHalf), 0.0, 1.0);
  const double few = 1 + missing * ((exchange.combine ? kHybridEpFewBack : kHybridEpFew) - 1);
  const double fewer = times_longer(kHybridEpHalf, exchange.units);
  const double crossing = (exchange.ranks - 1) / exchange.ranks;
  const PerCopy& per = exchange.combine ? kHybridEpBack : kHybridEpThere;
  return (kHybridEpByte * row * crossing + per.copy + per.rank * exchange.ranks) * few * fewer;
}

double deepep(const TokenExchange& exchange, bool blackwell) {
  if (!blackwell)
    return (kDeepEpBoxCopy + kDeepEpBoxByte * exchange.row) * times_longer(kDeepEpBoxUnits, exchange.units) *
           (exchange.combine ? kDeepEpBoxBack : 1);
  const double units = (kDeepEpCopy + kDeepEpByte * exchange.row) / exchange.units;
  return std::max(units, kDeepEpLink * exchange.row) * (exchange.combine ? kDeepEpBack : 1);
}
}  // namespace

double exchange_seconds(const TokenExchange& exchange, const topology::Accelerator& chip) {
  const bool blackwell = topology::is_data_center_blackwell(chip), hopper = topology::is_hopper(chip);
  if (exchange.units <= 0 || !(blackwell || (hopper && exchange.domains > 1))) return 0;
  const double each = exchange.dispatcher == TokenDispatcher::hybridep ? hybridep(exchange, blackwell)
                                                                       : deepep(exchange, blackwell);
  return exchange.copies * each * 1e-9;
}

double low_latency_seconds(double copies, double row, const topology::Accelerator& chip) {
  const bool known = topology::is_hopper(chip) || topology::is_data_center_blackwell(chip);
  return known ? copies * (kLowLatencyCopy + kLowLatencyByte * row) * 1e-9 : 0;
}
}  // namespace topsim::workloads
