#include "workloads/training_step.hpp"

#include <fmt/format.h>

#include <map>
#include <string>

#include "sim/base/error.hpp"
#include "workloads/compute/compute_model.hpp"
#include "workloads/layer/pieces.hpp"
#include "workloads/model.hpp"
#include "workloads/step/layout.hpp"
#include "workloads/step/stage_program.hpp"

namespace topsim::workloads {
namespace {

// A slow rank gets a class of its own: its stage's program with longer kernels.
void slow_down(const std::map<std::string, double>& slow_ranks, program::Program& program) {
  std::map<std::pair<std::uint16_t, double>, std::uint16_t> classes;  // (stage, factor)
  for (const auto& [text, factor] : slow_ranks) {
    const std::size_t rank = std::stoul(text);
    if (rank >= program.ranks) {
      Problem problem;
      problem.path = "workload.compute.slow_ranks." + text;
      problem.message =
          fmt::format("there is no rank {}: the job has ranks 0 to {}", rank, program.ranks - 1);
      throw ConfigError({problem});
    }
    const std::uint16_t stage = program.class_of_rank[rank];
    const auto [found, added] =
        classes.emplace(std::pair{stage, factor}, static_cast<std::uint16_t>(program.classes.size()));
    if (added) {
      program::RankProgram copy = program.classes[stage];
      copy.name = fmt::format("{}, {:.4g} times slower", copy.name, factor);
      for (program::Op& op : copy.ops)
        if (op.kind == program::OpKind::compute) op.duration = from_seconds(seconds(op.duration) * factor);
      program.classes.push_back(std::move(copy));
    }
    program.class_of_rank[rank] = found->second;
  }
}
}  // namespace

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
  const ComputeModel compute(accelerator, settings);

  StepPieces pieces;
  pieces.embedding = embedding(model, plan, compute);
  pieces.head = head(model, plan, compute);
  // With full recompute of some layers the others keep everything.
  const bool full = plan.recompute.kind == RecomputeKind::full;
  pieces.layer = dense_layer(model, plan, compute, full ? RecomputeKind::none : plan.recompute.kind);
  pieces.layer_recomputed = full ? dense_layer(model, plan, compute, RecomputeKind::full) : pieces.layer;

  program::Program program;
  const Slots slots = lay_out(plan, model.tied_embeddings, program);
  for (int stage = 0; stage < plan.pp; ++stage)
    add_stage(program, model, plan, compute, pieces, slots, stage);
  slow_down(workload.compute.slow_ranks, program);

  program.facts.samples = plan.global_batch;
  program.facts.tokens = static_cast<double>(plan.global_batch) * plan.sequence;
  program.facts.model_flops = Flops(plan.global_batch * model_flops_per_sequence(model, plan.sequence, true));
  program.facts.model_flops_full_attention =
      Flops(plan.global_batch * model_flops_per_sequence(model, plan.sequence, false));
  program.facts.peak_per_accelerator = compute.peak(plan.gemm);
  return program;
}
}  // namespace topsim::workloads
