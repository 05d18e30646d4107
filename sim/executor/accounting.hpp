// Tiles every rank class's time into busy and idle reasons, step by step, in integer picoseconds.
//
// A step is the window between the ends of two successive steps of the whole job (its last rank's last op). A
// rank that is done early runs on; what it does then belongs to the window in which it happens, so intervals
// past the last known boundary wait until the boundary is known.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/executor/outcome.hpp"

namespace topsim::executor {

class Accounting {
 public:
  Accounting(std::size_t rank_classes, int warmup, int steps);

  // REQUIRES: per rank class intervals follow each other without gaps, from time 0.
  void busy(std::uint32_t rank, SimTime begin, SimTime end) { add(rank, kBusy, begin, end); }
  void idle(std::uint32_t rank, Reason reason, SimTime begin, SimTime end) {
    add(rank, static_cast<std::uint8_t>(reason), begin, end);
  }
  // Whether all its time from its last step's end on belongs to the window that is open.
  [[nodiscard]] bool in_open_window(std::uint32_t rank) const {
    return ranks_[rank].finished == boundaries_.size();
  }
  // Many intervals at once, up to `until`. REQUIRES: in_open_window(rank) since they began.
  void add(std::uint32_t rank, Duration busy, const std::array<Duration, kReasons>& idle, SimTime until);
  // A rank class has done its own part of a step. Returns true when it was the last: the step ends now.
  bool finish_step(std::uint32_t rank, SimTime now);
  // After the last step: ranks that were done early wait for the others.
  void close(std::uint32_t rank, Reason reason);

  [[nodiscard]] SimTime accounted_until(std::uint32_t rank) const { return ranks_[rank].until; }
  [[nodiscard]] const std::vector<SimTime>& boundaries() const { return boundaries_; }
  [[nodiscard]] std::vector<StepAccount> steps(std::uint32_t rank) const;

 private:
  static constexpr std::uint8_t kBusy = 0xff;
  struct Interval {
    std::uint8_t what;
    SimTime begin, end;
  };
  struct Rank {
    SimTime until{};
    std::uint32_t finished = 0;        // own steps done
    std::vector<StepAccount> windows;  // by step, warm-up included
    std::vector<Interval> pending;     // begins at or after the last known boundary, of a step already left
  };
  void add(std::uint32_t rank, std::uint8_t what, SimTime begin, SimTime end);
  void book(Rank& rank, const Interval& interval);

  std::vector<Rank> ranks_;
  std::vector<SimTime> boundaries_;       // ends of the job's steps so far
  std::vector<std::uint32_t> finishers_;  // per step: rank classes that are done with it
  int warmup_, total_;
};
}  // namespace topsim::executor
