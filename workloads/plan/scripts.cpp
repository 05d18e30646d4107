// What a benchmark's own scripts set where a scenario leaves it open (framework/mlperf.cpp).
#include "workloads/compute/compute_model.hpp"
#include "workloads/framework.hpp"
#include "workloads/plan.hpp"

namespace topsim::workloads {
namespace {
void set_formats(bool divides_both, PrecisionSpec& precision) {
  if (bytes_of(precision.gemm) >= 2) return;
  if (!precision.frozen_weights) precision.frozen_weights = precision.gemm;
  if (!precision.attention_core && !divides_both) precision.attention_core = Precision::fp8;
}

// Mixtures, and jobs that say themselves how kernels are launched, have no graphs from here.
bool takes_graphs(const WorkloadSpec& workload) {
  const ComputeSpec& compute = workload.compute;
  return workload.plan.cp > 1 && workload.model.experts.count == 0 && compute.graph_parts.empty() &&
         !compute.cuda_graph && !compute.launch_overhead && !compute.launch_blocking;
}
}  // namespace

WorkloadSpec scripted(WorkloadSpec workload) {
  if (workload.task != Task::lora || !framework_of(workload).lora_scripts) return workload;
  if (!workload.lora) workload.lora.emplace();
  if (!workload.lora->targets) workload.lora->targets = {"qkv", "proj"};
  PlanSpec& plan = workload.plan;
  if (!plan.tp_overlap && plan.tp > 1 && plan.sequence_parallel.value_or(true))
    plan.tp_overlap = TensorOverlap::userbuffers;
  set_formats(workload.plan.tp > 1 && workload.plan.cp > 1, workload.precision);
  if (takes_graphs(workload)) workload.compute.graph_parts = {"attention", "mlp"};
  return workload;
}
}  // namespace topsim::workloads
