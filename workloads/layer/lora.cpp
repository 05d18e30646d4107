#include "workloads/layer/lora.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "workloads/layer/layer_kernels.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads {
namespace {

using program::CollectiveKind;

// The adapter of one frozen matrix on one rank, or of `count` experts' matrices with `rows` rows each.
struct Adapter {
  Part part;
  bool row = false;  // row-parallel
  double n = 0, k = 0;
  double rows = 0, count = 1;  // of each matrix
  Weights weights = Weights::dense;
  double split = 1;  // tensor ranks that share A's columns and B's, of a row-parallel layer B's alone
};

// The adapters of one frozen matrix, or of several that read one input, in forward order.
struct Target {
  std::vector<Adapter> adapters;
  double joined = 0;  // columns of one frozen matrix whose parts have adapters of their own; else 0
};

// How many matrices with an adapter of their own read the input of attention, or of a network.
int inputs_of_attention(const PlanAdapters& on) {
  return on.qkv_each ? int{on.q} + int{on.k} + int{on.v} : int{on.qkv()};
}
// Megatron-Bridge's experts have one adapter of both, however targets are named (canonical_lora.py,
// _should_treat_linear_fc1_as_unfused).
bool gates_each(const ModelSpec& model, const PlanAdapters& on, bool experts) {
  return model.gated_ffn && (experts ? on.apart : on.gate_each);
}
int inputs_of_network(const ModelSpec& model, const PlanAdapters& on, bool experts) {
  return gates_each(model, on, experts) ? int{on.gate} + int{on.up} : int{on.fc1()};
}

class Adapters {
 public:
  Adapters(const ModelSpec& model, LayerKind kind, const Plan& plan, const ComputeModel& compute)
      : plan_(plan), compute_(compute), rank_(plan.adapters.rank) {
    const double t = plan.tp, d = model.head_dim, h = model.hidden, tokens = plan.tokens();
    const double heads = model.heads / t, kv_heads = std::max(1.0, model.kv_heads / t);
    const PlanAdapters& on = plan.adapters;
    const auto add = [h](Target& target, Adapter like, bool wanted, double n) {
      like.n = n, like.k = h;
      if (wanted) target.adapters.push_back(like);
    };
    const auto gates = [&](Target& target, const Adapter& like, double ffn, bool experts) {
      if (!gates_each(model, on, experts))
        return add(target, like, on.fc1(), (model.gated_ffn ? 2 : 1) * ffn);
      add(target, like, on.gate, ffn), add(target, like, on.up, ffn);
      if (!on.apart) target.joined = 2 * ffn;
    };
    const double split = on.facts.parallel_linears ? t : 1;
    const Adapter in_attention{Part::attention, false, 0, 0, tokens, 1, Weights::dense, split};
    const double all = (heads + 2 * kv_heads) * d;
    if (on.qkv_each) {
      add(qkv_, in_attention, on.q, heads * d);
      add(qkv_, in_attention, on.k, kv_heads * d), add(qkv_, in_attention, on.v, kv_heads * d);
      if (!on.apart) qkv_.joined = all;
    } else {
      add(qkv_, in_attention, on.qkv(), all);
    }
    const auto row = [&](Part part, double k) {
      return Adapter{part, true, h, k, tokens, 1, Weights::dense, split};
    };
    if (on.proj) proj_.adapters = {row(Part::attention, heads * d)};
    const bool mixture = kind == LayerKind::experts;
    const ExpertSpec& experts = model.experts;
    const double ffn = (mixture ? static_cast<double>(experts.shared) * experts.ffn : model.ffn) / t;
    if (ffn > 0) gates(fc1_, {Part::mlp, false, 0, 0, tokens, 1, Weights::dense, split}, ffn, false);
    if (on.fc2 && ffn > 0) fc2_.adapters = {row(Part::mlp, ffn)};
    if (!mixture) return;
    const double count = expert_adapters(model, plan);
    const double rows = expert_rows(model, plan) / count, width = experts.ffn / static_cast<double>(plan.etp);
    const Weights whose = plan.experts.on_own_ranks ? Weights::routed : Weights::dense;
    gates(expert_fc1_, {Part::experts, false, 0, 0, rows, count, whose}, width, true);
    if (on.fc2) expert_fc2_.adapters = {{Part::experts, true, h, width, rows, count, whose}};
  }
  // By the order in which a backward list completes their weights: in each half the row-parallel one first.
  const Target& of(Part part, int index) const {
    if (part == Part::attention) return index == 0 ? proj_ : qkv_;
    if (part == Part::mlp) return index == 0 ? fc2_ : fc1_;
    if (part == Part::experts) return index == 0 ? expert_fc2_ : expert_fc1_;
    return none_;
  }
  // Adds the adapters after the `index`-th frozen piece of that part that has weights. The products of
  // experts are one piece, or one for each expert of a loop, and their adapters follow the first.
  void forward(PieceList& list, Part part, int index) const {
    if (part == Part::attention) forward(list, index == 0 ? qkv_ : proj_);
    if (part == Part::mlp) forward(list, index == 0 ? fc1_ : fc2_);
    if (part == Part::experts && index == 0) forward(list, expert_fc1_), forward(list, expert_fc2_);
  }
  void backward(PieceList& list, const Target& target) const {
    for (auto each = target.adapters.rbegin(); each != target.adapters.rend(); ++each) backward(list, *each);
  }

