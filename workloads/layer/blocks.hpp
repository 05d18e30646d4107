// The two halves of a transformer layer. Each writes its pieces into a list and returns what the next piece
// must wait for.
#pragma once

#include <memory>

#include "workloads/layer/layer_kernels.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads {

// From the layer's input to the sum over the tensor group after the output projection.
class Attention {
 public:
  // REQUIRES: kernels outlives the object.
  Attention(const LayerKernels& kernels, const LayerParameters& parameters);
  int forward(PieceList& list) const;
  int backward(PieceList& list, RecomputeKind recompute) const;

 private:
  int core_forward(PieceList& list) const;
  int core_backward(PieceList& list) const;
  int exchange(PieceList& list, const KernelCost& core, int passes) const;
  [[nodiscard]] KernelCost rotary() const;

  const LayerKernels& kernels_;
  LayerParameters parameters_;
  double heads_, kv_heads_, qkv_width_, context_width_;
  AttentionShape shape_;
  Linear qkv_, proj_;
};

// From the normed residual stream to the sum that is added to it.
class FeedForward {
 public:
  virtual ~FeedForward() = default;
  virtual int forward(PieceList& list) const = 0;
  virtual int backward(PieceList& list) const = 0;
};
// REQUIRES: kernels outlives the result.
[[nodiscard]] std::unique_ptr<FeedForward> dense_feed_forward(const LayerKernels& kernels,
                                                              const LayerParameters& parameters);
}  // namespace topsim::workloads
