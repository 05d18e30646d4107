// Ctrl-C: the first one asks the simulation to stop at its next event, the second one kills.
#pragma once

#include <atomic>

#include "sim/executor/options.hpp"

namespace topsim::cli {

// While it lives, SIGINT and SIGTERM raise `stop`. One at a time.
class InterruptGuard {
 public:
  explicit InterruptGuard(std::atomic<bool>& stop);
  explicit InterruptGuard(executor::Progress& progress) : InterruptGuard(progress.stop) {}
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};
}  // namespace topsim::cli
