// Which of the catalogue's links a PCIe slot is: its efficiency and latency are measured, and differ between
// generations.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>

namespace topsim::topology {

struct PcieSlot {
  double transfers = 0;  // GT/s of a lane
  int lanes = 0;
  // GB/s per direction after line coding (8b/10b up to Gen2, else 128b/130b).
  [[nodiscard]] double coded() const { return transfers * lanes * coding() / 8; }
  [[nodiscard]] double coding() const { return transfers < 8 ? 0.8 : 128.0 / 130; }
  // Of this slot, or of one of its generation.
  [[nodiscard]] std::string catalogue_id() const {
    if (transfers < 8) return "pcie2-x8";
    const int generation = transfers < 16 ? 3 : transfers < 32 ? 4 : transfers < 64 ? 5 : 6;
    return fmt::format("pcie{}-x{}", generation, lanes == 4 || lanes == 8 ? lanes : 16);
  }
};

// Whether a rate is one of Gen1 or Gen2, at which GPUs rest: with 8 bits in 10, their lanes carry multiples
// of a quarter GB/s, up to 16 of a half. Those of later ones are never so near to one: Gen3 x4 is 3.94,
// x8 7.88.
[[nodiscard]] inline bool is_old_pcie(double gigabytes) {
  constexpr double kLane = 0.25, kMost = 16 * 0.5, kRounded = 0.02;
  const double lanes = gigabytes / kLane;
  return gigabytes < kMost + kRounded && std::abs(lanes - std::round(lanes)) < kRounded;
}

// The slot of the catalogue with the nearest rate, of two alike the wider one.
[[nodiscard]] inline PcieSlot nearest_slot(double gigabytes) {
  PcieSlot best{5, 8};
  double nearest = std::abs(std::log(gigabytes / best.coded()));
  for (const int lanes : {16, 8, 4})
    for (const double transfers : {8.0, 16.0, 32.0, 64.0}) {
      const PcieSlot slot{transfers, lanes};
      const double off = std::abs(std::log(gigabytes / slot.coded()));
      if (off < nearest - 1e-9) nearest = off, best = slot;
    }
  return best;
}
}  // namespace topsim::topology