 private:
  void forward(PieceList& list, const Target& target) const {
    for (const Adapter& adapter : target.adapters) forward(list, adapter, target.joined > 0);
    if (target.adapters.empty() || target.joined <= 0) return;
    // Their answers are joined, zeros where a part has no adapter, and added to all columns at once
    // (Megatron-Bridge, canonical_lora.py: LoRALinearSplitQKV, LoRALinearSplitFC1UpGate).
    const Adapter& first = target.adapters.front();
    double answers = 0;
    for (const Adapter& adapter : target.adapters) answers += adapter.n;
    list.compute(first.part, pass(first, answers + target.joined, element(), MemoryKernel::elementwise) +
                                 pass(first, target.joined, 3 * element(), MemoryKernel::add));
  }
  void forward(PieceList& list, const Adapter& a, bool joined) const {
    const double columns = columns_of_a(a), n = columns_of_b(a);
    list.compute(a.part, enters(a) + product(a, {a.rows, columns, a.k}), Piece::kNone,
                 a.count * columns * a.k, a.weights);
    int last = a.row ? send(list, a, CollectiveKind::all_reduce, rank_) : Piece::kNone;
    if (columns < rank_) last = send(list, a, CollectiveKind::all_gather, rank_);
    const KernelCost after = scale(a, 0) + (joined ? KernelCost{} : add(a, owned(a), fused_sum(a)));
    const bool sends = a.row && a.split > 1;
    list.compute(a.part, product(a, {a.rows, n, rank_}) + (sends ? KernelCost{} : after), last,
                 a.count * rank_ * n, a.weights);
    if (!sends) return;
    last = send_answer(list, a);
    list.compute(a.part, after + pass(a, exchanges() ? n : a.n, 2 * element(), MemoryKernel::elementwise),
                 last);  // torch.cat
  }
  void backward(PieceList& list, const Adapter& a) const {
    const double columns = columns_of_a(a), n = columns_of_b(a);
    int last = Piece::kNone;
    KernelCost gradient = scale(a, 1);
    if (a.row && a.split > 1 && plan_.sequence_parallel) {
      list.compute(a.part, gradient);
      last = send_answer(list, a);
      gradient = pass(a, n, 2 * element(), MemoryKernel::elementwise);  // its own columns
    }
    list.compute(a.part, gradient + product(a, {a.rows, rank_, n}), last);  // of X A
    last = a.row && a.split <= 1 ? Piece::kNone : send(list, a, CollectiveKind::all_reduce, rank_);
    list.weight_gradient(a.part, weights(a, n, rank_), Piece::kNone, a.count * rank_ * n, a.weights);
    KernelCost added = leaves(a) + add(a, a.k, 1);
    if (columns < rank_ && !plan_.sequence_parallel) {
      list.compute(a.part, product(a, {a.rows, a.k, columns}), last);
      list.compute(a.part, added, send(list, a, CollectiveKind::all_reduce, a.k));
    } else {
      // With sequence parallelism the frozen layer's reduce-scatter sums this too.
      list.compute(a.part, product(a, {a.rows, a.k, columns}) + added, last);
    }
    list.weight_gradient(a.part, weights(a, a.k, columns), Piece::kNone, a.count * columns * a.k, a.weights);
  }
  [[nodiscard]] double columns_of_a(const Adapter& a) const { return a.row ? rank_ : rank_ / a.split; }
  [[nodiscard]] static double columns_of_b(const Adapter& a) { return a.row ? a.n / a.split : a.n; }
  // What this rank adds to the frozen layer's answer, in columns of all rows.
  [[nodiscard]] double owned(const Adapter& a) const {
    return a.row && plan_.sequence_parallel ? a.n / a.split : a.n;
  }
  int send_answer(PieceList& list, const Adapter& a) const {
    return exchanges() ? send(list, a, CollectiveKind::all_to_all, columns_of_b(a))
                       : send(list, a, CollectiveKind::all_gather, a.n);
  }
  [[nodiscard]] bool exchanges() const { return plan_.adapters.exchanges && plan_.sequence_parallel; }

