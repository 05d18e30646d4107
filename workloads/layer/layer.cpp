// Forward and backward of one transformer layer, from its two halves.
#include "workloads/layer/blocks.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads {
namespace {

// Everything up to the input of the feed-forward network. With a parallel residual that is the output of a
// norm of its own, or what attention reads.
PieceList first_half(const LayerKernels& kernels, LayerKind kind, const Attention& attention) {
  PieceList list;
  const int attended = attention.forward(list);
  if (kernels.model.parallel_residual) {
    if (!shares_norm(kernels.model)) list.compute(Part::norm, kernels.norm_before_product());
    return list;
  }
  const KernelCost norm = kind == LayerKind::dense ? kernels.norm_before_product() : kernels.norm_forward();
  list.compute(Part::norm, kernels.residual_forward() + norm, attended);
  return list;
}

PieceList forward(const LayerKernels& kernels, LayerKind kind, const Attention& attention,
                  const FeedForward& feed_forward) {
  PieceList list = first_half(kernels, kind, attention);
  const int done = feed_forward.forward(list);
  list.compute(
      Part::norm,
      kernels.model.parallel_residual ? kernels.parallel_residual_forward() : kernels.residual_forward(),
      done);
  return list;
}

// Both halves side by side: one gradient enters both, gathered once. With a shared norm the gradients are
// summed before they are reduced; with two norms each adds its own to the residual's.
void parallel_backward(PieceList& list, const LayerKernels& kernels, const Attention& attention,
                       const FeedForward& feed_forward, RecomputeKind recompute, double norms) {
  list.compute(Part::norm, kernels.branches_backward());
  const int fed = feed_forward.backward(list, recompute);
  const KernelCost norm = kernels.norm_backward() + kernels.sum(kernels.rows);
  const bool shared = shares_norm(kernels.model);
  if (!shared) list.compute(Part::norm, norm, fed, norms / 2);
  const int attended = attention.backward(list, recompute);
  list.compute(Part::norm, norm, attended, shared ? norms : norms / 2);
}

// A checkpoint's forward pass runs before all of the layer's backward pass, up to the last product's input;
// its gathers are those that the backward pass needs anyway.
PieceList operators_again(const LayerKernels& kernels, LayerKind kind, const Attention& attention,
                          const FeedForward& feed_forward) {
  const double ffn = kernels.model.ffn / static_cast<double>(kernels.plan.tp);
  PieceList list;
  const int attended = attention.operators_again(list);
  list.compute(Part::norm, kernels.residual_forward() + kernels.norm_forward(), attended);
  if (kind == LayerKind::experts) {
    feed_forward.operators_again(list);
    return list.recomputed();
  }
  const KernelCost activation = kernels.activation_forward(kernels.tokens, ffn);
  const Linear up = kernels.linear(kernels.tokens, ffn, kernels.hidden, {kernels.column_input(true)});
  if (!kernels.model.gated_ffn) {
    list.compute(Part::mlp, activation);
  } else if (kernels.micro_pipelined()) {
    kernels.gathered_product(list, Part::mlp, LayerKernels::forward_of(up), activation,
                             kernels.gathered_input(kernels.bytes, true), 0);
  } else {
    list.compute(Part::mlp, activation + up.forward);
  }
  return list.recomputed();
}

// What its backward pass reads of a dense network that is computed again, or of its activation alone.
void network_again(PieceList& list, const LayerKernels& kernels, const FeedForward& feed_forward) {
  const Plan::Again& again = kernels.plan.again;
  PieceList network;
  if (again.mlp && again.to_the_end) {
    feed_forward.forward(network);
  } else if (again.mlp) {
    feed_forward.again(network);
  } else if (again.between) {
    const double ffn = kernels.model.ffn / static_cast<double>(kernels.plan.tp);
    network.compute(Part::mlp, kernels.activation_forward(kernels.tokens, ffn));
  }
  list.append(network.recomputed());
}

// KernelFacts::copies_kept_products: results of products into the stack, and those that the attention core
// reads out of it; kernels of single numbers read slices themselves. No gradient reads the last product's.
struct StackCopies {
  KernelCost in, out;
};
StackCopies stack_copies(const LayerKernels& kernels, LayerKind kind) {
  const ModelSpec& model = kernels.model;
  const Plan& plan = kernels.plan;
  const double t = plan.tp;
  const double core =
      ((model.heads + model.kv_heads) * key_width(model) + model.kv_heads * value_width(model)) / t;
  const double projection = plan.again.projection ? 0 : model.hidden;
  const double network = kind != LayerKind::dense || plan.again.mlp ? 0 : kernels.gates() * model.ffn / t;
  const auto copied = [&](double width, double kernels_of_them) {
    return kernels.compute.memory_bound(2 * kernels.element * kernels.tokens * width,
                                        MemoryKernel::elementwise, kernels_of_them);
  };
  return {copied(core + projection + network, 1 + (projection > 0) + (network > 0)), copied(core, 1)};
}
}  // namespace

PiecePair transformer_layer(const ModelSpec& model, LayerKind kind, const Plan& plan,
                            const ComputeModel& compute, RecomputeKind recompute) {
  const LayerKernels kernels(model, plan, compute);
  const LayerParameters parameters = layer_parameters(model, kind);
  const Attention attention(kernels, parameters);
  const auto feed_forward = kind == LayerKind::dense
                                ? dense_feed_forward(kernels, parameters, model.ffn, true)
                                : expert_feed_forward(kernels, parameters);

  PiecePair result;
  result.forward = forward(kernels, kind, attention, *feed_forward);
  PieceList& list = result.backward;
  if (recompute == RecomputeKind::selective && plan.again.between && plan.copies_kept_products) {
    const StackCopies copies = stack_copies(kernels, kind);
    result.forward.compute(Part::attention, copies.in);
    list.compute(Part::attention, copies.out);
  }
  if (recompute == RecomputeKind::full && plan.again.to_the_end) {
    list = result.forward.recomputed();
  } else if (recompute == RecomputeKind::full) {
    PieceList again = first_half(kernels, kind, attention);
    feed_forward->again(again);
    list = again.recomputed();
  }
  if (recompute == RecomputeKind::selective && plan.again.norms) {
    PieceList norms;
    norms.compute(Part::norm, kernels.norm_forward() * norms_of_layer(model));
    list.append(norms.recomputed());
  }
  if (recompute == RecomputeKind::selective && plan.again.operators)
    list.append(operators_again(kernels, kind, attention, *feed_forward));
  if (recompute == RecomputeKind::selective && kind == LayerKind::dense)
    network_again(list, kernels, *feed_forward);
  if (model.parallel_residual) {
    parallel_backward(list, kernels, attention, *feed_forward, recompute, parameters.norms);
    return result;
  }
  const double norm = parameters.norms / 2;
  list.compute(Part::norm, kernels.residual_backward());
  const int fed = feed_forward->backward(list, recompute);
  list.compute(Part::norm, kernels.norm_backward() + kernels.residual_backward(), fed, norm);
  const int attended = attention.backward(list, recompute);
  list.compute(Part::norm, kernels.norm_backward(), attended, norm);
  return result;
}
}  // namespace topsim::workloads
