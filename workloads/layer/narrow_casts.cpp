// Casts to 8 and 4 bits, and what is gathered in them.
#include "topology/generation.hpp"
#include "workloads/layer/layer_kernels.hpp"

namespace topsim::workloads {
namespace {
// Transformer Engine's cast to MXFP8 in both layouts, in bytes per number: 8192 x 8192 numbers in 52.34 us on
// a B200 (ROCm/TransformerEngine pull request 598, CAST_ONLY, BF16, both), the time that other fused kernels,
// at 0.8 of 8 TB/s, need for 5 bytes. It reads 2 and writes 2 and two scales for 32.
constexpr double kMxCast = 5;
// Kernels that cast a tensor to NVFP4: maxima zeroed, found (of the tensor, and of its columns' Hadamard
// transform), the cast in both layouts at once (Transformer Engine, pytorch/csrc/quantizer.cpp,
// NVFP4Quantizer::quantize_impl; one cast since pull request 2555, two before). A list of tensors shares them
// (pull requests 2351 and 2411).
constexpr double kFourBitKernels = 3;

// Bytes per number with block scales: 1 per 32 numbers (MXFP8), 4 per 128, 1 per 16 of four bits.
double bytes_sent(Precision precision) {
  if (precision == Precision::fp8) return 1;
  return precision == Precision::nvfp4 ? 0.5 + 1.0 / 16 : 1 + 1.0 / 32;
}
}  // namespace

// Each operand is read in 16 bits and written in every layout that is needed; a scale from the current
// maximum needs one more read before. Matrices are cast one by one, except with scales known beforehand
// (Transformer Engine, csrc/extensions/cast.cpp, multi_tensor_quantize_impl: "currently only have fused
// kernel for FP8 delayed scaling"); a current maximum is first zeroed, computed and made a scale
// (common/recipe/current_scaling.cu).
KernelCost LayerKernels::casts_of(double count, double elements, double layouts) const {
  const bool four = plan.gemm == Precision::nvfp4, maximum = finds_maximum();
  const bool both_blocks = plan.gemm == Precision::mxfp8 && layouts > 1;
  const double reads = (plan.reads_again ? layouts : 1) + (maximum ? 1 : 0);
  const double written = layouts * (four ? bytes_sent(plan.gemm) : 1);
  const double passed = both_blocks ? kMxCast : 2 * reads + written;
  const bool known = plan.gemm == Precision::fp8 && !plan.dynamic_scales;
  const bool listed = known || (four && maximum) || plan.one_expert_kernel();
  return compute.memory_bound(count * elements * passed, MemoryKernel::elementwise,
                              (!maximum ? 1
                               : four   ? kFourBitKernels
                                        : kOwnScaleKernels) *
                                  (listed ? 1 : count));
}

// Transformer Engine reorders the block scales of both operands of a product by a kernel each (pytorch/csrc/
// extensions/gemm.cpp: swizzle_scaling_factors, for a list of matrices multi_tensor_swizzle_scaling_factors;
// issue 2446), until casts write them in that order: pull requests 3011 (NVFP4, May 2026) and 3338 (MXFP8,
// August 2026). The former measured 25 us for two kernels on shapes of Llama, more than is counted here.
// Fused experts are taken to write it.
KernelCost LayerKernels::swizzled(double count, double numbers) const {
  if (!plan.swizzles_scales || (plan.experts.fused && count > 1)) return {};
  const double block = plan.gemm == Precision::nvfp4 ? 16 : 32;
  return compute.memory_bound(2 * count * numbers / block, MemoryKernel::elementwise, 2);
}

// Of a tensor, not of blocks; NVFP4's block scales are themselves scaled by the tensor's maximum.
bool LayerKernels::finds_maximum() const {
  return plan.dynamic_scales && (plan.gemm == Precision::fp8 || plan.gemm == Precision::nvfp4);
}

double LayerKernels::layouts_cast() const {
  return plan.reads_either_layout && topology::is_data_center_blackwell(compute.accelerator()) ? 1 : 2;
}
// Formats with block scales were cast in both layouts already.
KernelCost LayerKernels::transposed(double elements) const {
  if (plan.gemm != Precision::fp8 || layouts_cast() < 2) return {};
  return compute.memory_bound(2 * elements, MemoryKernel::elementwise);
}

LayerKernels::Gathered LayerKernels::cast_rows(double wide, double sent) const {
  const double numbers = wide / element / plan.tp;
  const double blocks = plan.gemm == Precision::nvfp4 ? 2 * bytes_sent(plan.gemm) : 2;
  const double passed = plan.gemm == Precision::mxfp8 ? kMxCast
                        : plan.gemm == Precision::fp8 ? 3
                                                      : 2 + blocks;
  Gathered result{wide / element * sent};
  if (plan.copies_to_buffers && in_tiles() && plan.gemm == Precision::mxfp8) {
    result.scales = numbers * plan.tp / 32;
    result.bytes -= result.scales;
  }
  if (finds_maximum()) result.maximum = compute.memory_bound(2 * numbers, MemoryKernel::elementwise);
  result.cast = compute.memory_bound(passed * numbers, MemoryKernel::elementwise);
  return result;
}
LayerKernels::Gathered LayerKernels::gathered_input(double wide, bool normed) const {
  if (!plan.gathers_narrow) return {wide};
  const double sent = bytes_sent(plan.gemm);
  if (normed && plan.casts_in_norms) return {wide / element * sent};
  return cast_rows(wide, sent);
}
// With block scales both layouts of a gradient are gathered, because neither follows from the other.
LayerKernels::Gathered LayerKernels::gathered_gradient(double wide) const {
  if (!plan.gathers_narrow) return {wide};
  return cast_rows(wide, (plan.gemm == Precision::fp8 ? 1 : 2) * bytes_sent(plan.gemm));
}
}  // namespace topsim::workloads