  // As for the experts themselves, rows beyond a rank's own share do not count as model FLOPs.
  KernelCost product(const Adapter& a, GemmShape shape, GemmOutput output = GemmOutput::fresh) const {
    KernelCost cost;
    if (plan_.adapters.apart) {  // PEFT's experts are modules, one after the other
      cost = compute_.gemm(shape, plan_.gemm, output) * a.count;
    } else {
      shape.batch = a.count;
      cost = product_of_experts(plan_, compute_, shape, output);
    }
    if (a.part == Part::experts) cost.flops /= std::max(1.0, plan_.experts.load);
    return cost;
  }
  int send(PieceList& list, const Adapter& a, CollectiveKind kind, double columns) const {
    const bool experts = a.part == Part::experts;
    return list.collective(a.part, kind, a.count * a.rows * columns * element(),
                           experts ? plan_.etp : plan_.tp, experts ? Group::expert_tensor : Group::tensor);
  }
  // `fused`: the numbers that count where Inductor made it a part of the kernels around it. The one that
  // follows a sum reads one more; FC1's sum is written too, since the activation's gradient needs it.
  KernelCost add(const Adapter& a, double width, double fused) const {
    return pass(a, width, (this->fused() ? fused : 3) * element(), MemoryKernel::add);
  }
  double fused_sum(const Adapter& a) const { return a.row || a.part == Part::attention ? 1 : 2; }
  // Output, or its gradient, times alpha / rank: a part of the sum, or a second result of the kernel that
  // makes the gradient.
  KernelCost scale(const Adapter& a, double fused) const {
    return pass(a, owned(a), (this->fused() ? fused : 2) * element(), MemoryKernel::elementwise);
  }
  // The input's way into the adapter: cast to fp32 and back by autocast, which casts A and B too, and in
  // between dropout (aten/src/ATen/native/cuda/Dropout.cu), whose mask has a byte for each number.
  KernelCost enters(const Adapter& a) const {
    const double wide = plan_.adapters.casts ? kWide : element();
    KernelCost cost = casts(a);
    if (plan_.adapters.dropout) cost += pass(a, a.k, (fused() ? 1 : 2) * wide + 1, MemoryKernel::elementwise);
    return cost;
  }
  KernelCost leaves(const Adapter& a) const {
    const double wide = plan_.adapters.casts ? kWide : element();
    KernelCost cost = casts(a);
    if (plan_.adapters.dropout) cost += pass(a, a.k, (fused() ? 0 : 2) * wide + 1, MemoryKernel::elementwise);
    return cost;
  }
  KernelCost casts(const Adapter& a) const {
    if (!plan_.adapters.casts) return {};
    const double numbers = a.count * (2 * a.rows * a.k + rank_ * (a.k + a.n));
    return compute_.memory_bound(numbers * (element() + kWide), MemoryKernel::elementwise, 4);
  }
  KernelCost pass(const Adapter& a, double width, double bytes, MemoryKernel kind) const {
    return bytes > 0 ? compute_.memory_bound(a.count * a.rows * width * bytes, kind, fused() ? 0 : 1)
                     : KernelCost{};
  }
  bool fused() const { return plan_.adapters.facts.fused; }
  double element() const { return bytes_of(plan_.activations); }
  KernelCost weights(const Adapter& a, double width, double columns) const {
    return product(a, {width, columns, a.rows}, gradient_output(plan_)) +
           accumulated(plan_, compute_, a.count * width * columns);
  }

