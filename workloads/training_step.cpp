#include "workloads/training_step.hpp"

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "workloads/compute/compute_model.hpp"
#include "workloads/host/host.hpp"
#include "workloads/layer/lora.hpp"
#include "workloads/layer/pieces.hpp"
#include "workloads/model.hpp"
#include "workloads/step/layout.hpp"
#include "workloads/step/pass_costs.hpp"
#include "workloads/step/single_process.hpp"
#include "workloads/step/stage_program.hpp"

namespace topsim::workloads {
namespace {
// The first module's embedding is a copy with its own weights if the model's embedding is on another stage.
void add_predictions(const ModelSpec& model, const Plan& plan, const ComputeModel& compute, bool recomputed,
                     StepPieces& pieces) {
  const PiecePair& layer = pieces.layer_at(kind_of(model, model.layers - 1), recomputed);
  const PiecePair shared{pieces.embedding.forward.without_parameters(),
                         pieces.embedding.backward.without_parameters()};
  pieces.prediction = prediction(model, plan, compute, shared, layer, pieces.head);
  pieces.first_prediction = copies_embedding(model, plan)
                                ? prediction(model, plan, compute, pieces.embedding, layer, pieces.head)
                                : pieces.prediction;
}

ComputeSettings settings_of(const ComputeSpec& spec, const Plan& plan) {
  ComputeSettings settings;
  settings.gemm_efficiency = spec.gemm_efficiency;
  settings.sm_margin = spec.sm_margin;
  // Replicas that serve requests do not wait for each other.
  const int together = plan.inference() ? plan.tp * plan.cp * plan.pp : plan.ranks();
  settings.clock = spec.clock / (1 + spec.chip_spread * expected_largest(together));
  settings.fused = plan.fused_kernels;
  settings.fixed_tiles = plan.fixed_tiles;
  settings.eager_softmax = plan.eager_softmax();
  settings.looped_softmax = plan.softmax_in_loops;
  settings.plain_softmax = plan.plain_softmax;
  // The lowest of the 2 to 6 us that Vidur (arXiv 2405.05465) measured for small kernels on A100 and H100.
  settings.memory_fixed = from_microseconds(2);
  return settings;
}

StepPieces pieces_of(const ModelSpec& model, const Plan& plan, const ComputeModel& compute) {
  const auto layer = [&](LayerKind kind, RecomputeKind recompute) {
    return plan.frozen() ? adapted_layer(model, kind, plan, compute, recompute)
                         : transformer_layer(model, kind, plan, compute, recompute);
  };
  StepPieces pieces;
  pieces.tokens = plan.tokens();
  pieces.embedding = embedding(model, plan, compute);
  pieces.head = plan.inference() ? PiecePair{sampling(model, plan, compute), {}} : head(model, plan, compute);
  if (plan.frozen()) {
    pieces.embedding = frozen(pieces.embedding, false);
    pieces.head = frozen(pieces.head, true);
  }
  const bool full = plan.recompute.kind == RecomputeKind::full;
  for (const LayerKind kind : {LayerKind::dense, LayerKind::experts}) {
    if (count_of(model, kind) == 0) continue;
    const auto index = static_cast<std::size_t>(kind);
    pieces.layer[index] = layer(kind, plan.recompute_of(false));
    pieces.layer_recomputed[index] = full ? layer(kind, RecomputeKind::full) : pieces.layer[index];
    set_host_time(pieces.layer[index], kind, model, plan, plan.recompute_of(false));
    set_host_time(pieces.layer_recomputed[index], kind, model, plan, plan.recompute_of(full));
  }
  if (predictions_of(model) > 0 && !plan.inference()) add_predictions(model, plan, compute, full, pieces);
  if (plan.smaller > 0) {
    Plan fewer = plan;
    --fewer.micro_batch, fewer.smaller = 0;
    pieces.smaller.push_back(pieces_of(model, fewer, compute));
  }
  return pieces;
}

void require_units_to_compute(const WorkloadSpec& workload, const topology::Accelerator& accelerator) {
  const int held = workload.plan.dispatcher_sms.value_or(0), units = accelerator.compute_units;
  if (units == 0 || held < units) return;
  Problem problem;
  problem.path = "workload.plan.dispatcher_sms";
  problem.message = fmt::format("{} SMs of an accelerator that has {} leave none to compute", held, units);
  problem.help = "16 to 32 suffice";
  throw ConfigError({problem});
}

// What a rank computes and in which order, independent of where ranks are placed.
struct Step {
  ModelSpec model;
  Plan plan;
  ComputeModel compute;
  StepPieces pieces;

  Step(const WorkloadSpec& workload, const topology::Accelerator& accelerator, Plan resolved,
       int domain_ranks)
      : model(workload.model),
        plan(with_facts(std::move(resolved), workload, accelerator, domain_ranks)),
        compute(accelerator, settings_of(workload.compute, plan)),
        pieces(pieces_of(model, plan, compute)) {
    if (traits(plan.schedule).made_for_plan) plan.orders = orders_for(model, plan, pieces);
  }

