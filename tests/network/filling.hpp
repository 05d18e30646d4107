// An oracle for max-min fairness, as the textbook has it and independent of the solver.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "random_case.hpp"

namespace topsim::network {

// Rates by progressive filling. One level rises for all; those that come to a full link or to their cap stop
// there:
//     level = min(left_l / sum over open a of w_a u_a(l), cap_a / w_a),   x_a = w_a level,   left_l -= x_a
//     u_a(l).
inline std::vector<double> rates_by_filling(std::vector<double> left,
                                            const std::vector<RandomTransfer>& transfers) {
  constexpr double kSame = 1 + 1e-12;
  std::vector<double> rates(transfers.size(), -1);
  std::vector<std::size_t> open(transfers.size());
  for (std::size_t i = 0; i < open.size(); ++i) open[i] = i;
  while (!open.empty()) {
    std::vector<double> shares(left.size());
    double level = std::numeric_limits<double>::infinity();
    for (const std::size_t i : open) {
      const RandomTransfer& transfer = transfers[i];
      if (transfer.cap > 0) level = std::min(level, transfer.cap / transfer.weight);
      for (const Usage& use : transfer.usage) shares[use.link] += transfer.weight * use.coefficient;
    }
    for (std::size_t link = 0; link < left.size(); ++link)
      if (shares[link] > 0) level = std::min(level, std::max(left[link], 0.0) / shares[link]);
    const auto stops = [&](std::size_t i) {
      const RandomTransfer& transfer = transfers[i];
      return (transfer.cap > 0 && transfer.cap / transfer.weight <= level * kSame) ||
             std::any_of(transfer.usage.begin(), transfer.usage.end(), [&](const Usage& use) {
               return std::max(left[use.link], 0.0) / shares[use.link] <= level * kSame;
             });
    };
    const auto stopped = std::stable_partition(open.begin(), open.end(), [&](auto i) { return !stops(i); });
    for (auto at = stopped; at != open.end(); ++at) {
      rates[*at] = transfers[*at].weight * level;
      for (const Usage& use : transfers[*at].usage) left[use.link] -= rates[*at] * use.coefficient;
    }
    open.erase(stopped, open.end());
  }
  return rates;
}
}  // namespace topsim::network
