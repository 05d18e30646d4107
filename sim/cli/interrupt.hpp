// Ctrl-C and SIGTERM, one way for all commands. While an InterruptGuard lives, the first signal raises its
// flag: the work stops at its next event, and what was done so far is written, marked incomplete. A second
// signal, or one that nobody watches, ends the program at once: exit code 130, nothing on stdout. So does one
// that comes before there is anything to write. A guard that lives until everything is written keeps files
// whole.
#pragma once

#include <atomic>
#include <cstdint>

namespace topsim::cli {

// Once, at the beginning of the program.
void end_at_interrupts();

// One at a time.
class InterruptGuard {
 public:
  // `begun`: 0 as long as what is prepared looks at no flag and leaves nothing; null: from the start.
  explicit InterruptGuard(std::atomic<bool>& stop, const std::atomic<std::uint64_t>* begun = nullptr);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};
}  // namespace topsim::cli
