#include "workloads/training_step.hpp"

#include "workloads/compute/compute_model.hpp"
#include "workloads/layer/pieces.hpp"
#include "workloads/model.hpp"
#include "workloads/step/layout.hpp"
#include "workloads/step/stage_program.hpp"

namespace topsim::workloads {
program::Program training_step(const WorkloadSpec& workload, const topology::Accelerator& accelerator,
                               std::uint32_t accelerators) {
  WorkloadSpec completed = workload;
  completed.model = complete(workload.model);
  const ModelSpec& model = completed.model;
  const Plan plan = resolve(completed, accelerators);

  ComputeSettings settings;
  settings.gemm_efficiency = workload.compute.gemm_efficiency;
  settings.clock = workload.compute.clock;
  settings.fused = plan.fused_kernels;
  settings.hopper_attention = plan.hopper_attention;
  const ComputeModel compute(accelerator, settings);

  StepPieces pieces;
  pieces.embedding = embedding(model, plan, compute);
  pieces.head = head(model, plan, compute);
  // With full recompute of some layers the others keep everything.
  const bool full = plan.recompute.kind == RecomputeKind::full;
  pieces.layer = transformer_layer(model, plan, compute, full ? RecomputeKind::none : plan.recompute.kind);
  pieces.layer_recomputed =
      full ? transformer_layer(model, plan, compute, RecomputeKind::full) : pieces.layer;

  program::Program program;
  const Slots slots = lay_out(plan, model.tied_embeddings, program);
  for (int stage = 0; stage < plan.pp; ++stage)
    add_stage(program, model, plan, compute, pieces, slots, stage);

  program.facts.samples = plan.global_batch;
  program.facts.tokens = static_cast<double>(plan.global_batch) * plan.sequence;
  program.facts.model_flops = Flops(plan.global_batch * model_flops_per_sequence(model, plan.sequence, true));
  program.facts.model_flops_full_attention =
      Flops(plan.global_batch * model_flops_per_sequence(model, plan.sequence, false));
  program.facts.peak_per_accelerator = compute.peak(plan.gemm);
  return program;
}
}  // namespace topsim::workloads
