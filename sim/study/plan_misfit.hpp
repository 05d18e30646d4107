// The message when no plan of a space fits: how close the nearest is, and what would fit.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "sim/study/plan_space.hpp"
#include "topology/catalogue.hpp"

namespace topsim::study {

struct PlanJob {
  const workloads::WorkloadSpec& workload;
  const topology::Accelerator& accelerator;
  std::uint32_t accelerators = 0;
  bool grows = false;  // by nodes, so that --gpus may be more
};

struct Misfit {
  std::string what;  // "is tp 8 pp 1 ...: it needs 95.1 GiB, 20.6 GiB too much"
  std::string help;  // what would make it fit
};

// The plan that lacks least. REQUIRES: too_large is not empty; each resolves and does not fit.
[[nodiscard]] Misfit nearest_misfit(const PlanJob& job, std::span<const PlanChoice> too_large);

// A global batch, and a number of accelerators, with which one of the choices is consistent.
[[nodiscard]] std::string what_would_divide(const PlanJob& job, std::span<const PlanChoice> choices);
}  // namespace topsim::study
