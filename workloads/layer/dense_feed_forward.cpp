// A dense feed-forward network (training-and-collectives.md 4.1 and 4.2, rows 9 to 13).
#include "workloads/layer/blocks.hpp"

namespace topsim::workloads {
namespace {

class DenseFeedForward final : public FeedForward {
 public:
  DenseFeedForward(const LayerKernels& kernels, const LayerParameters& parameters, double ffn)
      : kernels_(kernels),
        parameters_(parameters),
        ffn_(ffn / kernels.plan.tp),
        fc1_(kernels.linear(kernels.tokens, kernels.gates() * ffn_, kernels.hidden)),
        fc2_(kernels.linear(kernels.tokens, kernels.hidden, ffn_)) {}

  int forward(PieceList& list) const override {
    const double t = kernels_.plan.tp;
    kernels_.gathered_product(list, Part::mlp, fc1_.forward, fc1_.forward_tile,
                              kernels_.activation_forward(kernels_.tokens, ffn_), kernels_.bytes,
                              (parameters_.fc1 + parameters_.fc2) / t);
    return kernels_.reduced_product(list, Part::mlp, fc2_, 0, Piece::kNone);
  }

  int backward(PieceList& list, RecomputeKind recompute) const override {
    kernels_.gathered_product(list, Part::mlp, fc2_.input_gradient, fc2_.input_tile, {}, kernels_.bytes, 0);
    list.weight_gradient(Part::mlp, fc2_.weight_gradient, Piece::kNone, parameters_.fc2 / kernels_.plan.tp);
    list.compute(Part::mlp, kernels_.activation_backward(kernels_.tokens, ffn_) +
                                kernels_.bias_gradient(kernels_.tokens * ffn_));
    return kernels_.column_backward(list, Part::mlp, fc1_, parameters_.fc1 / kernels_.plan.tp, kernels_.bytes,
                                    recompute);
  }

 private:
  const LayerKernels& kernels_;
  LayerParameters parameters_;
  double ffn_;
  Linear fc1_, fc2_;
};
}  // namespace

std::unique_ptr<FeedForward> dense_feed_forward(const LayerKernels& kernels,
                                                const LayerParameters& parameters, double ffn) {
  return std::make_unique<DenseFeedForward>(kernels, parameters, ffn);
}
}  // namespace topsim::workloads
