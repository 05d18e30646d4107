// A mixture of experts as transformers writes it (4.38 to 4.51: models/mixtral/modeling_mixtral.py,
// MixtralSparseMoeBlock, and what is copied from it), with all E experts on this rank: a loop in Python, in
// which the host waits for the accelerator before every expert. T tokens, each at K of E experts:
//
//   router   T x E x h; softmax in fp32, top-k, one-hot masks
//   experts  for each of E: torch.where of its mask, whose size the host reads; its rows picked by index;
//            gate, up, activation, down; the product with the probabilities; index_add_ into zeros
// and backward: rows of the gradient picked by index; those of the input put by index into T zeros, which are
// then added, expert by expert.
#include "workloads/layer/blocks.hpp"

namespace topsim::workloads {
namespace {

// Kernels of torch.where (aten/src/ATen/native/cuda/Nonzero.cu): two to count, two to select, and one for
// each dimension's indices; of the router: softmax, top-k, sum, quotient, cast, one-hot's zeros and scatter.
constexpr double kWhereKernels = 6, kRouterKernels = 7;
// index_put_ that adds (Indexing.cu, index_put_with_sort_kernel): the linear index, an iota, two of the sort,
// the sum; and the zeros before it. The probabilities' index has the same backward pass, of few bytes.
constexpr double kPutKernels = 6;

class LoopedExperts final : public FeedForward {
 public:
  LoopedExperts(const LayerKernels& kernels, const LayerParameters& parameters)
      : kernels_(kernels), parameters_(parameters), experts_(kernels.model.experts.count) {
    const ExpertSpec& experts = kernels.model.experts;
    const Plan& plan = kernels.plan;
    const double tokens = kernels.tokens, hidden = kernels.hidden, ffn = experts.ffn;
    const double count = experts_, rows = tokens * experts.top_k;
    const auto gemm = [&](double m, double n, double k) {
      return kernels.compute.gemm({m, n, k}, plan.activations);
    };
    router_forward_ = gemm(tokens, count, hidden) + scores(kRouterKernels);
    router_input_ = gemm(tokens, hidden, count) + scores(2 * kRouterKernels);
    router_weight_ = gemm(count, hidden, tokens);
    fc1_ = kernels.grouped(rows / count, ffn, hidden, kernels.gates() * count, {});
    fc2_ = kernels.grouped(rows / count, hidden, ffn, count, {});
    where_ = kernels.compute.memory_bound(2 * 8.0 * rows, MemoryKernel::elementwise, kWhereKernels);

    // Rows of `hidden` numbers that are read and written.
    const auto moved = [&](double rows_moved, double each, MemoryKernel kind) {
      return kernels.compute.memory_bound(rows_moved * hidden * kernels.element, kind, each * count);
    };
    constexpr MemoryKernel kPlain = MemoryKernel::elementwise, kIndexed = MemoryKernel::indexed;
    activation_again_ = kernels.activation_again(rows, ffn);
    forward_ = moved(2 * rows, 1, kIndexed) + fc1_.forward + kernels.activation_forward(rows, ffn) +
               fc2_.forward + moved(2 * rows, 2, kPlain) + moved(3 * rows, 1, kIndexed);
    zeros_ = kernels.compute.memory_bound(tokens * hidden * kernels.element, kPlain, 1);
    // The product's gradients by rows and by probabilities, and the latter's sum.
    answers_backward_ = moved(2 * rows, 1, kIndexed) + moved((2 + 3 + 1) * rows, 3, kPlain);
    activation_backward_ = kernels.activation_backward(rows, ffn);
    inputs_backward_ = moved(count * tokens, 2 * kPutKernels - 1, kPlain) + moved(3 * rows, 1, kIndexed) +
                       moved(3 * (count - 1) * tokens, 1, MemoryKernel::add);
    if (experts.shared > 0)
      shared_ = dense_feed_forward(kernels, parameters, static_cast<double>(experts.shared) * ffn, false);
  }

  int forward(PieceList& list) const override {
    list.compute(Part::router, router_forward_ + zeros_, Piece::kNone, parameters_.router);
    for (int expert = 0; expert < kernels_.model.experts.count; ++expert) {
      list.compute(Part::dispatch, where_);
      list.host_reads();
      list.compute(Part::experts, forward_ * (1 / experts_), Piece::kNone, parameters_.routed() / experts_);
    }
    return shared_ ? shared_->forward(list) : Piece::kNone;
  }

  int backward(PieceList& list, RecomputeKind recompute) const override {
    if (shared_) shared_->backward(list, recompute);
    list.compute(Part::experts, answers_backward_ + fc2_.input_gradient);
    if (recompute == RecomputeKind::selective && kernels_.plan.again.activation)
      list.compute(Part::experts, activation_again_);
    list.weight_gradient(Part::experts, fc2_.weight_gradient, Piece::kNone, parameters_.expert_fc2);
    list.compute(Part::experts, activation_backward_ + fc1_.input_gradient);
    list.weight_gradient(Part::experts, fc1_.weight_gradient, Piece::kNone, parameters_.expert_fc1);
    list.compute(Part::experts, inputs_backward_);
    list.compute(Part::router, router_input_);
    list.weight_gradient(Part::router, router_weight_, Piece::kNone, parameters_.router);
    return Piece::kNone;
  }

 private:
  [[nodiscard]] KernelCost scores(double passes) const {
    return kernels_.compute.memory_bound(passes * 2 * 4 * kernels_.tokens * experts_,
                                         MemoryKernel::elementwise, passes);
  }

  const LayerKernels& kernels_;
  LayerParameters parameters_;
  double experts_;
  KernelCost router_forward_, router_input_, router_weight_, where_, zeros_;
  KernelCost forward_, activation_again_, answers_backward_, activation_backward_, inputs_backward_;
  Linear fc1_, fc2_;
  std::unique_ptr<FeedForward> shared_;
};
}  // namespace

std::unique_ptr<FeedForward> looped_experts(const LayerKernels& kernels, const LayerParameters& parameters) {
  return std::make_unique<LoopedExperts>(kernels, parameters);
}
}  // namespace topsim::workloads
