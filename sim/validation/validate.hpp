// Predicts cases side by side and sums up the errors, family by family.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/validation/case.hpp"
#include "topology/catalogue.hpp"

namespace topsim::validation {

struct Prediction {
  std::string name, family, source;
  double published = 0;             // s
  std::optional<double> predicted;  // s; unset: it could not be simulated
  std::string problem;              // why not
  bool fits = true;                 // the model's memory, as the product counts it
  [[nodiscard]] double error() const { return predicted ? *predicted / published - 1 : 0; }
};

// Errors are predicted / published - 1. Percentiles are the smallest error that so many are not above.
struct Summary {
  std::size_t cases = 0, failed = 0;  // failed: could not be simulated; not in the figures below
  double mean = 0, median = 0, percentile_90 = 0, max = 0;  // of the absolute errors
  double bias = 0;                                          // mean error
  Bar bar, goal;
  [[nodiscard]] bool meets(const Bar& limits) const;
  [[nodiscard]] bool passed() const { return failed == 0 && meets(bar); }
};

struct Report {
  std::vector<Prediction> predictions;  // in the order of the files and their rows
  std::map<std::string, Summary> families;
  [[nodiscard]] bool passed() const;
};

// Cases run in parallel; the report does not depend on how many at a time. jobs: 0 for all cores.
[[nodiscard]] Report validate(const std::vector<CaseFile>& files, const topology::Catalogue& catalogue,
                              const config::Library& library, int jobs = 0);

// The figures of one family. REQUIRES: every prediction is of it.
[[nodiscard]] Summary summarise(const std::vector<const Prediction*>& predictions);

// One line a family; with `cases` one a case before it.
[[nodiscard]] std::string to_text(const Report& report, bool cases);
[[nodiscard]] std::string to_json(const Report& report);  // topsim.validate/1
}  // namespace topsim::validation
