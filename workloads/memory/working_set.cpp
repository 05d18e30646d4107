#include "workloads/memory/working_set.hpp"

#include <algorithm>

#include "workloads/compute/compute_model.hpp"
#include "workloads/memory/activations.hpp"
#include "workloads/memory/memory.hpp"

namespace topsim::workloads {
namespace {

// Bytes of the copy of a network's first (or second) matrix for its product: of one of gate and up where they
// are apart, of one expert's where its adapters are modules of their own (PEFT), else of all on this rank.
double expanded_copy(const ModelSpec& model, const Plan& plan, bool experts, bool first) {
  const double kept = bytes_of(plan.frozen_weights), read = bytes_of(plan.gemm);
  if (!plan.frozen() || kept >= read || kept >= bytes_of(plan.activations)) return 0;
  const double fused = first && model.gated_ffn && !plan.gate_apart ? 2 : 1;
  const double here =
      experts && !plan.adapters.apart ? model.experts.count / static_cast<double>(plan.ep) : 1;
  const double columns =
      experts ? static_cast<double>(model.experts.ffn) / plan.etp : static_cast<double>(model.ffn) / plan.tp;
  return read * here * fused * columns * model.hidden;
}
}  // namespace

double working_set(const ModelSpec& model, const Plan& plan) {
  const bool experts = largest_kind(model) == LayerKind::experts;
  const double e = bytes_of(plan.activations), narrow = std::min(e, bytes_of(plan.gemm));
  const double input = plan.wide_inputs ? e : narrow;  // what a product keeps of its input
  const bool split = plan.sequence_parallel && plan.tp > 1, copies = split && plan.batch_first_shards;
  const double row = rows_of(plan) * model.hidden * e;
  const double dropped = plan.dropout ? row : 0;
  const double tokens =
      experts ? plan.etp * rows_of(plan) * model.experts.top_k * plan.experts.load : plan.tokens();
  const double whole = tokens * model.hidden * e;
  const double column = experts ? tokens * model.experts.ffn / plan.etp : tokens * model.ffn / plan.tp;
  const double gates = model.gated_ffn ? 2 : 1;
  const double activated = column * (gates + (model.gated_ffn && !plan.fused_kernels ? 1 : 0)) * e;

  // The experts' output comes back from its own exchange.
  const double gathered = experts ? whole : split ? whole * (plan.gathers_narrow ? narrow / e : 1) : 0;
  const double second = row + dropped +
                        std::max((copies && !experts ? 2 : 1) * gathered, gathered + column * e) +
                        expanded_copy(model, plan, experts, false);
  const double between = row + (gates + 1) * column * e - column * input;

  const bool apart = plan.gate_apart && model.gated_ffn;
  const bool in_place = plan.fused_kernels && !copies;
  double answers = whole * (!apart ? 1 : in_place ? 2 : 3);
  if (!apart && copies) answers += whole;
  if (split && !experts) answers += row + (plan.gathers_inputs_again ? whole : 0);
  const double first = row + gates * column * e + answers - column * input - activated +
                       expanded_copy(model, plan, experts, true);

  double core = 0;
  if (plan.attention == AttentionKernel::unfused) {
    const double scores = plan.tokens() * plan.sequence * model.heads / static_cast<double>(plan.tp);
    const double wide = (plan.eager_softmax() || plan.plain_softmax) && e < 4 ? 4 : e;
    const double network =
        column * input + activated + (experts ? whole : rows_kept(plan) * model.hidden * input);
    core = 2 * row + scores * (e + wide) - (plan.dropout ? scores * e : 0) - network;
  }
  return std::max({second, between, first, core});
}
}  // namespace topsim::workloads
