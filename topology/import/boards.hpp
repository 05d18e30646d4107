// How servers are wired where a file does not say it.
#pragma once

#include <cstddef>

#include "topology/catalogue.hpp"

namespace topsim::topology {

// Boards of eight since Ampere: all NVLinks lead to NVSwitches (HGX A100, H100, B200).
[[nodiscard]] inline bool is_nvswitch_board(const Accelerator& accelerator, std::size_t count) {
  constexpr std::size_t kBoard = 8;
  constexpr int kAmpere = 80;
  return accelerator.form.starts_with("SXM") && accelerator.compute_capability >= kAmpere && count == kBoard;
}
}  // namespace topsim::topology
