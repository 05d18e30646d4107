// Multi-token prediction behind the last layer.
#include "workloads/layer/layer_kernels.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads {

PiecePair prediction(const ModelSpec& model, const Plan& plan, const ComputeModel& compute,
                     const PiecePair& embedding, const PiecePair& layer, const PiecePair& head) {
  const LayerKernels kernels(model, plan, compute);
  // Split by columns over the tensor ranks.
  const Linear projection = kernels.linear(kernels.tokens, kernels.hidden / plan.tp, 2 * kernels.hidden);
  const double parameters = 2 * kernels.hidden * kernels.hidden / plan.tp;
  const double norms = 2 * kernels.hidden / plan.tp;
  PiecePair result;
  PieceList& forward = result.forward;
  forward.append(embedding.forward);
  forward.compute(Part::norm, kernels.norm_forward() + kernels.norm_forward(), Piece::kNone, norms);
  forward.compute(Part::layers, projection.forward, Piece::kNone, parameters);
  forward.append(layer.forward);
  forward.append(head.forward.without_parameters());

  PieceList& backward = result.backward;
  backward.append(head.backward.without_parameters());
  backward.append(layer.backward);
  backward.compute(Part::layers, projection.input_gradient);
  backward.weight_gradient(Part::layers, projection.weight_gradient, Piece::kNone, parameters);
  backward.compute(Part::norm, kernels.norm_backward() + kernels.norm_backward(), Piece::kNone, norms);
  backward.append(embedding.backward);
  return result;
}
}  // namespace topsim::workloads
