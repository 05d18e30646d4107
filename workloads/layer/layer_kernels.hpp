// What the parts of a layer share: sizes of one micro-batch on one rank, kernels between the matmuls, and the
// collectives of tensor parallelism. Symbols: M tokens of the rank, h
// hidden, t tensor-parallel size, S = M h bytes of the whole activation; with sequence parallelism the parts
// between the matmuls hold M / t tokens.
#pragma once

#include <initializer_list>

#include "workloads/layer/pieces.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads {

// The work of one linear layer Y[M x n] = X[M x k] W.
struct Linear {
  KernelCost forward, input_gradient, weight_gradient;
  KernelCost forward_cast{}, input_cast{};  // the casts of the operands of the first two
  // For one part of the rows: forward in t and, with user buffers, in 4 parts; input gradient in t.
  KernelCost forward_tile{}, forward_quarter{}, input_tile{};
  friend Linear operator+(const Linear& a, const Linear& b) {
    return {a.forward + b.forward,
            a.input_gradient + b.input_gradient,
            a.weight_gradient + b.weight_gradient,
            a.forward_cast + b.forward_cast,
            a.input_cast + b.input_cast,
            a.forward_tile + b.forward_tile,
            a.forward_quarter + b.forward_quarter,
            a.input_tile + b.input_tile};
  }
};

// A product of each of `shape`.batch experts, in one kernel or in one each.
[[nodiscard]] KernelCost product_of_experts(const Plan& plan, const ComputeModel& compute, GemmShape shape,
                                            GemmOutput output = GemmOutput::fresh, int margin = 0);
// Where a weight gradient goes, and what autograd then does with one of so many parameters.
[[nodiscard]] GemmOutput gradient_output(const Plan& plan);
[[nodiscard]] KernelCost accumulated(const Plan& plan, const ComputeModel& compute, double parameters);
// Frozen biases are added and have no gradient.
[[nodiscard]] inline bool has_bias_gradients(const ModelSpec& model, const Plan& plan) {
  return has_biases(model) && !plan.inference() && !plan.frozen();
}

class LayerKernels {
 public:
  // REQUIRES: everything outlives the object.
  LayerKernels(const ModelSpec& model, const Plan& plan, const ComputeModel& compute);

  const ModelSpec& model;
  const Plan& plan;
  const ComputeModel& compute;
  double tokens, rows, hidden, element;
  double bytes;  // S

  // How an operand reaches a product in few bits: wide, in 16 bits, and is cast there into both layouts that
  // forward and backward read; cast in both; or cast in one, by a norm or before a gather, from which the
  // weight gradient makes the other.
  enum class Operand : std::uint8_t { wide, narrow, one_layout };
  struct Casts {
    Operand input = Operand::wide, gradient = Operand::wide;
  };
  [[nodiscard]] Linear linear(double m, double n, double k) const { return linear(m, n, k, {}); }
  [[nodiscard]] Linear linear(double m, double n, double k, Casts casts) const {
    return products(m, n, k, 1, casts, gradient_output(plan), plan.parameter_bytes);
  }
  // For a column-parallel layer's input, after a norm or not, and for a row-parallel layer's gradient.
  [[nodiscard]] Operand column_input(bool normed) const {
    return plan.gathers_narrow || (normed && plan.casts_in_norms) ? Operand::one_layout : between_products();
  }
  [[nodiscard]] Operand row_gradient() const {
    return plan.gathers_narrow || plan.casts_where_made ? Operand::one_layout : Operand::wide;
  }
  // Of the activation's answer and of its gradient, of rotated queries and keys.
  [[nodiscard]] Operand between_products() const {
    return plan.casts_where_made ? Operand::one_layout : Operand::wide;
  }
  // Products of one input, each with its own width; a single one unless `apart`.
  [[nodiscard]] Linear columns(double m, std::initializer_list<double> widths, double k, bool apart,
                               Casts casts) const;
  [[nodiscard]] Linear gate_and_up(double m, double ffn, Casts casts) const {
    return model.gated_ffn ? columns(m, {ffn, ffn}, hidden, plan.gate_apart, casts)
                           : linear(m, ffn, hidden, casts);
  }
  // Of `count` experts, each with its own rows: one kernel, whose waves of tiles they share, or one each.
  [[nodiscard]] Linear grouped(double m, double n, double k, double count, Casts casts) const {
    return grouped(m, n, k, count, casts, gradient_output(plan));
  }
  [[nodiscard]] Linear grouped(double m, double n, double k, double count, Casts casts,
                               GemmOutput gradient) const {
    return products(m, n, k, count, casts, gradient, plan.expert_bytes);
  }

