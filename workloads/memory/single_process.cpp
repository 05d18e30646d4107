#include "workloads/memory/single_process.hpp"

#include <algorithm>

#include "workloads/compute/compute_model.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads {

MemoryUse single_process_memory(const ModelSpec& model, const Plan& plan, Bytes capacity) {
  const double parameters = total_parameters(model), element = bytes_of(plan.activations);
  const double logits = plan.predicted() * model.vocab, hidden = plan.tokens() * model.hidden;
  const bool full = plan.recompute.kind == RecomputeKind::full;
  const int again = plan.layers_recomputed(model.layers);

  double layers = 0;
  for (int i = 0; i < model.layers; ++i)
    layers += layer_activation_bytes(model, plan, plan.recompute_of(i < again), kind_of(model, i));
  MemoryParts other;
  other.weights = parameters * (plan.parameter_bytes + (plan.cast_weights ? element : 0));
  other.gradients = parameters * plan.gradient_bytes;
  // Inputs of the final norm and of the LM head, the mask of the embedding's dropout, the output.
  other.activations = layers + 2 * element * hidden + (plan.dropout ? hidden : 0) + element * logits;
  if (full) other.recompute = layer_activation_bytes(model, plan, RecomputeKind::none, largest_kind(model));

  MemoryParts first = other;
  first.gradients += parameters * plan.gradient_bytes * (plan.dp == 1 ? 0 : plan.micro_batches > 1 ? 2 : 1);
  first.optimizer = 2 * plan.moment_bytes * parameters;
  first.activations += (plan.dp == 1 ? 4 : element + 4) * plan.dp * logits;
  // The optimiser's step, without casts, activations and the gradients that were added up.
  const double update = plan.fused_adam ? 0 : parameters * plan.moment_bytes;
  const MemoryParts step{parameters * plan.parameter_bytes, other.gradients, first.optimizer};
  if (step.total() + update > first.total()) first = step, first.update = update;

  MemoryUse use;
  use.capacity = static_cast<double>(capacity.value());
  use.stages = {first, other};
  use.holder = "device";
  return use;
}
}  // namespace topsim::workloads
