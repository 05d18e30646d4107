// What the first and the last stage do beside their layers.
#include <cmath>

#include "workloads/layer/layer_kernels.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads {
using program::CollectiveKind;

namespace {
// The table's gradient is dense: embedding_dense_backward writes zeros to all rows before it adds to some.
// Megatron's hook then adds it to the gradients so far (distributed_data_parallel.py: param.main_grad.add_),
// which matmuls do themselves.
KernelCost table_gradient(const LayerKernels& kernels, double parameters) {
  const Plan& plan = kernels.plan;
  if (plan.inference() || plan.frozen()) return {};
  const double fresh = plan.cast_weights ? plan.parameter_bytes : kernels.element;
  const double added = plan.fused_accumulation ? fresh + 2 * plan.gradient_bytes : 0;
  return kernels.compute.memory_bound(parameters * (fresh + added), MemoryKernel::add, added > 0 ? 2 : 1) +
         accumulated(kernels.plan, kernels.compute, parameters);
}

// Passes over the rows of the embedding (Megatron: mpu/layers.py, VocabParallelEmbedding; language_model.py,
// Embedding), and their kernels. Forward: look-up 2; words of other ranks set to zero 2, beside it 6 kernels
// on one number per word; positions looked up 2, added 3; with several sequences transposed to tokens first
// 2. Backward: the table reads the rows, and so do positions; masked words are copied and set to zero 4;
// transposed back 2.
struct RowPasses {
  double passes, kernels;
};
RowPasses row_passes(const ModelSpec& model, const Plan& plan, bool forward) {
  if (plan.inference()) return {2, 3};
  RowPasses rows = forward ? RowPasses{2, 1} : RowPasses{1, 3};
  const auto add = [&](double passes, double kernels) { rows.passes += passes, rows.kernels += kernels; };
  if (plan.tp > 1) add(forward ? 2 : 4, forward ? 7 : 2);
  if (positions_of(model) == Positions::learned) add(forward ? 5 : 1, forward ? 2 : 3);
  const bool tokens_first = plan.core_copies == CoreCopies::own || plan.core_copies == CoreCopies::engine;
  if (tokens_first && plan.micro_batch > 1) add(2, 1);
  return rows;
}
}  // namespace

PiecePair embedding(const ModelSpec& model, const Plan& plan, const ComputeModel& compute) {
  const LayerKernels kernels(model, plan, compute);
  const double tokens = plan.tokens(), element = bytes_of(plan.activations);
  const double bytes = tokens * model.hidden * element;
  const double parameters = embedding_parameters(model, plan.tp);
  PiecePair result;
  const RowPasses found = row_passes(model, plan, true), left = row_passes(model, plan, false);
  KernelCost lookup = compute.memory_bound(found.passes * bytes, MemoryKernel::elementwise, found.kernels);
  KernelCost gradient;
  if (plan.looks_up_by_product) {
    const double vocab = static_cast<double>(model.vocab) / plan.tp;
    lookup += compute.memory_bound(tokens * vocab * element, MemoryKernel::elementwise);  // the one-hot rows
    lookup += compute.gemm({tokens, static_cast<double>(model.hidden), vocab}, plan.activations);
    gradient = compute.gemm({vocab, static_cast<double>(model.hidden), tokens}, plan.activations);
    lookup.flops = gradient.flops = 0;  // a look-up's are none of the model's
  }
  result.forward.compute(Part::embedding, lookup, Piece::kNone, parameters);
  const int reduced = kernels.reduce(result.forward, Part::embedding, bytes);
  const double rows = plan.sequence_parallel ? bytes / plan.tp : bytes;
  const double dropout = plan.dropout ? rows * (2 + 1 / element) : 0;
  result.forward.compute(Part::embedding, compute.memory_bound(dropout, MemoryKernel::elementwise), reduced);

  const int gathered = kernels.gather(result.backward, Part::embedding, bytes);
  // Reads the gradient and adds it to the rows of this rank's vocabulary.
  const double scatter = left.passes * bytes + tokens / plan.tp * model.hidden * 2 * plan.gradient_bytes;
  result.backward.compute(Part::embedding,
                          compute.memory_bound(scatter, MemoryKernel::elementwise, left.kernels) +
                              table_gradient(kernels, parameters) + gradient,
                          gathered, parameters);
  return result;
}

