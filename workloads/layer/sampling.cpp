// The end of a forward pass that generates: LM head on the last token of each request, all-gather of the
// logits of all vocabulary shards, sampling of the next token.
#include "workloads/layer/pieces.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads {

PieceList sampling(const ModelSpec& model, const Plan& plan, const ComputeModel& compute) {
  const double rows = plan.micro_batch, element = bytes_of(plan.activations), h = model.hidden;
  const double vocab = static_cast<double>(model.vocab) / plan.tp;
  PieceList list;
  list.compute(Part::norm, compute.memory_bound(2 * rows * h * element, MemoryKernel::norm));
  list.compute(Part::head, compute.gemm({rows, vocab, h}, plan.activations), Piece::kNone,
               head_parameters(model) / plan.tp);
  const int gathered =
      list.collective(Part::head, program::CollectiveKind::all_gather, rows * model.vocab * element, plan.tp);
  // To fp32, temperature, softmax, cumulative sum and comparison: each of four kernels reads and writes once.
  list.compute(Part::head, compute.memory_bound(4 * 2 * 4 * rows * model.vocab, MemoryKernel::elementwise, 4),
               gathered);
  return list;
}
}  // namespace topsim::workloads
