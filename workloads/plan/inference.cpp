// The meaning of a plan for inference (plan.hpp, Plan::task).
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "workloads/compute/compute_model.hpp"
#include "workloads/plan/parts.hpp"

namespace topsim::workloads {

namespace {
// vLLM, config/cache.py: gpu_memory_utilization = 0.9.
constexpr double kServedShare = 0.9;

// int4: a 16-bit scale per 128 numbers (GPTQ's and AWQ's group_size, Marlin's groupsize).
double stored_bytes(WeightFormat format) {
  switch (format) {
    case WeightFormat::fp8:
    case WeightFormat::int8:
      return 1;
    case WeightFormat::int4:
      return 0.5 + 2.0 / 128;
    case WeightFormat::nvfp4:
      return stored_bytes(Precision::nvfp4);
    case WeightFormat::mxfp4:
      return 0.5 + 1.0 / 32;
  }
  throw InternalError("unknown format of weights");
}
}  // namespace

void set_inference(const WorkloadSpec& workload, Plan& plan, Mistakes& mistakes) {
  if (!plan.inference()) {
    if (workload.precision.kv_cache)
      mistakes.add("precision.kv_cache", "training keeps no cache of keys and values",
                   "set \"task\" to prefill or decode, or leave it out");
    if (workload.plan.memory_utilization)
      mistakes.add("plan.memory_utilization", "training may fill an accelerator's memory",
                   "set \"task\" to prefill or decode, or leave it out");
    for (const auto& [given, path] : {std::pair(workload.precision.weights, "precision.weights"),
                                      {workload.precision.expert_weights, "precision.expert_weights"}})
      if (given)
        mistakes.add(path, "training keeps the weights that its optimiser updates",
                     "set \"task\" to prefill or decode, or leave it out");
    return;
  }
  const PlanSpec& spec = workload.plan;
  const auto refuse = [&](bool present, const char* path, const char* why) {
    if (present) mistakes.add(path, fmt::format("{}: inference {}", path, why), "leave it out");
  };
  // Settings of gradients, optimiser and recompute apply to training; a scenario may keep them.
  refuse(spec.hsdp_shard.has_value(), "plan.hsdp_shard", "has no gradients and no optimiser to shard");
  refuse(spec.offload != Offload::none, "plan.offload", "has no optimiser to offload");
  // The forward passes of gpipe and 1f1b are such an order.
  const char* in_order = "passes micro-batches through the stages in order";
  const Schedule schedule = spec.schedule.value_or(Schedule::gpipe);
  refuse(schedule != Schedule::gpipe && schedule != Schedule::one_f_one_b, "plan.schedule", in_order);
  refuse(spec.virtual_stages > 1, "plan.virtual_stages", in_order);
  refuse(plan.replays(), "compute.stage_times", "has no backward pass to replay");
  refuse(workload.packing.on, "packing", "attends to one request a sequence");
  if (plan.experts.overlap && (plan.pp > 1 || plan.micro_batches % 2 != 0))
    mistakes.add("plan.overlap_expert_exchange",
                 plan.pp > 1 ? std::string("inference pairs micro-batches of one stage")
                             : fmt::format("{} micro-batches make no pairs", plan.micro_batches),
                 plan.pp > 1 ? "set pp to 1, or leave it out"
                             : "an even number of them, for example \"grad_accumulation\": 2");
  const bool by_stage = plan.shards.by_unit && spec.zero;
  refuse(by_stage, "plan.zero", "needs whole weights");
  refuse(!by_stage && (plan.single_process || plan.shards.by_unit), "framework",
         "needs whole weights: megatron or ddp");
  if (plan.task == Task::decode && plan.cp > 1)
    mistakes.add("plan.cp", "context parallelism splits prompts, a decode step has one token of each request",
                 "set cp to 1, or task to prefill");
  if (!workload.model.attention.causal) {
    if (plan.task == Task::decode)
      mistakes.add("task", "a model whose tokens attend to those behind them generates none",
                   "set \"task\" to prefill, which reads texts, or model.attention.causal to true");
    if (workload.precision.kv_cache)
      mistakes.add("precision.kv_cache", "a model that generates no tokens keeps no keys and values",
                   "leave it out");
  }
  plan.memory_share = spec.memory_utilization.value_or(kServedShare);
  plan.zero = 0;
  plan.shards.gradients = plan.shards.optimizer = plan.shards.parameters = 1;
  plan.overlap_grad_reduce = plan.overlap_param_gather = plan.reduce_every_micro_batch = false;
  plan.cast_weights = plan.mixed_precision = plan.dropout = plan.synchronises_p2p = false;
  plan.overlap_p2p = true;
  plan.bucket_copies = 0;
  plan.recompute = {};
  const PrecisionSpec& precision = workload.precision;
  const double read = stored_bytes(plan.gemm);
  const auto kept = [&](const std::optional<WeightFormat>& format, const std::string& path,
                        double otherwise) {
    if (!format) return otherwise;
    if (stored_bytes(*format) > read)
      mistakes.add(path, "weights are never wider than the products that read them",
                   fmt::format("set precision.gemm to bf16, or leave {} out", path));
    return stored_bytes(*format);
  };
  plan.parameter_bytes = kept(precision.weights, "precision.weights", read);
  plan.expert_bytes = kept(precision.expert_weights, "precision.expert_weights", plan.parameter_bytes);
  if (precision.expert_weights && workload.model.experts.count == 0)
    mistakes.add("precision.expert_weights", "the model has no experts", "set precision.weights");
}

void set_packing(const WorkloadSpec& workload, Plan& plan, Mistakes& mistakes) {
  plan.documents = workload.packing.documents.value_or(1);
  if (plan.documents < 1) {
    mistakes.add("packing", "a sequence holds at least one document", "leave packing out");
    plan.documents = 1;
  }
  const int parts = plan.documents * (plan.cp > 1 ? 2 * plan.cp : 1);
  if (plan.documents > 1 && plan.sequence > 0 && plan.sequence % parts != 0)
    mistakes.add(
        "packing",
        fmt::format("a sequence of {} does not divide into {} documents{}", plan.sequence, plan.documents,
                    plan.cp > 1 ? fmt::format(" of 2 x cp = {} chunks", 2 * plan.cp) : ""),
        "a number of documents of equal length, or true for one");
}

namespace {
// Which matrices have an adapter, and whether parts of a fused one have their own.
void set_targets(const std::vector<std::string>& targets, const ModelSpec& model, PlanAdapters& adapters,
                 Mistakes& mistakes) {
  const auto on = [&](const char* name) {
    return std::find(targets.begin(), targets.end(), name) != targets.end();
  };
  if (targets.empty())
    mistakes.add("lora.targets", "no matrix has an adapter, so that nothing is trained",
                 "leave targets out for all of qkv, proj, fc1, fc2");
  const auto whole_of = [](const std::string& part) {
    const bool network = part == "gate" || part == "up";
    return network ? "fc1" : part == "q" || part == "k" || part == "v" ? "qkv" : nullptr;
  };
  for (auto each = targets.begin(); each != targets.end(); ++each) {
    const auto path = fmt::format("lora.targets[{}]", each - targets.begin());
    const char* whole = whole_of(*each);
    if (std::find(targets.begin(), each, *each) != each)
      mistakes.add(path, fmt::format("{} is named twice", *each), "name each matrix once");
    else if (whole != nullptr && on(whole))
      mistakes.add(path, fmt::format("{} is a part of {}, which is named too", *each, whole),
                   fmt::format("leave {} out, or name the parts of {} alone", *each, whole));
    else if ((*each == "gate" || *each == "up") && !model.gated_ffn)
      mistakes.add(path, fmt::format("{}: the model's networks have no gate", *each),
                   "name fc1, their first matrix");
  }
  const bool qkv = on("qkv"), fc1 = on("fc1");
  adapters.q = qkv || on("q"), adapters.k = qkv || on("k"), adapters.v = qkv || on("v");
  adapters.proj = on("proj"), adapters.fc2 = on("fc2");
  adapters.gate = model.gated_ffn && (fc1 || on("gate"));
  adapters.up = fc1 || on("up");
  adapters.qkv_each = adapters.apart || (adapters.qkv() && !qkv);
  adapters.gate_each = adapters.apart || (adapters.fc1() && !fc1);
}
}  // namespace

void set_adapters(const WorkloadSpec& workload, const Framework& defaults, Plan& plan, Mistakes& mistakes) {
  if (workload.task != Task::lora) {
    if (workload.lora)
      mistakes.add("lora",
                   plan.inference()
                       ? "prefill and decode read no adapters: merged into the weights they cost "
                         "nothing, beside them they are not described"
                       : "adapters are trained by task lora",
                   "set \"task\": \"lora\", or leave lora out");
    if (workload.precision.frozen_weights)
      mistakes.add("precision.frozen_weights", "task lora alone has weights that are not trained",
                   "set \"task\": \"lora\", or leave it out");
    return;
  }
  const LoraSpec spec = workload.lora.value_or(LoraSpec{});
  if (workload.model.hidden > 0 && spec.rank > workload.model.hidden)
    mistakes.add(
        "lora.rank",
        fmt::format("rank {} is above the model's hidden width, {}", spec.rank, workload.model.hidden),
        "an adapter of low rank has 4 to 256; task finetune trains all weights");
  const ModelSpec& model = workload.model;
  PlanAdapters& adapters = plan.adapters;
  adapters.rank = spec.rank;
  adapters.apart = defaults.family != FrameworkFamily::megatron;
  adapters.one_for_experts = spec.share_expert_adapters.value_or(defaults.shares_expert_adapters);
  adapters.dropout = spec.dropout;
  adapters.casts = defaults.adapter.casts_input && plan.parameter_bytes > bytes_of(plan.activations);
  adapters.facts = defaults.adapter;
  adapters.exchanges = defaults.lora_scripts;
  set_targets(targets_of(spec), model, adapters, mistakes);
  if (model.attention.kind == AttentionKind::mla)
    mistakes.add("task", "adapters exist beside mha or gqa attention",
                 "choose a model that has it, or task finetune");
  if (spec.share_expert_adapters && model.experts.count == 0)
    mistakes.add("lora.share_expert_adapters", "the model has no experts", "leave it out");
  if (plan.single_process || plan.replays() || defaults.family == FrameworkFamily::jax)
    mistakes.add("task", "adapters need a framework that trains stage by stage",
                 "use framework megatron, ddp, fsdp or deepspeed");
  plan.frozen_weights = workload.precision.frozen_weights.value_or(Precision::bf16);
  if (plan.nf4() && bytes_of(plan.gemm) != 2)
    mistakes.add("precision.frozen_weights", "bitsandbytes expands NF4 to 16 bits, in which it multiplies",
                 "set precision.gemm to bf16, or frozen_weights to fp8 or nvfp4");
  if (plan.nf4() && (plan.shards.by_unit || plan.shards.unit_copies))
    mistakes.add("precision.frozen_weights",
                 "shards of weights in NF4 are not described: every accelerator holds its matrices whole",
                 "use framework ddp, deepspeed below zero 3 or megatron, or frozen_weights fp8");
  plan.cast_weights = false;  // frozen weights are kept as multiplied, or in 16 bits until cast
}
}  // namespace topsim::workloads
