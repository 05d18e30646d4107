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
// The all-gather dispatcher brings the tokens of all e x ranks to each of them, and reduce-scatters the sums
// of the answers. It joins its two groups of ranks into one; here each group has its own collective.
//
// DeepEP and HybridEP send one copy of a token to every node that holds some of its experts, and inside one
// NVLink domain to every such rank (token_copies.hpp); they permute on arrival and carry the probabilities
// along. All bytes are scaled by the copies, also those within the node: the network sets the time there.
// Their kernels take the times of exchange_kernels.hpp.
//
// The busiest rank receives `imbalance` times the mean, or at most `capacity_factor` where tokens beyond it
// are dropped. Every rank is timed as the busiest: all of them wait for it in the next all-to-all.
#include <algorithm>

#include "workloads/layer/blocks.hpp"
#include "workloads/layer/exchange_kernels.hpp"
#include "workloads/layer/row_moves.hpp"
#include "workloads/layer/token_copies.hpp"

namespace topsim::workloads {
namespace {

using program::CollectiveKind;

// Launches of element-wise kernels, counted in moe_utils.py and router.py of Megatron-Core 0.12; fewer if the
// framework fuses them (router fusion); engines that serve have one kernel (vLLM, csrc/moe: topk_softmax,
// grouped_topk).
constexpr double kServedRoute = 1, kFusedRoute = 10, kEagerRoute = 20;

// Memory traffic in bytes per number where experts add biases: torch.cat([t + b p ...]).to(...), t and b in
// 16 bits. Forward: b p 2, the sum 2 + 2 + 2, joined 4; in fp32: 4, 2 + 4 + 4, 8, and 6 back to 16 bits.
// Backward: split's gradients joined 4; of b p the product with p 4 and its sum 2, with b 4 and its sum 2; in
// fp32 also 6 to it, 6 from it, 4, and 8 + 4 twice. Products repeat an operand along rows or columns.
struct BiasPass {
  double bytes, wide_bytes;  // of contiguous operands
  double products;           // 2 or 4 bytes written by each
  double moved;              // numbers that they read and write
  double kernels;            // for each expert, products among them
};
constexpr BiasPass kBiasForward{10, 24, 1, 1, 3}, kBiasBackward{8, 24, 2, 4, 6};

// cuDNN's fused kernel also sums the bias's gradient: 155.6 us instead of 139.0 for a grouped product on
// SM100 (NVIDIA/cudnn-frontend pull request 322).
constexpr double kFusedBiasGradient = 155.6 / 139.0;

class ExpertFeedForward final : public FeedForward {
 public:
  ExpertFeedForward(const LayerKernels& kernels, const LayerParameters& parameters)
      : kernels_(kernels),
        parameters_(parameters),
        split_(kernels.plan.etp),
        here_(kernels.plan.experts.slots / static_cast<double>(kernels.plan.ep)) {
    const ExpertSpec& experts = kernels.model.experts;
    const Plan& plan = kernels.plan;
    entering_ = kernels.tokens / plan.tp;
    routed_ = entering_ * experts.top_k * plan.experts.load;
    fused_ = plan.experts.fused_dispatch();
    const bool to_nodes = fused_ && !plan.low_latency_exchange();
    sent_ = to_nodes ? entering_ * copies_sent(kernels.model, plan) * plan.experts.load : routed_;
    rows_ = split_ * routed_;
    arrived_ = entering_ * ranks_visited(kernels.model, plan) * plan.experts.load;
    const double arrived = to_nodes ? split_ * arrived_ : rows_;
    ffn_ = experts.ffn / split_;
    moves_ = row_moves(kernels, {entering_, routed_, entering_ * plan.ep * split_, arrived, rows_, here_});
    logits_ = entering_ * experts.count;
    router_forward_ = kernels.compute.gemm({entering_, static_cast<double>(experts.count), kernels.hidden},
                                           plan.activations);
    router_input_ = kernels.compute.gemm({entering_, kernels.hidden, static_cast<double>(experts.count)},
                                         plan.activations);
    router_weight_ = kernels.compute.gemm({static_cast<double>(experts.count), kernels.hidden, entering_},
                                          plan.activations);
    // Fused: the first product writes activated rows in both layouts; the gradient of the second passes
    // through the activation's gradient and is cast for the first as it is written.
    const bool apart = !plan.experts.fused;
    // Tokens of all ranks that dispatch to each other may visit this rank's experts.
    const double group = entering_ * plan.ep * split_;
    const double read = plan.inference() ? visited_experts(experts.top_k, plan, group) : here_;
    using Operand = LayerKernels::Operand;
    const Operand between = apart ? Operand::wide : Operand::narrow;
    const GemmOutput gradient = plan.early_experts ? GemmOutput::fresh : gradient_output(plan);
    const double each =
        std::max(plan.inference() ? 1.0 : 0.0, rows_ / read);  // an expert that is read has any
    fc1_ = kernels.grouped(each, kernels.gates() * ffn_, kernels.hidden, read, {Operand::wide, between},
                           gradient);
    fc2_ = kernels.grouped(each, kernels.hidden, ffn_, read, {between, Operand::wide}, gradient);
    if (apart) {
      activation_forward_ = kernels.activation_forward(rows_, ffn_);
      activation_backward_ = kernels.activation_backward(rows_, ffn_);
    } else if (experts.biases) {
      const double product = fc2_.input_gradient.seconds - fc2_.input_cast.seconds;
      fc2_.input_gradient.seconds += (kFusedBiasGradient - 1) * product;
    }
    if (plan.early_experts) add_early_passes();
    // Work beyond each token's own share does not count as model FLOPs.
    for (Linear* products : {&fc1_, &fc2_})
      for (KernelCost* cost : {&products->forward, &products->input_gradient, &products->weight_gradient})
        cost->flops /= std::max(1.0, plan.experts.load);
    if (experts.shared > 0)
      shared_ =
          dense_feed_forward(kernels, parameters, static_cast<double>(experts.shared) * experts.ffn, false);
  }

