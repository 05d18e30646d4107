// What an outcome says of every single rank and link, whatever was folded.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "sim/executor/outcome.hpp"

namespace topsim::property {

struct PerItem {
  // Picoseconds, rank by rank: busy, slowed of it, communication, hidden of it, idle by reason.
  std::vector<double> ranks;
  struct Link {
    double bytes, peak_rate, busy;  // picoseconds
  };
  std::map<std::uint32_t, Link> links;
  std::vector<double> steps;  // picoseconds, and the end of the run
  std::uint64_t events = 0;
};

inline PerItem spread(const executor::Outcome& outcome, std::uint32_t ranks) {
  constexpr std::size_t kColumns = executor::kReasons + 4;
  PerItem result;
  result.ranks.assign(ranks * kColumns, 0.0);
  const auto count = [](Duration duration) { return static_cast<double>(duration.count()); };
  for (const auto& cls : outcome.ranks) {
    for (const RankId member : cls.members) {
      double* row = &result.ranks[member.index() * kColumns];
      for (const auto& step : cls.steps) {
        row[0] += count(step.busy);
        row[1] += count(step.slowed);
        row[2] += count(step.communication);
        row[3] += count(step.hidden_communication);
        for (std::size_t r = 0; r < executor::kReasons; ++r) row[r + 4] += count(step.idle[r]);
      }
    }
  }
  for (const auto& cls : outcome.links)
    for (const LinkId member : cls.members)
      result.links[member.value] = {cls.bytes, cls.peak_rate, count(cls.busy)};
  for (const Duration step : outcome.step_times) result.steps.push_back(count(step));
  result.steps.push_back(count(outcome.end.time_since_epoch()));
  result.events = outcome.events;
  return result;
}

// Times are rounded to picoseconds at every event of a chain. A chain has at most the ops of all rank
// programs in a row.
inline double allowed(const program::Program& program, const PerItem& unfolded) {
  std::size_t chain = 0;
  for (const auto& cls : program.classes) chain += cls.ops.size();
  return std::max(1e-9 * unfolded.steps.back(), static_cast<double>(2 * chain));
}

// Largest difference of any time, picoseconds.
inline double time_difference(const PerItem& a, const PerItem& b) {
  double worst = a.steps.size() == b.steps.size() ? 0 : 1e18;
  for (std::size_t i = 0; i < std::min(a.steps.size(), b.steps.size()); ++i)
    worst = std::max(worst, std::abs(a.steps[i] - b.steps[i]));
  for (std::size_t i = 0; i < a.ranks.size(); ++i) worst = std::max(worst, std::abs(a.ranks[i] - b.ranks[i]));
  for (const auto& [link, record] : a.links) {
    const auto other = b.links.find(link);
    if (other != b.links.end()) worst = std::max(worst, std::abs(other->second.busy - record.busy));
  }
  return worst;
}

// Largest relative difference of any link's bytes and of its peak rate; 1 where only one of them uses it.
inline double link_difference(const PerItem& a, const PerItem& b) {
  double worst = a.links.size() == b.links.size() ? 0 : 1;
  for (const auto& [link, record] : a.links) {
    const auto other = b.links.find(link);
    if (other == b.links.end()) return 1;
    worst =
        std::max({worst, std::abs(other->second.bytes - record.bytes) / std::max(record.bytes, 1.0),
                  std::abs(other->second.peak_rate - record.peak_rate) / std::max(record.peak_rate, 1.0)});
  }
  return worst;
}
}  // namespace topsim::property
