// The attention half of a layer (Megatron: core/transformer/attention.py).
#include <algorithm>

#include "workloads/layer/blocks.hpp"

namespace topsim::workloads {

using program::CollectiveKind;

namespace {
// Memory traffic of ring attention beside its attention kernels, in passes over the output ("answer") and
// over the keys and values that the rank holds in 16 bits: once per call, and for every block that arrives,
// on the rank with most of it (half of the ranks slice their queries in halves, the others the keys and
// values).
struct RingTraffic {
  double answer, keys_values, answer_of_block, keys_values_of_block, kernels_of_block;
};
// Transformer Engine, attention/dot_product_attention/context_parallel.py, AttnFuncWithCPAndKVP2P. Forward:
// keys and values joined 2; the first answer rescaled 2, later ones rescaled and added 3, their keys and
// values made contiguous 1. Backward: keys and values copied 2; the first dQ copied 2, dK and dV joined 2 and
// copied 2; later: query, answer and its gradient made contiguous 3, half of dQ added 1.5, dK and dV joined 2
// and added 3.
constexpr RingTraffic kRingForward{2, 2, 3, 1, 5}, kRingBackward{2, 6, 4.5, 5, 8};
// torch/distributed/tensor/experimental/_attention.py, _SDPAMerger and _templated_ring_attention_backward: in
// fp32, operator by operator. Forward: to fp32 3 and, at the end, back 3; later: to fp32 3, difference 6,
// product 4, difference 6; keys and values joined 2. Backward: zeros in fp32 2, added 5, and at the end to 16
// bits 3, for dK and dV also joined 4; later: half of dQ added 2.5 and joined 4; keys and values joined 2, dK
// and dV half added and joined 6.5, joined again 4.
constexpr RingTraffic kWideRingForward{6, 0, 19, 2, 9}, kWideRingBackward{10, 14, 6.5, 12.5, 12};
}  // namespace

Attention::Attention(const LayerKernels& kernels, const LayerParameters& parameters)
    : kernels_(kernels),
      parameters_(parameters),
      latent_(kernels.model.attention.kind == AttentionKind::mla),
      heads_(kernels.model.heads / static_cast<double>(kernels.plan.tp)),
      kv_heads_(latent_ ? heads_
                        : std::max(1.0, kernels.model.kv_heads / static_cast<double>(kernels.plan.tp))),
      keys_values_width_(kv_heads_ * (key_width(kernels.model) + value_width(kernels.model))),
      qkv_width_(heads_ * key_width(kernels.model) + keys_values_width_),
      context_width_(heads_ * value_width(kernels.model)),
      rotated_width_((heads_ + kv_heads_) * kernels.model.head_dim),
      gathered_bytes_(kernels.bytes),
      full_share_(full_attention_share(kernels.model)),
      proj_(kernels.linear(kernels.tokens, kernels.hidden, context_width_,
                           {LayerKernels::Operand::wide, kernels.row_gradient()})) {
  const Plan& plan = kernels.plan;
  shape_.batch = static_cast<double>(plan.micro_batch) * plan.documents;
  shape_.heads = heads_;
  shape_.kv_heads = kv_heads_;
  shape_.queries = static_cast<double>(plan.queries) / plan.cp / plan.documents;
  shape_.keys = static_cast<double>(plan.sequence) / plan.documents;
  shape_.head_dim = key_width(kernels.model);
  shape_.value_dim = value_width(kernels.model);
  shape_.causal = kernels.model.attention.causal;
  shape_.dropout = plan.dropout;
  if (plan.cp > 1 && plan.cp_kind == ContextKind::ulysses) {  // a part of the heads and all of the sequence
    shape_.heads /= plan.cp, shape_.kv_heads = std::max(1.0, kv_heads_ / plan.cp);
    shape_.queries *= plan.cp;
  }
  windowed_ = shape_;
  windowed_.window = kernels.model.attention.window;
  if (!latent_) {
    const double keys = kv_heads_ * shape_.head_dim;
    qkv_ = kernels.columns(kernels.tokens, {heads_ * shape_.head_dim, keys, keys_values_width_ - keys},
                           kernels.hidden, plan.qkv_apart,
                           {kernels.column_input(true), kernels.between_products()});
    if (shares_norm(kernels.model)) qkv_.input_gradient += kernels.sum(kernels.tokens);
    return;
  }
  const AttentionSpec& a = kernels.model.attention;
  const double keys_values = a.kv_lora_rank + a.qk_rope_head_dim;
  const bool compressed_queries = a.q_lora_rank > 0;
  latent_width_ = a.q_lora_rank + keys_values;
  gathered_bytes_ =
      kernels.tokens * (compressed_queries ? latent_width_ : kernels.hidden + keys_values) * kernels.element;
  down_ = kernels.linear(kernels.rows, keys_values, kernels.hidden);
  if (compressed_queries) down_ = down_ + kernels.linear(kernels.rows, a.q_lora_rank, kernels.hidden);
  qkv_ = kernels.linear(kernels.tokens, heads_ * (a.qk_nope_head_dim + a.v_head_dim), a.kv_lora_rank) +
         kernels.linear(kernels.tokens, heads_ * shape_.head_dim,
                        compressed_queries ? a.q_lora_rank : kernels.hidden);
  // The rotary parts; keys and values are split and joined again with the shared rotary key.
  rotated_width_ = heads_ * a.qk_rope_head_dim + keys_values_width_;
  if (plan.task == Task::decode) absorb();
}

// In decoding, attention uses latents instead of keys and values: each head's query is multiplied by the key
// projection before the core, its answer by the value projection after it (DeepSeek-V2, 2.1.2: "absorbed").
// All heads share one key of kv_lora_rank + qk_rope_head_dim numbers, the first of which are its value.
void Attention::absorb() {
  const AttentionSpec& a = kernels_.model.attention;
  const auto by_head = [&](double from, double to) {
    return kernels_.compute.gemm({kernels_.tokens, to, from, heads_}, kernels_.plan.activations);
  };
  qkv_ = kernels_.linear(kernels_.tokens, heads_ * shape_.head_dim,
                         a.q_lora_rank > 0 ? a.q_lora_rank : kernels_.hidden);
  qkv_.forward += by_head(a.qk_nope_head_dim, a.kv_lora_rank);
  values_ = by_head(a.kv_lora_rank, a.v_head_dim);
  useful_width_ = shape_.head_dim + shape_.value_dim;
  shape_.head_dim = a.kv_lora_rank + a.qk_rope_head_dim;
  shape_.value_dim = a.kv_lora_rank;
  shape_.kv_heads = 1;
  shape_.values_in_keys = true;
  windowed_ = shape_;
  rotated_width_ = heads_ * a.qk_rope_head_dim + shape_.head_dim;
}

int Attention::forward(PieceList& list) const {
  const double t = kernels_.plan.tp, projection = parameters_.proj / t + parameters_.proj_bias;
  list.compute(Part::norm, latent_ ? kernels_.norm_forward() : kernels_.norm_before_product(), Piece::kNone,
               parameters_.norms);
  if (latent_)
    list.compute(Part::attention, down_.forward + kernels_.norm_forward(kernels_.rows, latent_width_),
                 Piece::kNone, parameters_.latent);
  kernels_.gathered_product(list, Part::attention, LayerKernels::forward_of(qkv_), before_core(Pass::forward),
                            input(), parameters_.qkv / t);
  const int answered = core_forward(list);
  if (kernels_.model.parallel_residual) {
    list.compute(Part::attention, proj_.forward, answered, projection);
    return Piece::kNone;
  }
  return kernels_.reduced_product(list, Part::attention, proj_, projection, answered);
}

int Attention::backward(PieceList& list, RecomputeKind recompute) const {
  const double t = kernels_.plan.tp, projection = parameters_.proj / t + parameters_.proj_bias;
  if (kernels_.model.parallel_residual) {
    list.compute(Part::attention, proj_.input_gradient);
  } else {
    kernels_.gathered_product(list, Part::attention, LayerKernels::input_gradient_of(proj_), {},
                              kernels_.gathered_gradient(kernels_.bytes), 0);
  }
  list.weight_gradient(Part::attention, proj_.weight_gradient, Piece::kNone, projection);
  if (recompute == RecomputeKind::selective) {
    PieceList again;
    if (kernels_.plan.again.latent) {
      const int gathered = kernels_.gather(again, Part::attention, input().bytes);
      again.compute(Part::attention, qkv_.forward + before_core(Pass::forward), gathered);
    }
    if (kernels_.plan.again.between) again.compute(Part::attention, before_core(Pass::forward));
    const int answered = kernels_.plan.again.core ? core_forward(again) : Piece::kNone;
    if (kernels_.plan.again.projection) kernels_.reduced_product(again, Part::attention, proj_, 0, answered);
    list.append(again.recomputed());
  }
  const int answered = core_backward(list);
  list.compute(Part::attention, before_core(Pass::backward), answered);
  const auto gathered = shares_norm(kernels_.model) ? kernels_.as_it_is(0) : input();
  const int projected = kernels_.column_backward(list, Part::attention, qkv_, parameters_.qkv / t, gathered,
                                                 gathered_bytes_, recompute, latent_ ? 1 : 3);
  if (!latent_) return projected;
  list.compute(Part::attention, kernels_.norm_backward(kernels_.rows, latent_width_) + down_.input_gradient,
               projected);
  list.weight_gradient(Part::attention, down_.weight_gradient, Piece::kNone, parameters_.latent);
  return Piece::kNone;
}

// Latents are gathered between two projections, in 16 bits.
LayerKernels::Gathered Attention::input() const {
  return latent_ ? kernels_.as_it_is(gathered_bytes_) : kernels_.gathered_input(gathered_bytes_, true);
}

int Attention::operators_again(PieceList& list) const {
  const Plan& plan = kernels_.plan;
  const Linear keys = kernels_.linear(kernels_.tokens, kv_heads_ * key_width(kernels_.model), kernels_.hidden,
                                      {kernels_.column_input(true)});
  const KernelCost norm = kernels_.norm_forward(), after = before_core(Pass::forward);
  if (kernels_.micro_pipelined()) {
    list.compute(Part::norm, norm);
    kernels_.gathered_product(list, Part::attention, LayerKernels::forward_of(keys), after, input(), 0);
  } else {
    list.compute(Part::attention, norm + after + keys.forward);
  }
  // Compiled: if only a reduce-scatter reads a product, and its result is kept, the backward graph does not
  // contain the product.
  const bool scattered = plan.fused_kernels && plan.sequence_parallel;
  if (scattered && plan.again.scatters)
    return kernels_.reduced_product(list, Part::attention, proj_, 0, Piece::kNone);
  if (!scattered) list.compute(Part::attention, proj_.forward);
  return Piece::kNone;
}

// The attention core with its context-parallel exchange. Every rank holds two chunks of the sequence, one
// from each end, so that causal work is even. Both functions return what the next piece must wait for.
int Attention::core_forward(PieceList& list) const {
  const Plan& plan = kernels_.plan;
  if (plan.task == Task::decode) {
    KernelCost answer = core([&](const AttentionShape& shape) {
      return kernels_.compute.attention_decode(shape, plan.activations, plan.kv_cache);
    });
    if (useful_width_ > 0) answer.flops *= useful_width_ / (shape_.head_dim + shape_.value_dim);
    list.compute(Part::attention, answer + values_);
    return Piece::kNone;
  }
  return exchange(list, Pass::forward);
}

int Attention::core_backward(PieceList& list) const {
  return exchange(list, Pass::backward);
}

KernelCost Attention::core_of(const AttentionShape& shape, Pass pass) const {
  const Plan& plan = kernels_.plan;
  return pass == Pass::forward
             ? kernels_.compute.attention_forward(shape, plan.attention, plan.attention_core)
             : kernels_.compute.attention_backward(shape, plan.attention, plan.attention_core);
}

template <class Cost>
KernelCost Attention::core(const Cost& cost) const {
  if (full_share_ == 1) return cost(shape_);
  return cost(shape_) * full_share_ + cost(windowed_) * (1 - full_share_);
}

// Casts queries, keys and values, or in the backward pass the answer's gradient.
KernelCost Attention::cast_core(Pass pass) const {
  const double width = pass == Pass::forward ? qkv_width_ : context_width_;
  const double narrow = bytes_of(kernels_.plan.attention_core);
  if (narrow >= kernels_.element) return {};
  return kernels_.compute.memory_bound(kernels_.tokens * width * (kernels_.element + narrow),
                                       MemoryKernel::elementwise);
}

int Attention::exchange(PieceList& list, Pass pass) const {
  const int c = kernels_.plan.cp;
  const bool forward = pass == Pass::forward;
  if (c > 1 && kernels_.plan.cp_kind == ContextKind::ring) return ring(list, pass);
  const KernelCost all =
      cast_core(pass) + core([&](const AttentionShape& shape) { return core_of(shape, pass); });
  const auto exchanged = [&](CollectiveKind kind, double bytes) {
    return list.collective(Part::attention, kind, bytes, c, Group::context);
  };
  const double keys_values = kernels_.tokens * keys_values_width_ * kernels_.element;
  if (c == 1) {
    list.compute(Part::attention, all);
    return Piece::kNone;
  }
  if (kernels_.plan.cp_kind == ContextKind::all_gather) {  // keys' and values' gradients return this way
    list.compute(Part::attention, all, exchanged(CollectiveKind::all_gather, c * keys_values));
    return forward ? Piece::kNone : exchanged(CollectiveKind::reduce_scatter, c * keys_values);
  }
  // Ulysses: from a part of the sequence to a part of the heads, and back.
  const double answer = kernels_.tokens * context_width_ * kernels_.element;
  // Every rank needs the keys and values of its heads; if there are fewer heads of them than ranks, they are
  // repeated.
  const double repeated = std::max(0.0, kernels_.plan.cp / kv_heads_ - 1) * keys_values_width_;
  const double question = kernels_.tokens * (qkv_width_ + repeated) * kernels_.element;
  list.compute(Part::attention, all, exchanged(CollectiveKind::all_to_all, forward ? question : answer));
  return exchanged(CollectiveKind::all_to_all, forward ? answer : question);
}

// A rank holds a chunk of S / 2c tokens from each end. With its own keys: S/c queries under the causal mask.
// With the keys of an earlier rank: those of the first chunk, S / 2c, for all queries; with those of a later
// rank: both chunks, S / c, for the queries of the second chunk. The last two have no mask and the same
// number of pairs; the first of them has twice the rows of tiles, and the last rank has c - 1 such blocks.
// (context_parallel.py, AttnFuncWithCPAndKVP2P; torch's _templated_ring_attention with its load balancer.)
Attention::Blocks Attention::blocks(Pass pass) const {
  const double c = kernels_.plan.cp;
  AttentionShape own = shape_, other = shape_;
  own.keys = shape_.keys / c;
  other.keys = shape_.causal ? own.keys / 2 : own.keys;
  other.causal = false;
  return {core_of(own, pass) + cast_core(pass), core_of(other, pass)};
}

// While a block of keys and values is processed, the next one arrives; in the backward pass gradients travel
// too. Returns what the next piece must wait for.
int Attention::ring(PieceList& list, Pass pass) const {
  const Plan& plan = kernels_.plan;
  const bool forward = pass == Pass::forward;
  const RingTraffic& traffic = plan.ring_fp32 ? (forward ? kWideRingForward : kWideRingBackward)
                                              : (forward ? kRingForward : kRingBackward);
  // PyTorch's kernels need as many key and value heads as query heads: they are repeated before the ring.
  const double width = plan.ring_fp32 ? heads_ * (shape_.head_dim + shape_.value_dim) : keys_values_width_;
  const double keys_values = kernels_.tokens * width * kernels_.element;
  const double answer = kernels_.tokens * context_width_ * kernels_.element;
  const Blocks all = blocks(pass);
  const auto block = [&](int step) { return step == 0 ? all.own : all.other; };
  const auto moved = [&](int step) {
    const double bytes = step == 0
                             ? traffic.answer * answer + traffic.keys_values * keys_values
                             : traffic.answer_of_block * answer + traffic.keys_values_of_block * keys_values;
    return kernels_.compute.memory_bound(bytes, MemoryKernel::add, traffic.kernels_of_block);
  };
  const auto passed_on = [&](double bytes) {
    return list.collective(Part::attention, CollectiveKind::send_recv, bytes, plan.cp, Group::context);
  };
  int arrived = Piece::kNone;
  if (!plan.ring_fp32) {
    for (int step = 0; step < plan.cp; ++step) {
      const int next = step + 1 < plan.cp ? passed_on((forward ? 1 : 2) * keys_values) : Piece::kNone;
      list.compute(Part::attention, block(step) + moved(step), arrived);
      arrived = next;
    }
    return Piece::kNone;
  }
  // PyTorch gathers all keys and values at once (_cp_options.rotate_method, ALL_GATHER) while the first block
  // is processed. Gradients travel around the ring in fp32: a rank adds to them when both they and the next
  // block are there; a last hop returns them to their owner.
  const int gathered = list.collective(Part::attention, CollectiveKind::all_gather, plan.cp * keys_values,
                                       plan.cp, Group::context);
  for (int step = 0; step < plan.cp; ++step) {
    list.compute(Part::attention, block(step), step == 1 ? gathered : Piece::kNone);
    list.compute(Part::attention, moved(step), arrived);
    if (!forward) arrived = passed_on(2 * keys_values);
  }
  return arrived;
}
}  // namespace topsim::workloads
