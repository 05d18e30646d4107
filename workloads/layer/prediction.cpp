// Multi-token prediction after the last layer.
#include "workloads/layer/layer_kernels.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads {

PiecePair prediction(const ModelSpec& model, const Plan& plan, const ComputeModel& compute,
                     const PiecePair& embedding, const PiecePair& layer, const PiecePair& head) {
  const LayerKernels kernels(model, plan, compute);
  // Split by columns over the tensor ranks.
  const Linear projection = kernels.linear(kernels.tokens, kernels.hidden / plan.tp, 2 * kernels.hidden);
  const double parameters = 2 * kernels.hidden * kernels.hidden / plan.tp;
  const double norms = 2 * kernels.hidden;
  PiecePair result;
  PieceList& forward = result.forward;
  forward.append(embedding.forward);
  forward.compute(Part::norm, kernels.norm_forward() + kernels.norm_forward(), Piece::kNone, norms);
  // A column-parallel product whose full result every rank needs: its input is gathered, and so are its
  // columns (_concat_embeddings: gather_from_tensor_model_parallel_region, then
  // scatter_to_sequence_parallel_region).
  const int gathered = kernels.gather(forward, Part::layers, 2 * kernels.bytes);
  forward.compute(Part::layers, projection.forward, gathered, parameters);
  const auto all_columns = [&](PieceList& list) {
    return list.collective(Part::layers, program::CollectiveKind::all_gather, kernels.bytes, plan.tp);
  };
  const int columns = all_columns(forward);
  forward.compute(Part::layers, KernelCost{}, columns);
  forward.append(layer.forward);
  forward.append(head.forward.without_parameters());

  PieceList& backward = result.backward;
  backward.append(head.backward.without_parameters());
  backward.append(layer.backward);
  // In the backward pass the scatter becomes a gather, and the gather takes this rank's columns.
  const int rows = plan.sequence_parallel ? all_columns(backward) : Piece::kNone;
  backward.compute(Part::layers, KernelCost{}, rows);
  const int projected = kernels.column_backward(backward, Part::layers, projection, parameters,
                                                kernels.as_it_is(2 * kernels.bytes), 2 * kernels.bytes);
  backward.compute(Part::norm, kernels.norm_backward() + kernels.norm_backward(), projected, norms);
  backward.append(embedding.backward);
  return result;
}
}  // namespace topsim::workloads
