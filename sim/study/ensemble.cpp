#include "sim/study/ensemble.hpp"

#include <algorithm>
#include <optional>

#include "sim/base/parallel.hpp"
#include "sim/collective/collective.hpp"
#include "sim/scenario/run/simulate.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/study/uncertainty.hpp"

namespace topsim::study {
namespace {
using scenario::Scenario;

// A candidate as its scenario says.
struct AsGiven {
  scenario::Prepared prepared;
  scenario::Simulated simulated;  // sample 0
  Ranges ranges;
  Chances chances;
  [[nodiscard]] bool varies() const { return ranges.vary() || chances.any(); }
};

std::optional<Duration> sample_step(const Scenario& scenario, const topology::Catalogue& catalogue,
                                    const AsGiven& given, std::size_t sample, scenario::SimulateOptions how,
                                    executor::Progress* progress) {
  const Scenario each = drawn(scenario, sample);
  how.contention = drawn_contention(sample);
  const scenario::Prepared own = given.chances.placements
                                     ? drawn(given.ranges, sample, scenario::prepare(each, catalogue, how))
                                     : drawn(given.ranges, sample, given.prepared);
  return scenario::step_of(each, catalogue, own, how, progress);
}

// Calls work(i, progress of that run) for every run.
template <class Work>
void run_all(std::size_t runs, int jobs, executor::Progress* progress, const Work& work) {
  if (progress != nullptr) progress->runs_total += runs;
  parallel::in_order(runs, jobs, [&](std::size_t i) {
    executor::RunOfStudy own(progress);
    work(i, &own.progress);
    if (progress != nullptr) ++progress->runs_done;
  });
}
}  // namespace

Scenario drawn(const Scenario& scenario, std::size_t sample) {
  Scenario each = scenario;
  each.run.seed = scenario.run.seed + sample;
  return each;
}

report::CostModel cost_model(const Scenario& scenario, const topology::Topology& topology,
                             const topology::Catalogue& catalogue) {
  return report::make_cost_model(
      report::bill_of_materials(
          topology, scenario.topology, catalogue, scenario.cost,
          [&](const std::string& path) { return scenario::place_text(scenario, path); }),
      catalogue, scenario.cost);
}

std::vector<report::Candidate> run_ensembles(std::span<const Scenario> scenarios,
                                             const topology::Catalogue& catalogue,
                                             const EnsembleOptions& options, executor::Progress* progress) {
  scenario::SimulateOptions how;
  how.fold = options.fold;
  how.allow_oom = options.allow_oom;
  how.searches = collective::no_searches_yet();
  // Sample 0 of every candidate first: it is the actual result, and shows which candidates can vary.
  std::vector<AsGiven> given(scenarios.size());
  for (std::size_t c = 0; c < scenarios.size(); ++c)
    given[c].prepared = scenario::prepare(scenarios[c], catalogue, how);
  run_all(scenarios.size(), options.jobs, progress, [&](std::size_t c, executor::Progress* own) {
    const topology::Topology& topology = given[c].prepared.topology;
    given[c].simulated = scenario::simulate(scenarios[c], catalogue, given[c].prepared, how, own);
    given[c].ranges = ranges_of(scenarios[c], topology, catalogue);
    given[c].chances = chances_of(scenarios[c], topology, given[c].simulated);
  });

  struct Run {
    std::size_t candidate, sample;
    std::optional<Duration> step = {};  // none: the run was stopped
  };
  std::vector<Run> runs;
  std::size_t done = 1;
  for (std::size_t c = 0; c < scenarios.size(); ++c) {
    if (!given[c].varies()) continue;
    for (std::size_t s = 1; s < options.samples; ++s) runs.push_back({c, s});
    done = std::max<std::size_t>(options.samples, 1);
  }
  run_all(runs.size(), options.jobs, progress, [&](std::size_t i, executor::Progress* own) {
    if (own->stopped()) return;
    const std::size_t c = runs[i].candidate;
    runs[i].step = sample_step(scenarios[c], catalogue, given[c], runs[i].sample, how, own);
  });
  for (const Run& run : runs) {
    if (!run.step) done = std::min(done, run.sample);
  }

  std::vector<report::Candidate> candidates;
  for (std::size_t c = 0; c < scenarios.size(); ++c) {
    report::Candidate candidate;
    candidate.result = std::move(given[c].simulated.result);
    candidate.steps.assign(done, candidate.result.step);
    for (const Run& run : runs) {
      if (run.candidate == c && run.sample < done) candidate.steps[run.sample] = *run.step;
    }
    if (done > 1) candidate.drawn = in_words(given[c].ranges, given[c].chances);
    candidate.cost = cost_model(scenarios[c], given[c].prepared.topology, catalogue);
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}
}  // namespace topsim::study
