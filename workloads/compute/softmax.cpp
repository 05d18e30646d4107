// What attention that stores its scores passes through memory between its two products.
#include "workloads/compute/compute_model.hpp"

namespace topsim::workloads {
namespace {
// As nanoGPT (model.py, CausalSelfAttention) and transformers' eager models write it under autocast, where
// softmax reads and writes fp32: scores are scaled (read, written), copied and filled by the mask (read,
// written twice), cast, passed through softmax (`softmax` bytes of fp32: forward read and written, backward
// the answer too), cast back. Backward the same in reverse.
double eager_softmax_bytes(Precision precision, double softmax) {
  const double element = bytes_of(precision);
  const double casts = element < 4 ? 2 * (element + 4) : 0;
  return 5 * element + casts + softmax;
}

// Megatron before it had kernels for them (NVIDIA/Megatron-LM of 2019, mpu/transformer.py: scores / sqrt,
// torch.mul by the mask, less 10000 (1 - mask), Softmax): each read and written in the model's format;
// backward the softmax's three, two of the product and two of the quotient.
constexpr double kApartForward = 8, kApartBackward = 7;
}  // namespace

// Fused, scale, mask and softmax read and write the scores; backward reads the gradient and the probabilities
// and writes the gradient.
//
// Megatron where its fused kernel does not fit (megatron/model/fused_softmax.py; the scale is the layer's
// number, --apply-query-key-layer-scaling, which requires fp32): cast, scaled 8, masked in place 8, softmax
// 8, cast back. Backward the softmax's 12, the gradient copied and masked 16, scaled 8, between casts.
//
// XLA's loops without Triton's softmax: the maximum (read), the sum of the exponentials (read), the quotient
// (read, written); backward the sum of gradient times answer (both read), then both read and the gradient
// written.
KernelCost ComputeModel::softmax(double scores, Precision precision, bool forward) const {
  const double element = bytes_of(precision);
  const bool narrow = element < 4;
  double bytes = element * (settings_.fused ? (forward ? 2 : 3) : (forward ? kApartForward : kApartBackward));
  double kernels = settings_.fused ? 1 : (forward ? 4 : 3);
  if (settings_.looped_softmax) {
    bytes = element * (forward ? 4 : 5);
    kernels = forward ? 3 : 2;
  } else if (settings_.plain_softmax) {
    bytes = (narrow ? 2 * (element + 4) : 0) + (forward ? 24 : 36);
    kernels = (narrow ? 2 : 0) + (forward ? 3 : 4);
  } else if (settings_.eager_softmax) {
    bytes = eager_softmax_bytes(precision, forward ? 8 : 12);
    kernels = 6;
  }
  return memory_bound(scores * bytes, MemoryKernel::elementwise, kernels);
}
}  // namespace topsim::workloads
