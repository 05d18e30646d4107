// The fastest parallel plans of a job on a cluster: every plan that fits the memory is bounded from below
// (plan_bound.hpp), and simulated unless its bound says that it cannot be among the best.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "sim/report/result.hpp"
#include "sim/study/plan_space.hpp"
#include "topology/catalogue.hpp"

namespace topsim::study {

struct PlanOptions {
  PlanSpace space;
  std::size_t top = 5;      // how many are wanted
  int jobs = 0;             // simulations at once; 0: one per core
  bool exhaustive = false;  // also simulate what the bound excludes
};

struct PlanProgress {
  std::atomic<bool> stop{false};
  std::atomic<std::size_t> choices{0}, bounded{0}, simulated{0};
};

// A plan that was simulated.
struct PlanRow {
  PlanChoice choice;
  int dp = 1;
  Duration first_step{};  // starts from rest: what the search compares
  Duration bound{};       // of it, never above
  report::Result result;  // as `topsim run` would give it: the scenario's own steps and warm-up; of a search
                          // that was stopped, the first step's
};

// Of the search, whatever the scenario uses: packets take hours, and the bound holds for this model.
inline constexpr network::ModelKind kSearchModel = network::ModelKind::flow;

struct PlanReport {
  std::string scenario;
  std::uint32_t accelerators = 0;
  std::size_t choices = 0;     // combinations of the space
  std::size_t impossible = 0;  // inconsistent: batch, layers, sequence, shards
  std::size_t too_large = 0;   // do not fit the memory
  std::size_t cut = 0;         // bound above the last of the best
  std::size_t simulated = 0;
  std::vector<PlanRow> rows;    // the best, best first
  std::optional<PlanRow> own;   // the scenario's own plan, when it can run
  bool complete = true;         // false: stopped, the rows are the best so far
  scenario::Scenario best;      // the scenario with the first row's plan; of a complete search
  std::string assumed_release;  // of all plans, where none is stated and it is not the newest; else empty
  std::string network;          // the model that the scenario and `best` name; the search uses flow
};

// Throws ConfigError when no plan fits. The report does not depend on `jobs`.
[[nodiscard]] PlanReport search_plans(const scenario::Scenario& scenario,
                                      const topology::Catalogue& catalogue, const PlanOptions& options,
                                      PlanProgress& progress);
}  // namespace topsim::study