 private:
  static Plan with_facts(Plan plan, const WorkloadSpec& workload, const topology::Accelerator& accelerator,
                         int domain_ranks) {
    plan.domain_ranks = domain_ranks;
    require_units_to_compute(workload, accelerator);
    if (!workload.compute.host_factor) plan.host.factor = accelerator.host_factor;
    return plan;
  }
};

// The smallest divisor of dp with which experts and shards are on several ranks if they are in the whole
// plan.
int fewest_replicas(const Plan& plan) {
  const auto serves = [&](int dp) {
    return plan.dp % dp == 0 && (plan.cp * dp > 1 || plan.dp == 1) &&
           plan.tp * plan.cp * dp % (plan.ep * plan.etp) == 0;
  };
  int dp = 1;
  while (dp < plan.dp && !serves(dp)) ++dp;
  return dp;
}

Plan few_passes(const Plan& plan, Schedule schedule) {
  Plan few = plan;
  few.pp = plan.global_stages();
  few.virtual_stages = 1;
  few.schedule = schedule;
  few.orders.clear();
  few.micro_batches = 2, few.smaller = 0;
  few.dp = fewest_replicas(plan);
  few.shards.ranks = few.dp * few.cp;
  few.experts.copies = few.experts.shards = few.tp * few.cp * few.dp / (few.ep * few.etp);
  // Measured times cover all chunks of a stage.
  const auto by_chunk = [&](std::vector<Duration>& times) {
    const std::vector<Duration> whole = times;
    times.resize(static_cast<std::size_t>(few.pp));
    for (int stage = 0; stage < plan.pp; ++stage)
      for (int chunk = 0; chunk < plan.virtual_stages; ++chunk)
        times[static_cast<std::size_t>(plan.global_stage(stage, chunk))] =
            whole[static_cast<std::size_t>(stage)] / plan.virtual_stages;
  };
  if (plan.replays()) {
    by_chunk(few.stage_times.forward);
    by_chunk(few.stage_times.backward_input);
    by_chunk(few.stage_times.backward_weight);
    few.stage_times.transfer.clear();
  }
  return few;
}

WorkloadSpec completed(WorkloadSpec workload) {
  workload.model = complete_model(workload);
  return workload;
}
}  // namespace

program::Program passes_of(const WorkloadSpec& workload, Plan plan, const topology::Accelerator& accelerator,
                           Schedule schedule) {
  if (traits(plan.schedule).made_for_plan) plan.schedule = schedule;  // orders are not needed
  const Step step(completed(workload), accelerator, std::move(plan), 0);
  const Plan few = few_passes(step.plan, schedule);
  program::Program program;
  const Slots slots = lay_out(few, false, program);
  for (int stage = 0; stage < few.pp; ++stage)
    add_stage(program, step.model, few, step.compute, step.pieces, slots, stage);
  return program;
}

Plan resolve_on(const topology::Accelerator& accelerator, const WorkloadSpec& workload,
                std::uint32_t accelerators) {
  const WorkloadSpec whole = completed(workload);
  Plan plan = resolve(whole, accelerators);
  return traits(plan.schedule).made_for_plan ? Step(whole, accelerator, std::move(plan), 0).plan : plan;
}

program::Program training_step(const WorkloadSpec& workload, const topology::Accelerator& accelerator,
                               std::uint32_t accelerators, int domain_ranks) {
  const WorkloadSpec whole = completed(workload);
  const Step step(whole, accelerator, resolve(whole, accelerators), domain_ranks);
  const auto& [model, plan, compute, pieces] = step;

  program::Program program;
  if (plan.single_process) {
    Plan whole_batch = plan;
    whole_batch.micro_batch = plan.micro_batch * plan.dp;
    add_single_process(program, plan, compute, pieces, head(model, whole_batch, compute), model);
  } else {
    const bool shared_table = !plan.frozen() && (model.tied_embeddings || copies_embedding(model, plan));
    const Slots slots = lay_out(plan, shared_table, program);
    for (int stage = 0; stage < plan.pp; ++stage)
      add_stage(program, model, plan, compute, pieces, slots, stage);
  }

  program.facts.samples = plan.global_batch;
  program.facts.tokens = static_cast<double>(plan.global_batch) * plan.queries;
  const auto flops = [&](bool causal_half) {
    if (plan.inference()) return inference_flops_per_request(model, plan.queries, plan.sequence, causal_half);
    const double all =
        plan.documents * model_flops_per_sequence(model, plan.sequence / plan.documents, causal_half,
                                                  static_cast<double>(plan.predictions) / plan.documents);
    if (!plan.frozen()) return all;
    // Frozen matrices have two of the three products; attention and adapters have all three.
    const double document = static_cast<double>(plan.sequence) / plan.documents;
    const double scores = 3.0 * 4 * model.layers * plan.documents *
                          attended_pairs(model, document, causal_half) * model.heads * model.head_dim;
    return (all - scores) * 2 / 3 + scores + adapter_flops_per_sequence(model, plan);
  };
  program.facts.model_flops = Flops(plan.global_batch * flops(true));
  program.facts.model_flops_full_attention = Flops(plan.global_batch * flops(false));
  program.facts.peak_per_accelerator = compute.peak(plan.gemm);
  return program;
}
}  // namespace topsim::workloads
