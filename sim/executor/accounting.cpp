#include "sim/executor/accounting.hpp"

#include <algorithm>

namespace topsim::executor {

Accounting::Accounting(std::size_t rank_classes, int warmup, int steps)
    : ranks_(rank_classes),
      finishers_(static_cast<std::size_t>(warmup + steps), 0),
      warmup_(warmup),
      total_(warmup + steps) {
  for (Rank& rank : ranks_) rank.windows.resize(static_cast<std::size_t>(total_));
}

void Accounting::add(std::uint32_t r, std::uint8_t what, SimTime begin, SimTime end) {
  if (end <= begin) return;
  Rank& rank = ranks_[r];
  rank.until = end;
  // A rank still inside step k cannot see k's end before it is done itself: its time belongs to k or to known
  // windows.
  if (rank.finished <= boundaries_.size()) {
    book(rank, {what, begin, end});
  } else {
    rank.pending.push_back({what, begin, end});
  }
}

void Accounting::add(std::uint32_t r, Duration busy, const std::array<Duration, kReasons>& idle,
                     SimTime until) {
  Rank& rank = ranks_[r];
  StepAccount& account = rank.windows[rank.finished];
  account.busy += busy;
  for (std::size_t i = 0; i < kReasons; ++i) account.idle[i] += idle[i];
  rank.until = until;
}

void Accounting::book(Rank& rank, const Interval& interval) {
  SimTime begin = interval.begin;
  auto window = static_cast<std::size_t>(std::upper_bound(boundaries_.begin(), boundaries_.end(), begin) -
                                         boundaries_.begin());
  while (begin < interval.end && window < rank.windows.size()) {
    const SimTime limit =
        window < boundaries_.size() ? std::min(boundaries_[window], interval.end) : interval.end;
    StepAccount& account = rank.windows[window];
    (interval.what == kBusy ? account.busy : account.idle[interval.what]) += limit - begin;
    begin = limit;
    ++window;
  }
}

bool Accounting::finish_step(std::uint32_t r, SimTime now) {
  Rank& rank = ranks_[r];
  const std::uint32_t step = rank.finished++;
  if (++finishers_[step] < ranks_.size()) return false;
  boundaries_.push_back(now);
  for (Rank& other : ranks_) {
    if (other.finished > boundaries_.size())
      continue;  // already a whole step further: still unknown where it falls
    for (const Interval& interval : other.pending) book(other, interval);
    other.pending.clear();
  }
  return true;
}

void Accounting::close(std::uint32_t r, Reason reason) {
  if (!boundaries_.empty()) idle(r, reason, ranks_[r].until, boundaries_.back());
}

std::vector<StepAccount> Accounting::steps(std::uint32_t r) const {
  const auto& windows = ranks_[r].windows;
  return {windows.begin() + warmup_, windows.end()};
}
}  // namespace topsim::executor
