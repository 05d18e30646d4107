// Forward and backward of one dense layer. Symbols as in training-and-collectives.md: M tokens of the rank, h
// hidden, t tensor-parallel size, S = M h bytes of the whole activation; with sequence parallelism the parts
// between the matmuls hold M / t tokens.
#include <algorithm>

#include "workloads/layer/pieces.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads {
namespace {

using program::CollectiveKind;

// Sizes that both passes need.
struct Shapes {
  Shapes(const ModelSpec& model, const Plan& plan)
      : tokens(plan.tokens()),
        rows(plan.sequence_parallel ? tokens / plan.tp : tokens),
        hidden(model.hidden),
        heads(model.heads / static_cast<double>(plan.tp)),
        kv_heads(std::max(1.0, model.kv_heads / static_cast<double>(plan.tp))),
        qkv((heads + 2 * kv_heads) * model.head_dim),
        context(heads * model.head_dim),
        ffn(model.ffn / static_cast<double>(plan.tp)),
        fc1((model.gated_ffn ? 2 : 1) * ffn),
        element(bytes_of(plan.activations)),
        bytes(tokens * hidden * element) {
    attention.batch = plan.micro_batch;
    attention.heads = heads;
    attention.kv_heads = kv_heads;
    attention.queries = static_cast<double>(plan.sequence) / plan.cp;
    attention.keys = plan.sequence;
    attention.head_dim = attention.value_dim = model.head_dim;
    attention.causal = model.attention.causal;
    attention.dropout = plan.dropout;
  }
  double tokens, rows, hidden, heads, kv_heads, qkv, context, ffn, fc1, element, bytes;
  AttentionShape attention;
};

// The work of one linear layer Y[M x n] = X[M x k] W.
struct Linear {
  KernelCost forward, input_gradient, weight_gradient;
};

Linear linear(const ComputeModel& compute, const Plan& plan, double m, double n, double k) {
  const bool narrow = bytes_of(plan.gemm) < bytes_of(plan.activations);
  // Low-precision formats: each operand is read in 16 bits and written in both layouts (4.10).
  const auto cast = [&](double elements) {
    return narrow ? compute.memory_bound(elements * (2 + 1 + 1), MemoryKernel::elementwise) : KernelCost{};
  };
  Linear result;
  result.forward = cast(m * k) + cast(n * k) + compute.gemm({m, n, k}, plan.gemm);
  result.input_gradient = cast(m * n) + compute.gemm({m, k, n}, plan.gemm);
  result.weight_gradient = compute.gemm(
      {n, k, m}, plan.gemm, plan.gradient_bytes > 2 ? GemmOutput::accumulate_32 : GemmOutput::fresh);
  return result;
}

class DenseLayer {
 public:
  DenseLayer(const ModelSpec& model, const Plan& plan, const ComputeModel& compute)
      : model_(model),
        plan_(plan),
        compute_(compute),
        shapes_(model, plan),
        parameters_(layer_parameters(model)) {
    qkv_ = linear(compute, plan, shapes_.tokens, shapes_.qkv, shapes_.hidden);
    proj_ = linear(compute, plan, shapes_.tokens, shapes_.hidden, shapes_.context);
    fc1_ = linear(compute, plan, shapes_.tokens, shapes_.fc1, shapes_.hidden);
    fc2_ = linear(compute, plan, shapes_.tokens, shapes_.hidden, shapes_.ffn);
  }

  PieceList forward() const {
    PieceList list;
    const double t = plan_.tp;
    list.compute(Part::norm, norm_forward(), Piece::kNone, parameters_.norms / t);
    const int gathered = gather(list, Part::attention);
    list.compute(Part::attention, qkv_.forward + rotary(), gathered, parameters_.qkv / t);
    const int answered = core_forward(list);
    list.compute(Part::attention, proj_.forward, answered, parameters_.proj / t);
    const int attended = reduce(list, Part::attention);
    list.compute(Part::norm, residual_forward() + norm_forward(), attended);
    const int normed = gather(list, Part::mlp);
    list.compute(Part::mlp, fc1_.forward + activation_forward() + fc2_.forward, normed,
                 (parameters_.fc1 + parameters_.fc2) / t);
    const int done = reduce(list, Part::mlp);
    list.compute(Part::norm, residual_forward(), done);
    return list;
  }

