// The parallel plans that a search considers for one job on one cluster.
#pragma once

#include <compare>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "topology/topology.hpp"

namespace topsim::study {

// The choices of a plan; everything else stays as in the scenario. dp follows.
struct PlanChoice {
  int tp = 1, pp = 1, cp = 1, ep = 1, virtual_stages = 1, micro_batch = 1;
  workloads::Schedule schedule = workloads::Schedule::one_f_one_b;
  workloads::RecomputeKind recompute = workloads::RecomputeKind::none;
  std::optional<int> recompute_layers = {};  // full recompute of so many a stage; else of all
  int zero = 0;
  friend auto operator<=>(const PlanChoice&, const PlanChoice&) = default;
};

struct PlanSpace {
  std::vector<workloads::Schedule> schedules = {workloads::Schedule::one_f_one_b,
                                                workloads::Schedule::interleaved, workloads::Schedule::zb_h1,
                                                workloads::Schedule::zb_2p, workloads::Schedule::zb_v};
  std::vector<std::string> keep;  // dimensions that stay as the scenario has them: "tp", "recompute", ...
};

// Names for `keep`, and schedules by name; unknown ones throw ConfigError with the closest.
[[nodiscard]] std::span<const std::string> plan_dimensions();
[[nodiscard]] workloads::Schedule schedule_named(const std::string& name);
[[nodiscard]] std::string recompute_words(const PlanChoice& choice);  // "full", "4 layers"

// Stages of as many layers each, or that would be if embedding and head were a layer each, as Megatron's
// account_for_embedding_in_pipeline_split and account_for_loss_in_pipeline_split have it.
[[nodiscard]] bool alike(int layers, int stages);
// The choice's are, or they are the workload's own.
[[nodiscard]] bool has_known_stages(const workloads::WorkloadSpec& workload, const PlanChoice& choice);

// The scenario's own plan as a choice.
[[nodiscard]] PlanChoice own_choice(const scenario::Scenario& scenario);
[[nodiscard]] workloads::WorkloadSpec with_plan(const workloads::WorkloadSpec& workload,
                                                const PlanChoice& choice);

// Every combination that the numbers allow: tp divides the heads and stays inside one scale-up domain, pp
// divides the accelerators, stages are alike() or the scenario's own, cp keeps 4,096 tokens a rank, ep
// divides the experts, micro-batches up to 16. Whether the rest of a plan is consistent (batch, sequence,
// memory) is checked later. In a fixed order.
[[nodiscard]] std::vector<PlanChoice> plan_choices(const scenario::Scenario& scenario,
                                                   const topology::Topology& topology,
                                                   const PlanSpace& space);
}  // namespace topsim::study