  [[nodiscard]] KernelCost norm_forward() const { return norm_forward(rows, hidden); }
  [[nodiscard]] KernelCost norm_before_product() const;  // written as the product reads it, where it can be
  [[nodiscard]] KernelCost norm_backward() const { return norm_backward(rows, hidden); }
  [[nodiscard]] KernelCost norm_forward(double count, double width) const;
  [[nodiscard]] KernelCost norm_backward(double count, double width) const;
  [[nodiscard]] KernelCost residual_forward() const;  // bias, dropout (a byte of mask), residual
  // Dropout backward, the sum of the two branches' gradients, and that of a bias.
  [[nodiscard]] KernelCost residual_backward() const;
  // Parallel residual. For the halves' outputs before their sum is reduced: attention's bias and dropout, the
  // network's, and the sum, as GPT-NeoX's ParallelTransformerLayer (megatron/model/transformer.py,
  // gpt_j_residual); then the residual. Where nothing is reduced, one kernel adds all three.
  [[nodiscard]] KernelCost branches_forward() const;
  [[nodiscard]] KernelCost parallel_residual_forward() const;
  [[nodiscard]] KernelCost branches_backward() const;  // both dropouts and biases
  [[nodiscard]] KernelCost sum(double count) const;    // of two, each of so many rows
  // Linear layers whose bias is added by a later kernel leave its gradient to a kernel that reads theirs.
  [[nodiscard]] KernelCost bias_gradient(double elements) const;
  [[nodiscard]] KernelCost bias_forward(double elements) const;  // where a kernel of its own adds it
  // Between FC1 and FC2, with that inner width.
  [[nodiscard]] KernelCost activation_forward(double count, double ffn) const;
  [[nodiscard]] KernelCost activation_again(double count, double ffn) const {  // no FLOPs of the model
    KernelCost cost = activation_forward(count, ffn);
    cost.flops = 0;
    return cost;
  }
  [[nodiscard]] KernelCost activation_backward(double count, double ffn) const;
  [[nodiscard]] double gates() const { return model.gated_ffn ? 2 : 1; }  // matrices of FC1

  [[nodiscard]] bool in_tiles() const;         // user buffers
  [[nodiscard]] bool micro_pipelined() const;  // PyTorch's asynchronous tensor parallelism
  // Exchanges that are not hidden by tiles are waited for where they are launched.
  [[nodiscard]] bool waits_at_once() const {
    return plan.tp_overlap == TensorOverlap::none || plan.tp_overlap == TensorOverlap::micro_pipeline;
  }