  PieceList backward(RecomputeKind recompute) const {
    PieceList list;
    if (recompute == RecomputeKind::full) list = forward().recomputed();
    const double t = plan_.tp;
    // FFN: the row-parallel half first.
    const KernelCost residual = residual_backward();
    int ready = Piece::kNone;
    list.compute(Part::norm, residual);
    if (plan_.sequence_parallel)
      ready = list.collective(Part::mlp, CollectiveKind::all_gather, shapes_.bytes, plan_.tp);
    list.compute(Part::mlp, fc2_.input_gradient, ready);
    list.weight_gradient(Part::mlp, fc2_.weight_gradient, Piece::kNone, parameters_.fc2 / t);
    list.compute(Part::mlp, activation_backward());
    const int mlp = column_backward(list, Part::mlp, fc1_, parameters_.fc1 / t);
    list.compute(Part::norm, norm_backward() + residual, mlp, parameters_.norms / 2 / t);

    ready = Piece::kNone;
    if (plan_.sequence_parallel)
      ready = list.collective(Part::attention, CollectiveKind::all_gather, shapes_.bytes, plan_.tp);
    list.compute(Part::attention, proj_.input_gradient, ready);
    list.weight_gradient(Part::attention, proj_.weight_gradient, Piece::kNone, parameters_.proj / t);
    if (recompute == RecomputeKind::selective) {
      PieceList again;
      core_forward(again);
      list.append(again.recomputed());
    }
    const int answered = core_backward(list);
    list.compute(Part::attention, rotary(), answered);
    const int attention = column_backward(list, Part::attention, qkv_, parameters_.qkv / t);
    list.compute(Part::norm, norm_backward(), attention, parameters_.norms / 2 / t);
    return list;
  }

 private:
  int gather(PieceList& list, Part part) const {
    if (!plan_.sequence_parallel) return Piece::kNone;
    return list.collective(part, CollectiveKind::all_gather, shapes_.bytes, plan_.tp);
  }
  int reduce(PieceList& list, Part part) const {
    return list.collective(
        part, plan_.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
        shapes_.bytes, plan_.tp);
  }

  // The attention core with its context-parallel exchange (4.6). Every rank holds two chunks of the sequence,
  // one from each end, so that causal work is even; both return what the next piece must wait for.
  int core_forward(PieceList& list) const {
    const KernelCost core = compute_.attention_forward(shapes_.attention, plan_.attention, plan_.activations);
    return exchange(list, core, 1);
  }
  int core_backward(PieceList& list) const {
    const KernelCost core =
        compute_.attention_backward(shapes_.attention, plan_.attention, plan_.activations);
    return exchange(list, core, 2);
  }
  int exchange(PieceList& list, const KernelCost& core, int passes) const {
    const int c = plan_.cp;
    const auto exchanged = [&](CollectiveKind kind, double bytes) {
      return list.collective(Part::attention, kind, bytes, c, Group::context);
    };
    const double keys_values = 2 * shapes_.tokens * shapes_.kv_heads * model_.head_dim * shapes_.element;
    if (c == 1) {
      list.compute(Part::attention, core);
      return Piece::kNone;
    }
    if (plan_.cp_kind == ContextKind::all_gather) {  // the gradients of keys and values return the same way
      list.compute(Part::attention, core, exchanged(CollectiveKind::all_gather, c * keys_values));
      return passes == 1 ? Piece::kNone : exchanged(CollectiveKind::reduce_scatter, c * keys_values);
    }
    if (plan_.cp_kind ==
        ContextKind::ulysses) {  // from a part of the sequence to a part of the heads, and back
      const double answer = shapes_.tokens * shapes_.context * shapes_.element;
      const double question = shapes_.tokens * shapes_.qkv * shapes_.element;
      list.compute(Part::attention, core,
                   exchanged(CollectiveKind::all_to_all, passes == 1 ? question : answer));
      return exchanged(CollectiveKind::all_to_all, passes == 1 ? answer : question);
    }
    // Ring: while a block of keys and values is worked on, the next one arrives; backward their gradients
    // travel too.
    int arrived = Piece::kNone;
    for (int step = 0; step < c; ++step) {
      const int next =
          step + 1 < c ? exchanged(CollectiveKind::send_recv, passes * keys_values) : Piece::kNone;
      KernelCost block = core * (1.0 / c);
      block.kernels = core.kernels + 1;  // and the correction of the softmax so far
      list.compute(Part::attention, block, arrived);
      arrived = next;
    }
    return Piece::kNone;
  }

