// Adapters of rank 16 beside Llama-3 8B on one accelerator: one sequence of 4,096 tokens.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/workloads/fixtures.hpp"
#include "workloads/plan.hpp"

namespace topsim::workloads::testing {

inline WorkloadSpec adapted(std::string framework, std::vector<std::string> targets = {"proj"}) {
  WorkloadSpec workload = llama3_8b("ddp");
  workload.framework = std::move(framework);
  workload.plan = {};
  workload.plan.micro_batch = 1, workload.plan.grad_accumulation = 1;
  workload.plan.recompute = RecomputeSpec{};
  workload.sequence = 4096;
  workload.task = Task::lora;
  workload.lora.emplace().targets = std::move(targets);
  return workload;
}
inline Plan plan_of(std::string framework, std::vector<std::string> targets = {"proj"}) {
  return resolve(adapted(std::move(framework), std::move(targets)), 1);
}

}  // namespace topsim::workloads::testing
