// A mixture of experts on one rank of Megatron's all-to-all dispatcher (moe/token_dispatcher.py). T tokens
// enter the layer on this rank (tokens / t with sequence parallelism), each chooses K of E experts; e
// expert-parallel ranks hold E / e experts each, in x parts.
//
//   router       T x E x h, softmax and top-k; counts of tokens are gathered and read by the host
//   dispatch     permute to expert order; all-to-all of T K h elements and of T K fp32 probabilities over e;
//                all-gather over x
//   experts      x T K rows in E / e matrix products a layer, rows of one expert x e T K / E; a copy of an
//                expert takes its share of the rows as one more expert would
//   combine      reduce-scatter over x, all-to-all of T K h elements, sum of each token's K answers
// and the same backwards. Shared experts are a dense network beside them, after them in time.
//
// DeepEP and HybridEP send one copy of a token to every node that holds some
// of its experts, and inside one NVLink domain to every such rank; they permute
// on arrival and carry the probabilities along. Copies of a token that visits K
// of E experts, evenly spread over n places and at most g of them:
//   g (1 - prod_{i < K} ((g - 1) E/n - i) / (g E/n - i))
// All bytes are scaled by it, those within the node too: the network sets the
// time there.
//
// The busiest rank receives `imbalance` times the mean, or no more than
// `capacity_factor` where tokens beyond it are dropped. Every rank is timed as
// the busiest: all of them wait for it in the next all-to-all.
#include <algorithm>

#include "workloads/layer/blocks.hpp"

namespace topsim::workloads {
namespace {

using program::CollectiveKind;

// Launches of element-wise kernels, counted in moe_utils.py and router.py of Megatron-Core 0.12; fused where
// the framework fuses kernels (moe_permute_fusion, router fusion).
struct Launches {
  double route, permute, sort;
};
constexpr Launches kFused{10, 1, 1}, kEager{20, 4, 3};

// Bytes of each number that pass memory where experts add biases: torch.cat([t + b p ...]).to(...), t and b
// in 16 bits. Forward: b p 2, the sum 2 + 2 + 2, joined 4; in fp32: 4, 2 + 4 + 4, 8, and 6 back to 16 bits.
// Backward: split's gradients joined 4; of b p the product with p 4 and its sum 2, with b 4 and its sum 2; in
// fp32 also 6 to it, 6 from it, 4, and 8 + 4 twice.
constexpr double kBiasForward = 12, kWideBiasForward = 28;
constexpr double kBiasBackward = 16, kWideBiasBackward = 40;

class ExpertFeedForward final : public FeedForward {
 public:
  ExpertFeedForward(const LayerKernels& kernels, const LayerParameters& parameters)
      : kernels_(kernels),
        parameters_(parameters),
        launches_(kernels.plan.fused_kernels ? kFused : kEager),
        split_(kernels.plan.etp),
        here_(kernels.plan.experts.slots / static_cast<double>(kernels.plan.ep)) {
    const ExpertSpec& experts = kernels.model.experts;
    const Plan& plan = kernels.plan;
    entering_ = kernels.tokens / plan.tp;
    routed_ = entering_ * experts.top_k * plan.experts.load;
    fused_ = plan.experts.fused_dispatch();
    sent_ = entering_ * (fused_ ? copies_of_a_token() : experts.top_k) * plan.experts.load;
    rows_ = split_ * routed_;
    arrived_ = fused_ ? split_ * entering_ * copies(plan.ep, plan.ep) * plan.experts.load : rows_;
    ffn_ = experts.ffn / split_;
    logits_ = entering_ * experts.count;
    router_forward_ = kernels.compute.gemm({entering_, static_cast<double>(experts.count), kernels.hidden},
                                           plan.activations);
    router_input_ = kernels.compute.gemm({entering_, kernels.hidden, static_cast<double>(experts.count)},
                                         plan.activations);
    router_weight_ = kernels.compute.gemm({static_cast<double>(experts.count), kernels.hidden, entering_},
                                          plan.activations);
    // Fused: the first product leaves activated rows in both layouts, the gradient of the second passes
    // through the activation's and is cast for the first as it is written.
    const bool apart = !plan.experts.fused;
    // Tokens of all ranks that dispatch to each other may visit the experts here.
    const double group = entering_ * plan.ep * split_;
    const double read =
        plan.inference() ? here_ * visited_share(experts.top_k, plan.experts.slots, group) : here_;
    using Operand = LayerKernels::Operand;
    const Operand between = apart ? Operand::wide : Operand::narrow;
    fc1_ =
        kernels.grouped(rows_ / read, kernels.gates() * ffn_, kernels.hidden, read, {Operand::wide, between});
    fc2_ = kernels.grouped(rows_ / read, kernels.hidden, ffn_, read, {between, Operand::wide});
    if (apart) {
      activation_forward_ = kernels.activation_forward(rows_, ffn_);
      activation_backward_ = kernels.activation_backward(rows_, ffn_);
    }
    // Work beyond each token's own share is no model work.
    for (Linear* products : {&fc1_, &fc2_})
      for (KernelCost* cost : {&products->forward, &products->input_gradient, &products->weight_gradient})
        cost->flops /= std::max(1.0, plan.experts.load);
    if (experts.shared > 0)
      shared_ =
          dense_feed_forward(kernels, parameters, static_cast<double>(experts.shared) * experts.ffn, false);
  }