PiecePair head(const ModelSpec& model, const Plan& plan, const ComputeModel& compute) {
  const LayerKernels kernels(model, plan, compute);
  const double tokens = plan.tokens(), element = bytes_of(plan.activations), h = model.hidden;
  const double vocab = static_cast<double>(model.vocab) / plan.tp;
  const double rows = kernels.rows;
  const double bytes = tokens * h * element;
  // Of a masked language model the tokens to predict are gathered first, and the gradient of the others is
  // zero: zeros are written, then those rows (NVIDIA DeepLearningExamples, BERT, modeling.py:
  // BertPreTrainingHeads, sequence_output_is_dense; torch.index_select and its index_add_).
  const double predicted = plan.predicted(), logits = predicted * vocab;
  const bool gathers = predicted < tokens;
  const KernelCost taken =
      gathers ? compute.memory_bound(2 * predicted * h * element, MemoryKernel::elementwise) : KernelCost{};
  const KernelCost put_back =
      gathers ? compute.memory_bound(bytes + 3 * predicted * h * element, MemoryKernel::elementwise, 2)
              : KernelCost{};
  const double chunks = plan.loss_chunks, part = predicted / chunks;
  const LossBytes& loss = plan.loss;
  const bool fused = plan.fused_cross_entropy;
  const KernelCost loss_forward =
      compute.memory_bound(logits * (loss.forward_copies + loss.forward_own * element),
                           MemoryKernel::elementwise, chunks * (fused ? (loss.forward_own + 1) / 2 : 8));
  const KernelCost loss_backward =
      compute.memory_bound(logits * (loss.backward_copies + loss.backward_own * element),
                           MemoryKernel::elementwise, chunks * (fused ? 1 : 4));

  PiecePair result;
  PieceList& forward = result.forward;
  const double norm = final_norm_parameters(model);
  forward.compute(Part::norm, compute.memory_bound(2 * rows * h * element, MemoryKernel::norm), Piece::kNone,
                  norm);
  const int gathered = kernels.gather(forward, Part::head, bytes);
  // A head that shares the table on the same rank has no weights of its own: they are communicated and
  // updated once.
  const double parameters = shares_table(model, plan) ? 0 : head_parameters(model) / plan.tp;
  // Rows of logits where a rank's vocabulary is odd (Megatron pads it).
  const bool odd = std::fmod(vocab, 2) == 1;
  const auto product = [&](double m, double n, double k, GemmOutput output = GemmOutput::fresh) {
    return compute.gemm({m, n, k, 1, 0, odd}, plan.activations, output) * chunks;
  };
  forward.compute(Part::head, taken + product(part, vocab, h), gathered, parameters);
  // Maximum, predicted logit, sum of exponentials: one fp32 number per token each.
  KernelCost third = loss_forward * (1.0 / 3);
  int reduced = Piece::kNone;
  for (int i = 0; i < 3; ++i) {
    forward.compute(Part::loss, third, reduced);
    reduced = forward.collective(Part::loss, CollectiveKind::all_reduce, 4 * predicted, plan.tp);
  }
  forward.compute(Part::loss, KernelCost{.kernels = 1}, reduced);

  PieceList& backward = result.backward;
  backward.compute(Part::loss, loss_backward);
  const bool exposed = kernels.waits_at_once();
  const int input =
      kernels.gathers_again(RecomputeKind::none) ? kernels.gather(backward, Part::head, bytes) : Piece::kNone;
  backward.compute(Part::head, product(part, h, vocab) + put_back, exposed ? input : Piece::kNone);
  const int gradient = kernels.reduce(backward, Part::head, bytes);
  // Chunks after the first add their gradient to that of the chunks before.
  const GemmOutput output = gradient_output(plan);
  const double added = output == GemmOutput::fresh ? 3 * element * (chunks - 1) : 0;
  const KernelCost weights = product(vocab, h, part, output) +
                             compute.memory_bound(added * vocab * h, MemoryKernel::add, chunks) +
                             accumulated(plan, compute, vocab * h);
  if (chunks == 1)
    backward.weight_gradient(Part::head, weights, exposed ? gradient : input, parameters);
  else  // not put off: the gradient of the next chunk's logits takes this one's place
    backward.compute(Part::head, weights, exposed ? gradient : input, parameters);
  backward.compute(Part::norm, compute.memory_bound(3 * rows * h * element, MemoryKernel::norm, 2),
                   exposed ? Piece::kNone : gradient, norm);
  return result;
}
}  // namespace topsim::workloads
