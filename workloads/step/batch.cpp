#include "workloads/step/batch.hpp"

#include "workloads/host/host.hpp"

namespace topsim::workloads {

using program::Phase;

void add_batch(StageEmitter& emitter, const Chunk& chunk, const StageTask& task, const Plan& plan,
               const ComputeModel& compute, std::uint8_t tensor_slot) {
  const HostProfile& host = plan.host.profile;
  if (task.action != Action::forward || !plan.host.counts_calls || host.batch.operators <= 0) return;
  if (!host.batch_everywhere && !chunk.first && !chunk.last) return;
  emitter.at({task.micro_batch, 0});
  const auto broadcast = [&](double bytes) {
    if (plan.tp > 1)
      emitter.wait_for(emitter.collective({.stream = "tensor",
                                           .slot = tensor_slot,
                                           .phase = Phase::forward,
                                           .label = "batch",
                                           .kind = program::CollectiveKind::broadcast,
                                           .bytes = bytes}));
  };
  if (host.waits_for_batch) {
    broadcast(64);
    emitter.compute(Part::batch, Phase::forward, {}, true);
  }
  for (double i = host.waits_for_batch ? 1 : 0; i < host.batch_collectives; ++i) broadcast(8 * plan.tokens());
  KernelCost cost = compute.memory_bound(8 * plan.tokens(), MemoryKernel::elementwise, host.batch.operators);
  cost.host = seconds(host_time(host.batch, host.in_step)) * plan.host.factor;
  emitter.compute(Part::batch, Phase::forward, cost);
  emitter.flush();
}
}  // namespace topsim::workloads