  int forward(PieceList& list) const override {
    list.compute(Part::router, router_forward_ + scores(1), Piece::kNone, parameters_.router);
    count_tokens(list);
    list.compute(Part::dispatch, permute());
    const int arrived = exchange(list, Part::dispatch, kernels_.plan.experts.dispatch_bytes, true);
    const int whole = gather(list, Part::dispatch, arrived);
    KernelCost first = sort() + pad() + fc1_.forward, second = activation_forward_ + fc2_.forward + pad() +
                                                               bias(kBiasForward, kWideBiasForward, 3) +
                                                               sort();
    if (waits_for_offset()) {
      list.compute(Part::experts, first, last_of(arrived, whole));
      list.host_reads();
      list.compute(Part::experts, second, Piece::kNone, parameters_.routed() / owned(), weights());
    } else {
      list.compute(Part::experts, first + second, last_of(arrived, whole), parameters_.routed() / owned(),
                   weights());
    }
    const int summed = scatter(list, Part::combine);
    const int back = exchange(list, Part::combine, kernels_.element, false, summed);
    list.compute(Part::combine, permute(), last_of(summed, back));
    // Decode steps do not split rows over the tensor ranks: each dispatches its share, all need the sum.
    const int joined =
        kernels_.plan.sequence_parallel
            ? Piece::kNone
            : list.collective(Part::combine, CollectiveKind::all_gather, kernels_.bytes, kernels_.plan.tp);
    if (!shared_) return joined;
    return last_of(joined, shared_->forward(list));
  }

  int backward(PieceList& list, RecomputeKind recompute) const override {
    if (shared_) {
      const int shared = shared_->backward(list, recompute);
      list.compute(Part::combine, permute(), shared);
    } else {
      list.compute(Part::combine, permute());
    }
    const int arrived = exchange(list, Part::combine, kernels_.plan.experts.dispatch_bytes, false);
    const int whole = gather(list, Part::combine, arrived);
    list.compute(Part::experts,
                 sort() + bias(kBiasBackward, kWideBiasBackward, 6) + pad() + fc2_.input_gradient,
                 last_of(arrived, whole));
    if (recompute == RecomputeKind::selective && kernels_.plan.again.activation) {
      KernelCost again = kernels_.activation_forward(rows_, ffn_);
      again.flops = 0;
      list.compute(Part::experts, again);
    }
    list.weight_gradient(Part::experts, fc2_.weight_gradient, Piece::kNone, parameters_.expert_fc2 / owned(),
                         weights());
    list.compute(Part::experts, activation_backward_ + fc1_.input_gradient);
    list.weight_gradient(Part::experts, fc1_.weight_gradient, Piece::kNone, parameters_.expert_fc1 / owned(),
                         weights());
    list.compute(Part::experts, pad() + sort());
    const int summed = scatter(list, Part::dispatch);
    const int back = exchange(list, Part::dispatch, kernels_.element, true, summed);
    list.compute(Part::router, permute() + scores(2) + router_input_, last_of(summed, back));
    list.weight_gradient(Part::router, router_weight_, Piece::kNone, parameters_.router);
    return Piece::kNone;
  }

 private:
  [[nodiscard]] double owned() const { return kernels_.plan.ep * split_; }
  [[nodiscard]] Weights weights() const {
    return kernels_.plan.experts.on_own_ranks ? Weights::routed : Weights::dense;
  }
  static int last_of(int first, int second) { return second == Piece::kNone ? first : second; }

