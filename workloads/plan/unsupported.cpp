// Keys that the product knows and this version cannot simulate: named, never ignored.
#include <fmt/format.h>

#include "workloads/plan/parts.hpp"

namespace topsim::workloads {

void refuse_unsupported(const WorkloadSpec& workload, Mistakes& mistakes) {
  const PlanSpec& plan = workload.plan;
  const auto refuse = [&](bool present, const char* path, const char* what, const char* instead) {
    if (present) mistakes.add(path, fmt::format("{} is not supported yet", what), instead);
  };
  refuse(workload.task == Task::lora, "task", "LoRA", "leave task out");
  refuse(workload.lora.has_value(), "lora", "LoRA", "leave lora out");
  refuse(plan.zero_group.kind != ZeroGroup::Kind::all, "plan.zero_group", "a shard group smaller than dp",
         "use framework fsdp with hsdp_shard");
  refuse(plan.offload != Offload::none, "plan.offload", "offload", "set offload to none");
  refuse(plan.tp_overlap == TensorOverlap::userbuffers, "plan.tp_overlap", "user-buffer overlap",
         "set tp_overlap to async");
  refuse(workload.trace.has_value(), "trace", "a workload trace", "describe the workload by model and plan");
}
}  // namespace topsim::workloads
