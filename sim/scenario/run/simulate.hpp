// From a scenario to its result: what `topsim run`, compare, sweep and Python call.
#pragma once

#include <memory>
#include <optional>

#include "sim/executor/outcome.hpp"
#include "sim/executor/progress.hpp"
#include "sim/program/program.hpp"
#include "sim/report/html/picture.hpp"
#include "sim/report/result.hpp"
#include "sim/report/timeline.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/catalogue.hpp"

namespace topsim::collective {
struct Searches;
}

namespace topsim::scenario {

struct SimulateOptions {
  bool fold = true;        // simulate one of each kind of rank and link
  bool timeline = false;   // keep what happened when, for a trace
  bool allow_oom = false;  // simulate a model that does not fit memory
  // For findings: where flows meet, twice more for the interval of what they lose (network.contention); once
  // more without each fault that comes and goes.
  bool further_runs = false;
  network::Bound contention = network::Bound::middle;  // of that interval
  // A timeline of more ops than this is not kept: one of 16,384 ranks that all differ takes gigabytes.
  std::uint64_t most_slices = UINT64_MAX;
  std::shared_ptr<collective::Searches> searches = {};  // shared with other runs; null: this run's own
};

// Everything that a simulation reads: made once, then constant, shared by runs that differ only in time. In a
// copy, times and rates may be changed, but not what is connected to what.
struct Prepared {
  topology::Topology topology;  // rank r runs on accelerators()[r]
  program::Program program;
  report::Memory memory;
  std::shared_ptr<collective::Searches> searches;  // of channels
};

struct Simulated {
  report::Result result;
  report::RunRecord record;
  std::optional<report::Timeline> timeline;  // both with SimulateOptions::timeline
  std::optional<report::Picture> picture;
  std::uint64_t slices_left_out = 0;  // of a timeline that would exceed SimulateOptions::most_slices
  bool flows_met = false;             // and lost capacity by it (network.contention)
};

// Independent of every other call: many may run in parallel. Throws ConfigError with places. `progress` may
// be null; when its stop flag rises the result so far comes back with complete = false.
[[nodiscard]] Simulated simulate(const Scenario& scenario, const topology::Catalogue& catalogue,
                                 const SimulateOptions& options, executor::Progress* progress);

// The two halves of it, for callers that change something in between (a faster part, a cut cable).
[[nodiscard]] Prepared prepare(const Scenario& scenario, const topology::Catalogue& catalogue,
                               const SimulateOptions& options);
[[nodiscard]] Simulated simulate(const Scenario& scenario, const topology::Catalogue& catalogue,
                                 const Prepared& prepared, const SimulateOptions& options,
                                 executor::Progress* progress);
// Only Result::step, for runs of which nothing else is needed but, perhaps, the library's choices; none where
// it was stopped before its end.
[[nodiscard]] std::optional<Duration> step_of(const Scenario& scenario, const topology::Catalogue& catalogue,
                                              const Prepared& prepared, const SimulateOptions& options,
                                              executor::Progress* progress,
                                              std::vector<executor::CollectiveRecord>* collectives = nullptr);
}  // namespace topsim::scenario
