// A finished sweep as people and programs read it: a table, JSON ("topsim.sweep/1"), CSV.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "sim/study/sweep_store.hpp"

namespace topsim::study {

// What the command was given, which an unfinished sweep's rows do not tell.
struct SweepAsked {
  std::optional<std::size_t> best;  // a figure; none: the usual one
  bool pareto = false;              // whether the figures of the Pareto set were named
  bool allow_oom = false;
};

struct SweepReport {
  std::string scenario;  // its name
  SweepSpace space;
  std::vector<SweepRow> rows;  // in the order of the points
  std::size_t by = 0;          // figure
  std::vector<std::size_t> pareto_figures;
  bool complete = true;
  std::set<std::string> assumed_releases{};  // sweep.hpp
  std::vector<std::string> settings{};       // for all points, as --set takes them
  SweepAsked asked{};
  std::set<std::string> tasks{};  // sweep.hpp
};

// Best first, at most `most` rows (0: all), then why the others failed.
[[nodiscard]] std::string sweep_table(const SweepReport& report, std::size_t most, std::size_t columns);
[[nodiscard]] std::string sweep_json(const SweepReport& report);
[[nodiscard]] std::string sweep_csv(const SweepReport& report);
}  // namespace topsim::study
