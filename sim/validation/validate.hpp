// Predicts cases in parallel and summarises the errors, family by family.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/executor/progress.hpp"
#include "sim/validation/case.hpp"
#include "topology/catalogue.hpp"

namespace topsim::validation {

enum class Figure : std::uint8_t { step, collective, memory, share, ratio };

struct Prediction {
  std::string name, family, source;
  Figure figure = Figure::step;
  std::optional<Share> share;       // which, of Figure::share
  double published = 0;             // s, bytes, a share, or a ratio of costs
  std::optional<double> predicted;  // the same; unset: it could not be simulated
  std::string problem;              // why not, where, and what to do, in one line
  bool fits = true;                 // the model's memory, as the product counts it
  // Steps that share `ranking` differ in layout only, those that share `series` in size only.
  std::string ranking, series;
  double accelerators = 0, samples = 0;
  [[nodiscard]] double error() const;  // relative; of shares the difference
};

// Errors are predicted / published - 1. A percentile is the smallest error that so many cases do not exceed.
struct Summary {
  std::size_t cases = 0, failed = 0;  // failed: could not be simulated; not in the figures below
  double mean = 0, median = 0, percentile_90 = 0, max = 0;  // of the absolute errors
  double bias = 0;                                          // mean error
  // ranking.hpp. tau: families weigh the same; of comparisons: whether they name the same as cheaper.
  std::optional<double> tau, slope;
  std::optional<double> tau_of_pairs;      // every pair the same, whatever its family
  std::optional<double> tau_beyond_noise;  // as tau, of pairs that were published further apart than noise
  std::size_t pairs = 0, distinct_pairs = 0, series = 0;  // that they are of
  Bar bar, goal;
  [[nodiscard]] bool none() const { return failed == cases; }  // no figure below says anything
  [[nodiscard]] bool meets(const Bar& limits) const;
  [[nodiscard]] bool passed() const { return failed == 0 && meets(bar); }
};

struct Report {
  std::vector<Prediction> predictions;  // in the order of the files and their rows
  std::map<std::string, Summary> families;
  std::map<std::string, Summary> totals;  // of scored families, every one weighing the same: "steps", ...
  bool complete = true;                   // false: interrupted, it is of the cases that were done
  [[nodiscard]] bool passed() const;
};

// Cases run in parallel; the report does not depend on how many at a time. jobs: 0 for all cores. `progress`
// (may be null) counts the cases; when its stop flag rises, those that are not done are left out.
[[nodiscard]] Report validate(const std::vector<CaseFile>& files, const topology::Catalogue& catalogue,
                              const config::Library& library, int jobs = 0,
                              executor::Progress* progress = nullptr);

// The figures of some families together, every family weighing the same. REQUIRES: no null pointers.
[[nodiscard]] Summary summarise(const std::vector<const Prediction*>& predictions);

// One line per family, with its bar where `columns` has room; with `cases`, before it one per case.
[[nodiscard]] std::string to_text(const Report& report, bool cases, std::size_t columns);
[[nodiscard]] std::string to_json(const Report& report);  // topsim.validate/1
}  // namespace topsim::validation
