#include "sim/cli/interrupt.hpp"

#include <unistd.h>

#include <csignal>
#include <string_view>

#include "sim/cli/command.hpp"

namespace topsim::cli {
namespace {
// A signal handler has no argument, so what it sets must be global.
std::atomic<std::atomic<bool>*> watched{nullptr};
std::atomic<const std::atomic<std::uint64_t>*> work_begun{nullptr};
static_assert(std::atomic<std::atomic<bool>*>::is_always_lock_free &&
              std::atomic<bool>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);

void on_signal(int) {
  std::atomic<bool>* stop = watched.load();
  const std::atomic<std::uint64_t>* begun = work_begun.load();
  const bool has_begun = begun == nullptr || *begun != 0;
  if (stop != nullptr && has_begun && !stop->exchange(true)) return;
  constexpr std::string_view kSaid = "interrupted\n";
  if (write(STDERR_FILENO, kSaid.data(), kSaid.size()) < 0) _exit(kInterrupted);  // nobody can be told
  _exit(kInterrupted);  // stdout holds incomplete output, which is dropped
}
}  // namespace

void end_at_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

InterruptGuard::InterruptGuard(std::atomic<bool>& stop, const std::atomic<std::uint64_t>* begun) {
  work_begun.store(begun);
  watched.store(&stop);
}

InterruptGuard::~InterruptGuard() {
  watched.store(nullptr);
  work_begun.store(nullptr);
}
}  // namespace topsim::cli
