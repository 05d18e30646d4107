// What a rank's waits are charged to: reasons, or the work of its other streams meanwhile.
#include <algorithm>
#include <utility>

#include "sim/executor/executor_class.hpp"
#include "sim/executor/reasons.hpp"

namespace topsim::executor {

// When other streams computed, until now; in order and without overlap.
std::vector<Interval> Executor::take_computed_beside(std::uint32_t r) {
  RankState& rank = ranks_[r];
  std::vector<Interval> all = std::exchange(rank.computed_beside, {});
  for (const ComputeState& each : rank.beside) all.push_back({(*rank.trace)[each.op].begin, now()});
  std::sort(all.begin(), all.end());
  unite(all);
  return all;
}

void Executor::charge_wait(std::uint32_t r, std::uint32_t blocked, std::uint32_t blocker, SimTime until) {
  const std::vector<Interval> busy = take_computed_beside(r);
  const SimTime from = accounting_.accounted_until(r);
  if (from >= until) return;
  legs_.clear();
  const RankState& rank = ranks_[r];
  explain_wait(*rank.program, *rank.table, *rank.trace, charges_[charge_of_[r]], blocked, blocker, from,
               until, legs_);
  auto other = busy.begin();
  for (auto leg = legs_.rbegin(); leg != legs_.rend(); ++leg) {
    for (SimTime at = leg->begin; at < leg->end;) {
      while (other != busy.end() && other->end <= at) ++other;
      const SimTime idle_until = other == busy.end() ? leg->end : std::clamp(other->begin, at, leg->end);
      accounting_.idle(r, leg->reason, at, idle_until);
      if (at < idle_until && options_.timeline && measuring(r))
        idle_.push_back({r, leg->reason, at, idle_until});
      at = idle_until;
      if (at == leg->end) break;
      accounting_.busy(r, at, std::min(other->end, leg->end));
      at = std::min(other->end, leg->end);
    }
  }
}
}  // namespace topsim::executor
