// Generations of NVIDIA's accelerators by their compute capability (cuda-cc in accelerators.json). Each is
// false for accelerators of other makers, which have none.
#pragma once

#include "topology/catalogue.hpp"

namespace topsim::topology {

constexpr int kAmpere = 80, kGa102 = 86, kAda = 89, kHopper = 90, kBlackwell = 100, kBlackwellUltra = 103,
              kDesktopBlackwell = 120;

[[nodiscard]] inline bool is_nvidia(const Accelerator& accelerator) {
  return accelerator.compute_capability > 0;
}
[[nodiscard]] inline bool is_before_ampere(const Accelerator& accelerator) {
  return is_nvidia(accelerator) && accelerator.compute_capability < kAmpere;
}
[[nodiscard]] inline bool is_from_ampere(const Accelerator& accelerator) {
  return accelerator.compute_capability >= kAmpere;
}
[[nodiscard]] inline bool is_a100(const Accelerator& accelerator) {  // and A30, A800
  return accelerator.compute_capability == kAmpere;
}
[[nodiscard]] inline bool is_hopper(const Accelerator& accelerator) {
  return accelerator.compute_capability == kHopper;
}
[[nodiscard]] inline bool is_from_hopper(const Accelerator& accelerator) {
  return accelerator.compute_capability >= kHopper;
}
[[nodiscard]] inline bool is_from_blackwell(const Accelerator& accelerator) {
  return accelerator.compute_capability >= kBlackwell;
}
// B200 to GB300: with tensor memory and fourth-generation instructions, which workstation cards lack.
[[nodiscard]] inline bool is_data_center_blackwell(const Accelerator& accelerator) {
  return is_from_blackwell(accelerator) && accelerator.compute_capability < kDesktopBlackwell;
}
// The year in which accelerators that follow were sold, for all before Ampere that of Ampere; 0: none are, or
// another maker's. A100 came in May 2020 (NVIDIA's GTC), H100 and RTX 4090 in autumn 2022, B200 in late 2024,
// RTX 5090 in January 2025.
[[nodiscard]] inline int succeeded_in(const Accelerator& accelerator) {
  if (!is_nvidia(accelerator) || is_from_blackwell(accelerator)) return 0;
  if (is_before_ampere(accelerator)) return 2020;
  if (accelerator.compute_capability < kAda) return 2022;
  return is_hopper(accelerator) ? 2024 : 2025;
}

}  // namespace topsim::topology
