// Divides every rank class's time into busy time and idle reasons, step by step, in integer picoseconds.
//
// A step of the job lasts from the end of the step before (its last rank's last op) to its own. What a rank
// does between two of its own step ends belongs to its own step, whenever the others finish: ranks that
// nothing synchronises may be more than a step ahead. steps() then makes every rank's step as long as the
// job's.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/executor/outcome.hpp"

namespace topsim::executor {

class Accounting {
 public:
  Accounting(std::size_t rank_classes, int warmup, int steps);

  // REQUIRES: per rank class intervals follow each other without gaps, from time 0.
  // `slowed`: of it, what communication beside the kernel cost.
  void busy(std::uint32_t rank, SimTime begin, SimTime end, Duration slowed = {});
  void idle(std::uint32_t rank, Reason reason, SimTime begin, SimTime end);
  // Of its open step, beside what busy() and idle() divide.
  void communicated(std::uint32_t rank, Duration communication, Duration hidden);
  // Many intervals of its open step at once, up to `until`.
  void add(std::uint32_t rank, const StepAccount& more, SimTime until);
  // A rank class has done its own part of a step. Returns true when it was the last: the step ends now.
  bool finish_step(std::uint32_t rank, SimTime now);

  [[nodiscard]] SimTime accounted_until(std::uint32_t rank) const { return ranks_[rank].until; }
  [[nodiscard]] const std::vector<SimTime>& boundaries() const { return boundaries_; }
  // The measured steps that all ranks have ended, each as long as the job's. A rank that is done early waits
  // for the others, for the reason `at_end`. If it has run ahead, that wait is shorter, and the part of its
  // work beyond a step of the job counts in the step before.
  [[nodiscard]] std::vector<StepAccount> steps(std::uint32_t rank, Reason at_end) const;

 private:
  struct Rank {
    SimTime until{};
    std::uint32_t finished = 0;      // own steps done
    std::vector<StepAccount> steps;  // its own, warm-up included
  };

  std::vector<Rank> ranks_;
  std::vector<SimTime> boundaries_;       // ends of the job's steps so far
  std::vector<std::uint32_t> finishers_;  // per step: rank classes that are done with it
  std::size_t warmup_;
};
}  // namespace topsim::executor
