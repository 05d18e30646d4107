// Long work for a Python thread: without the GIL, and Ctrl-C reaches it.
#pragma once

#include <chrono>
#include <future>

#include "python/bindings/bindings.hpp"
#include "sim/executor/options.hpp"

namespace topsim::python {

// Calls work(progress) on a thread of its own. Meanwhile the calling thread runs Python's signal handlers and
// `on_progress(ops_done, ops_total, simulated_seconds, events, step)` (None: nothing) ten times a second;
// what they raise stops the work and is raised here.
template <class Work>
auto interruptible(const py::object& on_progress, const Work& work) {
  using namespace std::chrono_literals;
  executor::Progress progress;
  auto running = std::async(std::launch::async, [&] { return work(progress); });
  const auto finished_within = [&](std::chrono::milliseconds time) {
    const py::gil_scoped_release release;
    return running.wait_for(time) == std::future_status::ready;
  };
  try {
    while (!finished_within(100ms)) {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      if (on_progress.is_none()) continue;
      on_progress(progress.ops_done.load(), progress.ops_total.load(),
                  static_cast<double>(progress.now_ps.load()) / 1e12, progress.events.load(),
                  progress.step.load());
    }
  } catch (...) {
    progress.stop = true;
    const py::gil_scoped_release release;
    running.wait();
    throw;
  }
  return running.get();
}
}  // namespace topsim::python
