// Number formats: their size and their names.
#include "workloads/compute/compute_model.hpp"

namespace topsim::workloads {

double bytes_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
    case Precision::tf32:
      return 4;
    case Precision::fp16:
    case Precision::bf16:
      return 2;
    case Precision::fp8:
    case Precision::mxfp8:
    case Precision::fp8_blockwise:
      return 1;
    case Precision::nvfp4:
      return 0.5;
    case Precision::nf4:
      return 0.5 + 4.0 / 64;
    case Precision::nf4_double:
      return 0.5 + 1.0 / 64 + 4.0 / (64 * 256);
  }
  return 2;
}

// 8 bits for 32 numbers (OCP microscaling) or for 16 (NVFP4). One scale for a tensor, a channel or 128 x 128
// numbers is negligible.
double stored_bytes(Precision precision) {
  if (precision == Precision::mxfp8) return 1 + 1.0 / 32;
  return precision == Precision::nvfp4 ? 0.5 + 1.0 / 16 : bytes_of(precision);
}

std::string_view name_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return "fp32";
    case Precision::tf32:
      return "tf32";
    case Precision::fp16:
      return "fp16";
    case Precision::bf16:
      return "bf16";
    case Precision::fp8:
      return "fp8";
    case Precision::mxfp8:
      return "mxfp8";
    case Precision::fp8_blockwise:
      return "fp8-blockwise";
    case Precision::nvfp4:
      return "nvfp4";
    case Precision::nf4:
      return "nf4";
    case Precision::nf4_double:
      return "nf4-double";
  }
  return "unknown";
}
}  // namespace topsim::workloads