  static constexpr double kWide = 4;  // bytes of adapters' weights where inputs are cast to them

  const Plan& plan_;
  const ComputeModel& compute_;
  double rank_;
  Target qkv_, proj_, fc1_, fc2_, expert_fc1_, expert_fc2_, none_;
};

// Copies a list piece by piece; `rewrite` appends what replaces a piece and returns its position.
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
  std::map<Part, int> seen;  // pieces with weights so far
  return rewritten(list, [&](PieceList& out, Piece piece) {
    const bool matrix = !piece.collective && piece.parameters > 0;
    const Part part = piece.part;
    piece.frozen_parameters = piece.parameters;
    piece.parameters = 0;
    const int index = out.add(piece);
    if (matrix) adapters.forward(out, part, seen[part]++);
    return index;
  });
}

PieceList adapted_backward(const PieceList& list, const Adapters& adapters) {
  std::map<Part, int> seen;  // weight gradients so far
  return rewritten(list, [&](PieceList& out, Piece piece) {
    if (!piece.weight_gradient) {
      piece.parameters = 0;
      return out.add(piece);
    }
    const Target& target = adapters.of(piece.part, seen[piece.part]++);
    const int before = static_cast<int>(out.pieces().size());
    if (target.adapters.empty() && piece.wait == Piece::kNone) return before - 1;
    // The adapter's weight gradient waits for what that of the matrix waited for (the layer's input).
    out.compute(piece.part, KernelCost{}, piece.wait);
    adapters.backward(out, target);
    return static_cast<int>(out.pieces().size()) - 1;
  });
}
}  // namespace

PiecePair adapted_layer(const ModelSpec& model, LayerKind kind, const Plan& plan, const ComputeModel& compute,
                        RecomputeKind recompute) {
  const bool full = recompute == RecomputeKind::full;
  const PiecePair layer =
      transformer_layer(model, kind, plan, compute, full ? RecomputeKind::none : recompute);
  const Adapters adapters(model, kind, plan, compute);
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
// Sum of k + n over the adapted matrices of a network or an expert, whose width is `ffn` on this rank.
double network_width(const ModelSpec& model, const PlanAdapters& on, double ffn, bool experts) {
  const double h = model.hidden;
  const int inputs = inputs_of_network(model, on, experts);
  const double matrices = gates_each(model, on, experts) ? 1 : model.gated_ffn ? 2 : 1;  // of one adapter
  return inputs * (h + matrices * ffn) + (on.fc2 ? ffn + h : 0);
}
// The same over those outside the experts, on one of `t` tensor ranks.
double width(const ModelSpec& model, LayerKind kind, const PlanAdapters& on, double t) {
  const double h = model.hidden, d = model.head_dim;
  const double ffn =
      kind == LayerKind::dense ? model.ffn : static_cast<double>(model.experts.shared) * model.experts.ffn;
  double sum = ffn > 0 ? network_width(model, on, ffn / t, false) : 0;
  const double heads =
      (on.q ? model.heads : 0) + (int{on.k} + int{on.v}) * static_cast<double>(model.kv_heads);
  sum += inputs_of_attention(on) * h + heads * d / t;
  if (on.proj) sum += model.heads * d / t + h;
  return sum;
}
// The same for one expert, split over `t` ranks.
double expert_width(const ModelSpec& model, const PlanAdapters& on, double t) {
  return network_width(model, on, model.experts.ffn / t, true);
}
int network_matrices(const ModelSpec& model, const PlanAdapters& on, bool experts) {
  return inputs_of_network(model, on, experts) + int{on.fc2};
}
// Casts and dropout make a tensor for each adapter that the backward pass reads: for one of those that share
// an input it takes the place of that; dropout keeps a mask of a byte a number too.
double inputs_of_their_own(const ModelSpec& model, LayerKind kind, const Plan& plan) {
  const PlanAdapters& on = plan.adapters;
  if (!on.dropout && !on.casts) return 0;
  const double mask = on.dropout ? 1 / bytes_of(plan.activations) : 0, t = plan.tp, h = model.hidden;
  const auto of = [&](double adapters, double width) { return (adapters * (1 + mask) - 1) * width; };
  const auto network = [&](double ffn, bool experts) {
    return (on.fc1() ? of(inputs_of_network(model, on, experts), h) : 0) + (on.fc2 ? of(1, ffn) : 0);
  };
  const bool mixture = kind == LayerKind::experts;
  const double ffn = mixture ? static_cast<double>(model.experts.shared) * model.experts.ffn : model.ffn;
  double numbers = ffn > 0 ? network(ffn / t, false) : 0;
  if (on.qkv()) numbers += of(inputs_of_attention(on), h);
  if (on.proj) numbers += of(1, static_cast<double>(model.heads) * model.head_dim / t);
  numbers *= plan.tokens();
  if (mixture)
    numbers += expert_rows(model, plan) * network(model.experts.ffn / static_cast<double>(plan.etp), true);
  return numbers;
}
}  // namespace

