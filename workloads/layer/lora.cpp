#include "workloads/layer/lora.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include "workloads/layer/layer_kernels.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads {
namespace {

using program::CollectiveKind;

// Of one frozen matrix, on one tensor rank.
struct Adapter {
  Part part;
  bool row = false;  // row-parallel
  double n = 0, k = 0;
};

// Those of the matrices that are one target, in forward order.
using Target = std::vector<Adapter>;

class Adapters {
 public:
  Adapters(const ModelSpec& model, const Plan& plan, const ComputeModel& compute)
      : plan_(plan), compute_(compute), rank_(plan.adapters.rank), tokens_(plan.tokens()) {
    const double t = plan.tp, d = model.head_dim;
    const double heads = model.heads / t, kv_heads = std::max(1.0, model.kv_heads / t), ffn = model.ffn / t;
    const double h = model.hidden;
    const PlanAdapters& on = plan.adapters;
    const bool gate_apart = on.apart && model.gated_ffn;
    const auto columns = [&](Part part, const std::vector<double>& widths) {
      Target target;
      for (const double n : widths) target.push_back({part, false, n, h});
      return target;
    };
    using Widths = std::vector<double>;
    if (on.qkv)
      qkv_ = columns(Part::attention, on.apart ? Widths{heads * d, kv_heads * d, kv_heads * d}
                                               : Widths{(heads + 2 * kv_heads) * d});
    if (on.proj) proj_ = {{Part::attention, true, h, heads * d}};
    if (on.fc1)
      fc1_ = columns(Part::mlp, gate_apart ? Widths{ffn, ffn} : Widths{(model.gated_ffn ? 2 : 1) * ffn});
    if (on.fc2) fc2_ = {{Part::mlp, true, h, ffn}};
  }
  // In the order in which a backward list completes their weights: of each half the row-parallel one first.
  const Target& of(Part part, int index) const {
    if (part == Part::attention) return index == 0 ? proj_ : qkv_;
    if (part == Part::mlp) return index == 0 ? fc2_ : fc1_;
    return none_;
  }
  const Target& qkv() const { return qkv_; }
  const Target& proj() const { return proj_; }
  const Target& fc1() const { return fc1_; }
  const Target& fc2() const { return fc2_; }

  void forward(PieceList& list, const Target& target) const {
    for (const Adapter& adapter : target) forward(list, adapter);
  }
  void backward(PieceList& list, const Target& target) const {
    for (auto adapter = target.rbegin(); adapter != target.rend(); ++adapter) backward(list, *adapter);
  }

 private:
  void forward(PieceList& list, const Adapter& a) const {
    list.compute(a.part, compute_.gemm({tokens_, rank_, a.k}, plan_.gemm), Piece::kNone, rank_ * a.k);
    const int summed = a.row ? sum(list, a.part) : Piece::kNone;
    list.compute(a.part, compute_.gemm({tokens_, a.n, rank_}, plan_.gemm) + add(a.n), summed, rank_ * a.n);
  }
  void backward(PieceList& list, const Adapter& a) const {
    list.compute(a.part, compute_.gemm({tokens_, rank_, a.n}, plan_.gemm));  // gradient of X A
    const int summed = a.row ? Piece::kNone : sum(list, a.part);
    list.weight_gradient(a.part, weights(a.n), Piece::kNone, rank_ * a.n);
    list.compute(a.part, compute_.gemm({tokens_, a.k, rank_}, plan_.gemm) + add(a.k), summed);
    list.weight_gradient(a.part, weights(a.k), Piece::kNone, rank_ * a.k);
  }

  int sum(PieceList& list, Part part) const {
    return list.collective(part, CollectiveKind::all_reduce, tokens_ * rank_ * bytes_of(plan_.activations),
                           plan_.tp);
  }
  KernelCost add(double width) const {
    return compute_.memory_bound(3 * tokens_ * width * bytes_of(plan_.activations), MemoryKernel::add);
  }
  KernelCost weights(double width) const {
    return compute_.gemm({width, rank_, tokens_}, plan_.gemm, gradient_output(plan_)) +
           accumulated(plan_, compute_, width * rank_);
  }

