// Which units multiply a format that a chip has none for.
#pragma once

#include "topology/catalogue.hpp"
#include "topology/generation.hpp"

namespace topsim::workloads {
// NVIDIA's tensor cores take bf16 from Ampere on. Before, cuBLAS multiplies it on the fp32 units: 10.65
// TFLOP/s on a V100 whose fp16 reaches 97.4 and whose fp32 14.5 (zzc0721/torch-performance-test-data issue
// 140).
[[nodiscard]] inline bool widens_bf16(const topology::Accelerator& accelerator) {
  return topology::is_before_ampere(accelerator);
}
// One scale per 32 elements within a tensor core (OCP microscaling, 2023): the units of Blackwell, CDNA 4 and
// Trainium3 are the first of their makers.
[[nodiscard]] inline bool scales_blocks(const topology::Accelerator& accelerator) {
  return topology::is_nvidia(accelerator) ? topology::is_from_blackwell(accelerator)
                                          : accelerator.year >= 2025;
}
}  // namespace topsim::workloads
