#include "sim/scenario/run/left_open.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/config/object.hpp"
#include "workloads/fields.hpp"
#include "workloads/framework.hpp"
#include "workloads/model.hpp"

namespace topsim::scenario {
namespace {
using nlohmann::json;
using workloads::Plan;
using workloads::Precision;
using workloads::WorkloadSpec;

template <class T>
void fill(std::optional<T>& given, T value) {
  if (!given) given = std::move(value);
}

void fill_training(const Plan& plan, WorkloadSpec& workload) {
  workloads::PlanSpec& spec = workload.plan;
  fill(spec.zero, workloads::zero_meant(spec, workloads::framework_of(workload)));
  fill(spec.recompute, plan.recompute);
  fill(workload.dropout, plan.dropout);
  fill(workload.compute.fused_cross_entropy, plan.fused_cross_entropy);
  const Precision narrow = plan.activations == Precision::fp16 ? Precision::fp16 : Precision::bf16;
  fill(workload.precision.gradients, plan.gradient_bytes > 2 ? Precision::fp32 : narrow);
  fill(workload.precision.optimizer, plan.optimizer_bytes > 2 ? Precision::fp32 : narrow);
  if (workload.task == workloads::Task::lora) {
    fill(workload.lora, workloads::LoraSpec{});
    fill(workload.lora->targets, workloads::targets_of(*workload.lora));
  }
  if (workload.packing.on) fill(workload.packing.documents, plan.documents);
  if (plan.replicas() == 1) return;
  fill(spec.overlap_grad_reduce, plan.overlap_grad_reduce);
  fill(spec.overlap_param_gather, plan.overlap_param_gather);
  if (plan.bucket_elements > 0)
    fill(spec.bucket_size, Bytes(std::llround(plan.bucket_elements * plan.bucket_gradient_bytes())));
}

WorkloadSpec filled(WorkloadSpec workload, const Plan& plan) {
  workloads::PlanSpec& spec = workload.plan;
  workload = workloads::scripted(std::move(workload));
  const workloads::Framework& release = workloads::framework_of(workload);
  workload.framework = workloads::full_name(release);
  fill(workload.sequence, plan.sequence);
  fill(workload.model.attention.kernel, plan.attention);
  workload.model.prediction_layers = workloads::complete_model(workload).prediction_layers;
  if (workload.compute.graph_parts.empty()) fill(workload.compute.cuda_graph, plan.host.graph);
  fill(spec.dp, plan.dp);
  fill(spec.micro_batch, plan.micro_batch);
  if (!spec.grad_accumulation) fill(spec.global_batch, plan.global_batch);
  // Uneven micro-batches of requests: the largest, and how many there are.
  if (std::int64_t{plan.micro_batch} * plan.micro_batches * plan.dp != plan.global_batch)
    fill(spec.grad_accumulation, plan.micro_batches);
  fill(spec.ep, plan.ep);
  if (plan.ep > 1) {
    fill(spec.etp, plan.etp);
    fill(spec.token_dispatcher, plan.experts.dispatcher);
    if (plan.experts.fused_dispatch()) fill(spec.dispatcher_sms, plan.experts.dispatcher_units);
  }
  if (plan.tp > 1) {
    fill(spec.sequence_parallel, plan.sequence_parallel);
    fill(spec.tp_overlap, plan.tp_overlap);
  }
  if (plan.pp > 1) fill(spec.overlap_p2p, plan.overlap_p2p);
  if (plan.pp > 1 && spec.stage_layers.empty() && !plan.even_stages()) spec.stage_layers = plan.stage_layers;
  if (plan.inference()) {
    fill(workload.precision.kv_cache, plan.kv_cache);
    return workload;
  }
  if (plan.pp > 1) fill(spec.schedule, plan.schedule);
  fill_training(plan, workload);
  return workload;
}

// The members of `all` that `given` lacks or has with other values.
json difference(const json& given, const json& all) {
  json result = json::object();
  for (const auto& [key, value] : all.items()) {
    const auto at = given.find(key);
    if (at == given.end()) {
      result[key] = value;
    } else if (at->is_object() && value.is_object()) {
      if (json inner = difference(*at, value); !inner.empty()) result[key] = std::move(inner);
    } else if (*at != value) {
      result[key] = value;
    }
  }
  return result;
}
}  // namespace

std::string left_open_json(const WorkloadSpec& workload, const Plan& plan) {
  return difference(json::parse(config::write(workload)), json::parse(config::write(filled(workload, plan))))
      .dump();
}
}  // namespace topsim::scenario
