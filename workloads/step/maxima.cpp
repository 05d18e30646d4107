#include "workloads/step/maxima.hpp"

#include "workloads/model.hpp"

namespace topsim::workloads {
namespace {

// Linears of a layer on this rank: QKV, projection, FC1, FC2; in a mixture two for each local expert, and two
// for shared experts. Latent attention has down and up projections.
double linear_products(const ModelSpec& model, int layer, int ep) {
  const bool latent = model.attention.kind == AttentionKind::mla;
  const double attention = latent ? (model.attention.q_lora_rank > 0 ? 5 : 4) : 2;
  if (kind_of(model, layer) == LayerKind::dense) return attention + 2;
  return attention + 2.0 * model.experts.count / ep + (model.experts.shared > 0 ? 2 : 0);
}

}  // namespace

void add_shared_maxima(StageEmitter& emitter, const ModelSpec& model, const Chunk& chunk,
                       const StageTask& task, const Plan& plan, const ComputeModel& compute,
                       std::uint8_t slot) {
  if (slot == Slots::kNoSlot || task.action == Action::backward_weight) return;
  const bool forward = task.action == Action::forward;
  double products = 0;
  for (int i = 0; i < chunk.layers; ++i) products += linear_products(model, chunk.first_layer + i, plan.ep);
  if (products <= 0) return;
  const double bytes = 4 * (forward ? 3 : 2) * products;
  const program::Phase phase = forward ? program::Phase::forward : program::Phase::backward;
  emitter.at({task.micro_batch, chunk.first_layer});
  emitter.compute(Part::layers, phase, compute.memory_bound(2 * bytes, MemoryKernel::elementwise));
  emitter.wait_for(emitter.collective({.stream = "maxima",
                                       .slot = slot,
                                       .phase = phase,
                                       .label = "maxima",
                                       .kind = program::CollectiveKind::all_reduce,
                                       .bytes = bytes}));
  emitter.compute(Part::layers, phase, compute.memory_bound(4 * bytes, MemoryKernel::elementwise, 2));
  emitter.flush();
}

}  // namespace topsim::workloads
