// Forward and backward of one transformer layer, from its two halves.
#include "workloads/layer/blocks.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads {
namespace {

PieceList forward(const LayerKernels& kernels, LayerKind kind, const Attention& attention,
                  const FeedForward& feed_forward) {
  PieceList list;
  const int attended = attention.forward(list);
  const KernelCost norm = kind == LayerKind::dense ? kernels.norm_before_product() : kernels.norm_forward();
  list.compute(Part::norm, kernels.residual_forward() + norm, attended);
  const int done = feed_forward.forward(list);
  list.compute(Part::norm, kernels.residual_forward(), done);
  return list;
}

// A checkpoint's forward pass runs before anything of the layer's backward pass, up to the last product's
// input; gathers are those that the backward pass asks for anyhow.
PieceList operators_again(const LayerKernels& kernels, const Attention& attention) {
  const double ffn = kernels.model.ffn / static_cast<double>(kernels.plan.tp);
  const double products = kernels.gates() - (kernels.keeps_products() ? 1 : 0);
  PieceList list;
  list.compute(Part::attention, kernels.norm_forward() + attention.operators_again());
  list.compute(Part::norm, kernels.residual_forward() + kernels.norm_forward());
  KernelCost activation = kernels.activation_forward(kernels.tokens, ffn);
  if (products > 0)
    activation +=
        kernels.linear(kernels.tokens, products * ffn, kernels.hidden, {kernels.column_input(true)}).forward;
  list.compute(Part::mlp, activation);
  return list.recomputed();
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
  if (recompute == RecomputeKind::full) list = result.forward.recomputed();
  if (recompute == RecomputeKind::selective && plan.again.norms) {
    PieceList norms;
    norms.compute(Part::norm, kernels.norm_forward() + kernels.norm_forward());
    list.append(norms.recomputed());
  }
  if (recompute == RecomputeKind::selective && plan.again.operators)
    list.append(operators_again(kernels, attention));
  const double norm = parameters.norms / 2 / plan.tp;
  list.compute(Part::norm, kernels.residual_backward());
  const int fed = feed_forward->backward(list, recompute);
  list.compute(Part::norm, kernels.norm_backward() + kernels.residual_backward(), fed, norm);
  const int attended = attention.backward(list, recompute);
  list.compute(Part::norm, kernels.norm_backward(), attended, norm);
  return result;
}
}  // namespace topsim::workloads
