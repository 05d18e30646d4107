// What data-parallel ranks share, and when they exchange it.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "workloads/plan/parts.hpp"

namespace topsim::workloads {

namespace {

// What gives experts ranks of their own (PlanExperts::on_own_ranks), and what would not.
std::string own_ranks_key(const Plan& plan) {
  return plan.ep > 1 ? "plan.ep" : "plan.etp";
}
std::string own_ranks_remedy(const Plan& plan) {
  if (plan.etp == plan.tp) return "set ep to 1";
  return plan.ep > 1 ? fmt::format("set ep to 1, etp to {}", plan.tp) : fmt::format("set etp to {}", plan.tp);
}

// FSDP of a layer and, within it, of its experts (torchtitan/models/llama4/infra/parallelize.py, apply_fsdp):
// experts are a unit of their own, shared by those ranks of the layer's shard group that hold the same
// experts.
void set_expert_shards(const ModelSpec& model, const Framework& defaults, Plan& plan, Mistakes& mistakes) {
  if (!plan.shards_experts() || defaults.family == FrameworkFamily::jax) return;
  if (!defaults.shards_experts) {
    mistakes.add(
        own_ranks_key(plan),
        "ZeRO-3 of experts on ranks of their own (ep or etp) is not supported: DeepSpeed's MoE layers have "
        "ZeRO-2 at most",
        fmt::format("{}, zero to 2, or use framework fsdp or megatron", own_ranks_remedy(plan)));
    return;
  }
  const int group = plan.shards.ranks * plan.tp, divided = plan.ep * plan.etp;
  const std::vector<std::string>& order = plan.rank_order;
  const auto place = [&](const char* name) { return std::find(order.begin(), order.end(), name); };
  const bool runs = place("tp") < place("cp") && place("cp") < place("dp") && place("ep") < place("dp");
  if (group % divided != 0) {
    mistakes.add("plan.ep",
                 fmt::format("ep {} x etp {} = {} does not divide a shard group of {} ranks", plan.ep,
                             plan.etp, divided, group),
                 dividing_ep(model, group, plan) + " would, or let more ranks share one set of shards");
  } else if (plan.shards.ranks < plan.replicas() && !runs) {
    mistakes.add("plan.rank_order", "shard groups of experts are runs of ranks in the order tp, cp, ep, dp",
                 "leave rank_order out");
  }
  plan.experts.shards = std::max(1, group / divided);
  plan.experts.optimizer_shards = plan.experts.gradient_shards = plan.experts.shards;
  // set_modules_to_forward_prefetch: the next layer and its experts, because the host waits for counts.
  plan.prefetch_forward = true;
}
}  // namespace

int zero_meant(const PlanSpec& spec, const Framework& defaults) {
  // torchtitan's fsdp_reshard_after_forward: by default a pipeline keeps parameters gathered, which is stage
  // 2.
  constexpr int kWhole = 2;
  const bool whole = defaults.family == FrameworkFamily::fsdp && spec.pp > 1;
  return spec.zero.value_or(whole ? std::min(defaults.zero, kWhole) : defaults.zero);
}

namespace {
void check_zero(const PlanSpec& spec, int zero, const Framework& defaults, const Plan& plan,
                Mistakes& mistakes) {
  // Prefill and decode have no gradients to share; what weights need is said by set_inference().
  if (!plan.inference() && (zero < defaults.least_zero || zero > defaults.most_zero)) {
    std::string help =
        zero > defaults.most_zero
            ? fmt::format("set framework to {} or deepspeed, or leave zero out for the default",
                          zero == 1 ? "megatron" : "megatron@2025, fsdp")
            : fmt::format("{}; leave zero out for the default",
                          zero == 1 || defaults.family == FrameworkFamily::megatron
                              ? "set framework to megatron"
                              : "whole copies: framework ddp");
    mistakes.add("plan.zero", fmt::format("framework {} has no ZeRO stage {}", full_name(defaults), zero),
                 help);
  }
  if (defaults.family == FrameworkFamily::jax && (zero == 1 || zero == 2))
    mistakes.add(
        "plan.zero",
        fmt::format("{} divides weights, gradients and optimiser alike (the mesh axis fsdp) or nothing "
                    "(the axis data)",
                    defaults.name),
        "set zero to 3 or 0; leave it out for 3");
  if (defaults.family == FrameworkFamily::jax && plan.pp > 1)
    mistakes.add("plan.pp",
                 fmt::format("{}'s pipelines, which are one program over all stages, are not described",
                             defaults.name),
                 "set pp to 1: JAX divides models over the axes fsdp (dp) and tensor (tp)");
  if (defaults.family == FrameworkFamily::jax && plan.experts.on_own_ranks)
    mistakes.add(own_ranks_key(plan),
                 fmt::format("{}'s experts on ranks of their own are not described", defaults.name),
                 fmt::format("{}, or use framework megatron or fsdp", own_ranks_remedy(plan)));
  if (zero > 1 && plan.pp > 1 && !defaults.pipelines_sharded)
    mistakes.add("plan.zero",
                 fmt::format("ZeRO stage {} of framework {} under a pipeline is not supported", zero,
                             full_name(defaults)),
                 "set zero to 1, or pp to 1");
  const bool apart =
      !spec.overlap_grad_reduce.value_or(true) || (zero == 3 && !spec.overlap_param_gather.value_or(true));
  if (apart && zero > 1 && defaults.overlaps_shards)
    mistakes.add(
        spec.overlap_grad_reduce.value_or(true) ? "plan.overlap_param_gather" : "plan.overlap_grad_reduce",
        fmt::format("framework {} overlaps what its shards exchange", full_name(defaults)),
        "leave it out, or use framework fsdp");
}

// transformers of 2024, Trainer: DeepSpeed's engine gets the whole model and one group of all ranks.
void check_dimensions(const PlanSpec& spec, const Framework& defaults, const Plan& plan, Mistakes& mistakes) {
  if (!defaults.whole_models || plan.inference()) return;
  const auto refuse = [&](const char* name, int value) {
    if (value > 1)
      mistakes.add(fmt::format("plan.{}", name),
                   fmt::format("framework {} divides no model: Trainer with DeepSpeed has dp alone",
                               full_name(defaults)),
                   fmt::format("set {} to 1, or use framework deepspeed, which is Megatron-DeepSpeed", name));
  };
  refuse("tp", spec.tp), refuse("pp", spec.pp), refuse("cp", spec.cp), refuse("ep", spec.ep.value_or(1));
}

// How many gradients, or parameters, go together. Reads what set_data_parallel() sets.
void set_buckets(const WorkloadSpec& workload, const Framework& defaults, Plan& plan, Mistakes& mistakes) {
  const PlanSpec& spec = workload.plan;
  const auto no_buckets = [&](std::string why, const char* help) {
    if (spec.bucket_size && !plan.inference()) mistakes.add("plan.bucket_size", std::move(why), help);
  };
  if (spec.wrap_least && !plan.inference()) {
    plan.wrap_least = *spec.wrap_least;
    const bool first = defaults.family == FrameworkFamily::fsdp && !defaults.copies_gathered;
    if (!first || !plan.shards.by_unit || plan.pp > 1 || workload.task == Task::lora ||
        workload.model.experts.count > 0 || predictions_of(workload.model) > 0)
      mistakes.add(
          "plan.wrap_least",
          "only the first FSDP's sharded and trained parameters of a dense model come in units by size",
          "leave it out, or use framework fsdp@2024-flat with zero 3, pp 1 and no experts or adapters");
  }
  if (defaults.reduces_units && (plan.shards.by_unit || plan.zero < 2))
    return no_buckets("FSDP reduces a layer's gradients together, however many they are", "leave it out");
  if (defaults.family == FrameworkFamily::jax && plan.shards.by_unit)
    return no_buckets("XLA reduces sharded gradients of a layer in that layer's pass", "leave it out");
  if (!plan.overlap_grad_reduce && !defaults.exposed_buckets) return;
  // DeepSpeed's pipeline reduces when all backward passes have ended and their gradients have been sent on
  // (runtime/pipe/engine.py, _exec_reduce_grads sets _force_grad_boundary).
  if (!plan.overlap_grad_reduce && plan.pp > 1)
    return no_buckets(
        fmt::format("{}'s pipeline reduces all gradients together, when they are complete", defaults.name),
        "leave it out, or set pp to 1");
  const double width = plan.bucket_gradient_bytes();
  if (spec.bucket_size) {
    plan.bucket_elements = static_cast<double>(spec.bucket_size->value()) / width;
  } else if (defaults.bucket_squares > 0) {
    plan.bucket_elements = defaults.bucket_squares * workload.model.hidden * workload.model.hidden;
  } else if (defaults.bucket.value() > 0) {
    plan.bucket_elements = static_cast<double>(defaults.bucket.value()) / width;
  } else {
    plan.bucket_elements =
        std::max(defaults.bucket_elements, defaults.bucket_elements_per_rank * plan.replicas());
  }
  plan.first_bucket_elements = static_cast<double>(defaults.first_bucket.value()) / width;
}
}  // namespace

namespace {
// torch/nn/parallel/distributed.py, no_sync: "a context manager to disable gradient synchronizations";
// outside of it each backward pass reduces the sums so far, and finalize_backward (reducer.cpp) waits for all
// buckets and copies them back.
void set_reduction_of_each(const PlanSpec& spec, const Framework& defaults, Plan& plan, Mistakes& mistakes) {
  if (!spec.reduce_each_micro_batch) return;
  if (plan.inference())
    mistakes.add("plan.reduce_each_micro_batch", "inference has no gradients", "leave it out");
  else if (defaults.family != FrameworkFamily::ddp)
    mistakes.add("plan.reduce_each_micro_batch",
                 fmt::format("framework {} says itself when it reduces: only DDP leaves that to the script",
                             defaults.name),
                 "leave it out, or use framework ddp");
  else if (plan.pp > 1)
    mistakes.add("plan.reduce_each_micro_batch",
                 "a pipeline's stages reduce once (torch/distributed/pipelining/stage.py)",
                 "leave it out, or set pp to 1");
  else
    plan.reduce_every_micro_batch = plan.drains_reductions = true;
}
}  // namespace

void set_data_parallel(const WorkloadSpec& workload, const Framework& defaults, Plan& plan,
                       Mistakes& mistakes) {
  const PlanSpec& spec = workload.plan;
  static_cast<ExchangeFacts&>(plan) = defaults;
  const int copies = plan.replicas();
  const int zero = zero_meant(spec, defaults);
  check_zero(spec, zero, defaults, plan, mistakes);
  check_dimensions(spec, defaults, plan, mistakes);
  const int expert_copies = plan.experts.copies * copies / (plan.dp * plan.cp);
  // A rank that shares its dense weights with no other may share routed experts within its tensor group. FSDP
  // has units of both.
  const bool experts_share =
      plan.experts.on_own_ranks && expert_copies > 1 && defaults.family != FrameworkFamily::fsdp;
  plan.zero = copies > 1 || experts_share ? zero : 0;
  plan.buckets_never_exceed = plan.buckets_never_exceed && plan.zero > 0;
  plan.shards.by_unit = plan.zero == 3 || (plan.zero == 2 && defaults.family == FrameworkFamily::fsdp);
  if (spec.hsdp_shard && !defaults.hybrid_shards)
    mistakes.add("plan.hsdp_shard", fmt::format("framework {} has no hybrid sharding", defaults.name),
                 "use framework fsdp or megatron@2025-fsdp, or zero_group");
  plan.shards.ranks = shard_group(workload, defaults, plan, mistakes);
  // _fsdp_param_group.py, wait_for_unshard: with world_size 1 every unit's all_gather_inputs are copied into
  // storage that resharding frees. Frozen weights are multiplied as they are.
  plan.shards.unit_copies =
      defaults.family == FrameworkFamily::fsdp && copies == 1 && plan.pp == 1 && plan.task != Task::lora;
  if (zero != 3 && plan.copies_for_update) plan.update_elements = 0;
  if (plan.prefetch_squares > 0)
    plan.prefetch_elements = plan.prefetch_squares * workload.model.hidden * workload.model.hidden;
  if (plan.divides_in_sum && plan.gradient_bytes >= 4) plan.gradient_passes = 0;
  // ZeRO's steps flatten the 16-bit gradients that they update, and cast the result: 2 + 4. Without ZeRO
  // (fp16/fused_optimizer.py, step) each gradient is cast and the casts are flattened: 4 + 4; bf16 has no
  // copy, since engine.py, get_data_types, lets BF16_Optimizer accumulate in fp32.
  if (plan.copies_for_update && plan.mixed_precision && plan.gradient_bytes < 4)
    plan.update_copy = zero > 0 ? 6 : plan.activations == Precision::fp16 ? 8 : 0;
  // torch/optim/adam.py, _multi_tensor_adam: exp_avg_sq_sqrt, of all second moments at once. Where there are
  // copies they are the more, since the 16-bit gradients have been freed by then.
  if (!defaults.fused_adam && plan.update_copy <= 0) plan.update_copy = plan.moment_bytes;
  plan.loops_over_layers = plan.loops_over_layers && plan.shards.by_unit;
  plan.ends_stay = plan.ends_stay && plan.shards.by_unit;
  // DeepSpeed's overlap_comm is on only for stage 3; FSDP and stage 3 always prefetch.
  plan.overlap_grad_reduce = spec.overlap_grad_reduce.value_or(
      defaults.overlap_grad_reduce || (plan.shards.by_unit && !plan.loops_over_layers));
  plan.overlap_param_gather = plan.zero > 0 && spec.overlap_param_gather.value_or(
                                                   defaults.overlap_param_gather || plan.shards.by_unit);
  // Zero-bubble schedules and DualPipe exchange in their own way.
  const ScheduleTraits& schedule = traits(plan.schedule);
  plan.aligns_exchanges =
      defaults.aligns_exchanges && plan.pp > 1 && schedule.pairs_passes && !schedule.overlaps_messages;
  plan.shards.reshard_after_forward = (plan.shards.unit_copies ? zero : plan.zero) == 3;
  plan.reduce_every_micro_batch = plan.zero >= 2 && plan.pp == 1 && !plan.reduces_once;
  set_reduction_of_each(spec, defaults, plan, mistakes);
  // torch/distributed/pipelining/stage.py, backward_maybe_with_nosync: set_requires_gradient_sync(False) for
  // every backward pass; post_backward of all groups after the last one.
  plan.shards.reduce_at_end = plan.shards.by_unit && plan.pp > 1 && defaults.family == FrameworkFamily::fsdp;
  // In a pipeline its ends belong to the units of their stages.
  plan.root_unit = plan.root_unit && (plan.shards.by_unit || plan.shards.unit_copies) && plan.pp == 1;
  if (plan.shards.by_unit || copies == 1) plan.bucket_copies = 0;
  plan.cast_weights = plan.cast_weights && !plan.shards.by_unit;  // shards are cast before they are gathered
  plan.shards.optimizer = plan.zero >= 1 ? plan.shards.ranks : 1;
  plan.shards.gradients = plan.zero >= 2 ? plan.shards.ranks : 1;
  plan.shards.parameters = plan.shards.by_unit ? plan.shards.ranks : 1;
  plan.experts.optimizer_shards = plan.zero >= 1 ? expert_copies : 1;
  plan.experts.gradient_shards = plan.zero >= 2 ? expert_copies : 1;
  if (plan.mirrored() && plan.shards.by_unit)
    mistakes.add("plan.zero", "DualPipe with sharded parameters is not supported", "set zero to 1");
  set_expert_shards(workload.model, defaults, plan, mistakes);

  if (spec.overlap_param_gather.value_or(false) && defaults.most_zero == 0)
    mistakes.add("plan.overlap_param_gather",
                 fmt::format("framework {} shards nothing that could be gathered", defaults.name),
                 "leave it out, or use framework megatron, fsdp or deepspeed");
  set_buckets(workload, defaults, plan, mistakes);
}

void set_single_process(const Framework& defaults, Plan& plan, Mistakes& mistakes) {
  if (defaults.family != FrameworkFamily::dataparallel) return;
  plan.single_process = true;
  plan.host.interpreter_threads = plan.dp;
  if (plan.tp * plan.pp * plan.cp * plan.ep * plan.etp > 1)
    mistakes.add("plan", "framework dataparallel copies the whole model to every device",
                 "set tp, pp, cp and ep to 1, or choose framework megatron");
  if (plan.replays())
    mistakes.add("compute.stage_times", "framework dataparallel has no stages", "leave stage_times out");
  if (plan.overlap_grad_reduce)
    mistakes.add("plan.overlap_grad_reduce",
                 "framework dataparallel reduces gradients after the backward pass",
                 "framework ddp overlaps them");
}
}  // namespace topsim::workloads