  int forward(PieceList& list) const override {
    answer(list);
    list.compute(Part::combine, moves_.permuted + moves_.weighted, back(list, Part::combine, false));
    // Decode steps do not split rows over the tensor ranks: each rank dispatches its share, and all need the
    // sum.
    const int joined =
        kernels_.plan.sequence_parallel
            ? Piece::kNone
            : list.collective(Part::combine, CollectiveKind::all_gather, kernels_.bytes, kernels_.plan.tp);
    if (!shared_) return joined;
    return last_of(joined, shared_->forward(list));
  }

  // Where probabilities travel with the rows, the last tensor that a checkpoint saves is of the kernel that
  // sums answers: DeepEP's and HybridEP's combine keep a handle alone (NeMo AutoModel,
  // components/moe/megatron/fused_a2a.py: FusedCombine).
  void again(PieceList& list) const override {
    if (!fused_ || !kernels_.plan.sends_probabilities) {
      forward(list);
      return;
    }
    answer(list);
    if (shared_) shared_->forward(list);
  }

  // torchtitan, models/llama4/infra/parallelize.py, _op_sac_save_list: the results of all-to-alls are kept,
  // those of grouped products (aten._grouped_mm) and of the router's (forced) are not; every second product
  // of shared experts, as of dense networks. The answers are computed again too: their products with the
  // probabilities follow.
  void operators_again(PieceList& list) const override {
    list.compute(Part::router, router_forward_ + scores(1) + moves_.permuted);
    list.compute(Part::experts, moves_.sorted + fc1_.forward + activation_forward_ + fc2_.forward);
    if (!shared_) return;
    const double width =
        static_cast<double>(kernels_.model.experts.shared) * kernels_.model.experts.ffn / kernels_.plan.tp;
    KernelCost cost = kernels_.activation_forward(kernels_.tokens, width);
    if (kernels_.model.gated_ffn)
      cost += kernels_.linear(kernels_.tokens, width, kernels_.hidden, {kernels_.column_input(true)}).forward;
    list.compute(Part::mlp, cost);
  }

