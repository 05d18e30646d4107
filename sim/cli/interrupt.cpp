#include "sim/cli/interrupt.hpp"

#include <csignal>

namespace topsim::cli {
namespace {
// A signal handler gets no argument: what it sets has to be reachable from here.
std::atomic<std::atomic<bool>*> watched{nullptr};
static_assert(std::atomic<std::atomic<bool>*>::is_always_lock_free);

void on_signal(int) {
  if (std::atomic<bool>* stop = watched.load()) stop->store(true);
}

void handle(void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}
}  // namespace

InterruptGuard::InterruptGuard(std::atomic<bool>& stop) {
  watched.store(&stop);
  handle(on_signal, static_cast<int>(SA_RESETHAND));  // the second one finds the default: it kills
}

InterruptGuard::~InterruptGuard() {
  handle(SIG_DFL, 0);
  watched.store(nullptr);
}
}  // namespace topsim::cli
