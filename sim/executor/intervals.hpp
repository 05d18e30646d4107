// Intervals of simulated time, as sets.
#pragma once

#include <algorithm>
#include <compare>
#include <vector>

#include "sim/base/units.hpp"

namespace topsim::executor {

struct Interval {
  SimTime begin, end;
  auto operator<=>(const Interval&) const = default;
};

using Intervals = std::vector<Interval>;

// The same set without overlaps. REQUIRES: in order.
inline void unite(Intervals& all) {
  std::size_t kept = 0;
  for (const Interval& each : all) {
    if (kept == 0 || all[kept - 1].end < each.begin)
      all[kept++] = each;
    else
      all[kept - 1].end = std::max(all[kept - 1].end, each.end);
  }
  all.resize(kept);
}

// REQUIRES: both as unite() leaves them.
[[nodiscard]] inline Duration common(const Intervals& some, const Intervals& others) {
  Duration sum{};
  auto other = others.begin();
  for (const Interval& each : some) {
    while (other != others.end() && other->end <= each.begin) ++other;
    for (auto next = other; next != others.end() && next->begin < each.end; ++next)
      sum += std::min(each.end, next->end) - std::max(each.begin, next->begin);
  }
  return sum;
}

[[nodiscard]] inline Duration length(const Intervals& united) {
  Duration sum{};
  for (const Interval& each : united) sum += each.end - each.begin;
  return sum;
}
}  // namespace topsim::executor
