// Between the projections and the attention core: norms of heads, rotary embedding, and copies that bring
// queries, keys and values into the layout that a kernel needs.
#include "workloads/layer/blocks.hpp"

namespace topsim::workloads {

KernelCost Attention::before_core(Pass pass) const {
  KernelCost cost = copies(pass);
  if (positions_of(kernels_.model) == Positions::rotary) cost += rotation(pass);
  if (!kernels_.model.attention.qk_norm) return cost;
  // One norm of all queries and one of all keys.
  const bool forward = pass == Pass::forward;
  for (const double heads : {heads_, kv_heads_}) {
    const double width = heads * kernels_.model.head_dim;
    cost += forward ? kernels_.norm_forward(kernels_.tokens, width)
                    : kernels_.norm_backward(kernels_.tokens, width);
  }
  return cost;
}

KernelCost Attention::rotation(Pass pass) const {
  const double elements = kernels_.tokens * rotated_width_;
  // Fused kernels do not support YaRN's factor (Megatron: rope_utils.py, apply_rotary_pos_emb), so queries
  // and keys pass through single operators; counted are the numbers read and written per number. Forward:
  // product with the cosine 2, half of them negated 1, joined 2, product with the sine 2, sum 3, joined with
  // what is not rotated 2. Backward: both products 4, negation 1, halves joined 2, sum 3, and for the two
  // slices zeros written 2, a copy 2 and a sum 3. Products, negations and the join of halves, 7 of these in
  // either pass, are of slices or with factors that repeat for every head. Sines and cosines are per token
  // and negligible. Engines that serve fold the factor into the sines that they keep (vLLM, rotary_embedding:
  // _compute_cos_sin_cache times mscale).
  if (kernels_.model.attention.scaled_rotary && kernels_.plan.fused_kernels && !kernels_.plan.inference()) {
    const bool forward = pass == Pass::forward;
    return kernels_.compute.memory_bound((forward ? 5 : 10) * elements * kernels_.element,
                                         MemoryKernel::elementwise, 2 * (forward ? 2 : 6)) +
           kernels_.compute.strided({1.5 * elements, 2 * elements}, 7 * elements * kernels_.element, 2 * 4);
  }
  // Eager: cast to fp32 (6 bytes per element), rotated (8), cast back (6) in torchtitan; compiled complex
  // numbers cost the same. In transformers two products (8), a half negated and joined (6), a sum (6).
  if (kernels_.plan.complex_rotary && kernels_.element == 2)
    return kernels_.compute.memory_bound(20 * elements, MemoryKernel::add, 8);
  if (kernels_.plan.eager_norms && kernels_.element == 2)
    return kernels_.compute.memory_bound(6 * elements, MemoryKernel::add, 2) +
           kernels_.compute.strided({1.5 * elements, 2 * elements}, 14 * elements, 8, MemoryKernel::add);
  // Paddle's slices are copies (4), so that no operator reads a slice. Backward: both products 8, the join's
  // gradient taken apart 4, a half negated 2, each half's written between zeros 6, and the three sums 12.
  if (kernels_.plan.rotary_in_copies && kernels_.element == 2)
    return kernels_.compute.memory_bound((pass == Pass::forward ? 24 : 32) * elements, MemoryKernel::add,
                                         2 * 7);
  return kernels_.compute.memory_bound(2 * elements * kernels_.element, MemoryKernel::elementwise,
                                       kernels_.plan.fused_kernels ? 2 : 8);
}

// Numbers read and written per token; q, k, v: its queries, keys and values on this rank. Gradients of the
// parts of one product are joined: 2 q + 2 k + 2 v. Copies of latent attention are in rotated_width_.
KernelCost Attention::copies(Pass pass) const {
  const Plan& plan = kernels_.plan;
  if (latent_ || plan.inference()) return {};
  const bool forward = pass == Pass::forward, grouped = kv_heads_ < heads_;
  const bool turned = positions_of(kernels_.model) == Positions::rotary;
  const double q = heads_ * shape_.head_dim, k = kv_heads_ * shape_.head_dim,
               v = kv_heads_ * shape_.value_dim;
  const double joined = 2 * (q + k + v);
  // Keys and values are written for every head; their gradients are summed over the heads of a group.
  const double repeated = grouped ? k + v + heads_ * (shape_.head_dim + shape_.value_dim) : 0;
  // The bias of the QKV projection: added in place, its gradient summed.
  const bool biased = (plan.bias_kernels || plan.adds_biases) &&
                      (forward ? has_biases(kernels_.model) : has_bias_gradients(kernels_.model, plan));
  double numbers = biased ? (forward ? 2 : 1) * (q + k + v) : 0, launches = biased ? 1 : 0;
  double strided = 0, written = 0, strided_launches = 0;
  const auto move = [&](double moved, double kernels) {
    if (moved > 0) numbers += moved, launches += kernels;
  };
  const auto copy = [&](double moved, double kernels) {  // of slices or of permuted numbers
    if (moved > 0) strided += moved, written += moved / 2, strided_launches += kernels;
  };
  const auto repeat = [&](bool compiled) {
    if (!forward || compiled || repeated == 0) return move(repeated, 2);
    strided += repeated, written += repeated - (k + v), strided_launches += 2;
  };
  switch (plan.core_copies) {
    case CoreCopies::packed:
    case CoreCopies::apart:
      break;
    case CoreCopies::split:
      if (!forward) move(joined, 1);
      break;
    case CoreCopies::own:
      // Megatron-LM, megatron/model/transformer.py. CoreAttention reads queries, keys and values in place and
      // copies each head's answer to its token (permute, contiguous); in the backward pass baddbmm's alpha is
      // a separate product with dQ and dK. FlashSelfAttention: rearrange(x, 's b ... -> b s
      // ...').contiguous(); with one sequence this copies only slices of the projection, and rotated queries
      // and keys no longer are slices.
      if (!forward) move(joined, 1);
      repeat(false);
      if (plan.attention == AttentionKernel::unfused) {
        if (forward) copy(2 * context_width_, 1);
        if (!forward) move(2 * (q + k), 2);
      } else if (forward) {
        const bool rotated = turned && plan.micro_batch == 1;
        copy(rotated ? (grouped ? 0 : 2 * v) : joined, rotated ? 1 : 3);
        if (plan.micro_batch > 1) copy(2 * context_width_, 1);
      }
      break;
    case CoreCopies::engine:
      // Megatron-Core, transformer/attention.py: query.reshape copies where a rank has several groups of
      // heads. Transformer Engine, attention/dot_product_attention/utils.py, get_qkv_layout: of three tensors
      // the one that is still a slice, the values, is made contiguous; SplitAlongDim's backward joins.
      // Without rotary embedding the projection's output is already a valid layout (sbh3d), and so is its
      // gradient.
      if (!turned && !grouped) break;
      if (!forward) move(joined, 1);
      if (forward) copy(2 * v + (grouped && kv_heads_ > 1 ? 2 * q : 0), grouped && kv_heads_ > 1 ? 2 : 1);
      break;
    case CoreCopies::pytorch:
      repeat(plan.fused_kernels);
      break;
  }
  const double tokens = kernels_.tokens;
  return kernels_.compute.memory_bound(tokens * numbers * kernels_.element, MemoryKernel::add, launches) +
         kernels_.compute.strided({tokens * written, 0}, tokens * strided * kernels_.element,
                                  strided_launches, MemoryKernel::add);
}
}  // namespace topsim::workloads