AdapterCounts adapter_counts(const ModelSpec& model, const Plan& plan) {
  const PlanAdapters& on = plan.adapters;
  return {static_cast<double>(inputs_of_attention(on) + int{on.proj}),
          static_cast<double>(network_matrices(model, on, false)),
          static_cast<double>(network_matrices(model, on, true))};
}

double expert_adapters(const ModelSpec& model, const Plan& plan) {
  return plan.adapters.one_for_experts ? 1 : model.experts.count / static_cast<double>(plan.ep);
}
double expert_rows(const ModelSpec& model, const Plan& plan) {
  return plan.etp * plan.tokens() / plan.tp * model.experts.top_k * plan.experts.load;
}

double adapter_activations(const ModelSpec& model, LayerKind kind, const Plan& plan) {
  const PlanAdapters& on = plan.adapters;
  const bool mixture = kind == LayerKind::experts;
  const AdapterCounts counts = adapter_counts(model, plan);
  const double network = mixture && model.experts.shared == 0 ? 0 : counts.network;
  double numbers = plan.tokens() * (counts.attention + network);
  if (mixture) numbers += expert_rows(model, plan) * counts.expert;
  return numbers * on.rank + inputs_of_their_own(model, kind, plan);
}

AdapterParameters adapter_parameters(const ModelSpec& model, LayerKind kind, const Plan& plan) {
  const PlanAdapters& on = plan.adapters;
  const double own =
      on.facts.parallel_linears ? width(model, kind, on, 1) / plan.tp : width(model, kind, on, plan.tp);
  AdapterParameters result{on.rank * own, 0};
  if (kind == LayerKind::dense) return result;
  const double experts = on.rank * expert_adapters(model, plan) * expert_width(model, on, plan.etp);
  (plan.experts.on_own_ranks ? result.routed : result.dense) += experts;
  return result;
}

double adapter_flops_per_sequence(const ModelSpec& model, const Plan& plan) {
  const PlanAdapters& on = plan.adapters;
  double widths = 0;
  for (const LayerKind kind : {LayerKind::dense, LayerKind::experts}) {
    const double visited = kind == LayerKind::experts ? model.experts.top_k * expert_width(model, on, 1) : 0;
    widths += count_of(model, kind) * (width(model, kind, on, 1) + visited);
  }
  return 3 * 2.0 * plan.sequence * on.rank * widths;
}
}  // namespace topsim::workloads