  int backward(PieceList& list, RecomputeKind recompute) const override {
    const int shared = shared_ ? shared_->backward(list, recompute) : Piece::kNone;
    list.compute(Part::combine, moves_.permuted + moves_.weighted_backward, shared);
    const int arrived = there(list, Part::combine, false);
    list.compute(Part::experts, moves_.summed_backward + bias(kBiasBackward) + pad() + fc2_.input_gradient,
                 arrived);
    if (recompute == RecomputeKind::selective && kernels_.plan.again.activation)
      list.compute(Part::experts, kernels_.activation_again(rows_, ffn_));
    list.weight_gradient(Part::experts, fc2_.weight_gradient, Piece::kNone, parameters_.expert_fc2 / owned(),
                         weights());
    list.compute(Part::experts, activation_backward_ + fc1_.input_gradient);
    list.weight_gradient(Part::experts, fc1_.weight_gradient, Piece::kNone, parameters_.expert_fc1 / owned(),
                         weights());
    list.compute(Part::experts, pad() + moves_.sorted_backward);
    list.compute(Part::router, moves_.permuted + scores(2) + router_input_, back(list, Part::dispatch, true));
    list.weight_gradient(Part::router, router_weight_, Piece::kNone, parameters_.router);
    return Piece::kNone;
  }

 private:
  // Up to the answers of this rank's experts, summed as they are sent back.
  void answer(PieceList& list) const {
    list.compute(Part::router, router_forward_ + scores(1), Piece::kNone, parameters_.router);
    const int arrived = gathers() ? gather_tokens(list) : send_tokens(list);
    KernelCost first = moves_.sorted + pad() + fc1_.forward,
               second = activation_forward_ + fc2_.forward + pad() + bias(kBiasForward) + moves_.summed;
    if (waits_for_offset()) {
      list.compute(Part::experts, first, arrived);
      list.host_reads();
      list.compute(Part::experts, second, Piece::kNone, parameters_.routed() / owned(), weights());
    } else {
      list.compute(Part::experts, first + second, arrived, parameters_.routed() / owned(), weights());
    }
  }
  [[nodiscard]] double owned() const { return kernels_.plan.ep * split_; }
  [[nodiscard]] Weights weights() const {
    return kernels_.plan.experts.on_own_ranks ? Weights::routed : Weights::dense;
  }
  static int last_of(int first, int second) { return second == Piece::kNone ? first : second; }

  [[nodiscard]] bool gathers() const {
    return kernels_.plan.experts.dispatcher == TokenDispatcher::allgather;
  }
  [[nodiscard]] bool reads_counts() const {
    return !kernels_.plan.experts.padding && !kernels_.plan.host.graph;
  }
  // All-to-all to the experts' ranks and back. Both return what the next piece must wait for.
  int there(PieceList& list, Part part, bool probabilities) const {
    if (gathers()) {
      const double one = entering_ * kernels_.hidden * kernels_.element;
      const int near = list.collective(part, CollectiveKind::all_gather, split_ * one, kernels_.plan.etp,
                                       Group::expert_tensor);
      return last_of(near, list.collective(part, CollectiveKind::all_gather, owned() * one, kernels_.plan.ep,
                                           Group::expert, near));
    }
    const int arrived = exchange(list, part, kernels_.plan.experts.dispatch_bytes, probabilities, false);
    return last_of(arrived, gather(list, part, arrived));
  }
  int back(PieceList& list, Part part, bool probabilities) const {
    if (gathers()) {
      const double one = entering_ * kernels_.hidden * kernels_.element;
      const int far = list.collective(part, CollectiveKind::reduce_scatter, owned() * one, kernels_.plan.ep,
                                      Group::expert);
      return last_of(far, list.collective(part, CollectiveKind::reduce_scatter, split_ * one,
                                          kernels_.plan.etp, Group::expert_tensor, far));
    }
    const int summed = scatter(list, part);
    return last_of(summed, exchange(list, part, kernels_.element, probabilities, true, summed));
  }
  int send_tokens(PieceList& list) const {
    count_tokens(list);
    list.compute(Part::dispatch, moves_.permuted);
    return there(list, Part::dispatch, true);
  }
  // The host reads how many rows there are before it selects them, and how many each expert has before its
  // products.
  int gather_tokens(PieceList& list) const {
    const int tokens = there(list, Part::dispatch, true);
    const int ep = kernels_.plan.ep, etp = kernels_.plan.etp;
    const int choices = ep > 1 ? list.collective(Part::dispatch, CollectiveKind::all_gather, moves_.choices,
                                                 ep, Group::expert, tokens)
                               : list.collective(Part::dispatch, CollectiveKind::all_gather, moves_.choices,
                                                 etp, Group::expert_tensor, tokens);
    list.compute(Part::dispatch, moves_.map, last_of(tokens, choices));
    if (reads_counts()) list.host_reads();
    if (moves_.picked.kernels > 0) {
      list.compute(Part::dispatch, moves_.picked);
      if (reads_counts()) list.host_reads();
    }
    return Piece::kNone;
  }

