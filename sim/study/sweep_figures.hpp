// What a sweep keeps of every run: the columns of its table, in SI units and shares, dollars and watts.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/compare.hpp"
#include "sim/report/cost.hpp"
#include "sim/report/result.hpp"

namespace topsim::study {

struct SweepFigure {
  std::string name;     // "step_seconds"
  std::string key;      // of the result, "step.seconds"; empty: not in it
  std::string label;    // as people say it: "step time"
  std::string meaning;  // one line
  report::Unit unit = report::Unit::count;
  bool more_is_better = false;
  std::string heading = {};  // of what the table shows, where every column counts; empty: it does not
};

// In the order of the columns.
[[nodiscard]] std::span<const SweepFigure> sweep_figures();
// Its label; of a reason to wait, where every point replays a trace, the trace's.
[[nodiscard]] std::string label_of(const SweepFigure& figure, bool traces);
// How people call some of them.
struct ShortName {
  std::string_view name, figure;
};
inline constexpr std::array kShortNames = {ShortName{"step_time", "step_seconds"},
                                           ShortName{"idle", "idle_fraction"},
                                           ShortName{"memory", "memory_bytes"}};
// The figure of this name, short name or key of the result; null: none.
[[nodiscard]] const SweepFigure* find_figure(std::string_view name);
// Index into sweep_figures() of what find_figure() finds; else throws ConfigError with the closest and the
// list.
[[nodiscard]] std::size_t sweep_figure(const std::string& name);

// Values in the same order; none where there is nothing to say (no price is published, no tokens are made).
[[nodiscard]] std::vector<std::optional<double>> figures_of(const report::Result& result,
                                                            const report::CostModel& cost);
}  // namespace topsim::study
