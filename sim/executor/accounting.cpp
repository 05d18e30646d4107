#include "sim/executor/accounting.hpp"

#include <algorithm>
#include <numeric>

namespace topsim::executor {

Accounting::Accounting(std::size_t rank_classes, int warmup, int steps)
    : ranks_(rank_classes),
      finishers_(static_cast<std::size_t>(warmup + steps), 0),
      warmup_(static_cast<std::size_t>(warmup)) {
  for (Rank& rank : ranks_) rank.steps.resize(finishers_.size());
}

void Accounting::busy(std::uint32_t r, SimTime begin, SimTime end, Duration slowed) {
  if (end <= begin) return;
  Rank& rank = ranks_[r];
  rank.until = end;
  rank.steps[rank.finished].busy += end - begin;
  rank.steps[rank.finished].slowed += slowed;
}

void Accounting::idle(std::uint32_t r, Reason reason, SimTime begin, SimTime end) {
  if (end <= begin) return;
  Rank& rank = ranks_[r];
  rank.until = end;
  rank.steps[rank.finished].idle[static_cast<std::size_t>(reason)] += end - begin;
}

void Accounting::communicated(std::uint32_t r, Duration communication, Duration hidden) {
  StepAccount& account = ranks_[r].steps[ranks_[r].finished];
  account.communication += communication;
  account.hidden_communication += hidden;
}

void Accounting::add(std::uint32_t r, const StepAccount& more, SimTime until) {
  Rank& rank = ranks_[r];
  StepAccount& account = rank.steps[rank.finished];
  account.busy += more.busy;
  account.slowed += more.slowed;
  for (std::size_t i = 0; i < kReasons; ++i) account.idle[i] += more.idle[i];
  rank.until = until;
}

bool Accounting::finish_step(std::uint32_t r, SimTime now) {
  const std::uint32_t step = ranks_[r].finished++;
  if (++finishers_[step] < ranks_.size()) return false;
  boundaries_.push_back(now);
  return true;
}

std::vector<StepAccount> Accounting::steps(std::uint32_t r, Reason at_end) const {
  std::vector<StepAccount> steps(ranks_[r].steps.begin(),
                                 ranks_[r].steps.begin() + static_cast<std::ptrdiff_t>(boundaries_.size()));
  for (std::size_t k = steps.size(); k-- > 0;) {
    StepAccount& step = steps[k];
    const Duration length = boundaries_[k] - (k == 0 ? SimTime{} : boundaries_[k - 1]);
    Duration more = std::accumulate(step.idle.begin(), step.idle.end(), step.busy) - length;
    if (more <= Duration{}) step.idle[static_cast<std::size_t>(at_end)] -= more;
    while (more > Duration{}) {  // never reaches before the first step: no rank ends after the job does
      Duration* from = &*std::max_element(step.idle.begin(), step.idle.end());
      Duration* to = &steps[k - 1].idle[static_cast<std::size_t>(from - step.idle.data())];
      if (*from == Duration{}) from = &step.busy, to = &steps[k - 1].busy;
      const Duration moved = std::min(more, *from);
      *from -= moved, *to += moved, more -= moved;
      const Duration beyond = std::max(Duration{}, step.slowed - step.busy);
      step.slowed -= beyond, steps[k - 1].slowed += beyond;
    }
  }
  steps.erase(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(std::min(warmup_, steps.size())));
  return steps;
}
}  // namespace topsim::executor
