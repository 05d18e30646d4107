// Files that compare and explain accept: scenarios, and results of earlier runs (which contain their
// scenario).
#pragma once

#include <optional>
#include <string>

#include "sim/cli/scenario_options.hpp"
#include "sim/report/result.hpp"

namespace topsim::cli {

struct StudyInput {
  scenario::Scenario scenario;
  std::optional<report::Result> result;  // set when the file was a result
};

// ConfigError for a result without a step, and for one with --set, --network or --seed, which it could not
// follow.
[[nodiscard]] StudyInput read_study_input(const std::string& file, const ScenarioOptions& changes);
}  // namespace topsim::cli