  // All-gather and reduction of activations over the tensor group; the first is nothing without sequence
  // parallelism. Where a rank's rows are not contiguous in the whole (Plan::batch_first_shards), copies
  // reorder them after the gather and before the scatter; asynchronous tensor parallelism multiplies the
  // parts in place. Return what the next piece must wait for.
  int gather(PieceList& list, Part part, double whole) const;
  int reduce(PieceList& list, Part part, double whole) const;
  // What is gathered before a product: bytes of all ranks, and the cast of this rank's part before. Scales
  // from a tensor's own maximum are those of all ranks.
  // User buffers send numbers; block scales go before them (Plan::copies_to_buffers).
  struct Gathered {
    double bytes;
    KernelCost maximum{}, cast{};
    double scales = 0;
  };
  [[nodiscard]] Gathered as_it_is(double wide) const { return {wide}; }
  [[nodiscard]] Gathered gathered_input(double wide, bool normed) const;
  [[nodiscard]] Gathered gathered_gradient(double wide) const;
  // A product, one of its t parts, and the cast of the operands of the whole.
  struct Product {
    const KernelCost &whole, &tile, &cast;
  };
  [[nodiscard]] static Product forward_of(const Linear& work) {
    return {work.forward, work.forward_tile, work.forward_cast};
  }
  [[nodiscard]] static Product input_gradient_of(const Linear& work) {
    return {work.input_gradient, work.input_tile, work.input_cast};
  }
  // A product of the gathered activation: gather, then `work`, then `after`. With user buffers (Transformer
  // Engine's ring exchange) part i is multiplied while part i + 1 arrives from the neighbour; t - 1 exchanges
  // of S / t. A micro-pipeline first copies its own rows to where others read them, and pulls theirs with
  // copy engines, one copy at a time, at most two products ahead.
  void gathered_product(PieceList& list, Part part, const Product& work, const KernelCost& after,
                        const Gathered& gathered, double parameters) const;
  // A product whose result is summed over the tensor group; user buffers: in quarters, each scattered while
  // the next is multiplied; micro-pipelines: in t parts, each pulled by its rank while the next ones are
  // multiplied into the other of two buffers, and summed in one pass. Returns what the next piece must wait
  // for.
  int reduced_product(PieceList& list, Part part, const Linear& work, double parameters, int wait) const;
  // Whether the input of column-parallel layers is gathered again in the backward pass: where a rank keeps
  // only its rows, and where torchtitan's checkpoints run it again (in a micro-pipeline together with its
  // product).
  [[nodiscard]] bool gathers_again(RecomputeKind recompute) const {
    const bool operators = recompute == RecomputeKind::selective && plan.again.operators;
    return plan.gathers_inputs_again || (operators && !micro_pipelined());
  }
  // Backward of a column-parallel linear layer in Megatron's order: gather the input again while the input
  // gradient is computed, reduce the input gradient while the weight gradient is. With tp_overlap "none" each
  // transfer is waited for at once. `products` of that input reduce together, or each its own gradient
  // (Plan::reduces_inputs_apart). Returns what the next piece must wait for.
  int column_backward(PieceList& list, Part part, const Linear& work, double parameters,
                      const Gathered& gathered, double reduced, RecomputeKind recompute = RecomputeKind::none,
                      int products = 1) const;

 private:
  // `count` products and what surrounds them; `stored`: bytes of a weight where a step that serves reads it.
  [[nodiscard]] Linear products(double m, double n, double k, double count, Casts casts, GemmOutput gradient,
                                double stored) const;
  // What user buffers need before they gather: this rank's rows copied into them, the scales of all rows.
  // Returns what the product must wait for.
  int filled_buffer(PieceList& list, Part part, const Gathered& gathered) const;
  int pipelined_reduction(PieceList& list, Part part, const Linear& work, double parameters, int wait) const;
  [[nodiscard]] bool adds_all_at_once() const { return plan.tp == 1 && plan.fused_kernels; }
  [[nodiscard]] bool squares_apart() const {
    return model.activation == Activation::squared_relu && !plan.inference() &&
           (plan.eager_squared_relu || !plan.fused_kernels);
  }
  // `count` tensors cast into so many layouts; the block scales of a product's operands put in its order.
  [[nodiscard]] KernelCost casts_of(double count, double elements, double layouts) const;
  [[nodiscard]] KernelCost swizzled(double count, double numbers) const;
  // Frozen weights of few bits, `numbers` in each of `count` matrices, as the products read them.
  [[nodiscard]] KernelCost expanded_weights(double count, double numbers) const;
  [[nodiscard]] bool finds_maximum() const;   // before a cast, by a pass of its own
  [[nodiscard]] double layouts_cast() const;  // bytes that a cast of one number writes
  [[nodiscard]] KernelCost transposed(double elements) const;
  [[nodiscard]] Gathered cast_rows(double wide, double bytes_sent) const;
  [[nodiscard]] bool copies_rows() const {
    return plan.batch_first_shards && plan.sequence_parallel && waits_at_once();
  }
};
}  // namespace topsim::workloads
