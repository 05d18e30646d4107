#include "sim/study/sweep_choice.hpp"

#include <algorithm>
#include <tuple>

#include "sim/report/findings.hpp"
#include "sim/scenario/findings/cable_findings.hpp"
#include "sim/study/sweep_figures.hpp"

namespace topsim::study {
namespace {
// Smaller is better.
double loss(const SweepRow& row, std::size_t figure) {
  const double value = *row.figures[figure];
  return sweep_figures()[figure].more_is_better ? -value : value;
}
bool has(const SweepRow& row, std::size_t figure) {
  return row.ok && row.figures[figure].has_value();
}
}  // namespace

bool can_be_built(const SweepRow& row) {
  return row.message.find(scenario::kNoPorts) == std::string::npos;
}

bool fits_memory(const SweepRow& row) {
  static const std::size_t used = sweep_figure("memory_bytes"), there = sweep_figure("memory_usable_bytes");
  return !has(row, used) || !has(row, there) || *row.figures[used] <= *row.figures[there];
}

std::vector<std::size_t> ranked(std::span<const SweepRow> rows, std::size_t figure) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (has(rows[i], figure)) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto key = [&](const SweepRow& row) {
      return std::tuple(!can_be_built(row), !fits_memory(row), loss(row, figure));
    };
    return key(rows[a]) < key(rows[b]);
  });
  return order;
}

std::vector<std::size_t> pareto(std::span<const SweepRow> rows, std::span<const std::size_t> figures) {
  std::vector<std::size_t> used;
  for (const std::size_t figure : figures) {
    const auto lacks = [&](const SweepRow& row) { return row.ok && !has(row, figure); };
    if (std::none_of(rows.begin(), rows.end(), lacks)) used.push_back(figure);
  }
  const auto built = [](const SweepRow& row) { return row.ok && can_be_built(row); };
  const bool any_fits = std::any_of(rows.begin(), rows.end(),
                                    [&](const SweepRow& row) { return built(row) && fits_memory(row); });
  const auto losses = [&](std::size_t row) {
    std::vector<double> values;
    for (const std::size_t figure : used) values.push_back(loss(rows[row], figure));
    return values;
  };
  // In lexicographic order a row can only be dominated by an earlier one, and it is enough to compare it with
  // those on the front so far.
  std::vector<std::pair<std::vector<double>, std::size_t>> candidates;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (built(rows[i]) && fits_memory(rows[i]) == any_fits && !used.empty())
      candidates.emplace_back(losses(i), i);
  }
  std::sort(candidates.begin(), candidates.end());
  std::vector<std::pair<std::vector<double>, std::size_t>> front;
  for (const auto& candidate : candidates) {
    const auto beats = [&](const auto& other) {
      if (other.first == candidate.first) return false;
      for (std::size_t f = 0; f < used.size(); ++f) {
        if (other.first[f] > candidate.first[f]) return false;
      }
      return true;
    };
    if (std::none_of(front.begin(), front.end(), beats)) front.push_back(candidate);
  }
  std::vector<std::size_t> result;
  for (const auto& each : front) result.push_back(each.second);
  std::sort(result.begin(), result.end());
  return result;
}

std::size_t usual_figure(std::span<const SweepRow> rows) {
  const std::size_t tokens = sweep_figure("tokens_per_second");
  const bool made =
      std::any_of(rows.begin(), rows.end(), [&](const SweepRow& row) { return has(row, tokens); });
  return made ? tokens : sweep_figure("step_seconds");
}

std::vector<std::size_t> usual_pareto_figures(std::span<const SweepRow> rows) {
  std::vector<std::size_t> figures{usual_figure(rows), sweep_figure("usd_per_hour"),
                                   sweep_figure("accelerators")};
  // Free memory is no merit if there is enough: nearly every point would use less than some other.
  const std::size_t used = sweep_figure("memory_bytes"), there = sweep_figure("memory_capacity_bytes");
  const bool scarce = std::any_of(rows.begin(), rows.end(), [&](const SweepRow& row) {
    return !row.ok || !has(row, used) || !has(row, there) ||
           *row.figures[used] >= report::kNearlyFull * *row.figures[there];
  });
  if (scarce) figures.push_back(used);
  return figures;
}
}  // namespace topsim::study