  // The accelerators know how many rows each rank sends to each other; the host needs these counts to launch
  // the all-to-all and the matrix products. With experts padded to their capacity they are known beforehand;
  // with a graph of the whole step they stay on the accelerator, in buffers of the largest size (Megatron:
  // moe_paged_stash).
  void count_tokens(PieceList& list) const {
    if (maps_tokens())
      list.collective(Part::dispatch, CollectiveKind::all_gather, token_map(), kernels_.plan.ep,
                      Group::expert);
    if (!reads_counts()) return;
    if (fused_) return list.host_reads();  // they count in their own kernels
    const double counts = 4.0 * kernels_.model.experts.count;
    list.collective(Part::router, CollectiveKind::all_gather, kernels_.plan.ep * counts, kernels_.plan.ep,
                    Group::expert);
    list.host_reads();
  }
  // HybridEP's dispatch begins with a gather by NCCL of which token goes to which expert, a byte each; a
  // kernel reads all of it (csrc/hybrid_ep/executor: allgather_routing_map, metadata_preprocess).
  [[nodiscard]] double token_map() const {
    return kernels_.plan.ep * entering_ * kernels_.plan.experts.slots;
  }
  // Only the first exchange of a layer: the others have its handle.
  [[nodiscard]] bool maps_tokens() const {
    return kernels_.plan.experts.dispatcher == TokenDispatcher::hybridep && has_own_kernels();
  }
  [[nodiscard]] bool has_own_kernels() const {
    return fused_ && (kernels_.plan.task != Task::decode || kernels_.plan.low_latency_exchange());
  }
  [[nodiscard]] double own_kernels(double element, bool probabilities, bool combine) const {
    const PlanExperts& experts = kernels_.plan.experts;
    const int domains = exchange_domains(kernels_.plan);
    if (kernels_.plan.low_latency_exchange())
      return low_latency_seconds(sent_, kernels_.hidden * element, kernels_.compute.accelerator());
    const double seconds =
        exchange_seconds({.dispatcher = experts.dispatcher,
                          .combine = combine,
                          .copies = arrived_,
                          .row = kernels_.hidden * element,
                          .probabilities = probabilities ? 4.0 * experts.slots / domains : 0,
                          .ranks = static_cast<double>(kernels_.plan.ep) / domains,
                          .domains = domains,
                          .units = experts.dispatcher_units},
                         kernels_.compute.accelerator());
    if (seconds == 0 || !probabilities || combine || !maps_tokens()) return seconds;
    return seconds + kernels_.compute.memory_bound(token_map(), MemoryKernel::elementwise, 1).seconds;
  }
  // torch.tensor(linear_offset, device=...) in weighted_bias_quick_geglu_impl (fusions/fused_bias_geglu.py),
  // the clamped activation, copies a number from pageable memory, so the host waits for all work before it.
  [[nodiscard]] bool waits_for_offset() const {
    return kernels_.model.clamped_ffn && !kernels_.plan.one_expert_kernel() && !kernels_.plan.host.graph;
  }
  int exchange(PieceList& list, Part part, double element, bool probabilities, bool combine,
               int after = Piece::kNone) const {
    const int ep = kernels_.plan.ep;
    const int tokens = list.collective(part, CollectiveKind::all_to_all, sent_ * kernels_.hidden * element,
                                       ep, Group::expert, after);
    if (has_own_kernels()) {
      list.use_own_kernels(tokens, own_kernels(element, probabilities, combine));
      // Low-latency kernels leave their SMs while messages are on their way (DeepEP's README: hooks).
      const int units = kernels_.plan.low_latency_exchange() ? 0 : kernels_.plan.experts.dispatcher_units;
      list.hold_units(tokens, static_cast<std::int16_t>(units));
    }
    if (!probabilities || fused_ || !kernels_.plan.sends_probabilities) return tokens;
    return list.collective(part, CollectiveKind::all_to_all, 4 * routed_, ep, Group::expert);
  }
  int gather(PieceList& list, Part part, int after) const {
    return list.collective(part, CollectiveKind::all_gather, rows_ * kernels_.hidden * kernels_.element,
                           kernels_.plan.etp, Group::expert_tensor, after);
  }
  int scatter(PieceList& list, Part part) const {
    return list.collective(part, CollectiveKind::reduce_scatter, rows_ * kernels_.hidden * kernels_.element,
                           kernels_.plan.etp, Group::expert_tensor);
  }

