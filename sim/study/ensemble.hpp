// The same scenarios many times: each sample with its own ECMP seed and its own draw of every figure that the
// catalogue gives as a range. Samples run in parallel; the outcome does not depend on the number of threads.
#pragma once

#include <span>
#include <vector>

#include "sim/executor/progress.hpp"
#include "sim/report/compare.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/catalogue.hpp"

namespace topsim::study {

struct EnsembleOptions {
  std::size_t samples = 32;
  int jobs = 0;  // threads; 0: one per core
  bool fold = true;
  bool allow_oom = false;
};

// The scenario with the seed of sample `sample`; sample 0 is the scenario itself.
[[nodiscard]] scenario::Scenario drawn(const scenario::Scenario& scenario, std::size_t sample);

// Candidates in the order of the scenarios, with costs, all with `samples` steps (one when none of them
// varies). Throws the first ConfigError in that order. When `progress` is told to stop, the samples not yet
// run are missing from all candidates; an interrupted result has complete = false.
[[nodiscard]] std::vector<report::Candidate> run_ensembles(std::span<const scenario::Scenario> scenarios,
                                                           const topology::Catalogue& catalogue,
                                                           const EnsembleOptions& options,
                                                           executor::Progress* progress = nullptr);

// Bill of materials and running costs of a scenario.
[[nodiscard]] report::CostModel cost_model(const scenario::Scenario& scenario,
                                           const topology::Topology& topology,
                                           const topology::Catalogue& catalogue);
}  // namespace topsim::study
