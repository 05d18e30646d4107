// Ctrl-C and SIGTERM, handled alike in all commands. While an InterruptGuard exists, the first signal sets
// its flag: the work stops at its next event, and what was done so far is written, marked incomplete. A
// second signal, or one without a guard, ends the program at once: exit code 130, nothing on stdout. So does
// one that comes before there is anything to write. A guard that exists until everything is written keeps
// files whole.
#pragma once

#include <atomic>
#include <cstdint>

namespace topsim::cli {

// Once, at the beginning of the program.
void end_at_interrupts();

// One at a time.
class InterruptGuard {
 public:
  // `begun`: 0 during preparation, which polls no flag, and as long as there is nothing worth writing; null:
  // there is from the beginning.
  explicit InterruptGuard(std::atomic<bool>& stop, const std::atomic<std::uint64_t>* begun = nullptr);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};
}  // namespace topsim::cli
