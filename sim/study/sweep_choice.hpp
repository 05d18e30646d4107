// Which points of a sweep to look at: the best by one figure, and those that no other point beats.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/study/sweep_store.hpp"

namespace topsim::study {

// False where the run warns that a part lacks the ports for its cables: it is simulated, and nobody can buy
// it.
[[nodiscard]] bool can_be_built(const SweepRow& row);

// False where an accelerator would need more memory than it has, or than engines that serve fill.
[[nodiscard]] bool fits_memory(const SweepRow& row);

// Indices into `rows` of those that have the figure, best first; equal ones in the order of the points. Those
// that do not fit the memory come after those that do, those that cannot be built last.
[[nodiscard]] std::vector<std::size_t> ranked(std::span<const SweepRow> rows, std::size_t figure);

// The Pareto set: rows that can be built and fit (any that can be built if none fits), such that no other is
// at least as good in all figures and better in one. Of equal rows all are in it. Figures that some row lacks
// are ignored. Indices into `rows`, ascending.
[[nodiscard]] std::vector<std::size_t> pareto(std::span<const SweepRow> rows,
                                              std::span<const std::size_t> figures);

// The default figure for ranking: tokens per second where tokens are processed, else the step time.
[[nodiscard]] std::size_t usual_figure(std::span<const SweepRow> rows);
// That figure and its price: cost per hour, accelerators, and memory unless every point fits.
[[nodiscard]] std::vector<std::size_t> usual_pareto_figures(std::span<const SweepRow> rows);
}  // namespace topsim::study