  const Plan& plan_;
  const ComputeModel& compute_;
  double rank_, tokens_;
  Target qkv_, proj_, fc1_, fc2_, none_;
};

// Copies a list piece by piece; `rewrite` appends what takes a piece's place and returns where it is.
PieceList rewritten(const PieceList& list, const std::function<int(PieceList&, const Piece&)>& rewrite) {
  PieceList result;
  std::vector<int> moved;
  for (Piece piece : list.pieces()) {
    if (piece.wait != Piece::kNone) piece.wait = moved[static_cast<std::size_t>(piece.wait)];
    moved.push_back(rewrite(result, piece));
  }
  return result;
}

PieceList adapted_forward(const PieceList& list, const Adapters& adapters) {
  int attention = 0;
  return rewritten(list, [&](PieceList& out, Piece piece) {
    const bool matrix = !piece.collective && piece.parameters > 0;
    const Part part = piece.part;
    piece.frozen_parameters = piece.parameters;
    piece.parameters = 0;
    const int index = out.add(piece);
    if (matrix && part == Part::attention)
      adapters.forward(out, attention++ == 0 ? adapters.qkv() : adapters.proj());
    if (matrix && part == Part::mlp)
      adapters.forward(out, adapters.fc1()), adapters.forward(out, adapters.fc2());
    return index;
  });
}

PieceList adapted_backward(const PieceList& list, const Adapters& adapters) {
  int seen[2] = {0, 0};  // weight gradients of attention and mlp
  return rewritten(list, [&](PieceList& out, Piece piece) {
    if (!piece.weight_gradient) {
      piece.parameters = 0;
      return out.add(piece);
    }
    const Target& target = adapters.of(piece.part, seen[piece.part == Part::mlp ? 1 : 0]++);
    const int before = static_cast<int>(out.pieces().size());
    if (target.empty() && piece.wait == Piece::kNone) return before - 1;
    // What the weight gradient waited for (the layer's input) its adapter's does.
    out.compute(piece.part, KernelCost{}, piece.wait);
    adapters.backward(out, target);
    return static_cast<int>(out.pieces().size()) - 1;
  });
}
}  // namespace

PiecePair adapted_layer(const ModelSpec& model, const Plan& plan, const ComputeModel& compute,
                        RecomputeKind recompute) {
  const bool full = recompute == RecomputeKind::full;
  const PiecePair layer =
      transformer_layer(model, LayerKind::dense, plan, compute, full ? RecomputeKind::none : recompute);
  const Adapters adapters(model, plan, compute);
  PiecePair result;
  result.forward = adapted_forward(layer.forward, adapters);
  if (full) result.backward = result.forward.recomputed();
  result.backward.append(adapted_backward(layer.backward, adapters));
  return result;
}

PiecePair frozen(const PiecePair& pieces, bool needed) {
  PiecePair result;
  result.forward = rewritten(pieces.forward, [](PieceList& out, Piece piece) {
    piece.frozen_parameters = piece.parameters;
    piece.parameters = 0;
    return out.add(piece);
  });
  if (!needed) return result;
  result.backward = rewritten(pieces.backward, [](PieceList& out, Piece piece) {
    piece.parameters = 0;
    if (piece.weight_gradient) piece.cost = {}, piece.weight_gradient = false;
    return out.add(piece);
  });
  return result;
}

namespace {
// Matrices with an adapter of their own that read the input of attention, or of the dense network.
double inputs_of_attention(const PlanAdapters& on) {
  return on.apart ? 3 : 1;
}
double inputs_of_network(const ModelSpec& model, const PlanAdapters& on) {
  return on.apart && model.gated_ffn ? 2 : 1;
}
// Sum of k + n over the adapted matrices, on one of `t` tensor ranks.
double width(const ModelSpec& model, const PlanAdapters& on, double t) {
  const double h = model.hidden, d = model.head_dim, f = model.ffn;
  double sum = 0;
  if (on.qkv) sum += inputs_of_attention(on) * h + (model.heads + 2.0 * model.kv_heads) * d / t;
  if (on.proj) sum += model.heads * d / t + h;
  if (on.fc1) sum += inputs_of_network(model, on) * h + (model.gated_ffn ? 2 : 1) * f / t;
  if (on.fc2) sum += f / t + h;
  return sum;
}
}  // namespace

double adapter_matrices(const ModelSpec& model, const Plan& plan) {
  const PlanAdapters& on = plan.adapters;
  return (on.qkv ? inputs_of_attention(on) : 0) + int{on.proj} + (on.fc1 ? inputs_of_network(model, on) : 0) +
         int{on.fc2};
}

double adapter_parameters(const ModelSpec& model, const Plan& plan) {
  return plan.adapters.rank * width(model, plan.adapters, plan.tp);
}

double adapter_flops_per_sequence(const ModelSpec& model, const Plan& plan) {
  return 3 * 2.0 * plan.sequence * model.layers * plan.adapters.rank * width(model, plan.adapters, 1);
}
}  // namespace topsim::workloads