  // Softmax or sigmoid, top-k, masks and the balancing loss over fp32 scores; `passes` is 1 forward, 2
  // backward.
  [[nodiscard]] KernelCost scores(double passes) const {
    const bool fused = kernels_.plan.fused_kernels && !kernels_.plan.early_experts;
    return kernels_.compute.memory_bound(passes * 4 * 4 * logits_, MemoryKernel::elementwise,
                                         kernels_.plan.inference() ? kServedRoute
                                         : fused                   ? kFusedRoute
                                                                   : kEagerRoute);
  }
  // silu and the product are separate: one more number is written and read; in the backward pass two
  // products, silu's gradient and the join of both halves move 13 numbers instead of 5. 16-bit gradients are
  // added to fp32 ones.
  void add_early_passes() {
    const auto pass = [&](double bytes, double kernels) {
      return kernels_.compute.memory_bound(bytes, MemoryKernel::add, kernels);
    };
    if (kernels_.model.gated_ffn) {
      const double column = rows_ * ffn_ * kernels_.element;
      activation_forward_ += pass(2 * column, 1);
      activation_backward_ += pass(8 * column, 3);
    }
    const double added =
        here_ * kernels_.hidden * ffn_ * (kernels_.element + 2 * kernels_.plan.gradient_bytes);
    fc1_.weight_gradient += pass(kernels_.gates() * added, 1);
    fc2_.weight_gradient += pass(added, 1);
  }
  // Pads each expert's rows to the multiple that 8-bit products need, and removes the padding (Megatron:
  // TEGroupedMLP, quantization_padding): a copy of all rows; nothing if they arrive padded.
  [[nodiscard]] KernelCost pad() const {
    const Plan& plan = kernels_.plan;
    if (bytes_of(plan.gemm) >= kernels_.element || plan.experts.padding || plan.one_expert_kernel() ||
        plan.experts.dispatcher == TokenDispatcher::hybridep)
      return {};
    return kernels_.compute.memory_bound(2 * rows_ * kernels_.hidden * kernels_.element,
                                         MemoryKernel::elementwise);
  }
  // TEGroupedMLP._apply_bias, expert by expert; probabilities are fp32 for DeepEP and HybridEP, which makes
  // all of it fp32.
  [[nodiscard]] KernelCost bias(const BiasPass& pass) const {
    if (!kernels_.model.experts.biases || kernels_.plan.one_expert_kernel()) return {};
    const double numbers = rows_ * kernels_.hidden, wide = fused_ ? 4 : 2;
    return kernels_.compute.memory_bound((fused_ ? pass.wide_bytes : pass.bytes) * numbers,
                                         MemoryKernel::elementwise, (pass.kernels - pass.products) * here_) +
           kernels_.compute.strided({0, pass.products * numbers}, pass.moved * wide * numbers,
                                    pass.products * here_);
  }

  const LayerKernels& kernels_;
  LayerParameters parameters_;
  RowMoves moves_;
  bool fused_ = false;                      // DeepEP or HybridEP
  double entering_ = 0, sent_ = 0;          // T; copies that leave for other ranks
  double arrived_ = 0;                      // one for each rank that a token visits
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
  if (kernels.plan.looped_experts() && !kernels.model.experts.biases)
    return looped_experts(kernels, parameters);
  return std::make_unique<ExpertFeedForward>(kernels, parameters);
}
}  // namespace topsim::workloads