  // Who sends how much to whom is known on the accelerators; the host needs it to launch the all-to-all and
  // the matrix products. With experts padded to their capacity it is known beforehand; a graph of the whole
  // step leaves it on the accelerator, in buffers of the most there can be (Megatron: moe_paged_stash).
  void count_tokens(PieceList& list) const {
    if (kernels_.plan.experts.padding || kernels_.plan.host.graph) return;
    if (fused_) return list.host_reads();  // DeepEP counts in its own kernels
    const double counts = 4.0 * kernels_.model.experts.count;
    list.collective(Part::router, CollectiveKind::all_gather, kernels_.plan.ep * counts, kernels_.plan.ep,
                    Group::expert);
    list.host_reads();
  }
  // torch.tensor(linear_offset, device=...) in weighted_bias_quick_geglu_impl (fusions/fused_bias_geglu.py),
  // the clamped activation, copies a number from pageable memory: the host waits for all before it.
  [[nodiscard]] bool waits_for_offset() const {
    return kernels_.model.clamped_ffn && !kernels_.plan.one_expert_kernel() && !kernels_.plan.host.graph;
  }
  int exchange(PieceList& list, Part part, double element, bool probabilities,
               int after = Piece::kNone) const {
    const int ep = kernels_.plan.ep;
    const int tokens = list.collective(part, CollectiveKind::all_to_all, sent_ * kernels_.hidden * element,
                                       ep, Group::expert, after);
    if (!probabilities || fused_ || !kernels_.plan.sends_probabilities) return tokens;
    return list.collective(part, CollectiveKind::all_to_all, 4 * routed_, ep, Group::expert);
  }
  [[nodiscard]] double copies_of_a_token() const {
    const Plan& plan = kernels_.plan;
    const int limit = kernels_.model.experts.node_limit;
    const int over = nodes();
    if (over == 1) return copies(plan.ep, plan.ep);
    return copies(over, limit > 0 ? std::min(over, limit) : over);
  }
  [[nodiscard]] int nodes() const {
    const Plan& plan = kernels_.plan;
    const int domain = plan.domain_ranks > 0 ? plan.domain_ranks : plan.ep * plan.etp;
    return (plan.ep * plan.etp + domain - 1) / domain;
  }
  // Of a token whose experts lie on `open` of `places`.
  [[nodiscard]] double copies(double places, double open) const {
    const ExpertSpec& experts = kernels_.model.experts;
    const double held = kernels_.plan.experts.slots / places;
    double missed = 1;
    for (int i = 0; i < experts.top_k; ++i)
      missed *= std::max(0.0, ((open - 1) * held - i) / (open * held - i));
    return open * (1 - missed);
  }
  int gather(PieceList& list, Part part, int after) const {
    return list.collective(part, CollectiveKind::all_gather, rows_ * kernels_.hidden * kernels_.element,
                           kernels_.plan.etp, Group::expert_tensor, after);
  }
  int scatter(PieceList& list, Part part) const {
    return list.collective(part, CollectiveKind::reduce_scatter, rows_ * kernels_.hidden * kernels_.element,
                           kernels_.plan.etp, Group::expert_tensor);
  }

  // Softmax or sigmoid, top-k, masks and the balancing loss over fp32 scores; passes forward, twice backward.
  [[nodiscard]] KernelCost scores(double passes) const {
    return kernels_.compute.memory_bound(passes * 4 * 4 * logits_, MemoryKernel::elementwise,
                                         launches_.route);
  }
  // Fused: a token is read, or its sum written, once (transformer_engine/common/triton/permutation.py).
  [[nodiscard]] KernelCost permute() const {
    if (fused_) return {};
    const double rows = kernels_.plan.fused_kernels ? entering_ + routed_ : 2 * routed_;
    return kernels_.compute.memory_bound(rows * kernels_.hidden * kernels_.element, MemoryKernel::elementwise,
                                         launches_.permute);
  }
  // From the order of arrival to the order of the local experts, and back; where one copy came for several
  // experts of this rank, it is permuted here.
  [[nodiscard]] KernelCost sort() const {
    if (!fused_ && (here_ <= 1 || (kernels_.plan.ep == 1 && kernels_.plan.etp == 1))) return {};
    return kernels_.compute.memory_bound((arrived_ + rows_) * kernels_.hidden * kernels_.element,
                                         MemoryKernel::elementwise, launches_.sort);
  }
  // Each expert's rows to a multiple of what 8-bit products want, and back (Megatron: TEGroupedMLP,
  // quantization_padding): a copy of all rows, nothing where they came padded.
  [[nodiscard]] KernelCost pad() const {
    const Plan& plan = kernels_.plan;
    if (bytes_of(plan.gemm) >= kernels_.element || plan.experts.padding || plan.one_expert_kernel() ||
        plan.experts.dispatcher == TokenDispatcher::hybridep)
      return {};
    return kernels_.compute.memory_bound(2 * rows_ * kernels_.hidden * kernels_.element,
                                         MemoryKernel::elementwise);
  }
  // TEGroupedMLP._apply_bias, expert by expert; probabilities are fp32 for DeepEP and HybridEP and make all
  // of it so.
  [[nodiscard]] KernelCost bias(double bytes, double wide_bytes, double kernels) const {
    if (!kernels_.model.experts.biases || kernels_.plan.one_expert_kernel()) return {};
    return kernels_.compute.memory_bound((fused_ ? wide_bytes : bytes) * rows_ * kernels_.hidden,
                                         MemoryKernel::elementwise, kernels * here_);
  }

  const LayerKernels& kernels_;
  LayerParameters parameters_;
  Launches launches_;
  bool fused_ = false;                      // DeepEP
  double entering_ = 0, sent_ = 0;          // T; copies that leave for other ranks
  double arrived_ = 0;                      // copies that this rank's experts share
  double split_, here_;                     // x, E / e
  double routed_ = 0, rows_ = 0, ffn_ = 0;  // T K and x T K of the busiest rank; inner width of a part
  double logits_ = 0;
  KernelCost router_forward_, router_input_, router_weight_;
  KernelCost activation_forward_, activation_backward_;
  Linear fc1_, fc2_;
  std::unique_ptr<FeedForward> shared_;
};
}  // namespace

std::unique_ptr<FeedForward> expert_feed_forward(const LayerKernels& kernels,
                                                 const LayerParameters& parameters) {
  if (kernels.plan.sliced_experts()) return sliced_experts(kernels, parameters);
  return std::make_unique<ExpertFeedForward>(kernels, parameters);
}
}  // namespace topsim::workloads