  // Megatron's order: gather the input again while the input gradient is computed, reduce the input gradient
  // while the weight gradient is. With tp_overlap "none" each transfer is waited for at once. Returns what
  // the next piece must wait for.
  int column_backward(PieceList& list, Part part, const Linear& work, double parameters) const {
    const bool exposed = plan_.tp_overlap == TensorOverlap::none;
    const int input = gather(list, part);
    list.compute(part, work.input_gradient, exposed ? input : Piece::kNone);
    const int gradient = reduce(list, part);
    list.weight_gradient(part, work.weight_gradient, exposed ? gradient : input, parameters);
    return exposed ? Piece::kNone : gradient;
  }

  KernelCost norm_forward() const {
    return compute_.memory_bound(2 * shapes_.rows * shapes_.hidden * shapes_.element, MemoryKernel::norm);
  }
  KernelCost norm_backward()
      const {  // reads the gradient and the input, writes the gradient; a second kernel for the gains
    return compute_.memory_bound(3 * shapes_.rows * shapes_.hidden * shapes_.element, MemoryKernel::norm, 2);
  }
  KernelCost residual_forward() const {  // bias, dropout (a byte of mask), residual
    const double elements = shapes_.rows * shapes_.hidden;
    return compute_.memory_bound(elements * (3 * shapes_.element + (plan_.dropout ? 1 : 0)),
                                 MemoryKernel::add, plan_.fused_kernels || !plan_.dropout ? 1 : 3);
  }
  KernelCost residual_backward() const {  // dropout backward, and the sum of the two branches' gradients
    const double elements = shapes_.rows * shapes_.hidden;
    return compute_.memory_bound(
        elements * (3 * shapes_.element + (plan_.dropout ? 2 * shapes_.element + 1 : 0)), MemoryKernel::add,
        plan_.dropout ? 2 : 1);
  }
  KernelCost rotary()
      const {  // GPT shapes add the QKV bias in the matmul's epilogue and have no rotary embedding
    if (!model_.gated_ffn) return {};
    const double elements = shapes_.tokens * (shapes_.heads + shapes_.kv_heads) * model_.head_dim;
    return compute_.memory_bound(2 * elements * shapes_.element, MemoryKernel::elementwise,
                                 plan_.fused_kernels ? 2 : 8);
  }
  KernelCost activation_forward() const {
    const double elements = shapes_.tokens * (shapes_.fc1 + shapes_.ffn);
    return compute_.memory_bound(elements * shapes_.element, MemoryKernel::elementwise,
                                 plan_.fused_kernels ? 1 : 2);
  }
  KernelCost activation_backward() const {
    const double elements = shapes_.tokens * (2 * shapes_.fc1 + shapes_.ffn);
    return compute_.memory_bound(elements * shapes_.element, MemoryKernel::elementwise,
                                 plan_.fused_kernels ? 1 : 3);
  }
  const ModelSpec& model_;
  const Plan& plan_;
  const ComputeModel& compute_;
  Shapes shapes_;
  LayerParameters parameters_;
  Linear qkv_, proj_, fc1_, fc2_;
};
}  // namespace

PiecePair dense_layer(const ModelSpec& model, const Plan& plan, const ComputeModel& compute,
                      RecomputeKind recompute) {
  const DenseLayer layer(model, plan, compute);
  return {layer.forward(), layer.backward(recompute)};
}
}  // namespace topsim::workloads
