// Long work for a Python thread: runs without the GIL and can be stopped by Ctrl-C.
#pragma once

#include <atomic>
#include <chrono>
#include <future>

#include "python/bindings/bindings.hpp"
#include "sim/executor/progress.hpp"

namespace topsim::python {

// Calls work() on a thread of its own. Meanwhile the calling thread runs Python's signal handlers and tick()
// ten times a second; an exception from them sets `stop`, and is thrown here once the work has ended.
template <class Work, class Tick>
auto interruptible(std::atomic<bool>& stop, const Tick& tick, const Work& work) {
  using namespace std::chrono_literals;
  auto running = std::async(std::launch::async, work);
  const auto finished_within = [&](std::chrono::milliseconds time) {
    const py::gil_scoped_release release;
    return running.wait_for(time) == std::future_status::ready;
  };
  try {
    while (!finished_within(100ms)) {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      tick();
    }
  } catch (...) {
    stop = true;
    const py::gil_scoped_release release;
    running.wait();
    throw;
  }
  return running.get();
}

// work(progress) of one simulation; `on_progress(ops_done, ops_total, simulated_seconds, events, step)` may
// be None.
template <class Work>
auto interruptible(const py::object& on_progress, const Work& work) {
  executor::Progress progress;
  progress.partial = false;  // KeyboardInterrupt is all that the caller gets
  const auto tick = [&] {
    if (on_progress.is_none()) return;
    on_progress(progress.ops_done.load(), progress.ops_total.load(),
                static_cast<double>(progress.now_ps.load()) / 1e12, progress.events.load(),
                progress.step.load());
  };
  return interruptible(progress.stop, tick, [&] { return work(progress); });
}
}  // namespace topsim::python
