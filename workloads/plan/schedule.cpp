// The order of a pipeline's passes, and how sequences are split.
#include <fmt/format.h>

#include <numeric>

#include "workloads/plan/parts.hpp"

namespace topsim::workloads {

Schedule schedule_meant(const PlanSpec& spec) {
  return spec.schedule.value_or(spec.virtual_stages > 1 ? Schedule::interleaved : Schedule::one_f_one_b);
}

void set_schedule(const PlanSpec& spec, Plan& plan, Mistakes& mistakes) {
  plan.schedule = schedule_meant(spec);
  if (plan.schedule == Schedule::one_f_one_b && plan.virtual_stages > 1)
    plan.schedule = Schedule::interleaved;
  if (plan.schedule == Schedule::interleaved && plan.virtual_stages == 1) {
    if (plan.pp > 1)
      mistakes.add("plan.schedule",
                   "the interleaved schedule needs two or more virtual stages, the plan has one",
                   "set virtual_stages to 2 or more, or use 1f1b");
    plan.schedule = Schedule::one_f_one_b;
  }
  if (plan.schedule == Schedule::zb_v) {
    if (spec.virtual_stages > 2)
      mistakes.add("plan.virtual_stages", "ZB-V has two virtual stages", "leave virtual_stages out");
    plan.virtual_stages = 2;
  } else if (plan.schedule != Schedule::interleaved && plan.virtual_stages > 1) {
    mistakes.add("plan.virtual_stages", "this schedule has one stage a rank", "use the interleaved schedule");
  }
  if (plan.schedule == Schedule::zb_v && plan.pp == 1)
    mistakes.add("plan.schedule", "ZB-V folds a pipeline in two, and there is none (pp = 1)",
                 "use 1f1b, or set pp to 2 or more");
  else if (plan.virtual_stages > 1 && plan.pp == 1)
    mistakes.add("plan.virtual_stages", "virtual stages need a pipeline (pp > 1)", "set virtual_stages to 1");
}

namespace {
// Transformer Engine, attention/dot_product_attention/context_parallel.py, AttnFuncWithCPAndQKVOA2A: "The
// number of attention heads needs to be divisible by CP size", for query heads and for key heads. Other
// frameworks repeat keys and values (reported by sim/scenario/findings/plan_findings.hpp).
void check_key_value_heads(const WorkloadSpec& workload, const Framework& defaults, const Plan& plan,
                           Mistakes& mistakes) {
  const ModelSpec& model = workload.model;
  if (plan.cp_kind != ContextKind::ulysses || defaults.family != FrameworkFamily::megatron ||
      model.attention.kind == AttentionKind::mla || model.kv_heads % (plan.tp * plan.cp) == 0)
    return;
  mistakes.add(
      "plan.cp",
      fmt::format("{} key-value heads do not divide over tp x cp = {}, as Transformer Engine's exchange of "
                  "heads needs",
                  model.kv_heads, plan.tp * plan.cp),
      model.kv_heads % plan.tp == 0 && model.kv_heads > plan.tp
          ? fmt::format("cp = {} would, or choose cp_kind ring", std::gcd(model.kv_heads / plan.tp, plan.cp))
          : "choose cp_kind ring");
}
}  // namespace

void set_sequence_parallel(const WorkloadSpec& workload, const Framework& defaults, Plan& plan,
                           Mistakes& mistakes) {
  const PlanSpec& spec = workload.plan;
  const bool by_experts = workload.model.experts.count > 0 && !plan.sliced_experts();
  const bool split_rows = (defaults.sequence_parallel && !plan.inference()) || by_experts;
  // A decode step's one token cannot be split.
  plan.sequence_parallel =
      plan.tp > 1 && plan.task != Task::decode && spec.sequence_parallel.value_or(split_rows);
  // Engines that serve pad the rows of their batch (Plan::tokens).
  if (plan.sequence_parallel && !plan.inference() && plan.sequence % (plan.tp * plan.cp) != 0) {
    const bool written = spec.sequence_parallel.has_value();
    mistakes.add(
        written ? "plan.sequence_parallel" : "plan.tp",
        fmt::format("a sequence of {} does not divide over tp x cp = {}{}", plan.sequence, plan.tp * plan.cp,
                    written      ? ""
                    : by_experts ? ", as experts need it beside tensor parallelism"
                                 : ", as sequence_parallel, here the default, needs it"),
        by_experts ? "choose a tp that does, or change the sequence"
        : written  ? "switch sequence_parallel off or change the sequence"
                   : "choose a tp that does, or set \"sequence_parallel\": false");
  }
  if (plan.cp > 1) {
    if (plan.sequence % (2 * plan.cp) != 0)
      mistakes.add(
          "plan.cp",
          fmt::format("a sequence of {} does not divide into 2 x cp = {} chunks", plan.sequence, 2 * plan.cp),
          "choose a cp that does");
    if (plan.cp_kind == ContextKind::ulysses && workload.model.heads % (plan.tp * plan.cp) != 0)
      mistakes.add(
          "plan.cp",
          fmt::format("{} heads do not divide over tp x cp = {}", workload.model.heads, plan.tp * plan.cp),
          "Ulysses splits heads: lower cp, or choose cp_kind ring");
    check_key_value_heads(workload, defaults, plan, mistakes);
  }
}

void set_overlap(const PlanSpec& spec, const Framework& defaults, Plan& plan, Mistakes& mistakes) {
  // Zero-bubble runtimes launch every message separately and wait only for what a pass reads (recalled of
  // sail-sg/zero-bubble, not read again; set after its rows deadlocked without it); exposed pairs would make
  // neighbours wait for each other in a cycle.
  const bool exchanges_beside = spec.overlap_expert_exchange && spec.ep.value_or(1) > 1;
  plan.overlap_p2p = spec.overlap_p2p.value_or(traits(plan.schedule).overlaps_messages || exchanges_beside ||
                                               (defaults.overlap_p2p && plan.virtual_stages > 1));
  plan.tp_overlap = spec.tp_overlap.value_or(defaults.tp_overlap);
  const bool pipelines = plan.tp_overlap == TensorOverlap::micro_pipeline;
  if (divides_products(plan.tp_overlap) && plan.tp > 1 && !plan.sequence_parallel && !plan.inference())
    mistakes.add("plan.tp_overlap",
                 fmt::format("{} overlap gathers and scatters, which need sequence parallelism",
                             pipelines ? "micro-pipelines" : "user buffers"),
                 pipelines ? "set sequence_parallel, or tp_overlap to none"
                           : "set sequence_parallel, or tp_overlap to async");
  const bool pytorch = defaults.family == FrameworkFamily::fsdp || defaults.family == FrameworkFamily::ddp;
  if (pipelines && plan.tp > 1 && !(pytorch && defaults.fused_kernels))
    mistakes.add("plan.tp_overlap", "micro-pipelines are a pass of PyTorch's compiler",
                 "choose framework fsdp@2024-compile, or tp_overlap async");
  plan.synchronises_p2p = defaults.synchronises_p2p && !plan.overlap_p2p;
}
}  // namespace topsim::workloads
