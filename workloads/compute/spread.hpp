// Accelerators of one model differ: each chip leaves the factory with its own voltage, and under the same
// power limit keeps its own clock. A step that all take together lasts as long as the slowest takes.
//
//   clock of the slowest of n = 1 / (1 + s z_n),   z_n = Q((n - 0.375) / (n + 0.25))
//
// s: standard deviation of the time of compute-bound work between chips; Q: quantiles of the normal
// distribution (Blom's approximation of the largest of n draws). Valid from 2 to some 100,000 chips; outliers
// beyond the normal distribution are faults and no part of it (compute.slow_ranks).
#pragma once

namespace topsim::workloads {

// 8 % between the whiskers of matmul times over the chips of five clusters (Sinha et al., Not All GPUs Are
// Created Equal, SC'22, abstract; that the figure is the whiskers' is recalled): 5.4 standard deviations of a
// normal distribution. Stas Bekman's ML Engineering gives 5 % from the fastest to the slowest of a node of
// eight, 2.8 standard deviations: 1.8 %.
inline constexpr double kChipSpread = 0.015;

[[nodiscard]] double expected_largest(double draws);  // z_n; 0 for one draw
}  // namespace topsim::workloads
