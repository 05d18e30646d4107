// The two halves of a transformer layer. Each writes its pieces into a list and returns what the next piece
// must wait for.
#pragma once

#include <memory>

#include "workloads/layer/layer_kernels.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads {

// From the layer's input to the sum over the tensor group after the output projection. Latent attention
// first projects every token down to q_lora_rank + kv_lora_rank + qk_rope_head_dim numbers, on weights that
// every tensor rank holds whole, and gathers those instead of hidden (Megatron: multi_latent_attention.py).
// What selective recompute computes again: plan.hpp.
class Attention {
 public:
  // REQUIRES: kernels outlives the object.
  Attention(const LayerKernels& kernels, const LayerParameters& parameters);
  int forward(PieceList& list) const;
  int backward(PieceList& list, RecomputeKind recompute) const;
  // For Again::operators: the keys, rotation and copies of queries, keys and values, and the projection.
  // Returns what the next piece must wait for.
  int operators_again(PieceList& list) const;

 private:
  void absorb();
  [[nodiscard]] LayerKernels::Gathered input() const;
  int core_forward(PieceList& list) const;
  int core_backward(PieceList& list) const;
  enum class Pass { forward, backward };
  [[nodiscard]] KernelCost core_of(const AttentionShape& shape, Pass pass) const;
  [[nodiscard]] KernelCost cast_core(Pass pass) const;
  int exchange(PieceList& list, Pass pass) const;
  int ring(PieceList& list, Pass pass) const;
  // For ring attention: the block of a rank's own keys, and each block of another rank's.
  struct Blocks {
    KernelCost own, other;
  };
  [[nodiscard]] Blocks blocks(Pass pass) const;
  // Queries, keys and values between projection and core: copied where the framework does so, normed where
  // the model does so, and rotated.
  [[nodiscard]] KernelCost before_core(Pass pass) const;
  [[nodiscard]] KernelCost rotation(Pass pass) const;
  [[nodiscard]] KernelCost copies(Pass pass) const;
  // The core's cost, mean over layers with and without a sliding window.
  template <class Cost>
  [[nodiscard]] KernelCost core(const Cost& cost) const;

  const LayerKernels& kernels_;
  LayerParameters parameters_;
  bool latent_;
  double heads_, kv_heads_;
  double keys_values_width_, qkv_width_, context_width_;  // of one token, on this rank
  double rotated_width_;                                  // numbers that the rotary embedding moves
  double latent_width_ = 0, gathered_bytes_;
  AttentionShape shape_, windowed_;
  double full_share_;  // of layers that see all keys
  Linear down_, qkv_, proj_;
  // Absorbed: the product from a head's output in latents to its values; the widths of a head's key and value
  // in the model, which count as its work; 0: not absorbed.
  KernelCost values_;
  double useful_width_ = 0;
};

// From the normed residual stream to the sum that is added to it.
class FeedForward {
 public:
  virtual ~FeedForward() = default;
  virtual int forward(PieceList& list) const = 0;
  // The part that runs again where recompute ends with what the backward pass reads
  // (Plan::Again::to_the_end).
  virtual void again(PieceList& list) const { forward(list); }
  // For Again::operators, of experts.
  virtual void operators_again(PieceList&) const {}
  virtual int backward(PieceList& list, RecomputeKind recompute) const = 0;
};
// REQUIRES: kernels outlives the result. `ffn`: inner width, all tensor ranks together; `normed`: it follows
// a norm, whose result nothing else reads.
[[nodiscard]] std::unique_ptr<FeedForward> dense_feed_forward(const LayerKernels& kernels,
                                                              const LayerParameters& parameters, double ffn,
                                                              bool normed);
[[nodiscard]] std::unique_ptr<FeedForward> expert_feed_forward(const LayerKernels& kernels,
                                                               const LayerParameters& parameters);
// The same where nothing is dispatched (Plan::sliced_experts).
[[nodiscard]] std::unique_ptr<FeedForward> sliced_experts(const LayerKernels& kernels,
                                                          const LayerParameters& parameters);
// The same in a loop over the experts (Plan::looped_experts).
[[nodiscard]] std::unique_ptr<FeedForward> looped_experts(const LayerKernels& kernels,
                                                          const LayerParameters& parameters);
// How many of a rank's experts have rows when `tokens` tokens choose K of E each, evenly, or `load` times as
// often those of the busiest rank: E / ep (1 - (1 - load K / E)^tokens). Over several ranks the most that one
// of them has, which all wait for: each rank's number is taken as normal, with the variance of E / ep
// independent choices. With a load above 1 an upper bound, since the busiest rank is known.
[[nodiscard]] double visited_experts(double top_k, const Plan& plan, double tokens);
}  // namespace topsim::workloads
