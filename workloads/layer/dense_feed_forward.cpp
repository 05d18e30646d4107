// A dense feed-forward network: column-parallel, then row-parallel (Megatron-LM, arXiv 1909.08053, section
// 3).
#include "workloads/layer/blocks.hpp"

namespace topsim::workloads {
namespace {

class DenseFeedForward final : public FeedForward {
 public:
  DenseFeedForward(const LayerKernels& kernels, const LayerParameters& parameters, double ffn, bool normed)
      : kernels_(kernels),
        parameters_(parameters),
        ffn_(ffn / kernels.plan.tp),
        input_(kernels.gathered_input(kernels.bytes, normed)),
        fc1_(kernels.gate_and_up(kernels.tokens, ffn_,
                                 {kernels.column_input(normed), kernels.between_products()})),
        fc2_(kernels.linear(kernels.tokens, kernels.hidden, ffn_,
                            {kernels.between_products(), kernels.row_gradient()})),
        gathers_(!shares_norm(kernels.model)) {
    if (kernels.model.parallel_residual) fc2_.forward += kernels.branches_forward();
  }

  int forward(PieceList& list) const override {
    again(list);
    return kernels_.reduced_product(list, Part::mlp, fc2_,
                                    parameters_.fc2 / kernels_.plan.tp + parameters_.fc2_bias, Piece::kNone);
  }
  void again(PieceList& list) const override {
    const double parameters = parameters_.fc1 / kernels_.plan.tp;
    const KernelCost activation = kernels_.activation_forward(kernels_.tokens, ffn_);
    if (one_by_one()) {
      list.compute(Part::mlp, fc1_.forward * 0.5, Piece::kNone, parameters / 2);
      list.compute(Part::mlp, fc1_.forward * 0.5 + activation, Piece::kNone, parameters / 2);
    } else if (gathers_) {
      kernels_.gathered_product(list, Part::mlp, LayerKernels::forward_of(fc1_), activation, input_,
                                parameters);
    } else {
      list.compute(Part::mlp, fc1_.forward + activation, Piece::kNone, parameters);
    }
  }

  int backward(PieceList& list, RecomputeKind recompute) const override {
    kernels_.gathered_product(list, Part::mlp, LayerKernels::input_gradient_of(fc2_), {},
                              kernels_.gathered_gradient(kernels_.bytes), 0);
    list.weight_gradient(Part::mlp, fc2_.weight_gradient, Piece::kNone,
                         parameters_.fc2 / kernels_.plan.tp + parameters_.fc2_bias);
    list.compute(Part::mlp, kernels_.activation_backward(kernels_.tokens, ffn_) +
                                kernels_.bias_gradient(kernels_.tokens * ffn_));
    if (one_by_one()) {
      for (int i = 0; i < 2; ++i) {
        list.compute(Part::mlp, fc1_.input_gradient * 0.5);
        list.weight_gradient(Part::mlp, fc1_.weight_gradient * 0.5, Piece::kNone, parameters_.fc1 / 2);
      }
      return Piece::kNone;
    }
    return kernels_.column_backward(list, Part::mlp, fc1_, parameters_.fc1 / kernels_.plan.tp, input_,
                                    gathers_ ? kernels_.bytes : 0, recompute,
                                    kernels_.model.gated_ffn && kernels_.plan.gate_apart ? 2 : 1);
  }

 private:
  // Gate and up may be FSDP's units, each waited for before its own product.
  [[nodiscard]] bool one_by_one() const {
    const Plan& plan = kernels_.plan;
    return plan.wrap_least > 0 && plan.tp == 1 && kernels_.model.gated_ffn && plan.gate_apart;
  }

  const LayerKernels& kernels_;
  LayerParameters parameters_;
  double ffn_;
  LayerKernels::Gathered input_;
  Linear fc1_, fc2_;
  bool gathers_;  // else it uses attention's input and the sum of both gradients
};
}  // namespace

std::unique_ptr<FeedForward> dense_feed_forward(const LayerKernels& kernels,
                                                const LayerParameters& parameters, double ffn, bool normed) {
  return std::make_unique<DenseFeedForward>(kernels, parameters, ffn, normed);
}
}  // namespace topsim::workloads
