#include "workloads/layer/layer_kernels.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "topology/generation.hpp"

namespace topsim::workloads {

using program::CollectiveKind;

namespace {
constexpr int kQuarters = 4;  // num_splits of Transformer Engine's pipelined reduce-scatter (userbuffers)
// SMs used by user buffers. Transformer Engine's default (pytorch/module/base.py, get_default_config): copy
// engines for the ring; num_sm 16 for the pipelined scatter, whose products always leave that many free
// (set_sm_margin, comm_gemm_overlap.cpp). Bulk transfers beside products of the backward pass have no margin
// in NeMo's recipes (tp_overlap_configs/userbuffers.py, h8192 and h16384 on H100: qkv_dgrad 2 or 4, fc1_dgrad
// 2, qkv_wgrad 24, fc1_wgrad 2 or 4; proj_fprop 24, fc2_fprop 8 or 16).
constexpr std::int16_t kRingUnits = 0, kPipelinedUnits = 16, kBulkUnits = 4, kBulkAttentionScatterUnits = 24;
}  // namespace

LayerKernels::LayerKernels(const ModelSpec& model_spec, const Plan& resolved, const ComputeModel& costs)
    : model(model_spec),
      plan(resolved),
      compute(costs),
      tokens(resolved.tokens()),
      rows(resolved.sequence_parallel ? tokens / resolved.tp : tokens),
      hidden(model_spec.hidden),
      element(bytes_of(resolved.activations)),
      bytes(tokens * hidden * element) {}

// One after the other they take on average within 3 % of what they take on the four streams over which
// Transformer Engine spreads them (cublaslt_gemm.cu, nvte_multi_tensor_gemm): cuBLAS cuts small products so
// that each has most of the accelerator. On an H100 single cases lie -27 to +28 % off, and 512 rows of 768 x
// 2,048 were up to 1.36 times as fast on four streams as on one (tests/golden/accelerator/h100-sxm5.json).
KernelCost product_of_experts(const Plan& plan, const ComputeModel& compute, GemmShape shape,
                              GemmOutput output, int margin) {
  const topology::Accelerator& accelerator = compute.accelerator();
  // fanshiqing/grouped_gemm v1.0, csrc/grouped_gemm.cu; torchtitan, "only supported on SM90 or later".
  const bool groups =
      (plan.expert_products == ExpertProducts::grouped_gemm && topology::is_a100(accelerator)) ||
      (plan.expert_products == ExpertProducts::grouped_mm && topology::is_from_hopper(accelerator)) ||
      plan.expert_products == ExpertProducts::together;
  const double count = shape.batch;
  const bool together = groups || plan.one_expert_kernel();
  const double kernels = together ? 1 : count;
  shape.grouped = groups && count > 1;
  shape.batch /= kernels;
  KernelCost cost = compute.gemm(shape, plan.gemm, output, margin) * kernels;
  // One operator of the framework; the products after its first cost only the launch, 2 of an eager
  // operator's 6 us (framework/).
  cost.kernels = together ? 1 : 1 + (count - 1) / 3;
  return cost;
}

Linear LayerKernels::products(double m, double n, double k, double count, Casts casts, GemmOutput gradient,
                              double stored) const {
  const bool narrow = bytes_of(plan.gemm) < bytes_of(plan.activations);
  // Inference, and adapters beside frozen weights of few bits, keep weights in the precision that the matmuls
  // read, or expand them for each matmul.
  const double kept = bytes_of(plan.frozen_weights), read = bytes_of(plan.gemm);
  const bool frozen_narrow = plan.frozen() && kept < bytes_of(plan.activations);
  const double weights = plan.inference() || frozen_narrow ? 0 : n * k;
  const KernelCost expanded = frozen_narrow && kept < read ? expanded_weights(count, n * k) : KernelCost{};
  const bool again = narrow && plan.wide_inputs && plan.gemm == Precision::fp8;
  const auto cast = [&](double elements, double layouts) {
    return narrow ? casts_of(count, elements, layouts) : KernelCost{};
  };
  // In the backward pass, into the missing layout, with the scale of the forward pass
  // (torchao/float8/float8_linear.py, whose Function casts what it saved; compiled, both casts share the
  // maximum).
  const auto cast_again = [&](double elements) {
    return again ? compute.memory_bound(count * elements * 3, MemoryKernel::elementwise) : KernelCost{};
  };
  const double forward_layouts = again || plan.inference() ? 1 : layouts_cast();
  const auto gemm = [&](const GemmShape& shape, GemmOutput output = GemmOutput::fresh, int margin = 0) {
    return product_of_experts(plan, compute, shape, output, margin);
  };
  const bool expands = plan.inference() && stored < read;
  Linear result;
  const double casts_of_weights =
      plan.keeps_narrow_weights && !plan.inference() ? 1.0 / std::max(1, plan.micro_batches) : 1;
  const auto cast_of = [&](Operand operand, double elements, double layouts) {
    return operand == Operand::wide ? cast(elements, layouts) : KernelCost{};
  };
  const auto transposed_of = [&](Operand operand, double elements) {
    return operand == Operand::one_layout ? transposed(count * elements) : KernelCost{};
  };
  // The input's gradient reads the layout that was gathered, the product the other one.
  const KernelCost cast_weights = plan.gathers_cast_weights
                                      ? transposed(count * weights)
                                      : cast(weights, forward_layouts) * casts_of_weights;
  result.forward_cast =
      cast_of(casts.input, m * k, forward_layouts) + cast_weights + expanded + swizzled(count, m * k + n * k);
  result.input_cast = cast_of(casts.gradient, m * n, layouts_cast()) + cast_again(weights) + expanded +
                      swizzled(count, m * n + n * k);
  GemmShape product{m, n, k, count};
  if (expands)
    product.weight_bytes = stored;
  else if (plan.inference())
    product.scale_bytes = stored - read;
  result.forward = result.forward_cast + gemm(product);
  result.input_gradient = result.input_cast + gemm({m, k, n, count});
  result.weight_gradient = transposed_of(casts.input, m * k) + transposed_of(casts.gradient, m * n) +
                           (casts.input == Operand::wide ? cast_again(m * k) : KernelCost{}) +
                           swizzled(count, m * n + m * k) + gemm({n, k, m, count}, gradient) +
                           accumulated(plan, compute, count * n * k);
  if (in_tiles() || micro_pipelined()) {
    result.forward_tile = gemm({m / plan.tp, n, k, count});
    result.input_tile = gemm({m / plan.tp, k, n, count});
  }
  if (in_tiles())
    result.forward_quarter = gemm({m / kQuarters, n, k, count}, GemmOutput::fresh, kPipelinedUnits);
  return result;
}

// NF4 (bitsandbytes, autograd/_functions.py: MatMul4Bit; functional.py: dequantize_4bit): each matrix in a
// kernel of its own. With double quantisation its maxima are expanded first, 8 bits to fp32, and their mean
// is added to them in place.
KernelCost LayerKernels::expanded_weights(double count, double numbers) const {
  const double kept = bytes_of(plan.frozen_weights), read = bytes_of(plan.gemm), maxima = numbers / 64;
  const auto each = [&](double moved) {
    return compute.memory_bound(moved, MemoryKernel::elementwise) * count;
  };
  if (plan.frozen_weights == Precision::nf4_double)
    return each((1 + 4) * maxima) + each(2 * 4 * maxima) + each(numbers * (0.5 + read) + 4 * maxima);
  if (plan.frozen_weights == Precision::nf4) return each(numbers * (kept + read));
  return compute.memory_bound(count * numbers * (kept + read), MemoryKernel::elementwise);
}

// Every product reads the input (compiled: cast once for all) and has its own gradient of it: these are
// summed in pairs (read, read, written), or, compiled, read by the next kernel.
Linear LayerKernels::columns(double m, std::initializer_list<double> widths, double k, bool apart,
                             Casts casts) const {
  if (!apart) return linear(m, std::accumulate(widths.begin(), widths.end(), 0.0), k, casts);
  Linear all = linear(m, *widths.begin(), k, casts);
  if (plan.fused_kernels) casts.input = Operand::narrow;
  for (auto width = widths.begin() + 1; width != widths.end(); ++width)
    all = all + linear(m, *width, k, casts);
  const double others = static_cast<double>(widths.size()) - 1;
  all.input_gradient += compute.memory_bound(others * (plan.fused_kernels ? 1 : 3) * m * k * element,
                                             MemoryKernel::add, plan.fused_kernels ? 0 : others);
  return all;
}

GemmOutput gradient_output(const Plan& plan) {
  return plan.fused_accumulation && plan.gradient_bytes > 2 ? GemmOutput::accumulate_32 : GemmOutput::fresh;
}
// AccumulateGrad: from the second micro-batch on the new gradient is read, added and written; with fp32
// weights it is cast first. Where each micro-batch's are reduced to owners, an owner keeps the sum so far in
// the place of its own gradient, and the others wait for it. Whole gradients (DDP) stay where they are.
KernelCost accumulated(const Plan& plan, const ComputeModel& compute, double parameters) {
  if (plan.fused_accumulation || plan.inference()) return {};
  const bool kept = !plan.reduce_every_micro_batch || plan.reduces_to_owners || plan.shards.gradients <= 1;
  const double later = kept ? 1 - 1.0 / plan.micro_batches : 0;
  const double wide = plan.bucket_gradient_bytes();
  const double cast_bytes = plan.cast_weights && wide > 2 ? 2 + wide : 0;
  return compute.memory_bound(parameters * (cast_bytes + 3 * wide * later), MemoryKernel::add);
}

bool LayerKernels::in_tiles() const {
  return plan.tp_overlap == TensorOverlap::userbuffers && plan.sequence_parallel;
}
bool LayerKernels::micro_pipelined() const {
  return plan.tp_overlap == TensorOverlap::micro_pipeline && plan.sequence_parallel && plan.tp > 1;
}

void LayerKernels::gathered_product(PieceList& list, Part part, const Product& work, const KernelCost& after,
                                    const Gathered& gathered, double parameters) const {
  int scaled = Piece::kNone;
  if (gathered.maximum.kernels > 0) {
    list.compute(part, gathered.maximum);
    scaled = list.collective(part, CollectiveKind::all_reduce, 4, plan.tp);
  }
  if (gathered.cast.kernels > 0) list.compute(part, gathered.cast, scaled);
  if (!in_tiles() && !micro_pipelined()) {
    const int whole = gather(list, part, gathered.bytes);
    list.compute(part, work.whole + after, whole, parameters);
    return;
  }
  if (work.cast.kernels > 0) list.compute(part, work.cast);
  // torch/distributed/_symmetric_memory/__init__.py, _pipelined_multi_all_gather_and_consume: barrier, copy
  // of this rank's rows, barrier; "we are giving up the chance to overlap" them.
  if (micro_pipelined()) {
    KernelCost shared = compute.memory_bound(2 * gathered.bytes / plan.tp, MemoryKernel::add);
    shared.kernels += 2;
    list.compute(part, shared);
  }
  int arrived = in_tiles() ? filled_buffer(list, part, gathered) : Piece::kNone;
  for (int i = 0; i < plan.tp; ++i) {
    const int next = i + 1 < plan.tp
                         ? list.collective(part, CollectiveKind::send_recv, gathered.bytes / plan.tp, plan.tp)
                         : Piece::kNone;
    list.hold_units(next, kRingUnits);
    list.compute(part, work.tile, arrived, i == 0 ? parameters : 0);
    arrived = next;
  }
  list.compute(part, after);
}

int LayerKernels::reduced_product(PieceList& list, Part part, const Linear& work, double parameters,
                                  int wait) const {
  if (micro_pipelined()) return pipelined_reduction(list, part, work, parameters, wait);
  if (!in_tiles()) {
    list.compute(part, work.forward, wait, parameters);
    return reduce(list, part, bytes);
  }
  const bool narrow = plan.scatters_narrow && topology::is_hopper(compute.accelerator());
  const double sent = narrow ? bytes / element * bytes_of(plan.gemm) : bytes;
  if (work.forward_cast.kernels > 0) {
    list.compute(part, work.forward_cast, wait);
    wait = Piece::kNone;
  }
  int scattered = Piece::kNone;
  for (int i = 0; i < kQuarters; ++i) {
    list.compute(part, work.forward_quarter, i == 0 ? wait : Piece::kNone, i == 0 ? parameters : 0);
    scattered = list.collective(part, CollectiveKind::reduce_scatter, sent / kQuarters, plan.tp);
    list.hold_units(scattered, kPipelinedUnits);
  }
  return scattered;
}

// torch/distributed/_symmetric_memory/__init__.py, _pipelined_produce_and_all2all: the parts of other ranks
// first, each written to one of two buffers once the part before the last has been pulled from it; then this
// rank's own part, and the sum of all (_fused_matmul_reduce_scatter_impl: reduce_fn of stacked_partials).
int LayerKernels::pipelined_reduction(PieceList& list, Part part, const Linear& work, double parameters,
                                      int wait) const {
  if (work.forward_cast.kernels > 0) {
    list.compute(part, work.forward_cast, wait);
    wait = Piece::kNone;
  }
  std::array<int, 2> pulled{wait, Piece::kNone};
  for (int i = 1; i < plan.tp; ++i) {
    int& buffer = pulled[static_cast<std::size_t>(i - 1) % 2];
    list.compute(part, work.forward_tile, buffer, i == 1 ? parameters : 0);
    buffer = list.collective(part, CollectiveKind::send_recv, bytes / plan.tp, plan.tp);
    list.hold_units(buffer, kRingUnits);
  }
  list.compute(part, work.forward_tile);
  const int last = std::max(pulled[0], pulled[1]);
  list.compute(part, compute.memory_bound(bytes * (1 + 1.0 / plan.tp), MemoryKernel::add), last);
  return Piece::kNone;
}

namespace {
// RMSNorm as Llama's modules write it in eager PyTorch (torchtitan models/norms.py, transformers
// modeling_llama.py): float, square, mean, product with the root, cast, gain. Bytes per element of 16 bits.
// Forward 6 + 8 + 4 + 8 + 6 + 4; backward, one kernel after the other: gain (4 + 6 + 2), cast 6, product (8 +
// 12 + 4), mean 4, square (8 + 8 + 12), the sum of both branches 12, float 6.
constexpr double kRootMeanForward = 36, kRootMeanBackward = 92;
constexpr double kRootMeanForwardKernels = 7, kRootMeanBackwardKernels = 14;

// apex's FusedLayerNorm on an A100 of 1,555 GB/s: 896 GB/s forward and 572 backward, of the bytes counted
// here (NVIDIA/apex pull request 1037; its successor there 1,258 and 1,163).
constexpr double kApexForward = 896.0 / 1555, kApexBackward = 572.0 / 1555;

// The bytes that another kernel for norms would move in the time of apex's, per byte of the latter.
double slowed(const LayerKernels& kernels, double share) {
  const topology::Accelerator& chip = kernels.compute.accelerator();
  const double counted = kernels.plan.fused_kernels ? chip.fused_fraction : chip.norm_fraction_eager;
  return kernels.plan.apex_norms ? counted / share : 1;
}

bool spelled_out(const LayerKernels& kernels) {
  return kernels.plan.eager_norms && !kernels.plan.one_norm_kernel && kernels.model.gated_ffn &&
         kernels.element == 2;
}
}  // namespace

KernelCost LayerKernels::norm_forward(double count, double width) const {
  if (spelled_out(*this))
    return compute.memory_bound(kRootMeanForward * count * width, MemoryKernel::add, kRootMeanForwardKernels);
  return compute.memory_bound(slowed(*this, kApexForward) * 2 * count * width * element, MemoryKernel::norm);
}
KernelCost LayerKernels::norm_before_product() const {
  if (!plan.casts_in_norms) return norm_forward();
  return compute.memory_bound(rows * hidden * (element + bytes_of(plan.gemm)), MemoryKernel::norm);
}
KernelCost LayerKernels::norm_backward(double count, double width) const {
  if (spelled_out(*this))
    return compute.memory_bound(kRootMeanBackward * count * width, MemoryKernel::add,
                                kRootMeanBackwardKernels);
  // Reads the gradient and the input, writes the gradient; a second kernel for the gains.
  const double passes = plan.reads_again ? 5 : 3;
  return compute.memory_bound(slowed(*this, kApexBackward) * passes * count * width * element,
                              MemoryKernel::norm, 2);
}

// Dropout in a kernel of its own reads and writes once more.
KernelCost LayerKernels::residual_forward() const {
  // Engines that serve add in the next norm's kernel, which reads the residual and writes the sum too (vLLM,
  // csrc/layernorm_kernels.cu: fused_add_rms_norm; around a LayerNorm its compiler).
  if (plan.inference() && plan.fused_kernels)
    return compute.memory_bound(rows * hidden * 2 * element, MemoryKernel::norm, 0);
  const bool apart = plan.dropout && !plan.fused_kernels;
  return compute.memory_bound(rows * hidden * ((apart ? 5 : 3) * element + (plan.dropout ? 1 : 0)),
                              MemoryKernel::add, apart ? 3 : 1) +
         bias_forward(rows * hidden);
}
KernelCost LayerKernels::residual_backward() const {
  return compute.memory_bound(rows * hidden * (3 * element + (plan.dropout ? 2 * element + 1 : 0)),
                              MemoryKernel::add, plan.dropout ? 2 : 1) +
         bias_gradient(rows * hidden);
}
KernelCost LayerKernels::sum(double count) const {
  return compute.memory_bound(3 * count * hidden * element, MemoryKernel::add);
}
KernelCost LayerKernels::branches_forward() const {
  if (adds_all_at_once()) return {};
  const bool own_pass = plan.dropout || (plan.fused_kernels && has_biases(model));  // attention's
  const bool apart = plan.dropout && !plan.fused_kernels;                           // the network's
  const double passes = (own_pass ? 2 : 0) + (apart ? 2 : 0) + 3;
  return compute.memory_bound(tokens * hidden * (passes * element + (plan.dropout ? 2 : 0)),
                              MemoryKernel::add, 1 + int{own_pass} + int{apart});
}
KernelCost LayerKernels::parallel_residual_forward() const {
  if (!adds_all_at_once()) return sum(rows);
  return compute.memory_bound(rows * hidden * (4 * element + (plan.dropout ? 2 : 0)), MemoryKernel::add);
}
KernelCost LayerKernels::branches_backward() const {
  KernelCost cost = bias_gradient(rows * hidden) * 2;
  if (plan.dropout) cost += compute.memory_bound(2 * rows * hidden * (2 * element + 1), MemoryKernel::add, 2);
  return cost;
}
KernelCost LayerKernels::bias_forward(double elements) const {
  return plan.adds_biases && has_biases(model) && !plan.inference()
             ? compute.memory_bound(2 * elements * element, MemoryKernel::add)
             : KernelCost{};
}
KernelCost LayerKernels::bias_gradient(double elements) const {
  return has_bias_gradients(model, plan) ? compute.memory_bound(elements * element, MemoryKernel::add)
                                         : KernelCost{};
}

// Megatron's fused activation does not contain the clamps (fusions/fused_bias_geglu.py: two clamps and a
// join, each reads and writes): 8 more numbers per column. In the backward pass two kernels read the gradient
// and the input and write, and a join: 10. Both clamps work on slices, the columns of gates and the others.
// Squared ReLU operator by operator: relu 2, pow 2. Backward through pow
// (torch/csrc/autograd/FunctionsManual.cpp, pow_backward: grad * (exponent * self.pow(exponent - 1))) 2, 2
// and 3, through relu's threshold 3.
KernelCost LayerKernels::activation_forward(double count, double ffn) const {
  const bool clamps = model.clamped_ffn && !plan.inference();  // vLLM: swigluoai_and_mul, one kernel
  const double passes = squares_apart() ? 4 : gates() + 1 + (clamps ? 4 : 0);
  const double kernels = squares_apart() || !plan.fused_kernels ? 2 : 1;
  const KernelCost cost = compute.memory_bound(count * passes * ffn * element, MemoryKernel::elementwise,
                                               kernels + (clamps ? 1 : 0)) +
                          bias_forward(count * gates() * ffn);
  return clamps ? cost + compute.strided({2 * count * ffn, 0}, 4 * count * ffn * element, 2) : cost;
}
KernelCost LayerKernels::activation_backward(double count, double ffn) const {
  const bool clamps = model.clamped_ffn;
  const double passes = squares_apart() ? 10 : 2 * gates() + 1 + (clamps ? 4 : 0);
  const double kernels = squares_apart() ? 4 : plan.fused_kernels ? 1 : 3;
  const KernelCost cost = compute.memory_bound(count * passes * ffn * element, MemoryKernel::elementwise,
                                               kernels + (clamps ? 1 : 0));
  return clamps ? cost + compute.strided({0, 2 * count * ffn}, 6 * count * ffn * element, 2) : cost;
}

int LayerKernels::gather(PieceList& list, Part part, double whole) const {
  if (!plan.sequence_parallel) return Piece::kNone;
  const int gathered = list.collective(part, CollectiveKind::all_gather, whole, plan.tp);
  if (gathered == Piece::kNone || !copies_rows()) return gathered;
  list.compute(part, compute.memory_bound(2 * whole, MemoryKernel::add), gathered);
  return Piece::kNone;
}
int LayerKernels::reduce(PieceList& list, Part part, double whole) const {
  if (whole <= 0) return Piece::kNone;
  if (copies_rows() && plan.tp > 1) list.compute(part, compute.memory_bound(2 * whole, MemoryKernel::add));
  return list.collective(part,
                         plan.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
                         whole, plan.tp);
}

int LayerKernels::filled_buffer(PieceList& list, Part part, const Gathered& gathered) const {
  if (!plan.copies_to_buffers || gathered.bytes <= 0) return Piece::kNone;
  list.compute(part, compute.memory_bound(2 * gathered.bytes / plan.tp, MemoryKernel::add));
  if (gathered.scales <= 0) return Piece::kNone;
  return list.collective(part, CollectiveKind::all_gather, gathered.scales, plan.tp);
}

int LayerKernels::column_backward(PieceList& list, Part part, const Linear& work, double parameters,
                                  const Gathered& gathered, double reduced, RecomputeKind recompute,
                                  int products) const {
  const bool exposed = waits_at_once(), again = gathers_again(recompute);
  const int scales = again && in_tiles() ? filled_buffer(list, part, gathered) : Piece::kNone;
  const int input = again ? gather(list, part, gathered.bytes) : Piece::kNone;
  if (in_tiles()) list.hold_units(input, kBulkUnits);
  list.compute(part, work.input_gradient, exposed ? input : scales);
  int gradient = reduce(list, part, reduced);
  for (int i = 1; plan.reduces_inputs_apart && i < products; ++i) gradient = reduce(list, part, reduced);
  if (in_tiles())
    list.hold_units(gradient, part == Part::attention ? kBulkAttentionScatterUnits : kBulkUnits);
  list.weight_gradient(part, work.weight_gradient, exposed ? gradient : input, parameters);
  return exposed ? Piece::kNone : gradient;
}
}  // namespace topsim::workloads
